//! Estimate of the cost of a run.

use pathweave_policy::Service;
use pathweave_sim::{Calibrate, Fidelity, Footprint, SimSpec};
use pathweave_topo::PathFinder;
use pathweave_units::Spread;
use pathweave_workload::{Message, MessageGraph};
use serde::Serialize;

use crate::acks::{LinkSharing, Packets};
use crate::memory::Memory;
use crate::{calibrate, fold, outside_check};

/// Packet-hops that one core simulates in a CPU second with up to 128 hosts, by the benchmarks (docs/benchmarks.md).
/// With more hosts, less of their state is in caches.
const AT_128_HOSTS: f64 = 13e6;
/// Reduction with each doubling of the hosts.
const HOPS_LOSS_PER_DOUBLING: f64 = 1.1e6;
/// Lower limit, for any number of hosts.
const MIN_HOPS_PER_S: f64 = 3e6;
/// Relative time of a packet-hop if a message uses many queue pairs, compared with one queue pair.
const MANY_QP_FACTOR: f64 = 2.2;
/// Number of messages whose paths are examined. A larger set is sampled evenly.
const SAMPLED_MESSAGES: usize = 20_000;

/// CPU seconds of a message without its packets: post, completion, record, release of successors.
const MESSAGE_CPU_S: f64 = 3e-6;
/// CPU seconds of a message if so many connections are open that their state is in no cache.
const COLD_MESSAGE_CPU_S: f64 = 8e-6;
/// Number of connections from which [`COLD_MESSAGE_CPU_S`] applies.
const COLD_FROM: f64 = 10_000.0;
/// CPU seconds of a computation.
const A_COMPUTATION_S: f64 = 0.5e-6;
/// CPU seconds of a sprayed message in a flow simulation, and of one on a single path, which shares every link with
/// others.
const A_SPRAYED_FLOW_S: f64 = 1.5e-6;
const A_FLOW_ON_ONE_PATH_S: f64 = 10e-6;
/// CPU seconds of a flow simulation before its first event.
const A_FLOW_RUN_S: f64 = 0.005;
/// Uncertainty factor of the CPU time of a flow simulation. It depends on the number of flows that share a link,
/// which no estimate knows.
const FLOW_CPU_FACTOR: f64 = 4.0;
/// Uncertainty factors: the actual CPU time and memory lie between the estimate divided by and multiplied by these.
const CPU_FACTOR: f64 = 2.0;
const MEMORY_FACTOR: f64 = 1.5;
/// Memory that is added to the upper end of its range: free memory that the allocator keeps, and buffers of the files of
/// results, which no part counts. Measured: 25 MB to 61 MB beside estimates of 35 MB to 50 MB.
const MEMORY_MARGIN_BYTES: f64 = 40e6;
/// Uncertainty factor of the CPU time if the beginning of the run was measured.
const MEASURED_CPU_FACTOR: f64 = 1.5;

/// Estimated cost of a run. The estimate ignores retransmissions, and schemes and machines differ; the ranges cover
/// this.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Packet-hops, data and acknowledgements. `None` in a flow simulation.
    pub packet_hops: Option<f64>,
    /// CPU time of one core in seconds. Does not include `check_s`.
    pub cpu_s: f64,
    /// Most CPU time of the packets that measure a flow simulation if it may be outside of the model, in seconds. The upper
    /// end of the range includes it.
    #[serde(skip)]
    pub check_s: f64,
    /// Likely range of the CPU time in seconds, from and to.
    pub cpu_range_s: (f64, f64),
    /// Memory in bytes.
    pub memory_bytes: f64,
    /// Likely range of the memory in bytes, from and to.
    pub memory_range_bytes: (f64, f64),
}

/// Progress of a run: CPU time used and work done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// CPU time including setup, in seconds.
    pub cpu_s: f64,
    /// Packet-hops simulated.
    pub packet_hops: f64,
    /// Messages that have ended.
    pub messages: f64,
}

/// Measurement of the beginning of a run on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredStart {
    /// Progress early in the run.
    pub first: Progress,
    /// Progress at the end of the measurement.
    pub last: Progress,
    /// True if the run had ended by then.
    pub whole: bool,
}

fn range(estimate: f64, factor: f64) -> (f64, f64) {
    (estimate / factor, estimate * factor)
}

fn memory_range(estimate_bytes: f64) -> (f64, f64) {
    let (from, to) = range(estimate_bytes, MEMORY_FACTOR);
    (from, to + MEMORY_MARGIN_BYTES)
}

