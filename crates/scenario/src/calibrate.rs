//! Calibration of a flow simulation by a short packet simulation of the beginning of the same scenario.
//!
//! The packets of the first messages are simulated, up to [`EVENTS`] events. Flows of the same period are simulated,
//! too. One number is fitted on the first half of the messages, ordered by start: the share of the links' capacity
//! that rate control leaves in use. The other half is held out, and the label of the run reports the error on it.

use pathweave_flow::Efficiency;
use pathweave_records::{Calibration, EndReason, FlowRecord, RunResult, percentile};
use pathweave_sim::{
    Fidelity, Monitor, MonitorDecision, ObserveConfig, RunConfig, SimError, SimSpec, Snapshot,
};
use pathweave_units::Duration;

/// Largest number of events of the packet simulation: some seconds of one core.
const EVENTS: u64 = 20_000_000;
/// Smallest number of messages in each half for a valid fit.
const MIN_MESSAGES: usize = 20;
/// Range of the fitted efficiency.
const MIN_EFFICIENCY: f64 = 0.5;
const MAX_EFFICIENCY: f64 = 1.2;
/// Number of fitting iterations. Several are needed, because waits that do not depend on capacity do not scale with
/// it.
const ROUNDS: usize = 3;
/// PFC pauses for each 1,000 messages above which a run of flows is outside of the model.
const MANY_PAUSES: f64 = 10.0;

/// Bytes kept for each message while flows of the beginning are simulated.
pub(crate) const A_MESSAGE_BYTES: usize = size_of::<Packets>();

/// Completion time of a message in the packet simulation in picoseconds, and true if it is held out. `None` if it did
/// not end.
type Packets = Option<(u64, bool)>;

/// Runs flows over links with the fitted efficiency. If the run is interrupted during calibration, it ends there with
/// no message in progress.
pub(crate) fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let mut watch = CalibrationMonitor::new(&mut *monitor);
    let measured = measure(spec, &mut watch)?;
    if watch.was_stopped() {
        let first = RunConfig { max_events: Some(1), ..spec.run.clone() };
        let nothing = SimSpec { run: first, ..spec.clone() };
        let mut result = pathweave_flow::run(&nothing, Efficiency::WHOLE, monitor)?;
        result.info.ended = EndReason::Interrupted;
        result.info.ended_detail = "while it was measured on packets".to_owned();
        return Ok(result);
    }
    let Some((pauses, efficiency, calibration)) = measured else {
        return pathweave_flow::run(spec, Efficiency::WHOLE, monitor);
    };
    let mut result = pathweave_flow::run(spec, efficiency, monitor)?;
    result.info.calibration = Some(calibration);
    if pauses > MANY_PAUSES {
        result.info.model_limits_exceeded.push(format!(
            "switches pause their senders {pauses:.0} times for 1,000 messages in the run of packets that it is measured on"
        ));
    }
    Ok(result)
}

/// Returns the packet simulation of the beginning that calibrates the flows, or `None` if the scenario allows none.
pub(crate) fn of_packets(spec: &SimSpec) -> Option<SimSpec> {
    // Messages between hosts that the folded graph leaves out have no packets.
    if spec.graph.folding().is_some() {
        return None;
    }
    let most = spec.run.max_events.map_or(EVENTS, |most| most.min(EVENTS));
    Some(SimSpec {
        run: RunConfig { fidelity: Fidelity::Packet, max_events: Some(most), ..spec.run.clone() },
        observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
        ..spec.clone()
    })
}

/// Returns the PFC pauses for each 1,000 messages, the fitted efficiency and its error, or `None` if too few messages
/// ended.
fn measure(
    spec: &SimSpec,
    watch: &mut CalibrationMonitor<'_>,
) -> Result<Option<(f64, Efficiency, Calibration)>, SimError> {
    let Some(prefix) = PacketPrefix::new(spec, watch)? else { return Ok(None) };
    Ok(prefix.fit(watch)?.map(|(efficiency, calibration)| (prefix.pauses, efficiency, calibration)))
}

/// Monitor of the calibration, which asks the run's monitor whether to continue. It reports zero progress, because
/// the progress of the beginning does not apply to the whole run.
pub(crate) struct CalibrationMonitor<'m> {
    monitor: &'m mut dyn Monitor,
    stopped: bool,
}

impl<'m> CalibrationMonitor<'m> {
    pub(crate) fn new(monitor: &'m mut dyn Monitor) -> Self {
        CalibrationMonitor { monitor, stopped: false }
    }
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped
    }
}

impl Monitor for CalibrationMonitor<'_> {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        let nothing = Snapshot { until: None, bytes_done: 0, flows_done: 0, ..*at };
        if self.monitor.look(&nothing) == MonitorDecision::Stop {
            self.stopped = true;
        }
        if self.stopped { MonitorDecision::Stop } else { MonitorDecision::Continue }
    }
}

