//! A path fails during a message: when the driver reports it, packets in flight on it are retransmitted at once.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{FeedbackKind, Recovery};
use pathweave_transport::{Op, Status};
use pathweave_units::{Duration, PathId};
use pathweave_wire::Body;

const LIMIT: Duration = Duration::from_ms(10);
const MESSAGE_BYTES: u64 = 8 * MTU as u64;

/// Eight packets over two paths. Path 1 is dead until packets are retransmitted.
fn on_two_paths(recovery: Recovery) -> Pair {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(|packet| match packet.segment.body {
        Body::Data(data) => Some(packet.segment.path == PathId(0) || data.retransmit),
        _ => None,
    }));
    let mut pair = Pair::new(channel, 20_000, |config| {
        config.recovery = recovery;
        config.policy.paths = 2;
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Write { rkey, remote_addr: 0 }, 0, MESSAGE_BYTES);
    pair.drain();
    // All packets have left, and the acknowledgements of path 0 have arrived: 2 us, far less than the timer's 50 us.
    while pair.now < pathweave_units::Time::from_us(10) {
        pair.step();
    }
    pair
}

#[test]
fn packets_on_a_dead_path_are_retransmitted_before_any_timer() {
    let selective = Recovery::SelectiveRepeat {
        reorder_packets: 0,
        window_packets: Some(64),
        sender_window_packets: None,
    };
    let mut pair = on_two_paths(selective);
    let before = pair.now;
    let (qp, sender) = (pair.qps[0], &mut pair.hosts[0].endpoint);
    sender.abandon(before, qp, &[PathId(1)]).unwrap();
    let log = &sender.policy(qp).unwrap().log;
    let lost: Vec<u64> =
        log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Lost).map(|(psn, ..)| *psn).collect();
    assert_eq!(lost, [1, 3, 5, 7], "every second packet took path 1");
    // Again: no packet is in flight on the path any longer.
    pair.hosts[0].endpoint.abandon(before, qp, &[PathId(1)]).unwrap();
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(7, Status::Success)]);
    assert!(pair.hosts[1].memory[..MESSAGE_BYTES as usize] == pair.hosts[0].memory[..MESSAGE_BYTES as usize]);
    let counters = pair.counters(0);
    assert_eq!((counters.sent_packets, counters.retransmitted_packets, counters.timeouts), (12, 4, 0));
}

#[test]
fn go_back_n_waits_for_its_timer() {
    let mut pair = on_two_paths(Recovery::GoBackN);
    let (now, qp) = (pair.now, pair.qps[0]);
    let sent = pair.counters(0).sent_packets;
    pair.hosts[0].endpoint.abandon(now, qp, &[PathId(0), PathId(1)]).unwrap();
    pair.drain();
    assert_eq!(pair.counters(0).sent_packets, sent);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(7, Status::Success)]);
}

#[test]
fn nobody_has_no_paths() {
    let mut pair = on_two_paths(Recovery::GoBackN);
    pair.hosts[0].endpoint.destroy_qp(pair.qps[0]).unwrap();
    assert!(pair.hosts[0].endpoint.abandon(pair.now, pair.qps[0], &[PathId(0)]).is_err());
}
