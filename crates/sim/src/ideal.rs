//! Completion time of a message on an idle network: the denominator of slowdown.

use pathweave_units::{Duration, PathId, QpNum, Time};
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
    let wire = |offset, len, last| with_route(profile, framing, &data_segment(verb, offset, len, last));
    ideal_of(profile, size_bytes, mtu, wire)
}

/// Wire bytes of all data packets of a message on this path.
pub fn message_wire_bytes(
    profile: &PathProfile,
    size_bytes: u64,
    mtu: u16,
    framing: Framing,
    verb: Verb,
) -> u64 {
    let wire =
        |offset, len, last| u64::from(with_route(profile, framing, &data_segment(verb, offset, len, last)));
    let packets = size_bytes.div_ceil(u64::from(mtu)).max(1);
    let last_len = (size_bytes - (packets - 1) * u64::from(mtu)) as u16;
    match packets {
        1 => wire(0, last_len, true),
        _ => wire(0, mtu, false) + (packets - 2) * wire(1, mtu, false) + wire(1, last_len, true),
    }
}

/// The same for packets of datagram queue pairs, which carry `capacity` bytes each.
pub(crate) fn ideal_datagrams(
    profile: &PathProfile,
    size_bytes: u64,
    capacity: u16,
    framing: Framing,
) -> Duration {
    let multi = size_bytes > u64::from(capacity);
    ideal_of(profile, size_bytes, capacity, |_, len, _| {
        let data = RdData { psn: 0, msg_id: 0, multi, offset: 0, len, retransmit: false };
        with_route(profile, framing, &segment(Body::Rd(data)))
    })
}

/// Wire bytes of a packet on this path.
fn with_route(profile: &PathProfile, framing: Framing, segment: &Segment) -> u32 {
    profile.header.map_or_else(|| framing.wire_bytes(segment), |header| header.wire_bytes(framing, segment))
}

/// `wire` tells what a packet of this offset (0 or not) and length, the last one or not, takes.
fn ideal_of(
    profile: &PathProfile,
    size_bytes: u64,
    mtu: u16,
    wire: impl Fn(u32, u16, bool) -> u32,
) -> Duration {
    let mtu64 = u64::from(mtu);
    let packets = size_bytes.div_ceil(mtu64).max(1);
    let last_len = (size_bytes - (packets - 1) * mtu64) as u16;
    let first = wire(0, if packets == 1 { last_len } else { mtu }, packets == 1);
    let middle = wire(1, mtu, false);
    let last = if packets == 1 { first } else { wire(1, last_len, true) };
    let time = |hop: usize, bytes: u32, parallel: u32| {
        let ps = profile.hops[hop].0.time_for(u64::from(bytes)).as_ps();
        Duration::from_ps(ps / u64::from(parallel))
    };
    let (out, back) = (0, profile.hops.len() - 1);
    let between = |bytes| {
        let hops = if back > 0 { &profile.hops[1..back] } else { &[] };
        hops.iter().map(|(rate, _)| rate.time_for(u64::from(bytes))).sum::<Duration>()
    };
    let delay: Duration = profile.hops.iter().map(|(_, delay)| *delay).sum();
    let (senders, receivers) = profile.nic_ports;
    if packets == 1 || back == 0 {
        let body = time(out, first, senders) + time(out, middle, senders) * packets.saturating_sub(2);
        let tail = if packets > 1 { time(out, last, senders) } else { Duration::ZERO };
        let rest = if back > 0 { between(last) + time(back, last, receivers) } else { Duration::ZERO };
        return body + tail + rest + delay;
    }
    // The last hop is busy from the first packet's arrival or waits for the sender, whichever is later at each packet;
    // with equal packets in the middle the maximum is at an end.
    let sent_last =
        time(out, first, senders) + time(out, middle, senders) * (packets - 2) + time(out, last, senders);
    let paced_by_sender = sent_last + between(last) + time(back, last, receivers);
    let served = time(back, first, receivers) + time(back, middle, receivers) * (packets - 2);
    let paced_by_receiver = time(out, first, senders) + between(first) + served + time(back, last, receivers);
    let before_last = time(out, first, senders)
        + time(out, middle, senders) * (packets - 2)
        + between(if packets == 2 { first } else { middle })
        + time(back, if packets == 2 { first } else { middle }, receivers)
        + time(back, last, receivers);
    paced_by_sender.max(paced_by_receiver).max(before_last) + delay
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
    use pathweave_units::Rate;

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
