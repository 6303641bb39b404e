//! A run of flows measured on a short run of packets: the beginning of the same scenario with both.
//!
//! Packets of the first messages are simulated, as many as [`EVENTS`] allow. Flows of the same stretch of time are run beside
//! them. On the first half of the messages, by their start, one number is fitted: the part of the capacity of links that rate
//! controls leave used. The other messages are held out, and the error that the label tells is theirs.

use pathweave_flow::Efficiency;
use pathweave_results::{Calibration, EndReason, FlowRecord, RunResult, percentile};
use pathweave_sim::{Control, Fidelity, Monitor, ObserveConfig, SimError, SimSpec, Snapshot, StopConfig};
use pathweave_units::Duration;

/// Events of the run of packets: some seconds of one core.
const EVENTS: u64 = 20_000_000;
/// Messages of each half without which nothing can be said.
const FEWEST: usize = 20;
/// What a fit may come to.
const LEAST: f64 = 0.5;
const MOST: f64 = 1.2;
/// Times the fit is improved: what messages wait for besides capacity does not change with it.
const ROUNDS: usize = 3;
/// PFC pauses for each 1,000 messages from which on flows are outside of the model.
const MANY_PAUSES: f64 = 10.0;

/// What is kept of each message while flows of the beginning are run, bytes.
pub(crate) const A_MESSAGE_BYTES: usize = size_of::<Packets>();

/// What a message took as packets, picoseconds, and whether it is held out; `None` if it was not over.
type Packets = Option<(u64, bool)>;

/// Runs flows over links of which as much is used as a run of packets shows. One that is interrupted while it is measured ends
/// there, with no message on its way.
pub(crate) fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let mut watch = Watch::new(&mut *monitor);
    let measured = measure(spec, &mut watch)?;
    if watch.was_stopped() {
        let first = StopConfig { max_events: Some(1), ..spec.stop };
        let nothing = SimSpec { stop: first, ..spec.clone() };
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
        result.info.outside.push(format!(
            "switches pause their senders {pauses:.0} times for 1,000 messages in the run of packets that it is measured on"
        ));
    }
    Ok(result)
}

/// The run of packets whose beginning tells what flows are to be; `None` where there can be none of the scenario.
pub(crate) fn of_packets(spec: &SimSpec) -> Option<SimSpec> {
    // Messages to hosts that are not on the graph have no packets.
    if spec.graph.folding().is_some() {
        return None;
    }
    let most = spec.stop.max_events.map_or(EVENTS, |most| most.min(EVENTS));
    Some(SimSpec {
        fidelity: Fidelity::Packet,
        stop: StopConfig { max_events: Some(most), ..spec.stop },
        observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
        ..spec.clone()
    })
}

/// PFC pauses for each 1,000 messages, the efficiency that was fitted, and its error; `None` where nothing can be said.
fn measure(
    spec: &SimSpec,
    watch: &mut Watch<'_>,
) -> Result<Option<(f64, Efficiency, Calibration)>, SimError> {
    let Some(prefix) = Prefix::new(spec, watch)? else { return Ok(None) };
    Ok(prefix.fit(watch)?.map(|(efficiency, calibration)| (prefix.pauses, efficiency, calibration)))
}

/// Asks the monitor of the whole whether to go on. How far the beginning is says nothing of the whole, so that is shown as none.
pub(crate) struct Watch<'m> {
    monitor: &'m mut dyn Monitor,
    stopped: bool,
}

impl<'m> Watch<'m> {
    pub(crate) fn new(monitor: &'m mut dyn Monitor) -> Self {
        Watch { monitor, stopped: false }
    }
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped
    }
}

impl Monitor for Watch<'_> {
    fn look(&mut self, at: &Snapshot) -> Control {
        let nothing = Snapshot { until: None, bytes_done: 0, flows_done: 0, ..*at };
        if self.monitor.look(&nothing) == Control::Stop {
            self.stopped = true;
        }
        if self.stopped { Control::Stop } else { Control::Continue }
    }
}

