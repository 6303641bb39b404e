//! A run of flows measured on a short run of packets: the beginning of the same scenario with both.
//!
//! Packets of the first messages are simulated, as many as [`EVENTS`] allow. Flows of the same stretch of time are run beside
//! them. On the first half of the messages, by their start, one number is fitted: the part of the capacity of links that rate
//! controls leave used. The other messages are held out, and the error that the label tells is theirs.

use pathweave_flow::Efficiency;
use pathweave_results::{Calibration, FlowRecord, RunResult};
use pathweave_sim::{Fidelity, Monitor, ObserveConfig, Quiet, SimError, SimSpec, StopConfig};
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

/// Runs flows over links of which as much is used as a run of packets shows.
pub(crate) fn run(spec: &SimSpec, monitor: &mut dyn Monitor) -> Result<RunResult, SimError> {
    let Some(prefix) = Prefix::new(spec)? else {
        return pathweave_flow::run(spec, Efficiency::WHOLE, monitor);
    };
    let (efficiency, calibration) = prefix.fit()?;
    let mut result = pathweave_flow::run(spec, efficiency, monitor)?;
    result.info.calibration = Some(calibration);
    if prefix.pauses > MANY_PAUSES {
        result.info.outside.push(format!(
            "switches pause their senders {:.0} times for 1,000 messages in the run of packets that it is measured on",
            prefix.pauses
        ));
    }
    Ok(result)
}

/// The beginning of a run.
struct Prefix {
    /// It, as flows.
    spec: SimSpec,
    /// By message, what it took as packets, if it was over, and whether it is held out.
    packets: Vec<Option<(u64, bool)>>,
    /// PFC pauses for each 1,000 messages that were over.
    pauses: f64,
}

/// Sums over messages, as packets and as flows.
#[derive(Default)]
struct Times {
    packets: Vec<u64>,
    flows: Vec<u64>,
}

impl Prefix {
    /// None where no run of packets can be made of the scenario, or too few of its messages are over when that ends.
    fn new(spec: &SimSpec) -> Result<Option<Self>, SimError> {
        // Messages to hosts that are not on the graph have no packets.
        if spec.graph.folding().is_some() {
            return Ok(None);
        }
        let most = spec.stop.max_events.map_or(EVENTS, |most| most.min(EVENTS));
        let packets = SimSpec {
            fidelity: Fidelity::Packet,
            stop: StopConfig { max_events: Some(most), ..spec.stop },
            observe: ObserveConfig { interval: Duration::ZERO, ..ObserveConfig::default() },
            ..spec.clone()
        };
        let result = pathweave_sim::run(&packets, &mut Quiet)?;
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
    fn fit(&self) -> Result<(Efficiency, Calibration), SimError> {
        let mut efficiency = 1.0;
        for _ in 0..ROUNDS {
            let fitted = self.times(efficiency, false)?;
            efficiency = (efficiency * (1.0 + fitted.mean_error())).clamp(LEAST, MOST);
        }
        let held_out = self.times(efficiency, true)?;
        let calibration = Calibration {
            prefix_ps: self.spec.stop.until.map_or(0, Duration::as_ps),
            efficiency,
            held_out: held_out.flows.len() as u64,
            mean_error: held_out.mean_error(),
            p99_error: held_out.p99_error(),
        };
        Ok((Efficiency::new(efficiency), calibration))
    }

    /// What messages took, either those that are held out or the others.
    fn times(&self, efficiency: f64, held_out: bool) -> Result<Times, SimError> {
        let result = pathweave_flow::run(&self.spec, Efficiency::new(efficiency), &mut Quiet)?;
        let mut times = Times::default();
        for (flow, packets) in result.flows.iter().zip(&self.packets) {
            if let (Some(fct_ps), Some((of_packets, out))) = (flow.fct_ps(), packets)
                && *out == held_out
            {
                times.packets.push(*of_packets);
                times.flows.push(fct_ps);
            }
        }
        times.packets.sort_unstable();
        times.flows.sort_unstable();
        Ok(times)
    }
}

impl Times {
    fn mean_error(&self) -> f64 {
        let sum = |times: &[u64]| times.iter().map(|&time| time as f64).sum::<f64>();
        sum(&self.flows) / sum(&self.packets).max(1.0) - 1.0
    }
    fn p99_error(&self) -> f64 {
        let p99 = |times: &[u64]| times.get(times.len() * 99 / 100).map_or(0.0, |&time| time as f64);
        p99(&self.flows) / p99(&self.packets).max(1.0) - 1.0
    }
}
