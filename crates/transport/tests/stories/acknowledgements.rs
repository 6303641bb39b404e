//! Timing of acknowledgements.

use crate::pair::{Channel, Fixed, MTU, Pair};
use crate::{LIMIT, SR, dropping};
use pathweave_policy::AckPolicy;
use pathweave_transport::{Op, QpConfig};
use pathweave_units::{Duration, Time};
use pathweave_wire::{Body, Segment};

#[test]
fn acknowledgements_are_coalesced_and_the_last_one_comes_at_once() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| {
        config.acks = AckPolicy::by_packets(4, Duration::from_us(10));
    });
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    let acks: Vec<_> = pair
        .trace
        .iter()
        .filter_map(|(_, _, segment)| match segment.body {
            Body::Ack(ack) => Some((ack.cumulative, ack.packets)),
            _ => None,
        })
        .collect();
    assert_eq!(acks, [(4, 4), (8, 4), (10, 2)]);
}

/// PSN that each acknowledgement answers, and its cumulative number.
fn acknowledgements(pair: &Pair) -> Vec<(u64, u64)> {
    let of = |segment: &Segment| match segment.body {
        Body::Ack(ack) => Some((ack.psn, ack.cumulative)),
        _ => None,
    };
    pair.trace.iter().filter_map(|(_, _, segment)| of(segment)).collect()
}

fn coalescing(config: &mut QpConfig<'static, Fixed>, every_packets: u16, reorder_packets: u32) {
    config.recovery = SR(reorder_packets);
    config.policy.window = 64;
    config.acks = AckPolicy::by_packets(every_packets, Duration::from_us(30));
}

/// Two paths, one 3 us longer: half of all packets are overtaken, which is normal.
#[test]
fn packets_out_of_order_are_acknowledged_as_rarely_as_others() {
    let mut channel = Channel::new(1);
    channel.by_path = vec![Duration::ZERO, Duration::from_us(3)];
    let mut pair = Pair::new(channel, 200_000, |config| {
        coalescing(config, 4, 0);
        config.policy.paths = 2;
    });
    pair.post_recv(1, 1, 100_000, 100_000);
    pair.post(0, 1, Op::Send, 0, 60 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[100_000..161_440], pair.hosts[0].memory[..61_440]);
    assert!(pair.counters(1).out_of_order_packets() > 20);
    // Fifteen by count, and the end of the message, which is the last packet of the longer path.
    assert_eq!((pair.counters(1).acks_sent, pair.counters(0).timeouts), (15, 0));
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
}

#[test]
fn the_packet_that_proves_a_loss_and_its_repair_are_acknowledged_at_once() {
    let mut pair = Pair::new(dropping(&[3]), 200_000, |config| coalescing(config, 100, 5));
    pair.post_recv(1, 1, 100_000, 100_000);
    pair.post(0, 1, Op::Send, 0, 60 * u64::from(MTU));
    pair.run(LIMIT);
    // PSN 8 proves the loss. The retransmission arrives at 2 us, behind the packets sent until then.
    let acks = acknowledgements(&pair);
    assert_eq!((acks.len(), acks[0]), (3, (8, 3)), "{acks:?}");
    assert!(acks[1].0 == acks[1].1 - 1 || acks[1].0 == 3, "the repair: {acks:?}");
    assert_eq!(acks[2], (59, 60));
    let sender = pair.counters(0);
    assert_eq!((sender.retransmitted_packets, sender.timeouts), (1, 0));
}

/// The end of the message was acknowledged when it arrived, before it could be used.
#[test]
fn the_completing_packet_is_acknowledged_at_once() {
    let mut channel = Channel::new(1);
    channel.by_path = vec![Duration::from_us(3), Duration::ZERO];
    let mut pair = Pair::new(channel, 40_000, |config| {
        coalescing(config, 100, 0);
        config.policy.paths = 2;
    });
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 2 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(acknowledgements(&pair), [(1, 0), (0, 2)]);
    // 3 us and 1 us forward, and 1 us back on the path of the acknowledged packet, which is 3 us longer too.
    let (at, ..) = pair.trace[pair.trace.len() - 1];
    assert_eq!(at, Time::from_us(4));
}

#[test]
fn an_acknowledgement_held_back_leaves_in_time() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| {
        config.policy.window = 2;
        config.acks = AckPolicy::by_packets(64, Duration::from_us(10));
    });
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 4 * u64::from(MTU));
    pair.run(LIMIT);
    let first_ack = pair.trace.iter().find(|(_, host, _)| *host == 1).unwrap().0;
    assert_eq!(first_ack, Time::from_us(11));
    assert_eq!((pair.counters(0).retransmitted_packets, pair.counters(1).acks_sent), (0, 2));
}
