//! Completion time of a message on an idle network, the denominator of the slowdown.

mod overtaking;
mod packets;

use std::borrow::Borrow;

use packets::{Packets, Sizes};

use pathweave_units::{Duration, PathId, QpNum, Rate};
use pathweave_wire::{Ack, Body, Data, Framing, Operation, RdData, Segment};

use crate::config::Verb;
use crate::paths::{PacketOrder, PathProfile};

/// Returns the wire bytes of a data packet of a message, without the header of its route.
pub(crate) fn data_wire_bytes(framing: Framing, verb: Verb, offset: u32, len: u16, last: bool) -> u32 {
    framing.wire_bytes(&data_segment(verb, offset, len, last))
}

fn data_segment(verb: Verb, offset: u32, len: u16, last: bool) -> Segment {
    let op = match verb {
        Verb::Write => Operation::Write,
        Verb::Send => Operation::Send,
    };
    segment(Body::Data(Data { op, offset, len, last, ..Data::EMPTY }))
}

pub(crate) fn segment(body: Body) -> Segment {
    Segment::new(QpNum(0), QpNum(0), PathId(0), body)
}

/// Returns the time from the first bit of a message to its last bit at the receiver, on an otherwise idle network.
///
/// `queue_pairs` queue pairs share the message. Packets leave back to back, over all paths that the profile's
/// [`most`](PathProfile::most) combines, and are stored and forwarded hop by hop. The slowest hop limits the rate.
/// Short packets overtake long ones where the profile's [`order`](PathProfile::order) lets them.
pub fn ideal_fct(
    profile: &PathProfile,
    size_bytes: u64,
    queue_pairs: usize,
    mtu: u16,
    framing: Framing,
    verb: Verb,
) -> Duration {
    IdealPath::new(profile, mtu, framing, verb).message(size_bytes, queue_pairs).1
}

/// Values common to all messages on an idle path of profile `P`.
#[derive(Clone, Debug)]
pub struct IdealPath<P> {
    profile: P,
    mtu: u16,
    framing: Framing,
    verb: Verb,
    delay: Duration,
    /// Wire bytes of a full packet that is the first of several, and of a full packet that is neither first nor last.
    first: u32,
    middle: u32,
}

impl<P: Borrow<PathProfile>> IdealPath<P> {
    /// Creates the values for a path and messages in packets of at most `mtu` bytes of payload.
    pub fn new(profile: P, mtu: u16, framing: Framing, verb: Verb) -> Self {
        let path = profile.borrow();
        let full = |offset| with_route(path, framing, &data_segment(verb, offset, mtu, false));
        let (first, middle, delay) = (full(0), full(1), delay(path));
        IdealPath { profile, mtu, framing, verb, delay, first, middle }
    }

    /// Returns the profile of the path.
    pub fn profile(&self) -> &PathProfile {
        self.profile.borrow()
    }

    /// Returns the wire bytes of all data packets of a message that this number of queue pairs share, and its
    /// [`ideal_fct`].
    pub fn message(&self, size_bytes: u64, queue_pairs: usize) -> (u64, Duration) {
        let parts = (queue_pairs as u64).clamp(1, size_bytes.max(1));
        // Parts differ by a byte at most. All have the size of the shorter ones here.
        let (packets, last_len) = packets(size_bytes / parts, self.mtu);
        let last = self.last(packets, last_len);
        let first = if packets == 1 { last } else { self.first };
        let sizes = Sizes { first, middle: self.middle, last };
        let all = Packets { parts, packets_per_part: packets, sizes };
        let path = self.profile.borrow();
        let delay = if all.count() > 1 { path.mean_delay.unwrap_or(self.delay) } else { self.delay };
        (all.wire_bytes(all.count()), idle_time(path, all) + delay)
    }

    /// Returns the wire bytes of the last of so many packets.
    fn last(&self, packets: u64, len: u16) -> u32 {
        let offset = u32::from(packets > 1);
        with_route(self.profile.borrow(), self.framing, &data_segment(self.verb, offset, len, true))
    }
}

/// Returns the number of packets of a message, and the payload bytes of its last packet.
fn packets(size_bytes: u64, mtu: u16) -> (u64, u16) {
    let packets = size_bytes.div_ceil(u64::from(mtu)).max(1);
    (packets, (size_bytes - (packets - 1) * u64::from(mtu)) as u16)
}

fn delay(profile: &PathProfile) -> Duration {
    profile.hops.iter().map(|(_, delay)| *delay).sum()
}

