//! What a run will cost.

use pathweave_policy::Service;
use pathweave_sim::SimSpec;
use pathweave_topo::PathFinder;
use pathweave_workload::{Message, MessageGraph};
use serde::Serialize;

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

/// What a run will cost: right to a factor of two or so, as schemes differ. Retransmissions are not foreseen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Packets crossing a link each, data and acknowledgements.
    pub packet_hops: f64,
    /// CPU time of one core.
    pub cpu_s: f64,
    /// Memory.
    pub memory_bytes: f64,
}

impl Estimate {
    pub(crate) fn of(spec: &SimSpec, finder: &mut PathFinder<'_>) -> Self {
        let mtu = spec.host.mtu.get();
        let a_hop_s = 1.0 / packet_hops_per_cpu_s(spec.topology.hosts());
        let cost = |message: &Message| {
            let hops = finder.pair(message.src, message.dst, 0).map_or(0, |pair| pair.hops);
            let scheme = &spec.scheme_of(message.group).scheme;
            let acks = match scheme.service {
                // Only what is missing is told of.
                Service::Datagram(_) => 0.0,
                _ => 1.0 / f64::from(scheme.acks.every_packets.max(1)),
            };
            let packets = message.size.get().div_ceil(mtu).max(1) as f64;
            let packet_hops = packets * (1.0 + acks) * f64::from(hops);
            let divided = if scheme.queue_pairs > 1 { DIVIDED } else { 1.0 };
            [packet_hops, packet_hops * divided * a_hop_s]
        };
        let [packet_hops, cpu_s] = sum_by_sample(&spec.graph, cost);
        Estimate { packet_hops, cpu_s, memory_bytes: memory(spec) }
    }
}

fn packet_hops_per_cpu_s(hosts: u32) -> f64 {
    let doublings = (f64::from(hosts.max(1)) / 128.0).log2().max(0.0);
    (AT_128_HOSTS - LESS_A_DOUBLING * doublings).max(LEAST)
}

/// The sum of `cost` over all messages, from an even sample if they are many.
fn sum_by_sample(graph: &MessageGraph, mut cost: impl FnMut(&Message) -> [f64; 2]) -> [f64; 2] {
    let messages = graph.messages();
    let stride = messages.len().div_ceil(SAMPLED_MESSAGES).max(1);
    let (mut costs, mut bytes) = ([0.0; 2], 0.0);
    for message in messages.iter().step_by(stride) {
        costs.iter_mut().zip(cost(message)).for_each(|(sum, of_message)| *sum += of_message);
        bytes += message.size.get() as f64;
    }
    // By bytes rather than by number: a few large messages may carry most packets.
    let all: f64 = messages.iter().map(|message| message.size.get() as f64).sum();
    let scale = if bytes > 0.0 && stride > 1 { all / bytes } else { 1.0 };
    costs.map(|cost| cost * scale)
}

/// The program itself, ports, packets in flight, and records, queue pairs and tasks of messages.
fn memory(spec: &SimSpec) -> f64 {
    const PROGRAM: f64 = 24e6;
    const PER_PORT: f64 = 512.0;
    const PER_HOST: f64 = 32e3;
    const PER_MESSAGE: f64 = 1_000.0;
    /// Both ends.
    const PER_MORE_QUEUE_PAIR: f64 = 4_500.0;
    let ports = 2.0 * spec.topology.links().len() as f64;
    let hosts = f64::from(spec.topology.hosts());
    let messages = spec.graph.messages().iter();
    let more = messages.map(|message| f64::from(spec.scheme_of(message.group).scheme.queue_pairs) - 1.0);
    PROGRAM
        + PER_PORT * ports
        + PER_HOST * hosts
        + PER_MESSAGE * spec.graph.task_count() as f64
        + PER_MORE_QUEUE_PAIR * more.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_hosts_are_slower_but_never_idle() {
        assert_eq!(packet_hops_per_cpu_s(2), 13e6);
        assert_eq!(packet_hops_per_cpu_s(128), 13e6);
        assert_eq!(packet_hops_per_cpu_s(1_024), 9.7e6);
        assert_eq!(packet_hops_per_cpu_s(u32::MAX), 3e6);
    }
}