impl Estimate {
    pub(crate) fn new(
        spec: &SimSpec,
        finder: &mut PathFinder<'_>,
        footprint: &Footprint,
        memory: &Memory,
    ) -> Self {
        if spec.run.fidelity == Fidelity::Flow {
            let check_s = packets_of_check(spec).map_or(0.0, |events| {
                let whole_s = Estimate::of_packets(spec, finder, footprint, memory).cpu_s;
                CPU_FACTOR * whole_s.min(events as f64 / packet_hops_per_cpu_s(spec.topology.hosts()))
            });
            return Estimate::of_flows(spec, memory, check_s);
        }
        Estimate::of_packets(spec, finder, footprint, memory)
    }

    fn of_packets(
        spec: &SimSpec,
        finder: &mut PathFinder<'_>,
        footprint: &Footprint,
        memory: &Memory,
    ) -> Self {
        let company = LinkSharing::new(spec);
        let a_hop_s = 1.0 / packet_hops_per_cpu_s(spec.topology.hosts());
        let over_scale_up = |message: &Message| {
            spec.topology.scale_up().is_some_and(|network| network.joins(message.src, message.dst))
        };
        let cost = |index: usize, message: &Message| {
            if over_scale_up(message) {
                return [0.0; 2];
            }
            let hops = finder.pair(message.src, message.dst, 0).map_or(0, |pair| pair.hops);
            let scheme = &spec.scheme_of(message.group).scheme;
            let Packets { data, acks } = company.packets(spec, index, message);
            let packets = match scheme.service {
                // Reliable datagrams send no acknowledgements; only missing packets are reported.
                Service::Datagram(_) => data,
                _ => data + acks,
            };
            let packet_hops = packets as f64 * f64::from(hops);
            let divided = if scheme.queue_pairs > 1 { MANY_QP_FACTOR } else { 1.0 };
            [packet_hops, packet_hops * divided * a_hop_s]
        };
        let [packet_hops, of_hops_s] = sum_by_sample(&spec.graph, cost);
        let a_message_s =
            if footprint.connections as f64 > COLD_FROM { COLD_MESSAGE_CPU_S } else { MESSAGE_CPU_S };
        let cpu_s = of_hops_s
            + a_message_s * spec.graph.messages().len() as f64
            + A_COMPUTATION_S * spec.graph.computes().len() as f64;
        let memory_bytes = memory.total_bytes as f64;
        Estimate {
            packet_hops: Some(packet_hops),
            cpu_s,
            check_s: 0.0,
            cpu_range_s: range(cpu_s, CPU_FACTOR),
            memory_bytes,
            memory_range_bytes: memory_range(memory_bytes),
        }
    }
}

impl Estimate {
    /// Refines the estimate with a measured beginning of a run of `messages`: the remaining work takes as much time
    /// in proportion.
    #[must_use]
    pub fn measured(self, beginning: &MeasuredStart, messages: u64) -> Self {
        let MeasuredStart { first, last, whole } = *beginning;
        let (all, at_first, at_last) = match self.packet_hops {
            Some(packet_hops) => (packet_hops, first.packet_hops, last.packet_hops),
            None => (messages as f64, first.messages, last.messages),
        };
        let cpu_s = if whole {
            last.cpu_s
        } else if at_last > at_first {
            let a_unit_s = (last.cpu_s - first.cpu_s) / (at_last - at_first);
            last.cpu_s + (all - at_last).max(0.0) * a_unit_s
        } else {
            return self;
        };
        let (from, to) = range(cpu_s, MEASURED_CPU_FACTOR);
        Estimate { cpu_s, cpu_range_s: (from, to + self.check_s), ..self }
    }

    /// Scales the estimate to a machine with `times` the speed of the benchmark machine.
    #[must_use]
    pub fn scaled_to_speed(self, times: f64) -> Self {
        let (from, to) = self.cpu_range_s;
        Estimate {
            cpu_s: self.cpu_s / times,
            check_s: self.check_s / times,
            cpu_range_s: (from / times, to / times),
            ..self
        }
    }

    /// Estimates a flow simulation, whose cost is a constant for each message: start, solution and end.
    fn of_flows(spec: &SimSpec, memory: &Memory, check_s: f64) -> Self {
        let a_message = |message: &Message| {
            let scheme = &spec.scheme_of(message.group).scheme;
            let single = fold::spread(scheme, &spec.switch.forwarding).is_some_and(Spread::is_single);
            let one = if single { A_FLOW_ON_ONE_PATH_S } else { A_SPRAYED_FLOW_S };
            one * f64::from(scheme.queue_pairs)
        };
        let messages: f64 = spec.graph.messages().iter().map(a_message).sum();
        let cpu_s = A_FLOW_RUN_S + messages + A_COMPUTATION_S * spec.graph.computes().len() as f64;
        let memory_bytes = memory.total_bytes as f64;
        let (from, to) = range(cpu_s, FLOW_CPU_FACTOR);
        Estimate {
            packet_hops: None,
            cpu_s,
            check_s,
            cpu_range_s: (from, to + check_s),
            memory_bytes,
            memory_range_bytes: memory_range(memory_bytes),
        }
    }
}