/// The beginning of a run.
struct Prefix {
    /// It, as flows.
    spec: SimSpec,
    /// By message.
    packets: Vec<Packets>,
    /// PFC pauses for each 1,000 messages that were over.
    pauses: f64,
}

/// What messages took, as packets and as flows, the shortest first; as many of each, and at least [`FEWEST`].
struct Times {
    packets: Vec<f64>,
    flows: Vec<f64>,
}

impl Prefix {
    /// None where no run of packets can be made of the scenario, or too few of its messages are over when that ends.
    fn new(spec: &SimSpec, watch: &mut Watch<'_>) -> Result<Option<Self>, SimError> {
        let Some(packets) = of_packets(spec) else { return Ok(None) };
        let result = pathweave_sim::run(&packets, watch)?;
        let end = result.info.simulated_ps;
        let mut over: Vec<&FlowRecord> =
            result.flows.iter().filter(|flow| flow.finish_ps.is_some()).collect();
        over.sort_by_key(|flow| (flow.start_ps, flow.flow));
        let messages = over.len();
        if messages < 2 * FEWEST {
            return Ok(None);
        }
        let mut times = vec![None; result.flows.len()];
        for (place, flow) in over.into_iter().enumerate() {
            times[flow.flow as usize] = flow.fct_ps().map(|fct_ps| (fct_ps, place >= messages / 2));
        }
        let pauses: u64 = result.links.iter().map(|link| link.pfc_pauses).sum();
        let stop = StopConfig { until: Some(Duration::from_ps(end)), ..spec.stop };
        Ok(Some(Prefix {
            spec: SimSpec { stop, ..spec.clone() },
            pauses: pauses as f64 * 1e3 / messages as f64,
            packets: times,
        }))
    }

    /// The efficiency with which flows take as long as packets in the mean, and the error on messages that had no part in it.
    /// `None` where too few messages are over as flows by when they are as packets.
    fn fit(&self, watch: &mut Watch<'_>) -> Result<Option<(Efficiency, Calibration)>, SimError> {
        let mut efficiency = 1.0;
        for _ in 0..ROUNDS {
            let Some(fitted) = self.times(efficiency, false, watch)? else { return Ok(None) };
            efficiency = (efficiency * (1.0 + fitted.mean_error())).clamp(LEAST, MOST);
        }
        let Some(held_out) = self.times(efficiency, true, watch)? else { return Ok(None) };
        let calibration = Calibration {
            prefix_ps: self.spec.stop.until.map_or(0, Duration::as_ps),
            efficiency: Some(efficiency),
            held_out: held_out.flows.len() as u64,
            time_error: None,
            mean_error: held_out.mean_error(),
            p99_error: held_out.p99_error(),
        };
        Ok(Some((Efficiency::new(efficiency), calibration)))
    }

    /// What messages took, either those that are held out or the others.
    fn times(
        &self,
        efficiency: f64,
        held_out: bool,
        watch: &mut Watch<'_>,
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
    /// Of messages with what each took as packets and as flows, picoseconds; `None` of too few to say anything.
    fn of(messages: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let (mut packets, mut flows): (Vec<f64>, Vec<f64>) =
            messages.map(|(packets, flows)| (packets as f64, flows as f64)).unzip();
        packets.sort_unstable_by(f64::total_cmp);
        flows.sort_unstable_by(f64::total_cmp);
        (flows.len() >= FEWEST).then_some(Times { packets, flows })
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

    /// P99 of 100 values is the 99th, not the largest; and few messages say nothing, rather than that flows take no time.
    #[test]
    fn errors_are_those_of_the_figures_that_results_have() {
        let times = Times::of((1..=100).map(|n| (n, if n == 100 { 1_000_000 } else { 2 * n })));
        let times = times.expect("a hundred are enough");
        assert_eq!(times.p99_error(), 1.0);
        assert!(Times::of((1..=19).map(|n| (n, n))).is_none());
        assert_eq!(Times::of((1..=20).map(|n| (n, n))).map(|times| times.mean_error()), Some(0.0));
    }
}
