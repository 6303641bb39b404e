//! `pathweave ping`: what each path to a server is like.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use pathweave_datapath::{ConnectionStats, DeviceConfig, Driving, PathState, WaitError};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::perf::{
    self, Asks, Broken, Check, ConnectionEnd, Directions, Kind, Latency, Op, ProtectionArgs, Samples, Test,
    draw_number, seconds,
};
use crate::terminal;

/// The small messages that go with the probes, since only they are marked and lost as data is. Their scheme takes
/// each packet's path at random and is not slowed down by anything.
const SCHEME: &str = "rps-nocc";
const MESSAGE_BYTES: u64 = 64;
/// Answers to the last probes may take so long.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Surveys the paths to a `pathweave perf server`: probes and small messages on each, at intervals.
#[derive(Args, Debug)]
pub(crate) struct PingArgs {
    /// The server: host, host:port, [v6address]:port; the port is 18515 unless said otherwise
    #[arg(value_name = "ADDR")]
    server: String,
    /// Paths to survey: UDP source ports, 1 to 256; not more than the server has
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    paths: u16,
    /// Probes of each path
    #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
    /// Seconds between them: 0.1, 20ms
    #[arg(long, short, value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    interval: Duration,
    /// MTU of the links, bytes; the smaller of both ends' is used
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(448..=65_536))]
    mtu: u32,
    #[command(flatten)]
    protection: ProtectionArgs,
    /// Give up a server that does not answer after so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// What is known of a path.
#[derive(Clone, Debug, Serialize)]
struct Surveyed {
    source_port: u16,
    up: bool,
    probes: u64,
    replies: u64,
    /// Of the probes, 0 to 1.
    probe_loss: f64,
    rtt: Option<Latency>,
    data_packets: u64,
    data_lost: u64,
    /// Data packets acknowledged as marked Congestion Experienced.
    data_marked: u64,
}

#[derive(Debug, Serialize)]
struct Survey {
    server: SocketAddr,
    protection: String,
    ended: Ended,
    paths: Vec<Surveyed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ended {
    Done,
    Interrupted,
}

pub(crate) fn ping(args: &PingArgs) -> Result<Outcome, Failure> {
    let peer = perf::resolve(&args.server)?;
    let mut config = DeviceConfig::new(perf::any_port_for(peer));
    config.paths = args.paths;
    config.fit_link(args.mtu as usize).map_err(|why| Failure::Input(format!("--mtu: {why}")))?;
    config.driving = Driving::Caller;
    config.connect_timeout = args.timeout;
    args.protection.apply(&mut config)?;
    let device = perf::open(config)?;
    let interrupt = Interrupt::listen_saying("stopping: what is known will be shown")?;
    let test = Test {
        kind: Kind::Survey,
        op: Op::Write,
        size_bytes: MESSAGE_BYTES,
        depth: 1,
        iterations: None,
        directions: Directions::One,
        check: Check::Off,
    };
    let broken = |why: Broken| Failure::Input(format!("{peer}: {why}"));
    let asks = Asks { test, comes_back: false, client: draw_number()? };
    let mut ready = perf::meet(&device, peer, SCHEME, asks, args.timeout)?.map_err(broken)?;
    perf::note_paths(&ready.connection, args.paths);
    let mut samples = vec![Samples::new(); usize::from(ready.connection.info().paths)];
    let mut replies = vec![0; samples.len()];
    let (mut sent, mut ended) = (0, Ended::Done);
    while sent < args.count {
        if interrupt.requested() {
            ended = Ended::Interrupted;
            break;
        }
        sent += 1;
        round(&mut ready, args.interval, &interrupt).map_err(broken)?;
        note(ready.connection.stats().as_ref(), &mut replies, &mut samples);
    }
    let deadline = Instant::now() + LAST_WAIT;
    while replies.iter().any(|answered| *answered < sent)
        && Instant::now() < deadline
        && !interrupt.requested()
    {
        wait(&mut ready, Duration::from_millis(10), 0, &interrupt).map_err(broken)?;
        note(ready.connection.stats().as_ref(), &mut replies, &mut samples);
    }
    let stats = ready.connection.stats().ok_or_else(|| broken(Broken::Closed))?;
    let protection = ready.connection.info().protection.to_string();
    let survey =
        Survey { server: peer, protection, ended, paths: surveyed(&stats, sent, &replies, &samples) };
    terminal::out(&if args.json { crate::commands::json(&survey) } else { table(&survey) });
    Ok(match ended {
        Ended::Done => Outcome::Done,
        Ended::Interrupted => Outcome::Interrupted,
    })
}

/// A probe and a message for each path, and the answers that come in time.
fn round(ready: &mut ConnectionEnd, interval: Duration, interrupt: &Interrupt) -> Result<(), Broken> {
    ready.connection.probe_paths();
    wait(ready, interval, ready.connection.info().paths.into(), interrupt)
}

/// Takes completions in for so long, and sends messages, one at a time: each is acknowledged alone then, so that it is
/// known which was marked.
fn wait(
    ready: &mut ConnectionEnd,
    span: Duration,
    messages: u64,
    interrupt: &Interrupt,
) -> Result<(), Broken> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    let mut left_to_send = messages;
    loop {
        if left_to_send > 0 && ready.flow.is_done() {
            ready.flow.post_one(&ready.connection)?;
            left_to_send -= 1;
        }
        let left = span.saturating_sub(begun.elapsed());
        if left.is_zero() || interrupt.requested() {
            return Ok(());
        }
        match ready.connection.wait(left.min(LOOK_EVERY)) {
            Ok(completion) => {
                ready.flow.complete(&ready.connection, completion)?;
            }
            Err(WaitError::Timeout(_)) => {}
            Err(WaitError::ConnectionClosed(_)) => return Err(Broken::Closed),
            Err(why) => return Err(Broken::Own(why.to_string())),
        }
    }
}

