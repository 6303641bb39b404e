//! Providers over several paths of a lab: total rate of unequal paths, cuts, and losses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pathweave_lab::LinkState;
use serde_json::{Value, json};

use super::fabric::{Measurement, Pair, measure, rate};
use super::site::Site;
use super::tools::{Subject, Tools};
use crate::paths::Net;
use crate::transport::process::ProcessError;

/// Rates of the spines, a thousand times those of the lab.
const GBPS: [u64; 4] = [100, 100, 50, 10];
const SECONDS: u32 = 3;
/// Duration of a stream with a cut, and time of the cut from its start.
const CUT_SECONDS: u32 = 5;
const CUT_AFTER: Duration = Duration::from_millis(2_500);
/// Spines that are cut.
const CUTS: [&[usize]; 2] = [&[0], &[0, 2]];
const BIN: Duration = Duration::from_millis(10);
/// Number of bins over which a rate is averaged, as for the datapath alone.
const WINDOW_BINS: usize = 5;
const SHARE_OF_REST: f64 = 0.9;
/// Number of bins for which the recovered rate must last, and its share. This excludes a burst of queued packets.
const AFTERWARDS_BINS: usize = 50;
const SHARE_AFTERWARDS: f64 = 0.8;
const LOSS: f64 = 0.01;

/// Message sizes and windows with which ours is measured. The other providers use the first of each.
const SIZES: [usize; 4] = [1 << 20, 16 << 10, 32 << 10, 128 << 10];
const WINDOWS: [usize; 2] = [16, 64];

/// Measures the rate of the subjects over unequal spines.
#[allow(clippy::print_stdout)]
pub(super) fn unequal(tools: &Tools, subjects: &[Subject]) -> Result<Vec<Value>, String> {
    let net = Net::make(&GBPS)?;
    // Sum of the rates with headers, as floors define it.
    let sum_mbps: f64 = GBPS.iter().map(|gbps| *gbps as f64).sum();
    let mut rows = Vec::new();
    for (bytes, window) in SIZES.iter().flat_map(|bytes| WINDOWS.map(|window| (*bytes, window))) {
        let is_first = (bytes, window) == (SIZES[0], WINDOWS[0]);
        for subject in subjects.iter().filter(|subject| is_first || **subject == Subject::ENCRYPT) {
            let measured =
                measure(&Site::Lab(&net), tools, subject, Measurement::stream(bytes, window, SECONDS));
            let mbps = measured.as_ref().ok().and_then(rate).map(|mb| mb * 8.0);
            let share = mbps.map(|mbps| mbps / sum_mbps);
            println!(
                "    spines of 100, 100, 50, 10 Mb/s, {window} x {:>4} KiB, {:<20} {}",
                bytes >> 10,
                subject.name,
                share
                    .map_or_else(|| error(&measured), |share| format!("{:.1} % of their sum", 100.0 * share))
            );
            let hung = matches!(measured, Err(ProcessError::Hung(_)));
            rows.push(json!({
                "provider": subject.name, "message_bytes": bytes, "window": window, "mbps": mbps,
                "share_of_sum": share, "hung": hung, "error": measured.err().map(|why| why.to_string()),
            }));
        }
    }
    Ok(rows)
}

/// Bytes that arrived, in bins of time.
struct Arrivals {
    first: Duration,
    bytes: Vec<u64>,
}

impl Arrivals {
    fn parse(text: &str) -> Option<Arrivals> {
        let mut numbers = text.trim().lines().next_back()?.split(' ').map(str::parse::<u64>);
        let first = Duration::from_nanos(numbers.next()?.ok()?);
        Some(Arrivals { first, bytes: numbers.collect::<Result<_, _>>().ok()? })
    }

    /// Returns the mean rate of some bins in bits per second. Bins after the last are empty.
    fn bps(&self, from: usize, bins: usize) -> f64 {
        let bytes: u64 = self.bytes.iter().skip(from).take(bins).sum();
        bytes as f64 * 8.0 / (BIN.as_secs_f64() * bins as f64)
    }

    /// Returns the bin of a time since 1970.
    fn bin(&self, at: Duration) -> usize {
        (at.saturating_sub(self.first).as_nanos() / BIN.as_nanos()) as usize
    }

    /// Returns the milliseconds from a bin until a window has 90 % of a rate and keeps it.
    fn recovery_ms(&self, from: usize, whole_bps: f64) -> Option<f64> {
        let has = |at: usize, bins: usize, share: f64| self.bps(at, bins) >= share * whole_bps;
        let mut starts = from..self.bytes.len().saturating_sub(AFTERWARDS_BINS);
        let at = starts
            .find(|at| has(*at, WINDOW_BINS, SHARE_OF_REST) && has(*at, AFTERWARDS_BINS, SHARE_AFTERWARDS))?;
        Some((at - from) as f64 * BIN.as_secs_f64() * 1e3)
    }
}

