//! Largest number of connections, queue pairs and packets in progress at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_policy::Service;
use pathweave_sim::{Footprint, SimSpec, Sizes, flows_can_leave};
use pathweave_units::{Duration, Time};
use pathweave_workload::{Message, TaskId};

use super::link_usage::LinkUsage;

/// Factor by which a message on a connection of its own takes longer than alone, because it shares links.
const SHARING_FACTOR: u64 = 3;

/// Largest numbers of items in progress at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InProgress {
    /// Ends of queue pairs.
    pub(super) queue_pair_ends: f64,
    /// Slots for queue pairs. Each host has as many as it needs, rounded up to a power of two.
    pub(super) places: f64,
    /// Entries in the tables from numbers to queue pairs: one for each queue pair that a host ever has.
    pub(super) numbers: f64,
    /// Hosts that send or receive.
    pub(super) busy_hosts: f64,
    /// Packets and acknowledgements in flight.
    pub(super) packets: f64,
    /// Number of these packets that wait in queues.
    pub(super) waiting: f64,
    /// Capacity of the queue pairs for records of packets in flight.
    pub(super) slots_in_flight: f64,
}

impl InProgress {
    pub(super) fn new(spec: &SimSpec, footprint: &Footprint, ways: &LinkUsage) -> Self {
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
        let mtu = spec.network.mtu.get() as f64;
        let data = ways.bytes_in_flight.min(of_messages) / mtu;
        let senders = (queue_pair_ends / 2.0).max(1.0);
        let in_flight = data * (1.0 + ways.acks_of_a_packet);
        let slots = ((in_flight / senders).ceil().max(4.0) as u64).next_power_of_two() as f64 * senders;
        InProgress {
            queue_pair_ends,
            places: rounded_up(queue_pair_ends),
            numbers: rounded_up(2.0 * footprint.connections as f64 * queue_pairs),
            busy_hosts,
            packets: in_flight,
            waiting: (data - ways.bytes_on_links / mtu).max(0.0),
            slots_in_flight: slots,
        }
    }

    /// Returns the number of sampling instants.
    pub(super) fn samples(&self, spec: &SimSpec, completion: Time) -> f64 {
        let Some(interval) = spec.observe.sampling() else { return 0.0 };
        let until = spec.run.until.map_or(Time::MAX, |until| Time::ZERO + until);
        let all = completion.min(until).as_ps() as f64 / interval.as_ps().max(1) as f64;
        // At the limit every second sample is dropped, so that half to all of the limit remain.
        all.min(f64::from(spec.observe.max_samples))
    }
}

/// Returns the largest number of queue pairs at each end of a connection over all schemes.
fn queue_pairs(spec: &SimSpec) -> f64 {
    let schemes = spec.groups.iter().map(|group| &spec.schemes[usize::from(group.scheme)].scheme);
    let of_scheme = |scheme: &pathweave_policy::Scheme| match scheme.service {
        // One queue pair for all peers of a process.
        Service::Datagram(_) => 0.1,
        _ => f64::from(scheme.queue_pairs),
    };
    schemes.map(of_scheme).fold(0.0, f64::max)
}

/// Returns the largest number of connections that are open at the same time.
fn connections(spec: &SimSpec, footprint: &Footprint, round_trip: Duration) -> f64 {
    let single = footprint.connections - footprint.lasting_connections;
    let single = single.min(most_at_once(spec, round_trip));
    (footprint.lasting_connections + single) as f64
}

/// Returns the largest number of messages whose state a run that writes their records keeps at a time. These are the
/// messages that have started, and those that have ended and are removed together with, or after, a message that has
/// not.
pub(super) fn max_resident_messages(spec: &SimSpec, sizes: &Sizes, round_trip: Duration) -> usize {
    let graph = &spec.graph;
    let messages = graph.messages();
    if !flows_can_leave(spec) || graph.has_dependencies() {
        return messages.len();
    }
    // Start of each chunk, and time at which it and all chunks before it have ended.
    let mut latest = Time::ZERO;
    let chunks = messages.chunks(sizes.leaving_together).map(|chunk| {
        let end = chunk
            .iter()
            .map(|message| message.start.saturating_add(shared_duration(spec, message, round_trip)))
            .max();
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

/// Returns the duration of a message that shares its links.
fn shared_duration(spec: &SimSpec, message: &Message, round_trip: Duration) -> Duration {
    let alone = spec.topology.rate_between(message.src, message.dst).time_for(message.size.get());
    Duration::from_ps((round_trip + alone).as_ps().saturating_mul(SHARING_FACTOR))
}

/// Returns the largest number of messages in progress at a time, if each takes [`SHARING_FACTOR`] times as long as alone.
/// Messages that wait for others count from their start on.
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
        ends.push(Reverse(message.start.saturating_add(shared_duration(spec, message, round_trip))));
        most = most.max(ends.len() as u64);
    }
    // Of the messages that wait for others, at most one for each host and one in addition, or as many as there are
    // without predecessors.
    most + waiting.min((2 * u64::from(graph.hosts())).max(most))
}