/// Takes note of probes that have been answered.
fn note(stats: Option<&ConnectionStats>, replies: &mut [u64], samples: &mut [Samples]) {
    let Some(stats) = stats else { return };
    for ((path, replies), samples) in stats.paths.iter().zip(replies).zip(samples) {
        if path.probe_replies > *replies {
            *replies = path.probe_replies;
            if let Some(rtt) = path.probe_rtt {
                samples.add(rtt.as_nanos() as u64);
            }
        }
    }
}

fn surveyed(stats: &ConnectionStats, probes: u64, replies: &[u64], samples: &[Samples]) -> Vec<Surveyed> {
    let of = |index: usize| {
        let path = &stats.paths[index];
        // Paths taken for dead are probed by themselves as well.
        let replies = replies[index].min(probes);
        Surveyed {
            source_port: path.source_port,
            up: path.state == PathState::Up,
            probes,
            replies,
            probe_loss: (probes - replies) as f64 / probes.max(1) as f64,
            rtt: samples[index].latency(1.0),
            data_packets: path.packets,
            data_lost: path.lost,
            data_marked: path.marked,
        }
    };
    (0..stats.paths.len().min(samples.len())).map(of).collect()
}

fn table(survey: &Survey) -> String {
    let mut text = format!(
        "{} paths to {}, {}\n{:>4} {:>6} {:<5} {:>7} {:>7} {:>8} {:>12} {:>12} {:>12} {:>7} {:>6} {:>7}\n",
        survey.paths.len(),
        survey.server,
        survey.protection,
        "path",
        "port",
        "state",
        "probes",
        "replies",
        "loss[%]",
        "RTT min[us]",
        "RTT avg[us]",
        "RTT p99[us]",
        "packets",
        "lost",
        "marked"
    );
    for (index, path) in survey.paths.iter().enumerate() {
        let us =
            |of: fn(&Latency) -> f64| path.rtt.as_ref().map_or("-".into(), |rtt| format!("{:.1}", of(rtt)));
        let _ = writeln!(
            text,
            "{index:>4} {:>6} {:<5} {:>7} {:>7} {:>8.1} {:>12} {:>12} {:>12} {:>7} {:>6} {:>7}",
            path.source_port,
            if path.up { "up" } else { "down" },
            path.probes,
            path.replies,
            path.probe_loss * 100.0,
            us(|rtt| rtt.min_us),
            us(|rtt| rtt.avg_us),
            us(|rtt| rtt.p99_us),
            path.data_packets,
            path.data_lost,
            path.data_marked
        );
    }
    text
}