/// Returns the ideal completion time of a message of datagram packets, which carry `capacity` bytes each.
pub(crate) fn ideal_datagrams(
    profile: &PathProfile,
    size_bytes: u64,
    capacity: u16,
    framing: Framing,
) -> Duration {
    let (packets, last_len) = packets(size_bytes, capacity);
    let timed = |len| {
        let data = RdData { psn: 0, msg_id: 0, multi: packets > 1, offset: 0, len, retransmit: false };
        with_route(profile, framing, &segment(Body::Rd(data)))
    };
    let (full, last) = (timed(capacity), timed(last_len));
    let first = if packets == 1 { last } else { full };
    let sizes = Sizes { first, middle: full, last };
    let delay = profile.mean_delay.filter(|_| packets > 1).unwrap_or_else(|| delay(profile));
    idle_time(profile, Packets { parts: 1, packets_per_part: packets, sizes }) + delay
}

/// Returns the wire bytes of a packet on this path, including the header of its route.
fn with_route(profile: &PathProfile, framing: Framing, segment: &Segment) -> u32 {
    profile.header.map_or_else(|| framing.wire_bytes(segment), |header| header.wire_bytes(framing, segment))
}

/// Returns the time that packets occupy a path, without propagation.
fn idle_time(path: &PathProfile, mut packets: Packets) -> Duration {
    if path.nic_ports != (1, 1) && packets.packets_per_part > 2 {
        // Over another port the second packet, without the header of the first, may be earlier.
        packets.sizes.first = packets.sizes.middle;
    }
    let in_order = in_a_row(path, packets);
    match path.order {
        PacketOrder::Kept => in_order,
        PacketOrder::Free => overtaking::time(path, packets).map_or(in_order, |time| time.min(in_order)),
    }
}

/// Returns the time of packets that do not overtake each other, without propagation.
///
/// Packets form a pipeline, so the longest chain determines the time: the first packet reaches a narrowest hop, all
/// packets pass this hop, and the last packet continues from there. In most networks all hops have the same rate; the
/// chain then turns at the first or the last of them.
fn in_a_row(path: &PathProfile, packets: Packets) -> Duration {
    let hops = &path.hops;
    if packets.count() == 1 {
        return over(hops, packets.sizes.last);
    }
    let pace = |hop: &usize| path.pace(*hop);
    let narrowest = (0..hops.len()).map(|hop| pace(&hop)).min().expect("a path has a hop");
    let mut narrow = (0..hops.len()).filter(|hop| pace(hop) == narrowest);
    let first = narrow.next().expect("one is the narrowest");
    let by_first = paced_at(path, first, packets);
    narrow.next_back().map_or(by_first, |last| by_first.max(paced_at(path, last, packets)))
}

/// Returns the length of the chain through the hop `narrow`, for at least two packets, which pass the hop one after
/// another or on several parallel links.
fn paced_at(path: &PathProfile, narrow: usize, packets: Packets) -> Duration {
    let (until, from) = path.hops.split_at(narrow);
    let servers = Servers::new(from[0].0, path.pace(narrow));
    let Sizes { first, last, .. } = packets.sizes;
    let after_last = servers.start_of(packets.count() - 1, packets) + over(from, last);
    let Some(full) = packets.last_full() else { return over(until, first) + after_last };
    // A short last packet waits for the full one before it at the last hop if that is a single link.
    let full = servers.start_of(full.index, packets) + over(from, full.wire_bytes);
    let behind = match from {
        [_, .., end] if end.0 >= path.most => end.0.time_for(packets.short_bytes()),
        _ => Duration::ZERO,
    };
    over(until, first) + after_last.max(full + behind)
}

/// Returns the total transmission time of a packet on these hops.
fn over(hops: &[(Rate, Duration)], bytes: u32) -> Duration {
    let mut known = (Rate::ZERO, Duration::ZERO);
    let time = |(rate, _): &(Rate, Duration)| {
        // In most networks all hops have the same rate.
        if known.0 != *rate {
            known = (*rate, rate.time_for(u64::from(bytes)));
        }
        known.1
    };
    hops.iter().map(time).sum()
}

/// Parallel links that packets use in turn.
#[derive(Clone, Copy, Debug)]
enum Servers {
    /// Number of equal links, and the rate of each.
    Alike(u64, Rate),
    /// Total rate of links that are not equal.
    Together(Rate),
}

