//! Simulation speed of this machine, for forecasts. It is measured on the beginning of the run itself, or on a small
//! run.

use std::num::NonZeroU16;

use pathweave_heap::usage::thread_cpu_s;
use pathweave_scenario::{Estimate, Inspection, Loaded, MeasuredStart, Progress};
use pathweave_sim::{Calibrate, Monitor, MonitorDecision, RunConfig, SimSpec, Snapshot};

/// CPU time, after the first call of the monitor, that a beginning must take to be meaningful, in seconds.
const ENOUGH_S: f64 = 0.3;
/// Largest memory of a run that is built for a measurement, in bytes.
const MOST_BYTES: u64 = 500_000_000;
/// Packet-hops per CPU second of [`SMALL`] on a machine whose speed equals that assumed by estimates for a run of 128
/// hosts.
const USUAL: f64 = 11.5e6;
/// Scenario of a run that takes a few hundredths of a second.
const SMALL: &str = "scheme = \"rps\"\nobserve.interval = \"0s\"\ntopology.preset = \"b3-128\"\n\
    [[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n";

/// Returns the forecast for this run on this machine.
pub(crate) fn forecast(spec: &SimSpec, inspection: &Inspection) -> Estimate {
    let usual = inspection.estimate.clone();
    if inspection.memory.total_bytes > MOST_BYTES {
        return usual.scaled_to_speed(speed());
    }
    match begin(spec) {
        Some(beginning) => usual.measured(&beginning, inspection.traffic.messages),
        None => usual,
    }
}

/// Returns the speed of this machine relative to that of the benchmarks.
fn speed() -> f64 {
    let small = Loaded::parse(SMALL, "speed.toml", "", &pathweave_scenario::Changes::default());
    let beginning = small.and_then(|small| small.draft()).ok().and_then(|small| begin(&small.spec));
    beginning.map_or(1.0, |MeasuredStart { last, .. }| last.packet_hops / last.cpu_s.max(1e-3) / USUAL)
}

/// Executes the beginning of a run. Returns `None` if that is impossible.
fn begin(spec: &SimSpec) -> Option<MeasuredStart> {
    let run = RunConfig { calibrate: Calibrate::Off, ..spec.run.clone() };
    let spec = SimSpec { threads: Some(NonZeroU16::MIN), run, ..spec.clone() };
    let mut watch = SpeedMonitor { began_s: thread_cpu_s(), seen: Vec::new(), cut: false };
    pathweave_scenario::run(&spec, &mut watch).ok()?;
    // The first part is slower, because much memory is touched for the first time.
    let first = *watch.seen.get(watch.seen.len() / 2)?;
    Some(MeasuredStart { first, last: *watch.seen.last()?, whole: !watch.cut })
}

/// Monitor that ends a run after enough of it has been observed.
struct SpeedMonitor {
    began_s: f64,
    seen: Vec<Progress>,
    /// True if the run was ended before its end.
    cut: bool,
}

impl Monitor for SpeedMonitor {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        if self.cut {
            return MonitorDecision::Stop;
        }
        let now = Progress {
            cpu_s: thread_cpu_s() - self.began_s,
            packet_hops: at.packet_hops as f64,
            messages: at.flows_done as f64,
        };
        self.seen.push(now);
        self.cut = now.cpu_s > self.seen[0].cpu_s + ENOUGH_S;
        if self.cut { MonitorDecision::Stop } else { MonitorDecision::Continue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_is_made_whole_and_a_long_one_is_not() {
        let begin = |size: &str| {
            let text = SMALL.replace("1MB", size);
            let loaded = Loaded::parse(&text, "t.toml", "", &pathweave_scenario::Changes::default()).unwrap();
            begin(&loaded.draft().unwrap().spec).expect("it can be made")
        };
        let small = begin("64KB");
        assert!(small.whole && small.last.messages == 128.0, "{small:?}");
        let long = begin("500MB");
        assert!(!long.whole && long.last.packet_hops > long.first.packet_hops, "{long:?}");
        assert!(speed() > 0.0);
    }
}
