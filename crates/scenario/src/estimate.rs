//! What a run will cost.

use pathweave_policy::Service;
use pathweave_sim::{Fidelity, Footprint, SimSpec};
use pathweave_topo::PathFinder;
use pathweave_units::Spread;
use pathweave_workload::{Message, MessageGraph};
use serde::Serialize;

use crate::acks::{Company, Packets};
use crate::fold;
use crate::memory::Memory;

/// Packet-hops a CPU second of one core carries between this many hosts, by the benchmarks (docs/benchmarks.md): the
/// more hosts, the less of their state is in caches.
const AT_128_HOSTS: f64 = 13e6;
/// Fewer with each doubling of the hosts.
const LESS_A_DOUBLING: f64 = 1.1e6;
/// And never fewer.
const LEAST: f64 = 3e6;
/// Time of a packet-hop where a message goes over many queue pairs, over that where it goes over one.
const DIVIDED: f64 = 2.2;
/// Messages whose paths are looked at; more are sampled evenly.
const SAMPLED_MESSAGES: usize = 20_000;

/// CPU time of a message beside its packets: posted, completed, recorded, those that wait for it let go.
const A_MESSAGE_S: f64 = 3e-6;
/// And where so many connections are open that none of them is in a cache when its turn comes.
const A_COLD_MESSAGE_S: f64 = 8e-6;
/// Connections from which on that is so.
const COLD_FROM: f64 = 10_000.0;
/// CPU time of a computation.
const A_COMPUTATION_S: f64 = 0.5e-6;
/// In a run of flows: CPU time of a message that is sprayed, and of one over single paths, which meets others on every link.
const A_SPRAYED_FLOW_S: f64 = 1.5e-6;
const A_FLOW_ON_ONE_PATH_S: f64 = 10e-6;
/// What such a run takes before it begins.
const A_FLOW_RUN_S: f64 = 0.005;
/// How far that may be off: how many flows share a link decides, and no estimate knows it.
const FLOW_CPU_FACTOR: f64 = 4.0;
/// CPU time and memory are between the estimate over these and times these.
const CPU_FACTOR: f64 = 2.0;
const MEMORY_FACTOR: f64 = 1.5;
/// The same of CPU time where the beginning of the run was measured.
const MEASURED_CPU_FACTOR: f64 = 1.5;

/// What a run will cost. Retransmissions are not foreseen, and schemes and machines differ: see the ranges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Packets crossing a link each, data and acknowledgements; none in a run of flows.
    pub packet_hops: Option<f64>,
    /// CPU time of one core.
    pub cpu_s: f64,
    /// What it may well be, from and to.
    pub cpu_range_s: (f64, f64),
    /// Memory.
    pub memory_bytes: f64,
    /// What it may well be, from and to.
    pub memory_range_bytes: (f64, f64),
}

/// How far a run has come: the CPU time it has taken, and what it has got through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// CPU time since it was set up, setting up included, seconds.
    pub cpu_s: f64,
    /// Packets that crossed a link each.
    pub packet_hops: f64,
    /// Messages that are over.
    pub messages: f64,
}

/// The beginning of a run, as it went on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beginning {
    /// Early on.
    pub first: Progress,
    /// At its end.
    pub last: Progress,
    /// The run was over then.
    pub whole: bool,
}

fn range(estimate: f64, factor: f64) -> (f64, f64) {
    (estimate / factor, estimate * factor)
}

impl Estimate {
    pub(crate) fn new(
        spec: &SimSpec,
        finder: &mut PathFinder<'_>,
        footprint: &Footprint,
        memory: &Memory,
    ) -> Self {
        if spec.fidelity == Fidelity::Flow {
            return Estimate::of_flows(spec, memory);
        }
        let company = Company::new(spec);
        let a_hop_s = 1.0 / packet_hops_per_cpu_s(spec.topology.hosts());
        let cost = |index: usize, message: &Message| {
            let hops = finder.pair(message.src, message.dst, 0).map_or(0, |pair| pair.hops);
            let scheme = &spec.scheme_of(message.group).scheme;
            let Packets { data, acks } = company.packets(spec, index, message);
            let packets = match scheme.service {
                // Only what is missing is told of.
                Service::Datagram(_) => data,
                _ => data + acks,
            };
            let packet_hops = packets as f64 * f64::from(hops);
            let divided = if scheme.queue_pairs > 1 { DIVIDED } else { 1.0 };
            [packet_hops, packet_hops * divided * a_hop_s]
        };
        let [packet_hops, of_hops_s] = sum_by_sample(&spec.graph, cost);
        let a_message_s =
            if footprint.connections as f64 > COLD_FROM { A_COLD_MESSAGE_S } else { A_MESSAGE_S };
        let cpu_s = of_hops_s
            + a_message_s * spec.graph.messages().len() as f64
            + A_COMPUTATION_S * spec.graph.computes().len() as f64;
        let memory_bytes = memory.total_bytes as f64;
        Estimate {
            packet_hops: Some(packet_hops),
            cpu_s,
            cpu_range_s: range(cpu_s, CPU_FACTOR),
            memory_bytes,
            memory_range_bytes: range(memory_bytes, MEMORY_FACTOR),
        }
    }
}

