//! Packets that a switch has trimmed to their header.

use crate::pair::{Channel, MTU, Pair};
use crate::{LIMIT, SR};
use pathweave_policy::{AckPolicy, FeedbackKind, PathRto, Recovery, RingScope};
use pathweave_transport::{Op, Status};
use pathweave_units::{Bytes, Duration, Time, TrimmedAt};
use pathweave_wire::{Body, NackReason, Segment};

fn trimming(psns: &[u64], recovery: Recovery) -> Pair {
    let mut channel = Channel::new(1);
    channel.trimmed = psns.to_vec();
    let mut pair = Pair::new(channel, 60_000, |config| config.recovery = recovery);
    pair.post_recv(1, 1, 30_000, 30_000);
    pair.post(0, 1, Op::Send, 0, 12 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[30_000..42_288], pair.hosts[0].memory[..12_288]);
    assert_eq!(pair.statuses(0), [(1, Status::Success)]);
    pair
}

fn nacks(pair: &Pair) -> Vec<(u64, NackReason)> {
    let of = |segment: &Segment| match segment.body {
        Body::Nack(nack) => Some((nack.psn, nack.reason)),
        _ => None,
    };
    pair.trace.iter().filter_map(|(_, _, segment)| of(segment)).collect()
}

#[test]
fn each_is_told_once_and_sent_again_at_once() {
    let timed = Recovery::Timed { reorder_packets: 0, window_packets: Some(64) };
    for recovery in [SR(0), timed] {
        let pair = trimming(&[2, 5], recovery);
        let told = NackReason::Trimmed(TrimmedAt::LastHop);
        assert_eq!(nacks(&pair), [(2, told), (5, told)]);
        let (sender, receiver) = (pair.counters(0), pair.counters(1));
        assert_eq!(
            (sender.trimmed, sender.retransmitted_packets, sender.lost, sender.timeouts),
            (2, 2, 2, 0)
        );
        assert_eq!((receiver.trimmed_received, receiver.nacks_sent, receiver.data_received), (2, 2, 12));
        let again: Vec<Time> = pair
            .trace
            .iter()
            .filter(|(_, _, segment)| matches!(segment.body, Body::Data(data) if data.retransmit))
            .map(|(at, ..)| *at)
            .collect();
        // A round trip of 2 us, and 88 ns for each earlier packet.
        assert!(again.iter().all(|at| *at < Time::from_ns(2_900)), "{again:?}");
        let policy = pair.hosts[0].endpoint.policy(pair.qps[0]).expect("the queue pair is there");
        let trimmed = FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: false };
        let told: Vec<(u64, Duration)> = policy
            .log
            .iter()
            .filter(|(_, kind, _)| *kind == trimmed)
            .map(|(psn, _, rtt)| (*psn, *rtt))
            .collect();
        assert_eq!(told, [(2, Duration::from_us(2)), (5, Duration::from_us(2))]);
    }
}

/// Under go-back-N the following packets are refused, without a further NACK.
#[test]
fn go_back_n_goes_back_once() {
    let pair = trimming(&[3], Recovery::GoBackN);
    assert_eq!(nacks(&pair).len(), 1);
    assert_eq!((pair.counters(0).trimmed, pair.counters(0).timeouts), (1, 0));
}

#[test]
fn by_path_order_it_is_sent_again_too() {
    let recovery = Recovery::PathOrder {
        window_packets: Some(64),
        scope: RingScope::default(),
        rto: PathRto::default(),
        rto_min: Duration::from_us(100),
        rto_slack: Duration::from_us(5),
    };
    let pair = trimming(&[3], recovery);
    assert_eq!((pair.counters(0).retransmitted_packets, pair.counters(0).timeouts), (1, 0));
}

/// A window of 16 packets and an acknowledgement for four: the sender requests one when its window is full.
#[test]
fn a_waiting_sender_requests_an_acknowledgement() {
    let mut pair = Pair::new(Channel::new(1), 200_000, |config| {
        config.recovery = SR(0);
        // Never by count, and too late by time.
        config.acks = AckPolicy::by_bytes(Bytes::new(1_000_000), Duration::from_ms(10));
    });
    pair.post_recv(1, 1, 100_000, 100_000);
    pair.post(0, 1, Op::Send, 0, 64 * u64::from(MTU));
    pair.run(LIMIT);
    let asks: Vec<u64> = pair
        .trace
        .iter()
        .filter_map(|(_, _, segment)| match segment.body {
            Body::Data(data) if data.ack_request => Some(data.psn),
            _ => None,
        })
        .collect();
    // The first packet is acknowledged separately, which lets another one leave. From then on each packet fills the
    // window.
    assert_eq!(asks[..2], [15, 16]);
    assert_eq!(pair.counters(0).timeouts, 0);
    let (last, ..) = pair.trace[pair.trace.len() - 1];
    assert!(last < Time::from_us(30), "{last}");
}
