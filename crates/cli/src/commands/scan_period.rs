//! `pathweave scan-period`.

use clap::Args;
use std::fmt::Write as _;

use pathweave_scenario::units::{Bytes, Duration, Rate};
use pathweave_transport::rd::ScanOverhead;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Periods that are always listed, in round-trip times: the minimum of 1, the paper's range of 2 to 3, and
/// pathweave's default of 2.5.
const RTTS: [f64; 4] = [1.0, 2.0, 2.5, 3.0];

/// Result of the equation.
#[derive(Debug, Serialize)]
struct Answer {
    rate_bps: u64,
    packet_bytes: u32,
    rtt_us: f64,
    nack_us: f64,
    share: f64,
    /// Shortest period whose share of time does not exceed the bound.
    shortest_us: f64,
    /// Largest period if the bound applied to eta, as the paper prints it.
    as_printed_us: f64,
    /// Evaluated periods in ascending order.
    periods: Vec<Row>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Row {
    period_us: f64,
    rtts: f64,
    packets: f64,
    /// Share of time. `None`: fewer than two packets arrive in a period.
    share: Option<f64>,
}

/// The share of time that negative acknowledgements cost a receiver of reliable datagrams that scans for missing
/// packets once in a period T: eta = T_nack / ((P T / S - 1) RTT). The paper requires "no less than 0.996", which
/// here bounds 1 - eta. As printed, the period would be shorter than a round trip, which the paper excludes.
#[derive(Args, Debug)]
pub(crate) struct ScanPeriodArgs {
    /// Rate at which packets arrive (P)
    #[arg(long, value_name = "RATE", default_value = "200Gbps")]
    pub(crate) rate: Rate,
    /// Size of a packet (S), 64 B to 64 KB
    #[arg(long, value_name = "SIZE", default_value = "4096B")]
    pub(crate) packet: Bytes,
    /// Round-trip time (RTT)
    #[arg(long, value_name = "TIME", default_value = "5us")]
    pub(crate) rtt: Duration,
    /// Time to transfer one NACK across PCIe (T_nack)
    #[arg(long, value_name = "TIME", default_value = "2us")]
    pub(crate) nack: Duration,
    /// Largest share of time that NACKs may cost, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.004)]
    pub(crate) share: f64,
    /// Further periods to evaluate, separated by commas
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    pub(crate) period: Vec<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn scan_period(args: &ScanPeriodArgs) -> Result<Outcome, Failure> {
    let answer = answer(args)?;
    terminal::out(&if args.json { super::json(&answer) } else { text(args, &answer) });
    Ok(Outcome::Done)
}

fn answer(args: &ScanPeriodArgs) -> Result<Answer, Failure> {
    let refuse = |option: &str, value: String, allowed: &str| {
        Err(Failure::Input(format!("--{option} is {value}; allowed: {allowed}")))
    };
    let second = Duration::from_ms(1_000);
    for (option, span) in
        [("rtt", args.rtt), ("nack", args.nack)].into_iter().chain(all("period", &args.period))
    {
        if span == Duration::ZERO || span > second {
            return refuse(option, span.to_string(), "above 0s, at most 1s");
        }
    }
    if args.rate < Rate::from_mbps(1) || args.rate > Rate::from_gbps(100_000) {
        return refuse("rate", args.rate.to_string(), "1Mbps to 100Tbps");
    }
    let Some(packet_bytes) = u32::try_from(args.packet.get()).ok().filter(|b| (64..=65_536).contains(b))
    else {
        return refuse("packet", args.packet.to_string(), "64B to 65536B");
    };
    if !(args.share > 0.0 && args.share < 1.0) {
        return refuse("share", args.share.to_string(), "above 0, below 1");
    }
    let equation = ScanOverhead { rate: args.rate, packet_bytes, rtt: args.rtt, nack: args.nack };
    let shortest = equation.shortest_period(args.share);
    let mut spans: Vec<Duration> = RTTS.iter().map(|&rtts| args.rtt.scale(rtts)).collect();
    spans.push(shortest);
    spans.extend(&args.period);
    spans.sort_unstable();
    spans.dedup();
    let row = |&span: &Duration| Row {
        period_us: us(span),
        rtts: us(span) / us(args.rtt),
        packets: equation.packets(span),
        share: Some(equation.share(span)).filter(|share| share.is_finite()),
    };
    Ok(Answer {
        rate_bps: args.rate.as_bps(),
        packet_bytes,
        rtt_us: us(args.rtt),
        nack_us: us(args.nack),
        share: args.share,
        shortest_us: us(shortest),
        as_printed_us: us(equation.shortest_period(1.0 - args.share)),
        periods: spans.iter().map(row).collect(),
    })
}

fn all<'a>(option: &'a str, spans: &'a [Duration]) -> impl Iterator<Item = (&'a str, Duration)> {
    spans.iter().map(move |&span| (option, span))
}

fn us(span: Duration) -> f64 {
    span.as_ps() as f64 / 1e6
}

fn text(args: &ScanPeriodArgs, answer: &Answer) -> String {
    let mut text = format!(
        "Packets of {} at {}, a round trip of {}, {} a NACK.\n\n  period [us]   round trips   packets   NACKs [%]\n",
        Bytes::new(answer.packet_bytes.into()),
        args.rate,
        args.rtt,
        args.nack
    );
    for Row { period_us, rtts, packets, share } in &answer.periods {
        let share = share.map_or("-".into(), |share| format!("{:.3}", share * 100.0));
        let mark = if *period_us == answer.shortest_us { "  shortest" } else { "" };
        let _ = writeln!(text, "  {period_us:>11.2}   {rtts:>11.2}   {packets:>7.2}   {share:>9}{mark}");
    }
    let percent = answer.share * 100.0;
    let _ = write!(
        text,
        "\nThe shortest period at which NACKs cost at most {percent} % of the time is {:.2} us, {:.2} round trips.\n\
         As printed, with the bound on eta itself, it would be at most {:.2} us, {:.2} round trips.\n",
        answer.shortest_us,
        answer.shortest_us / answer.rtt_us,
        answer.as_printed_us,
        answer.as_printed_us / answer.rtt_us,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ScanPeriodArgs,
    }

    fn ask(options: &[&str]) -> Result<Answer, String> {
        let Line { args } = Line::parse_from(["scan-period"].iter().chain(options));
        answer(&args).map_err(|failure| match failure {
            Failure::Input(text) => text,
            other => panic!("{other:?}"),
        })
    }

    fn close(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() < within
    }

    /// Oracles 11 and 12, and erratum E2: as printed, the period is 0.23 us, a twentieth of a round trip.
    #[test]
    fn the_equation_by_hand() {
        let answer = ask(&["--rtt", "10us", "--period", "20us,10us"]).expect("all is allowed");
        let at = |us: f64| answer.periods.iter().find(|row| row.period_us == us).expect("asked for");
        let (long, short) = (at(20.0), at(10.0));
        assert!(close(long.packets, 122.07, 0.005) && close(long.share.expect("finite"), 0.00165, 5e-6));
        assert!(close(short.share.expect("finite"), 0.00333, 5e-6) && short.rtts == 1.0);
        assert!(close(answer.shortest_us, 8.36, 0.005));
        let answer = ask(&[]).expect("all is allowed");
        assert!(close(answer.shortest_us, 16.55, 0.005) && close(answer.as_printed_us, 0.23, 0.005));
        let answer = ask(&["--rate", "400Gbps"]).expect("all is allowed");
        assert!(close(answer.shortest_us, 8.27, 0.005));
        // The periods are ascending and distinct, and include the shortest.
        assert!(answer.periods.windows(2).all(|pair| pair[0].period_us < pair[1].period_us));
        assert!(answer.periods.iter().any(|row| row.period_us == answer.shortest_us));
    }

    #[test]
    fn a_period_of_one_packet_has_no_share() {
        let answer = ask(&["--period", "100ns"]).expect("all is allowed");
        assert_eq!((answer.periods[0].period_us, answer.periods[0].share), (0.1, None));
    }

    #[test]
    fn invalid_values_are_named() {
        for (options, text) in [
            (["--share", "1"], "--share is 1; allowed: above 0, below 1"),
            (["--share", "nan"], "--share is NaN; allowed: above 0, below 1"),
            (["--rtt", "0s"], "--rtt is 0s; allowed: above 0s, at most 1s"),
            (["--period", "5us,2s"], "--period is 2s; allowed: above 0s, at most 1s"),
            (["--rate", "1bps"], "--rate is 1bps; allowed: 1Mbps to 100Tbps"),
            (["--packet", "63B"], "--packet is 63B; allowed: 64B to 65536B"),
        ] {
            assert_eq!(ask(&options).expect_err("refused"), text);
        }
    }
}