impl Estimate {
    /// The same, from how the beginning of the run of `messages` went: the rest takes as long for as much work.
    #[must_use]
    pub fn measured(self, beginning: &Beginning, messages: u64) -> Self {
        let Beginning { first, last, whole } = *beginning;
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
        Estimate { cpu_s, cpu_range_s: range(cpu_s, MEASURED_CPU_FACTOR), ..self }
    }

    /// The same on a machine of so many times the speed of that of the benchmarks.
    #[must_use]
    pub fn at_speed(self, times: f64) -> Self {
        let (from, to) = self.cpu_range_s;
        Estimate { cpu_s: self.cpu_s / times, cpu_range_s: (from / times, to / times), ..self }
    }

    /// A message costs what it costs, whatever its size: it begins, is solved, and ends.
    fn of_flows(spec: &SimSpec, memory: &Memory) -> Self {
        let a_message = |message: &Message| {
            let scheme = &spec.scheme_of(message.group).scheme;
            let single = fold::spread(scheme, &spec.switch.forwarding).is_some_and(Spread::is_single);
            let one = if single { A_FLOW_ON_ONE_PATH_S } else { A_SPRAYED_FLOW_S };
            one * f64::from(scheme.queue_pairs)
        };
        let messages: f64 = spec.graph.messages().iter().map(a_message).sum();
        let cpu_s = A_FLOW_RUN_S + messages + A_COMPUTATION_S * spec.graph.computes().len() as f64;
        let memory_bytes = memory.total_bytes as f64;
        Estimate {
            packet_hops: None,
            cpu_s,
            cpu_range_s: range(cpu_s, FLOW_CPU_FACTOR),
            memory_bytes,
            memory_range_bytes: range(memory_bytes, MEMORY_FACTOR),
        }
    }
}

fn packet_hops_per_cpu_s(hosts: u32) -> f64 {
    let doublings = (f64::from(hosts.max(1)) / 128.0).log2().max(0.0);
    (AT_128_HOSTS - LESS_A_DOUBLING * doublings).max(LEAST)
}

/// The sum of `cost` over all messages, from an even sample if they are many.
fn sum_by_sample(graph: &MessageGraph, mut cost: impl FnMut(usize, &Message) -> [f64; 2]) -> [f64; 2] {
    let messages = graph.messages();
    let stride = messages.len().div_ceil(SAMPLED_MESSAGES).max(1);
    let (mut costs, mut bytes) = ([0.0; 2], 0.0);
    for (index, message) in messages.iter().enumerate().step_by(stride) {
        costs.iter_mut().zip(cost(index, message)).for_each(|(sum, of_message)| *sum += of_message);
        bytes += message.size.get() as f64;
    }
    // By bytes rather than by number: a few large messages may carry most packets.
    let all: f64 = messages.iter().map(|message| message.size.get() as f64).sum();
    let scale = if bytes > 0.0 && stride > 1 { all / bytes } else { 1.0 };
    costs.map(|cost| cost * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 M packet-hops, of which 1 M took 0.1 s after a set-up of 0.05 s.
    #[test]
    fn the_rest_takes_as_long_as_the_beginning() {
        let usual = Estimate {
            packet_hops: Some(10e6),
            cpu_s: 0.5,
            cpu_range_s: (0.25, 1.0),
            memory_bytes: 1.0,
            memory_range_bytes: (1.0, 2.0),
        };
        let first = Progress { cpu_s: 0.05, ..Progress::default() };
        let last = Progress { cpu_s: 0.15, packet_hops: 1e6, messages: 3.0 };
        let beginning = Beginning { first, last, whole: false };
        let measured = usual.clone().measured(&beginning, 6);
        assert!((measured.cpu_s - 1.05).abs() < 1e-9, "{measured:?}");
        assert_eq!(measured.cpu_range_s, range(measured.cpu_s, 1.5));
        // By messages where there are no packets: three of six.
        let flows = Estimate { packet_hops: None, ..usual.clone() }.measured(&beginning, 6);
        assert!((flows.cpu_s - 0.25).abs() < 1e-9, "{flows:?}");
        let whole = usual.clone().measured(&Beginning { whole: true, ..beginning }, 6);
        assert!((whole.cpu_s - 0.15).abs() < 1e-9, "{whole:?}");
        // Nothing has moved: nothing is known.
        assert_eq!(usual.clone().measured(&Beginning { first: last, ..beginning }, 6), usual);
        assert_eq!(usual.clone().at_speed(0.5).cpu_range_s, (0.5, 2.0));
    }

    #[test]
    fn many_hosts_are_slower_but_never_idle() {
        assert_eq!(packet_hops_per_cpu_s(2), 13e6);
        assert_eq!(packet_hops_per_cpu_s(128), 13e6);
        assert_eq!(packet_hops_per_cpu_s(1_024), 9.7e6);
        assert_eq!(packet_hops_per_cpu_s(u32::MAX), 3e6);
    }
}
