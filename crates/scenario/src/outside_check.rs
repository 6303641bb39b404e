//! Check of a flow simulation that shows signs of being outside of the model, by a packet simulation of its
//! beginning.
//!
//! Packets of the beginning are simulated, up to [`EVENTS`] events. The progress of flows and packets is compared,
//! and the completion times of the same messages. A run with a small error is inside the model after all. A run with
//! a larger error, or with too few messages measured, stays outside and reports the error.

use pathweave_flow::{Efficiency, MAX_SMALL_RUN_MESSAGES};
use pathweave_records::{Calibration, EndReason, FlowRecord, Quantity, RunResult, percentile};
use pathweave_sim::{Fidelity, Monitor, ObserveConfig, RunConfig, SimError, SimSpec};
use pathweave_units::Duration;

use crate::calibrate::CalibrationMonitor;

/// Largest number of events of the packet simulation: some tenths of a second of one core.
const EVENTS: u64 = 3_000_000;
/// Largest number of messages and hosts of a run that is measured. Larger runs take longer to set up than to measure.
const MOST_MESSAGES: usize = 500_000;
const MOST_HOSTS: u32 = 4_096;
/// Smallest number of messages for a valid comparison.
const FEWEST: usize = 8;
/// Smallest share of a run's messages that is representative of the rest.
const MIN_SHARE: f64 = 0.2;
/// Largest error of a whole run that is inside of the model.
const MAX_ERROR: f64 = 0.03;
/// Largest error of a beginning whose whole run counts as inside of the model.
const MAX_PREFIX_ERROR: f64 = 0.02;
/// Largest error of the mean completion time of messages of jobs. It is larger, because the end of the job matters,
/// not each message.
const INSIDE_OF_JOBS: f64 = 0.1;

/// Returns true if a packet simulation can measure the run.
pub(crate) fn can_calibrate(spec: &SimSpec) -> bool {
    let messages = spec.graph.messages().len();
    let most = if spec.graph.has_dependencies() { MOST_MESSAGES } else { MAX_SMALL_RUN_MESSAGES };
    spec.graph.folding().is_none() && messages <= most && spec.topology.hosts() <= MOST_HOSTS
}

/// Returns the packet simulation of the beginning of the run.
pub(crate) fn of_packets(spec: &SimSpec) -> SimSpec {
    let most = spec.run.max_events.map_or(EVENTS, |most| most.min(EVENTS));
    SimSpec {
        run: RunConfig { fidelity: Fidelity::Packet, max_events: Some(most), ..spec.run.clone() },
        observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
        threads: None,
        ..spec.clone()
    }
}

/// Runs flows, and also packets of the beginning if the run shows signs of being outside of the model.
pub(crate) fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let mut result = pathweave_flow::run(spec, Efficiency::WHOLE, monitor)?;
    let complete = result.info.ended == EndReason::Completed;
    if result.info.model_limits_exceeded.is_empty() || !complete || !can_calibrate(spec) {
        return Ok(result);
    }
    let mut watch = CalibrationMonitor::new(monitor);
    let packets = pathweave_sim::run(&of_packets(spec), &mut watch)?;
    if watch.was_stopped() {
        return Ok(result);
    }
    let Some(measured) = Measured::of(&result, &packets) else {
        let why = "the size of the error is unknown: too few messages end in the beginning that is compared with packets; \
                   a shorter run with run.fidelity = \"packet\" measures it";
        result.info.model_limits_exceeded.push(why.to_owned());
        return Ok(result);
    };
    result.info.calibration = Some(measured.calibration);
    match measured.outside_reason() {
        None => result.info.model_limits_exceeded.clear(),
        Some(why) => result.info.model_limits_exceeded.push(why),
    }
    Ok(result)
}

/// Comparison of flows with packets of the beginning or of the whole run.
struct Measured {
    calibration: Calibration,
    /// True if the packet simulation completed the run.
    whole: bool,
    /// Share of all messages that ended in the packet simulation.
    part: f64,
    has_jobs: bool,
}

