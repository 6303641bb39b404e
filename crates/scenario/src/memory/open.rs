//! What is under way at a time: connections, their queue pairs, packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_policy::Service;
use pathweave_sim::{Footprint, SimSpec, Sizes, flows_can_leave};
use pathweave_units::{Duration, Time};
use pathweave_workload::{Message, TaskId};

use super::ways::Ways;

/// Connections of one message each take so many times their own time, as they share links.
const SHARING: u64 = 3;

/// What is under way at a time, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Open {
    /// Ends of queue pairs.
    pub(super) queue_pair_ends: f64,
    /// Places for queue pairs: each host has as many as it needs, rounded up to a power of two.
    pub(super) places: f64,
    /// Entries in the tables from numbers to queue pairs: one for each that a host ever has.
    pub(super) numbers: f64,
    /// Hosts that send or receive.
    pub(super) busy_hosts: f64,
    /// Packets and acknowledgements on their way.
    pub(super) packets: f64,
    /// Of these, packets that wait in queues.
    pub(super) waiting: f64,
    /// What queue pairs have room to remember of packets in flight.
    pub(super) slots_in_flight: f64,
}

impl Open {
    pub(super) fn new(spec: &SimSpec, footprint: &Footprint, ways: &Ways) -> Self {
        let messages = spec.graph.messages();
        let mut busy = vec![false; spec.topology.hosts() as usize];
        for message in messages {
            busy[message.src.index()] = true;
            busy[message.dst.index()] = true;
        }
        let busy_hosts = busy.iter().filter(|busy| **busy).count() as f64;
        let queue_pairs = queue_pairs(spec);
        let connections = connections(spec, footprint, ways.round_trip);
        let queue_pair_ends = 2.0 * connections * queue_pairs;
        let rounded_up = |of_all: f64| {
            let each = (of_all / busy_hosts.max(1.0) - 1e-9).ceil().max(1.0) as u64;
            busy_hosts * each.next_power_of_two() as f64
        };
        let of_messages = connections * spec.graph.total_bytes() as f64 / (messages.len() as f64).max(1.0);
        let mtu = spec.host.mtu.get() as f64;
        let data = ways.bytes_under_way.min(of_messages) / mtu;
        let senders = (queue_pair_ends / 2.0).max(1.0);
        let in_flight = data * (1.0 + ways.acks_of_a_packet);
        let slots = ((in_flight / senders).ceil().max(4.0) as u64).next_power_of_two() as f64 * senders;
        Open {
            queue_pair_ends,
            places: rounded_up(queue_pair_ends),
            numbers: rounded_up(2.0 * footprint.connections as f64 * queue_pairs),
            busy_hosts,
            packets: in_flight,
            waiting: (data - ways.bytes_on_links / mtu).max(0.0),
            slots_in_flight: slots,
        }
    }

    /// Instants that are sampled.
    pub(super) fn samples(&self, spec: &SimSpec, completion: Time) -> f64 {
        let Some(interval) = spec.observe.sampling() else { return 0.0 };
        let until = spec.stop.until.map_or(Time::MAX, |until| Time::ZERO + until);
        let all = completion.min(until).as_ps() as f64 / interval.as_ps().max(1) as f64;
        // Beyond the most, every second one is left out: then there are half to all of them.
        all.min(f64::from(spec.observe.max_samples))
    }
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
fn connections(spec: &SimSpec, footprint: &Footprint, round_trip: Duration) -> f64 {
    let single = footprint.connections - footprint.lasting_connections;
    let single = single.min(most_at_once(spec, round_trip));
    (footprint.lasting_connections + single) as f64
}

/// Of how many messages a run that writes their records knows something at a time: of those that have begun, and of those that have
/// ended and leave together with one that has not, or after one.
pub(super) fn known_at_once(spec: &SimSpec, sizes: &Sizes, round_trip: Duration) -> usize {
    let graph = &spec.graph;
    let messages = graph.messages();
    if !flows_can_leave(spec) || graph.has_dependencies() {
        return messages.len();
    }
    // When each chunk begins, and when it and all before it have ended.
    let mut latest = Time::ZERO;
    let chunks = messages.chunks(sizes.leaving_together).map(|chunk| {
        let end =
            chunk.iter().map(|message| message.start.saturating_add(takes(spec, message, round_trip))).max();
        latest = latest.max(end.unwrap_or(Time::ZERO));
        (chunk[0].start, latest)
    });
    let chunks: Vec<(Time, Time)> = chunks.collect();
    let at_once = |(number, (start, _)): (usize, &(Time, Time))| {
        1 + number - chunks[..number].partition_point(|(_, left)| left <= start)
    };
    let most = chunks.iter().enumerate().map(at_once).max().unwrap_or(0);
    (most * sizes.leaving_together).min(messages.len())
}

/// How long a message takes that shares its links.
fn takes(spec: &SimSpec, message: &Message, round_trip: Duration) -> Duration {
    let alone = spec.topology.host_rate(message.src).time_for(message.size.get());
    Duration::from_ps((round_trip + alone).as_ps().saturating_mul(SHARING))
}

/// Messages under way at the same time at most, if each takes [`SHARING`] times as long as alone. Those that wait for others
/// count from their start on.
fn most_at_once(spec: &SimSpec, round_trip: Duration) -> u64 {
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
        ends.push(Reverse(message.start.saturating_add(takes(spec, message, round_trip))));
        most = most.max(ends.len() as u64);
    }
    // Of those behind others, no more than one for each host and one beside it, or as many as wait for nothing.
    most + waiting.min((2 * u64::from(graph.hosts())).max(most))
}