/// Beginning of a run, simulated with packets.
struct PacketPrefix {
    /// Flow simulation of the beginning.
    spec: SimSpec,
    /// Result of each message in the packet simulation.
    packets: Vec<Packets>,
    /// PFC pauses for each 1,000 messages that ended.
    pauses: f64,
}

/// Completion times of the same messages with packets and with flows, each sorted. At least [`MIN_MESSAGES`] of each.
struct Times {
    packets: Vec<f64>,
    flows: Vec<f64>,
}

impl PacketPrefix {
    /// Simulates packets of the beginning. Returns `None` if the scenario allows no packet simulation or too few
    /// messages ended.
    fn new(spec: &SimSpec, watch: &mut CalibrationMonitor<'_>) -> Result<Option<Self>, SimError> {
        let Some(packets) = of_packets(spec) else { return Ok(None) };
        let result = pathweave_sim::run(&packets, watch)?;
        let end = result.info.simulated_ps;
        let mut over: Vec<&FlowRecord> =
            result.flows.iter().filter(|flow| flow.finish_ps.is_some()).collect();
        over.sort_by_key(|flow| (flow.start_ps, flow.flow));
        let messages = over.len();
        if messages < 2 * MIN_MESSAGES {
            return Ok(None);
        }
        let mut times = vec![None; result.flows.len()];
        for (place, flow) in over.into_iter().enumerate() {
            times[flow.flow as usize] = flow.fct_ps().map(|fct_ps| (fct_ps, place >= messages / 2));
        }
        let pauses: u64 = result.links.iter().map(|link| link.pfc_pauses).sum();
        let run = RunConfig { until: Some(Duration::from_ps(end)), ..spec.run.clone() };
        Ok(Some(PacketPrefix {
            spec: SimSpec { run, ..spec.clone() },
            pauses: pauses as f64 * 1e3 / messages as f64,
            packets: times,
        }))
    }

    /// Returns the efficiency at which flows take as long as packets on average, and the error on held-out messages.
    /// Returns `None` if too few messages end in the flow simulation within the same time.
    fn fit(&self, watch: &mut CalibrationMonitor<'_>) -> Result<Option<(Efficiency, Calibration)>, SimError> {
        let mut efficiency = 1.0;
        for _ in 0..ROUNDS {
            let Some(fitted) = self.times(efficiency, false, watch)? else { return Ok(None) };
            efficiency = (efficiency * (1.0 + fitted.mean_error())).clamp(MIN_EFFICIENCY, MAX_EFFICIENCY);
        }
        let Some(held_out) = self.times(efficiency, true, watch)? else { return Ok(None) };
        let calibration = Calibration {
            prefix_ps: self.spec.run.until.map_or(0, Duration::as_ps),
            efficiency: Some(efficiency),
            held_out: held_out.flows.len() as u64,
            time_error: None,
            mean_error: held_out.mean_error(),
            p99_error: held_out.p99_error(),
        };
        Ok(Some((Efficiency::new(efficiency), calibration)))
    }

    /// Returns the completion times of the held-out messages, or of the others.
    fn times(
        &self,
        efficiency: f64,
        held_out: bool,
        watch: &mut CalibrationMonitor<'_>,
    ) -> Result<Option<Times>, SimError> {
        let result = pathweave_flow::run(&self.spec, Efficiency::new(efficiency), watch)?;
        let both = result.flows.iter().zip(&self.packets).filter_map(|(flow, packets)| {
            let (of_packets, out) = (*packets)?;
            (out == held_out).then_some((of_packets, flow.fct_ps()?))
        });
        Ok(Times::of(both))
    }
}

impl Times {
    /// Collects pairs of completion times with packets and with flows, in picoseconds. Returns `None` for fewer than
    /// [`MIN_MESSAGES`].
    fn of(messages: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let (mut packets, mut flows): (Vec<f64>, Vec<f64>) =
            messages.map(|(packets, flows)| (packets as f64, flows as f64)).unzip();
        packets.sort_unstable_by(f64::total_cmp);
        flows.sort_unstable_by(f64::total_cmp);
        (flows.len() >= MIN_MESSAGES).then_some(Times { packets, flows })
    }

    fn mean_error(&self) -> f64 {
        let sum = |times: &[f64]| times.iter().sum::<f64>();
        sum(&self.flows) / sum(&self.packets).max(1.0) - 1.0
    }

    fn p99_error(&self) -> f64 {
        percentile(&self.flows, 990) / percentile(&self.packets, 990).max(1.0) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The P99 of 100 values is the 99th, not the largest. Too few messages give no result instead of an error of
    /// -100 %.
    #[test]
    fn errors_are_those_of_the_figures_that_results_have() {
        let times = Times::of((1..=100).map(|n| (n, if n == 100 { 1_000_000 } else { 2 * n })));
        let times = times.expect("a hundred are enough");
        assert_eq!(times.p99_error(), 1.0);
        assert!(Times::of((1..=19).map(|n| (n, n))).is_none());
        assert_eq!(Times::of((1..=20).map(|n| (n, n))).map(|times| times.mean_error()), Some(0.0));
    }
}
