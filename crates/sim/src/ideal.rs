//! Completion time of a message on an idle network: the denominator of slowdown.

use std::borrow::Borrow;

use pathweave_units::{Duration, PathId, QpNum, Rate, Time};
use pathweave_wire::{Ack, Body, Data, Framing, Notices, Operation, RdData, Segment};

use crate::paths::PathProfile;
use crate::spec::Verb;

/// Wire bytes of a data packet of a message, without the header of its route.
pub(crate) fn data_wire_bytes(framing: Framing, verb: Verb, offset: u32, len: u16, last: bool) -> u32 {
    framing.wire_bytes(&data_segment(verb, offset, len, last))
}

fn data_segment(verb: Verb, offset: u32, len: u16, last: bool) -> Segment {
    let op = match verb {
        Verb::Write => Operation::Write,
        Verb::Send => Operation::Send,
    };
    segment(Body::Data(Data { op, offset, len, last, ..blank_data() }))
}

fn blank_data() -> Data {
    Data {
        psn: 0,
        msn: 0,
        receive_index: 0,
        offset: 0,
        len: 0,
        op: Operation::Write,
        last: false,
        retransmit: false,
        ack_request: false,
        rkey: 0,
        remote_addr: 0,
        imm: 0,
        sent_at: Time::ZERO,
    }
}

pub(crate) fn segment(body: Body) -> Segment {
    Segment { dst_qp: QpNum(0), src_qp: QpNum(0), path: PathId(0), pull_target: None, body }
}

/// Time from the first bit of a message to its last bit at the receiver, with nothing else on the network.
///
/// Packets leave back to back and are stored and forwarded hop by hop. The first and the last hop carry all of them;
/// hops between may be shared among parallel paths, so each packet meets them idle: nothing can be faster, and where
/// the hops between are no slower than the ends, a single path attains it.
pub fn ideal_fct(profile: &PathProfile, size_bytes: u64, mtu: u16, framing: Framing, verb: Verb) -> Duration {
    IdealPath::new(profile, mtu, framing, verb).message(size_bytes).1
}

/// What is the same for all messages on an idle path, `P`.
#[derive(Clone, Debug)]
pub struct IdealPath<P> {
    profile: P,
    mtu: u16,
    framing: Framing,
    verb: Verb,
    delay: Duration,
    /// A full packet that is the first of several, and one that is neither first nor last.
    first: Timed,
    middle: Timed,
}

impl<P: Borrow<PathProfile>> IdealPath<P> {
    /// Of a path, for messages in packets of at most `mtu` bytes of payload.
    pub fn new(profile: P, mtu: u16, framing: Framing, verb: Verb) -> Self {
        let path = profile.borrow();
        let full =
            |offset| Timed::new(path, with_route(path, framing, &data_segment(verb, offset, mtu, false)));
        let (first, middle, delay) = (full(0), full(1), delay(path));
        IdealPath { profile, mtu, framing, verb, delay, first, middle }
    }

    /// Wire bytes of all data packets of a message, and the time of [`ideal_fct`].
    pub fn message(&self, size_bytes: u64) -> (u64, Duration) {
        let (packets, last_len) = packets(size_bytes, self.mtu);
        let offset = u32::from(packets > 1);
        let segment = data_segment(self.verb, offset, last_len, true);
        let path = self.profile.borrow();
        let last = Timed::new(path, with_route(path, self.framing, &segment));
        let wire = match packets {
            1 => u64::from(last.wire),
            _ => {
                u64::from(self.first.wire)
                    + (packets - 2) * u64::from(self.middle.wire)
                    + u64::from(last.wire)
            }
        };
        let first = if packets == 1 { last } else { self.first };
        let one_hop = path.hops.len() == 1;
        (wire, in_a_row(packets, [first, self.middle, last], one_hop) + self.delay)
    }
}

/// How many packets a message takes, and the payload of the last of them.
fn packets(size_bytes: u64, mtu: u16) -> (u64, u16) {
    let packets = size_bytes.div_ceil(u64::from(mtu)).max(1);
    (packets, (size_bytes - (packets - 1) * u64::from(mtu)) as u16)
}

fn delay(profile: &PathProfile) -> Duration {
    profile.hops.iter().map(|(_, delay)| *delay).sum()
}

/// The same for packets of datagram queue pairs, which carry `capacity` bytes each.
pub(crate) fn ideal_datagrams(
    profile: &PathProfile,
    size_bytes: u64,
    capacity: u16,
    framing: Framing,
) -> Duration {
    let (packets, last_len) = packets(size_bytes, capacity);
    let timed = |len| {
        let data = RdData { psn: 0, msg_id: 0, multi: packets > 1, offset: 0, len, retransmit: false };
        Timed::new(profile, with_route(profile, framing, &segment(Body::Rd(data))))
    };
    let (full, last) = (timed(capacity), timed(last_len));
    let first = if packets == 1 { last } else { full };
    in_a_row(packets, [first, full, last], profile.hops.len() == 1) + delay(profile)
}

