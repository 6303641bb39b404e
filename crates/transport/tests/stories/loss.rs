//! Losses, gaps and packets out of order, and how each recovery repairs them.

use crate::pair::{Channel, MTU, Pair};
use crate::{LIMIT, SR, dropping};
use pathweave_policy::{CnpPolicy, FeedbackKind, Recovery};
use pathweave_transport::{Op, Status};
use pathweave_units::Duration;
use pathweave_wire::Body;

#[test]
fn go_back_n_complains_once_and_sends_everything_again() {
    let mut pair = Pair::new(dropping(&[3]), 40_000, |config| config.recovery = Recovery::GoBackN);
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[20_000..30_240], pair.hosts[0].memory[..10_240]);
    let (sender, receiver) = (pair.counters(0), pair.counters(1));
    assert_eq!((receiver.nacks_sent, receiver.sequence_drops), (1, 6));
    assert_eq!((sender.retransmitted_packets, sender.timeouts), (7, 0));
}

/// Only the packet that causes a NACK shows a gap to go-back-N's sender: the following ones are dropped silently.
#[test]
fn a_gap_makes_a_notification_under_go_back_n_too() {
    let interval = Duration::ZERO;
    for (cnp, notified) in
        [(CnpPolicy::Off, 0), (CnpPolicy::OnMark { interval }, 0), (CnpPolicy::OnMarkOrGap { interval }, 2)]
    {
        let mut pair = Pair::new(dropping(&[3, 25]), 100_000, |config| {
            config.recovery = Recovery::GoBackN;
            config.cnp = cnp;
        });
        pair.post_recv(1, 1, 50_000, 50_000);
        pair.post(0, 1, Op::Send, 0, 40 * u64::from(MTU));
        pair.run(LIMIT);
        assert_eq!((pair.counters(1).nacks_sent, pair.counters(1).cnps_sent), (2, notified), "{cnp:?}");
        let log = &pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap().log;
        let heard = log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Cnp).count();
        assert_eq!(heard as u64, notified, "{cnp:?}");
    }
}

#[test]
fn selective_repeat_sends_only_what_is_missing() {
    let mut pair = Pair::new(dropping(&[3]), 40_000, |config| config.recovery = SR(3));
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[20_000..30_240], pair.hosts[0].memory[..10_240]);
    let sender = pair.counters(0);
    assert_eq!(
        (sender.sent_packets, sender.retransmitted_packets, sender.lost, sender.timeouts),
        (11, 1, 1, 0)
    );
    assert_eq!(pair.counters(1).out_of_order_packets(), 0, "a retransmission is late, not out of order");
}

#[test]
fn without_a_reordering_bound_the_timer_finds_the_loss() {
    let mut pair = Pair::new(dropping(&[3, 4, 5]), 40_000, |config| config.recovery = SR(0));
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    let sender = pair.counters(0);
    assert_eq!(
        (sender.retransmitted_packets, sender.timeouts),
        (3, 1),
        "one timeout resends all that is missing"
    );
}

#[test]
fn a_lost_acknowledgement_costs_nothing_when_another_follows() {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(|packet| match packet.segment.body {
        Body::Ack(ack) => Some(ack.psn % 2 == 1),
        _ => None,
    }));
    let mut pair = Pair::new(channel, 40_000, |_| {});
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!((pair.counters(0).retransmitted_packets, pair.statuses(0)), (0, vec![(1, Status::Success)]));
}

#[test]
fn packets_that_overtake_each_other_are_placed_and_counted() {
    let mut channel = Channel::new(3);
    channel.jitter = Duration::from_us(1);
    let mut pair = Pair::new(channel, 200_000, |config| config.recovery = SR(0));
    for i in 0..10 {
        pair.post_recv(1, i, 100_000 + i * 10_000, 10_000);
        pair.post(0, i, Op::Send, i * 10_000, 7_000);
    }
    pair.run(LIMIT);
    for i in 0..10 {
        let (from, to) = (i * 10_000, 100_000 + i * 10_000);
        assert_eq!(pair.hosts[1].memory[to..to + 7_000], pair.hosts[0].memory[from..from + 7_000]);
    }
    let receiver = pair.counters(1);
    assert!(receiver.out_of_order_packets() > 10 && receiver.out_of_order_max < 16, "{receiver:?}");
    assert_eq!(pair.counters(0).retransmitted_packets, 0);
}