/// Cuts one and two of four spines during a stream. Routes stay as they are.
#[allow(clippy::print_stdout)]
pub(super) fn cuts(tools: &Tools, subjects: &[Subject]) -> Result<Vec<Value>, String> {
    let mut rows = Vec::new();
    for cut in CUTS {
        for subject in subjects {
            let mut net = Net::make(&GBPS)?;
            let left = net.payload_rate_of((0..GBPS.len()).filter(|spine| !cut.contains(spine)));
            let row = match one_cut(&mut net, tools, subject, cut) {
                Ok((arrivals, at)) => cut_result(&arrivals, arrivals.bin(at), left),
                Err(broken) => {
                    json!({ "hung": matches!(broken, ProcessError::Hung(_)), "error": broken.to_string() })
                }
            };
            let text = |name: &str, unit: &str| match &row[name] {
                Value::Number(number) => format!("{:.0} {unit}", number.as_f64().unwrap_or(0.0)),
                _ => "-".to_owned(),
            };
            println!(
                "    {} of 4 spines cut, {:<20} before {:>9}, least {:>9}, 90 % of what is left after {:>8}, in the end {:>9} {}",
                cut.len(),
                subject.name,
                text("before_mbps", "Mb/s"),
                text("least_mbps", "Mb/s"),
                text("recovered_ms", "ms"),
                text("after_mbps", "Mb/s"),
                row["error"].as_str().unwrap_or("")
            );
            let mut row = row;
            row["provider"] = subject.name.into();
            row["spines_cut"] = json!(cut);
            row["left_mbps"] = json!(left / 1e6);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn one_cut(
    net: &mut Net,
    tools: &Tools,
    subject: &Subject,
    cut: &[usize],
) -> Result<(Arrivals, Duration), ProcessError> {
    let pair = Pair::start(&Site::Lab(net), tools, subject, Measurement::in_bins(CUT_SECONDS))?;
    std::thread::sleep(CUT_AFTER);
    for spine in cut {
        net.set(*spine, LinkState::Down).map_err(ProcessError::Failed)?;
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let measured = pair.finish()?;
    let arrivals = Arrivals::parse(&measured.arrivals)
        .ok_or_else(|| ProcessError::Failed(format!("no arrivals: {}", measured.arrivals)))?;
    Ok((arrivals, at))
}

fn cut_result(arrivals: &Arrivals, at: usize, left_bps: f64) -> Value {
    let second = (1.0 / BIN.as_secs_f64()) as usize;
    let rest = arrivals.bytes.len().saturating_sub(at).saturating_sub(1);
    let least = (at..at + second.min(rest)).map(|bin| arrivals.bps(bin, 1)).fold(f64::INFINITY, f64::min);
    json!({
        "before_mbps": arrivals.bps(at.saturating_sub(second), second.min(at.max(1))) / 1e6,
        "least_mbps": least.is_finite().then_some(least / 1e6),
        "recovered_ms": arrivals.recovery_ms(at, left_bps),
        "after_mbps": arrivals.bps(at + second, rest.saturating_sub(second).max(1)) / 1e6,
        "bins_10_ms_bytes": arrivals.bytes,
        "bin_of_the_cut": at,
        "hung": false,
    })
}

/// Measures over one path that loses 1 % of all packets in each direction.
#[allow(clippy::print_stdout)]
pub(super) fn loss(tools: &Tools, subjects: &[Subject]) -> Result<Vec<Value>, String> {
    let net = Net::make(&[1_000])?;
    let link = net.lab.link("leaf0-spine0").map_err(|why| why.to_string())?;
    net.lab.set_loss(link, LOSS).map_err(|why| why.to_string())?;
    let mut rows = Vec::new();
    for subject in subjects {
        let measured =
            measure(&Site::Lab(&net), tools, subject, Measurement::BANDWIDTH.with_duration(SECONDS));
        let mb = measured.as_ref().ok().and_then(rate);
        println!(
            "    1 % loss, {:<20} {}",
            subject.name,
            mb.map_or_else(|| error(&measured), |mb| format!("{mb:.1} MB/s of 125"))
        );
        let hung = matches!(measured, Err(ProcessError::Hung(_)));
        rows.push(json!({
            "provider": subject.name, "mb_per_second": mb, "hung": hung, "error": measured.err().map(|why| why.to_string()),
        }));
    }
    Ok(rows)
}

fn error(measured: &Result<Value, ProcessError>) -> String {
    measured.as_ref().err().map_or("no figure".into(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_tell_when_a_cut_is_over() {
        let mut text = "1000000000".to_owned();
        // 8 Mb/s, a gap of three bins, a burst, another gap, 4 Mb/s.
        let bins = [[10_000; 20].as_slice(), &[0; 3], &[60_000], &[0; 25], &[5_000; 60]].concat();
        bins.iter().for_each(|bytes| text += &format!(" {bytes}"));
        let arrivals = Arrivals::parse(&(text + "\n")).unwrap();
        assert_eq!(arrivals.bin(Duration::from_millis(1_205)), 20);
        assert_eq!(arrivals.bps(0, 20), 8e6);
        assert_eq!(arrivals.recovery_ms(20, 4e6), Some(290.0));
        assert_eq!(arrivals.recovery_ms(20, 5e6), None);
        let told = cut_result(&arrivals, 20, 4e6);
        assert_eq!((&told["least_mbps"], &told["before_mbps"]), (&json!(0.0), &json!(8.0)));
        assert!(Arrivals::parse("").is_none() && Arrivals::parse("x 1").is_none());
    }
}