impl Measured {
    /// Compares both runs. Returns `None` if too few messages ended.
    fn of(flows: &RunResult, packets: &RunResult) -> Option<Self> {
        let finished = |run: &RunResult| -> Vec<f64> {
            let mut ends: Vec<f64> =
                run.flows.iter().filter_map(|flow| flow.finish_ps).map(|ps| ps as f64).collect();
            ends.sort_unstable_by(f64::total_cmp);
            ends
        };
        let (theirs, ours) = (finished(packets), finished(flows));
        let over = theirs.len();
        if over < FEWEST || ours.len() < over {
            return None;
        }
        let whole = packets.info.ended == EndReason::Completed;
        let times = |run: &RunResult| -> Vec<f64> {
            let both =
                run.flows.iter().zip(&packets.flows).filter(|(_, packets)| packets.finish_ps.is_some());
            let mut times: Vec<f64> =
                both.filter_map(|(flow, _)| FlowRecord::fct_ps(flow)).map(|ps| ps as f64).collect();
            times.sort_unstable_by(f64::total_cmp);
            times
        };
        let (of_packets, of_flows) = (times(packets), times(flows));
        let jobs = |run: &RunResult| -> Option<f64> {
            let times: Option<Vec<f64>> =
                run.jobs.iter().map(|job| job.completion_ps().map(|ps| ps as f64)).collect();
            times.filter(|times| !times.is_empty()).map(|times| times.iter().sum())
        };
        let error = |ours: f64, theirs: f64| ours / theirs.max(1.0) - 1.0;
        let sum = |times: &[f64]| times.iter().sum::<f64>();
        // Time at which the same number of messages has ended; for a completed run with jobs, the total time of its
        // jobs.
        let time_error = match (jobs(flows), jobs(packets)) {
            (Some(ours), Some(theirs)) if whole => error(ours, theirs),
            _ => error(ours[over - 1], theirs[over - 1]),
        };
        let calibration = Calibration {
            prefix_ps: packets.info.simulated_ps,
            efficiency: None,
            held_out: over as u64,
            time_error: Some(time_error),
            mean_error: error(sum(&of_flows), sum(&of_packets)),
            p99_error: error(percentile(&of_flows, 990), percentile(&of_packets, 990)),
        };
        let part = over as f64 / packets.flows.len().max(1) as f64;
        Some(Measured { calibration, whole, part, has_jobs: !flows.jobs.is_empty() })
    }

    /// Returns the reason why the run is outside of the model, or `None` if it is inside.
    fn outside_reason(&self) -> Option<String> {
        let Calibration { prefix_ps, held_out, time_error, mean_error, .. } = self.calibration;
        let time = time_error.unwrap_or(0.0);
        let most = if self.whole { MAX_ERROR } else { MAX_PREFIX_ERROR };
        let of_mean = if self.has_jobs { INSIDE_OF_JOBS } else { most };
        let span = Quantity::TimeNs.format(prefix_ps as f64 / 1e3);
        let what =
            if self.whole { "all of its packets".to_owned() } else { format!("packets of its first {span}") };
        if time.abs() > most || mean_error.abs() > of_mean {
            let (time, mean) = (100.0 * time, 100.0 * mean_error);
            return Some(format!(
                "measured on {what}, its time is {time:+.1} % off, and the mean of {held_out} messages {mean:+.1} %"
            ));
        }
        (!self.whole && self.part < MIN_SHARE).then(|| {
            let part = 100.0 * self.part;
            format!("{what} have ended {part:.0} % of its messages, too few to place it inside the model")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,588,026,760 ps are 1.588 ms.
    #[test]
    fn the_time_of_the_packets_has_a_unit_that_people_read() {
        let calibration = Calibration {
            prefix_ps: 1_588_026_760,
            efficiency: None,
            held_out: 48,
            time_error: Some(0.0),
            mean_error: 0.0,
            p99_error: 0.0,
        };
        let few = Measured { calibration, whole: false, part: 0.001, has_jobs: true };
        let expected = "packets of its first 1.588 ms have ended 0 % of its messages, too few to place it inside the model";
        assert_eq!(few.outside_reason().as_deref(), Some(expected));
    }
}
