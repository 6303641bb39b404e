//! How much memory a run will take.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_policy::Service;
use pathweave_sim::{Footprint, SimSpec};
use pathweave_units::{Duration, HostId, Time};
use pathweave_workload::TaskId;

/// The program itself, without what it runs.
const PROGRAM: f64 = 18e6;
/// Both directions of a link, with the ports at its ends.
const PER_LINK: f64 = 1_200.0;
/// A host that does nothing.
const PER_HOST: f64 = 700.0;
/// Queue pairs at both ends of a connection, with what the hosts know of them.
const PER_QUEUE_PAIR: f64 = 2_400.0;
/// A packet on its way: in the fabric, in its sender's list of what is not acknowledged, and what answers it.
const PER_PACKET: f64 = 420.0;
/// Bytes that a host keeps on their way, in round trips at its rate: queues fill before a scheme slows down.
const ROUND_TRIPS: f64 = 2.0;
/// A round trip without queues: a few microseconds a link are typical of the fabrics this is for.
const ROUND_TRIP: Duration = Duration::from_us(10);
/// The list of samples grows by doubling, and is there twice while every two instants become one.
const SPARE: f64 = 2.5;
/// Connections of one message each take so many times their own time, as they share links.
const SHARING: u64 = 3;

/// Bytes: program, network, messages, queue pairs, packets and samples. Right to a factor of 1.5 where messages are not
/// held up much longer than their links would take.
pub(crate) fn bytes(spec: &SimSpec, footprint: &Footprint, completion: Time) -> f64 {
    PROGRAM + heap_bytes(spec, footprint, completion)
}

/// The same without the program.
fn heap_bytes(spec: &SimSpec, footprint: &Footprint, completion: Time) -> f64 {
    let links = spec.topology.links().len() as f64;
    let hosts = f64::from(spec.topology.hosts());
    let open = open(spec, footprint);
    // Of a link both queues, and how busy it is in both directions; of a host what arrives.
    let sampled = samples(spec, completion) * (3.0 * links + hosts);
    network(links, hosts)
        + messages(spec, footprint)
        + open * queue_pairs(spec) * PER_QUEUE_PAIR
        + packets(spec, open) * PER_PACKET
        + sampled * Footprint::SAMPLE_BYTES as f64 * SPARE
}

fn network(links: f64, hosts: f64) -> f64 {
    PER_LINK * links + PER_HOST * hosts
}

/// The graph, how far it has come, and the state and record of each message.
fn messages(spec: &SimSpec, footprint: &Footprint) -> f64 {
    let graph = &spec.graph;
    let waiting = if graph.has_dependencies() { 4 * graph.task_count() } else { 0 };
    graph.memory_bytes() as f64
        + waiting as f64
        + (graph.messages().len() * (Footprint::MESSAGE_BYTES + 8)) as f64
        + (footprint.connections as usize * Footprint::CONNECTION_BYTES) as f64
}

/// Queue pairs at each end of a connection: of the scheme that has most.
fn queue_pairs(spec: &SimSpec) -> f64 {
    let schemes = spec.groups.iter().map(|group| &spec.schemes[usize::from(group.scheme)].scheme);
    let of_scheme = |scheme: &pathweave_policy::Scheme| match scheme.service {
        // One for all peers of a process.
        Service::Datagram(_) => 0.1,
        _ => f64::from(scheme.queue_pairs),
    };
    schemes.map(of_scheme).fold(0.0, f64::max)
}

/// Connections that are open at the same time.
fn open(spec: &SimSpec, footprint: &Footprint) -> f64 {
    let single = (footprint.connections - footprint.lasting_connections).min(most_at_once(spec));
    (footprint.lasting_connections + single) as f64
}

/// Messages under way at the same time at most, if each takes [`SHARING`] times as long as alone. Those that wait for others
/// count from their start on.
fn most_at_once(spec: &SimSpec) -> u64 {
    let graph = &spec.graph;
    let mut ends: BinaryHeap<Reverse<Time>> = BinaryHeap::new();
    let (mut most, mut waiting) = (0, 0);
    for (message, id) in graph.messages().iter().zip(0..) {
        if graph.predecessors(TaskId(id)) > 0 {
            waiting += 1;
            continue;
        }
        while ends.peek().is_some_and(|&Reverse(end)| end <= message.start) {
            ends.pop();
        }
        let alone = spec.topology.host_rate(message.src).time_for(message.size.get());
        let takes = Duration::from_ps((ROUND_TRIP + alone).as_ps().saturating_mul(SHARING));
        ends.push(Reverse(message.start.saturating_add(takes)));
        most = most.max(ends.len() as u64);
    }
    // Of those behind others, no more than one for each host and one beside it, or as many as wait for nothing.
    most + waiting.min((2 * u64::from(graph.hosts())).max(most))
}

/// Packets on their way: as many as hosts may have, and no more than there are in the messages under way.
fn packets(spec: &SimSpec, open: f64) -> f64 {
    let messages = spec.graph.messages();
    let mut of_host = vec![0u64; spec.graph.hosts() as usize];
    messages.iter().for_each(|message| of_host[message.src.index()] += message.size.get());
    let of_hosts = of_host.iter().zip(0..).map(|(&bytes, host)| {
        let rate = spec.topology.host_rate(HostId(host));
        (bytes as f64).min(ROUND_TRIPS * rate.as_bps() as f64 / 8.0 * ROUND_TRIP.as_secs_f64())
    });
    let of_hosts: f64 = of_hosts.sum();
    let of_messages = open * spec.graph.total_bytes() as f64 / (messages.len() as f64).max(1.0);
    of_hosts.min(of_messages) / spec.host.mtu.get() as f64
}

/// Instants that are sampled.
fn samples(spec: &SimSpec, completion: Time) -> f64 {
    let Some(interval) = spec.observe.sampling() else { return 0.0 };
    let until = spec.stop.until.map_or(Time::MAX, |until| Time::ZERO + until);
    let all = completion.min(until).as_ps() as f64 / interval.as_ps().max(1) as f64;
    // Beyond the most, every second one is left out: then there are half to all of them.
    all.min(f64::from(spec.observe.max_samples))
}