impl Servers {
    fn new(rate: Rate, together: Rate) -> Self {
        match (together.as_bps() / rate.as_bps().max(1), together.as_bps() % rate.as_bps().max(1)) {
            (alike, 0) => Servers::Alike(alike.max(1), rate),
            _ => Servers::Together(together),
        }
    }

    /// Returns the start time of packet `index` relative to the first packet.
    fn start_of(self, index: u64, packets: Packets) -> Duration {
        match self {
            Servers::Alike(alike, rate) => {
                let before = packets.wire_bytes(index / alike);
                rate.time_for(if packets.parts == 1 {
                    before
                } else {
                    before.min(packets.wire_bytes(index) / alike)
                })
            }
            Servers::Together(rate) => rate.time_for(packets.wire_bytes(index)),
        }
    }
}

/// Returns the wire bytes of an acknowledgement.
pub(crate) fn ack_wire_bytes(framing: Framing) -> u32 {
    framing.wire_bytes(&segment(Body::Ack(Ack { sack: 1, packets: 1, ..Ack::EMPTY })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::PathUse;

    fn path(hops: &[(u64, u64)]) -> PathProfile {
        let hops = hops.iter().map(|&(gbps, us)| (Rate::from_gbps(gbps), Duration::from_us(us))).collect();
        PathProfile::chosen(hops, None)
    }

    #[test]
    fn one_packet_is_stored_and_forwarded() {
        // 1000 B + 82 B of headers + 16 B RETH = 1098 B: 87.84 ns at 100 Gb/s on each of two hops, and 1 us twice.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 1_000, 1, 4_096, Framing::Rocev2, Verb::Write);
        assert_eq!(fct, Duration::from_ps(2 * 87_840 + 2_000_000));
    }

    #[test]
    fn many_packets_are_pipelined() {
        // 3 x 4096 B as SEND: 4178 B each, 334.24 ns; two hops: 4 transmission times.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 3 * 4_096, 1, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(4 * 334_240 + 2_000_000));
    }

    #[test]
    fn a_short_last_packet_waits_for_the_one_before_it() {
        // 4096 + 100 B: the short packet (182 B, 14.56 ns) reaches the last hop while the long one is still being
        // sent.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 4_196, 1, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(2 * 334_240 + 14_560 + 2_000_000));
    }

    #[test]
    fn the_narrowest_hop_sets_the_pace() {
        // 40 Gb/s in the middle: 835.6 ns for each packet of 4,178 B, three in sequence.
        let fct = ideal_fct(
            &path(&[(100, 1), (40, 1), (100, 1)]),
            3 * 4_096,
            1,
            4_096,
            Framing::Rocev2,
            Verb::Send,
        );
        assert_eq!(fct, Duration::from_ps(2 * 334_240 + 3 * 835_600 + 3_000_000));
    }

    #[test]
    fn links_side_by_side_take_packets_in_turn() {
        // Two ports of 100 Gb/s: the third packet follows the first.
        let ports = |packets: u64| {
            let two = PathProfile { most: Rate::from_gbps(200), ..path(&[(100, 1), (100, 1)]) };
            ideal_fct(&two, packets * 4_096, 1, 4_096, Framing::Rocev2, Verb::Send)
        };
        let after = |transmissions: u64| Duration::from_ps(transmissions * 334_240 + 2_000_000);
        assert_eq!([1, 2, 3, 4, 5].map(ports), [2, 2, 3, 3, 4].map(after));
        // 40 + 10 Gb/s in parallel behind 100 Gb/s: 50 Gb/s together.
        let uneven = PathProfile { most: Rate::from_gbps(50), ..path(&[(100, 0), (40, 0), (100, 0)]) };
        let fct = ideal_fct(&uneven, 3 * 4_096, 1, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(2 * 334_240 + 2 * 668_480 + 835_600));
    }

    #[test]
    fn one_path_carries_what_its_narrowest_hop_does() {
        let wide = PathProfile { most: Rate::from_gbps(200), ..path(&[(100, 1), (40, 1)]) };
        let [one, all] = [PathUse::One, PathUse::All].map(|used| wide.clone().used(used).most);
        assert_eq!((one, all), (Rate::from_gbps(40), Rate::from_gbps(200)));
    }

    #[test]
    fn a_slow_receiver_sets_the_pace() {
        // Last hop at 10 Gb/s: 3342.4 ns for each packet.
        let fct = ideal_fct(&path(&[(100, 1), (10, 1)]), 3 * 4_096, 1, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(334_240 + 3 * 3_342_400 + 2_000_000));
    }
}