/// Wire bytes of a packet on this path.
fn with_route(profile: &PathProfile, framing: Framing, segment: &Segment) -> u32 {
    profile.header.map_or_else(|| framing.wire_bytes(segment), |header| header.wire_bytes(framing, segment))
}

/// A packet on a path.
#[derive(Clone, Copy, Debug)]
struct Timed {
    /// Its wire bytes.
    wire: u32,
    /// What it takes of the sender's ports, which share packets, of the hops between, and of the receiver's ports.
    out: Duration,
    between: Duration,
    back: Duration,
}

impl Timed {
    fn new(profile: &PathProfile, wire: u32) -> Self {
        // Mostly all hops are as fast.
        let first = profile.hops[0].0;
        let out = first.time_for(u64::from(wire));
        let hop = |rate: Rate| if rate == first { out } else { rate.time_for(u64::from(wire)) };
        let shared = |time: Duration, ports: u32| match ports {
            1 => time,
            _ => Duration::from_ps(time.as_ps() / u64::from(ports)),
        };
        let (senders, receivers) = profile.nic_ports;
        let last = profile.hops.len() - 1;
        let between = &profile.hops[1.min(last)..last];
        Timed {
            wire,
            out: shared(out, senders),
            between: between.iter().map(|(rate, _)| hop(*rate)).sum(),
            back: shared(hop(profile.hops[last].0), receivers),
        }
    }
}

/// What so many packets take of a path, of which all but the first and the last are alike, propagation apart.
fn in_a_row(packets: u64, [first, middle, last]: [Timed; 3], one_hop: bool) -> Duration {
    if packets == 1 || one_hop {
        let body = first.out + middle.out * packets.saturating_sub(2);
        let tail = if packets > 1 { last.out } else { Duration::ZERO };
        let rest = if one_hop { Duration::ZERO } else { last.between + last.back };
        return body + tail + rest;
    }
    // The last hop is busy from the first packet's arrival or waits for the sender, whichever is later at each packet;
    // with equal packets in the middle the maximum is at an end.
    let sent_but_last = first.out + middle.out * (packets - 2);
    let paced_by_sender = sent_but_last + last.out + last.between + last.back;
    let served = first.back + middle.back * (packets - 2);
    let paced_by_receiver = first.out + first.between + served + last.back;
    let before = if packets == 2 { first } else { middle };
    let before_last = sent_but_last + before.between + before.back + last.back;
    paced_by_sender.max(paced_by_receiver).max(before_last)
}

/// Wire bytes of an acknowledgement.
pub(crate) fn ack_wire_bytes(framing: Framing) -> u32 {
    framing.wire_bytes(&segment(Body::Ack(Ack {
        cumulative: 0,
        psn: 0,
        back: 0,
        sack: 1,
        echo_sent_at: Time::ZERO,
        received_at: Time::ZERO,
        packets: 1,
        marked: 0,
        notices: Notices::Welcome,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(hops: &[(u64, u64)]) -> PathProfile {
        let hops = hops.iter().map(|&(gbps, us)| (Rate::from_gbps(gbps), Duration::from_us(us))).collect();
        PathProfile { hops, nic_ports: (1, 1), to_edge: None, header: None }
    }

    #[test]
    fn one_packet_is_stored_and_forwarded() {
        // 1000 B + 82 B of headers + 16 B RETH = 1098 B: 87.84 ns at 100 Gb/s on each of two hops, and 1 us twice.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 1_000, 4_096, Framing::Rocev2, Verb::Write);
        assert_eq!(fct, Duration::from_ps(2 * 87_840 + 2_000_000));
    }

    #[test]
    fn many_packets_are_pipelined() {
        // 3 x 4096 B as SEND: 4178 B each, 334.24 ns; two hops: 4 transmission times.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 3 * 4_096, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(4 * 334_240 + 2_000_000));
    }

    #[test]
    fn a_short_last_packet_waits_for_the_one_before_it() {
        // 4096 + 100: the short one (182 B, 14.56 ns) reaches the last hop while the long one is being sent.
        let fct = ideal_fct(&path(&[(100, 1), (100, 1)]), 4_196, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(2 * 334_240 + 14_560 + 2_000_000));
    }

    #[test]
    fn a_slow_receiver_sets_the_pace() {
        // Last hop at 10 Gb/s: 3342.4 ns a packet.
        let fct = ideal_fct(&path(&[(100, 1), (10, 1)]), 3 * 4_096, 4_096, Framing::Rocev2, Verb::Send);
        assert_eq!(fct, Duration::from_ps(334_240 + 3 * 3_342_400 + 2_000_000));
    }
}