/// Returns the largest number of events of the packets that measure a flow simulation, or `None` if none do.
fn packets_of_check(spec: &SimSpec) -> Option<u64> {
    let packets = match spec.run.calibrate {
        Calibrate::Off => None,
        Calibrate::Auto => outside_check::can_calibrate(spec).then(|| outside_check::of_packets(spec)),
        Calibrate::Prefix => calibrate::of_packets(spec),
    };
    packets?.run.max_events
}

fn packet_hops_per_cpu_s(hosts: u32) -> f64 {
    let doublings = (f64::from(hosts.max(1)) / 128.0).log2().max(0.0);
    (AT_128_HOSTS - HOPS_LOSS_PER_DOUBLING * doublings).max(MIN_HOPS_PER_S)
}

/// Sums `cost` over all messages, or extrapolates from an even sample if there are many.
fn sum_by_sample(graph: &MessageGraph, mut cost: impl FnMut(usize, &Message) -> [f64; 2]) -> [f64; 2] {
    let messages = graph.messages();
    let stride = messages.len().div_ceil(SAMPLED_MESSAGES).max(1);
    let (mut costs, mut bytes) = ([0.0; 2], 0.0);
    for (index, message) in messages.iter().enumerate().step_by(stride) {
        costs.iter_mut().zip(cost(index, message)).for_each(|(sum, of_message)| *sum += of_message);
        bytes += message.size.get() as f64;
    }
    // Scaled by bytes rather than by number: a few large messages may cause most packets.
    let all: f64 = messages.iter().map(|message| message.size.get() as f64).sum();
    let scale = if bytes > 0.0 && stride > 1 { all / bytes } else { 1.0 };
    costs.map(|cost| cost * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 M packet-hops, of which 1 M took 0.1 s after a setup of 0.05 s.
    #[test]
    fn the_rest_takes_as_long_as_the_beginning() {
        let usual = Estimate {
            packet_hops: Some(10e6),
            cpu_s: 0.5,
            check_s: 0.0,
            cpu_range_s: (0.25, 1.0),
            memory_bytes: 1.0,
            memory_range_bytes: (1.0, 2.0),
        };
        let first = Progress { cpu_s: 0.05, ..Progress::default() };
        let last = Progress { cpu_s: 0.15, packet_hops: 1e6, messages: 3.0 };
        let beginning = MeasuredStart { first, last, whole: false };
        let measured = usual.clone().measured(&beginning, 6);
        assert!((measured.cpu_s - 1.05).abs() < 1e-9, "{measured:?}");
        assert_eq!(measured.cpu_range_s, range(measured.cpu_s, 1.5));
        // Without packets the progress counts messages: three of six.
        let flows = Estimate { packet_hops: None, ..usual.clone() }.measured(&beginning, 6);
        assert!((flows.cpu_s - 0.25).abs() < 1e-9, "{flows:?}");
        // Packets that check the flows take up to 2 s more.
        let checked = Estimate { packet_hops: None, check_s: 2.0, ..usual.clone() }.measured(&beginning, 6);
        assert!((checked.cpu_range_s.1 - 2.375).abs() < 1e-9, "{checked:?}");
        let whole = usual.clone().measured(&MeasuredStart { whole: true, ..beginning }, 6);
        assert!((whole.cpu_s - 0.15).abs() < 1e-9, "{whole:?}");
        // Without progress the estimate stays unchanged.
        assert_eq!(usual.clone().measured(&MeasuredStart { first: last, ..beginning }, 6), usual);
        assert_eq!(usual.clone().scaled_to_speed(0.5).cpu_range_s, (0.5, 2.0));
    }

    #[test]
    fn many_hosts_are_slower_but_never_idle() {
        assert_eq!(packet_hops_per_cpu_s(2), 13e6);
        assert_eq!(packet_hops_per_cpu_s(128), 13e6);
        assert_eq!(packet_hops_per_cpu_s(1_024), 9.7e6);
        assert_eq!(packet_hops_per_cpu_s(u32::MAX), 3e6);
    }

    /// A run of 42.4 MB by the parts that took 88 MB.
    #[test]
    fn small_runs_have_room_for_what_no_part_counts() {
        let (from, to) = memory_range(42.4e6);
        assert!(from < 30e6 && (88e6..110e6).contains(&to), "{from} to {to}");
    }
}
