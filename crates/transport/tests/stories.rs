//! Stories: what happens on the wire and what the application sees of it.

mod pair;

use pair::{Channel, Fixed, MTU, Pair};
use pathweave_policy::{AckPolicy, CnpMode, CnpPolicy, FeedbackKind, Recovery};
use pathweave_transport::{
    Access, Buffer, Class, Endpoint, EndpointConfig, Event, Gate, MemoryRegion, Op, Opcode, PostError,
    QpConfig, ReceiveMode, Scope, Status, Transmit, WorkRequest,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::{Ack, Body, Control, ControlKind, Notices, Operation, Segment};

const SR: fn(u32) -> Recovery =
    |reorder_packets| Recovery::SelectiveRepeat { reorder_packets, window_packets: 64 };
const LIMIT: Duration = Duration::from_ms(100);

/// Drops the first transmission of each of these PSNs.
fn dropping(psns: &'static [u64]) -> Channel {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Data(data) => Some(data.retransmit || !psns.contains(&data.psn)),
        _ => None,
    }));
    channel
}

#[test]
fn a_send_fills_a_receive() {
    let mut pair = Pair::new(Channel::new(1), 10_000, |_| {});
    pair.post_recv(1, 77, 5_000, 5_000);
    pair.post(0, 11, Op::SendImm { imm: 42 }, 100, 3_000);
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[5_000..8_000], pair.hosts[0].memory[100..3_100]);
    let sent = pair.completions(0)[0];
    assert_eq!(
        (sent.wr_id, sent.status, sent.opcode, sent.byte_len),
        (11, Status::Success, Opcode::Send, 3_000)
    );
    let received = pair.completions(1)[0];
    assert_eq!((received.wr_id, received.opcode), (77, Opcode::Recv));
    assert_eq!((received.byte_len, received.imm), (3_000, Some(42)));
    assert_eq!((pair.counters(0).data_sent, pair.counters(1).acks_sent), (3, 3));
    let whole = Event::Delivered { qp: pair.qps[1], msn: 0, op: Operation::SendImm, bytes: 3_000 };
    assert!(pair.hosts[1].events.contains(&whole));
}

#[test]
fn a_round_trip_is_measured_from_the_wire() {
    let mut pair = Pair::new(Channel::new(1), 10_000, |_| {});
    pair.post_recv(1, 1, 5_000, 5_000);
    pair.post(0, 1, Op::Send, 0, 1);
    pair.run(LIMIT);
    let policy = pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap();
    // Two microseconds of channel; nothing waits anywhere.
    assert_eq!(policy.log, [(0, FeedbackKind::Ack { timed: true, marked: false }, Duration::from_us(2))]);
}

#[test]
fn a_write_with_immediate_consumes_a_receive_and_a_plain_one_does_not() {
    let mut pair = Pair::new(Channel::new(1), 20_000, |_| {});
    let rkey = pair.open_memory(1);
    pair.post_recv(1, 5, 0, 0);
    pair.post(0, 1, Op::Write { rkey, remote_addr: 8_000 }, 0, 2_500);
    pair.post(0, 2, Op::WriteImm { rkey, remote_addr: 12_000, imm: 9 }, 3_000, 1_024);
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[8_000..10_500], pair.hosts[0].memory[0..2_500]);
    assert_eq!(pair.hosts[1].memory[12_000..13_024], pair.hosts[0].memory[3_000..4_024]);
    let received = pair.completions(1);
    assert_eq!((received.len(), received[0].wr_id, received[0].opcode), (1, 5, Opcode::RecvWriteImm));
    assert_eq!((received[0].byte_len, received[0].imm), (1_024, Some(9)));
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
}

#[test]
fn a_read_brings_memory_back_after_the_write_before_it() {
    let mut pair = Pair::new(Channel::new(1), 20_000, |_| {});
    let rkey = pair.open_memory(1);
    pair.post(0, 1, Op::Write { rkey, remote_addr: 10_000 }, 0, 5_000);
    pair.post(0, 2, Op::Read { rkey, remote_addr: 10_000 }, 12_000, 5_000);
    pair.post(0, 3, Op::Write { rkey, remote_addr: 0 }, 0, 1);
    pair.run(LIMIT);
    let memory = &pair.hosts[0].memory;
    assert_eq!(memory[0..5_000], memory[12_000..17_000]);
    // The last write was acknowledged long before the READ's answer came; it completes behind it all the same.
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success), (3, Status::Success)]);
    assert_eq!(pair.completions(0)[1].byte_len, 5_000);
    assert_eq!(pair.hosts[1].endpoint.deregister(rkey), Ok(()));
}

#[test]
fn more_reads_than_allowed_wait_for_each_other() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| config.max_reads_out = 2);
    let rkey = pair.open_memory(1);
    for i in 0..8 {
        pair.post(0, i, Op::Read { rkey, remote_addr: i * 1_000 }, 20_000 + i * 1_000, 1_000);
    }
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), (0..8).map(|i| (i, Status::Success)).collect::<Vec<_>>());
    assert_eq!(pair.hosts[0].memory[20_000..28_000], pair.hosts[1].memory[..8_000]);
    assert_eq!(pair.counters(1).rnr_drops, 0);
}

#[test]
fn go_back_n_complains_once_and_sends_everything_again() {
    let mut pair = Pair::new(dropping(&[3]), 40_000, |config| config.recovery = Recovery::GoBackN);
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!(pair.hosts[1].memory[20_000..30_240], pair.hosts[0].memory[..10_240]);
    let (sender, receiver) = (pair.counters(0), pair.counters(1));
    assert_eq!((receiver.nacks_sent, receiver.sequence_drops), (1, 6));
    assert_eq!((sender.retransmitted, sender.timeouts), (7, 0));
}

/// Only what goes with a NACK tells go-back-N's sender of a gap: what follows is dropped in silence.
#[test]
fn a_gap_makes_a_notification_under_go_back_n_too() {
    for (mode, notified) in [(CnpMode::Off, 0), (CnpMode::OnMark, 0), (CnpMode::OnMarkOrGap, 2)] {
        let mut pair = Pair::new(dropping(&[3, 25]), 100_000, |config| {
            config.recovery = Recovery::GoBackN;
            config.cnp = CnpPolicy { mode, interval: Duration::ZERO };
        });
        pair.post_recv(1, 1, 50_000, 50_000);
        pair.post(0, 1, Op::Send, 0, 40 * u64::from(MTU));
        pair.run(LIMIT);
        assert_eq!((pair.counters(1).nacks_sent, pair.counters(1).cnps_sent), (2, notified), "{mode:?}");
        let log = &pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap().log;
        let heard = log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Cnp).count();
        assert_eq!(heard as u64, notified, "{mode:?}");
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
    assert_eq!((sender.data_sent, sender.retransmitted, sender.lost, sender.timeouts), (11, 1, 1, 0));
    assert_eq!(pair.counters(1).out_of_order_packets(), 0, "a retransmission is late, not out of order");
}

#[test]
fn without_a_reordering_bound_the_timer_finds_the_loss() {
    let mut pair = Pair::new(dropping(&[3, 4, 5]), 40_000, |config| config.recovery = SR(0));
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 10 * u64::from(MTU));
    pair.run(LIMIT);
    let sender = pair.counters(0);
    assert_eq!((sender.retransmitted, sender.timeouts), (3, 1), "one timeout resends all that is missing");
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
    assert_eq!((pair.counters(0).retransmitted, pair.statuses(0)), (0, vec![(1, Status::Success)]));
}

#[test]
fn acknowledgements_are_coalesced_and_the_last_one_comes_at_once() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| {
        config.acks = AckPolicy { every_packets: 4, max_delay: Duration::from_us(10) };
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

/// The PSN that each acknowledgement answers, and its cumulative number.
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
    config.acks = AckPolicy { every_packets, max_delay: Duration::from_us(30) };
}

/// Two ways, one 3 us longer: half of all packets are overtaken, and that is no news.
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
    // Fifteen by count, and the end of the message, which is the last packet of the longer way.
    assert_eq!((pair.counters(1).acks_sent, pair.counters(0).timeouts), (15, 0));
    assert_eq!(pair.counters(0).retransmitted, 0);
}

#[test]
fn the_packet_that_proves_a_loss_and_its_repair_are_acknowledged_at_once() {
    let mut pair = Pair::new(dropping(&[3]), 200_000, |config| coalescing(config, 100, 5));
    pair.post_recv(1, 1, 100_000, 100_000);
    pair.post(0, 1, Op::Send, 0, 60 * u64::from(MTU));
    pair.run(LIMIT);
    // PSN 8 proves it; the repair comes at 2 us and is behind what was sent until then.
    let acks = acknowledgements(&pair);
    assert_eq!((acks.len(), acks[0]), (3, (8, 3)), "{acks:?}");
    assert!(acks[1].0 == acks[1].1 - 1 || acks[1].0 == 3, "the repair: {acks:?}");
    assert_eq!(acks[2], (59, 60));
    let sender = pair.counters(0);
    assert_eq!((sender.retransmitted, sender.timeouts), (1, 0));
}

/// Its end was acknowledged when it arrived, but nobody could use that.
#[test]
fn what_makes_a_message_whole_is_acknowledged_at_once() {
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
    // 3 us and 1 us there, 1 us back on the way of the packet it answers, which is 3 us longer too.
    let (at, ..) = pair.trace[pair.trace.len() - 1];
    assert_eq!(at, Time::from_us(4));
}

#[test]
fn an_acknowledgement_held_back_leaves_in_time() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| {
        config.policy.window = 2;
        config.acks = AckPolicy { every_packets: 64, max_delay: Duration::from_us(10) };
    });
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.post(0, 1, Op::Send, 0, 4 * u64::from(MTU));
    pair.run(LIMIT);
    let first_ack = pair.trace.iter().find(|(_, host, _)| *host == 1).unwrap().0;
    assert_eq!(first_ack, Time::from_us(11));
    assert_eq!((pair.counters(0).retransmitted, pair.counters(1).acks_sent), (0, 2));
}

#[test]
fn a_send_without_a_receive_backs_off_until_there_is_one() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |_| {});
    pair.post(0, 1, Op::Send, 0, 3 * u64::from(MTU));
    while pair.now < Time::from_us(100) {
        assert!(pair.step());
    }
    assert!(pair.counters(1).rnr_drops >= 3 && pair.statuses(0).is_empty());
    pair.post_recv(1, 1, 20_000, 20_000);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success)]);
    assert_eq!(pair.hosts[1].memory[20_000..23_072], pair.hosts[0].memory[..3_072]);
    assert_eq!(pair.counters(0).timeouts, 0);
}

#[test]
fn a_receive_that_never_comes_fails_the_queue_pair_if_there_is_a_limit() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| config.rnr.retry_limit = Some(3));
    pair.post(0, 1, Op::Send, 0, 1);
    pair.post(0, 2, Op::Send, 0, 1);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RnrRetryExceeded), (2, Status::Flushed)]);
    assert_eq!(pair.counters(1).nacks_sent, 8, "both packets, at first and three times again");
}

#[test]
fn a_dead_channel_ends_in_an_error_after_the_retries() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| config.rto.retry_limit = 3);
    pair.channel.dead_from = Time::ZERO;
    pair.post_recv(0, 9, 0, 100);
    pair.post(0, 1, Op::Send, 0, 1);
    pair.post(0, 2, Op::Write { rkey: 0, remote_addr: 0 }, 0, 1);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RetryExceeded), (2, Status::Flushed), (9, Status::Flushed)]);
    let last = Event::QpError { qp: pair.qps[0], status: Status::RetryExceeded };
    assert_eq!(pair.hosts[0].events.last(), Some(&last));
    // 50 + 100 + 200 + 400 microseconds.
    assert_eq!((pair.now, pair.counters(0).timeouts), (Time::from_us(750), 4));
    let more = WorkRequest { wr_id: 3, op: Op::Send, local: Buffer(0), len: 1 };
    assert_eq!(pair.hosts[0].endpoint.post(pair.now, pair.qps[0], more), Err(PostError::QpFailed));
}

#[test]
fn a_read_whose_answer_never_comes_ends_in_an_error() {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(|packet| match packet.segment.body {
        Body::Data(data) => Some(data.op != Operation::ReadResponse),
        _ => None,
    }));
    let mut pair = Pair::new(channel, 40_000, |config| config.rto.retry_limit = 3);
    let rkey = pair.open_memory(1);
    pair.post(0, 1, Op::Read { rkey, remote_addr: 0 }, 0, 5_000);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RetryExceeded)]);
    assert!(
        pair.hosts[1].events.contains(&Event::QpError { qp: pair.qps[1], status: Status::RetryExceeded })
    );
    assert_eq!(pair.hosts[1].endpoint.deregister(rkey), Ok(()), "a failed queue pair lets go of memory");
}

#[test]
fn a_read_is_patient_while_what_is_before_its_answer_is_refused() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| config.rto.retry_limit = 3);
    let rkey = pair.open_memory(1);
    // The answer is behind a message for which host 0 has no receive yet, longer than it would wait in silence.
    pair.post(1, 1, Op::Send, 0, 100);
    pair.post(0, 2, Op::Read { rkey, remote_addr: 0 }, 10_000, 5_000);
    while pair.now < Time::from_us(2_000) {
        assert!(pair.step());
    }
    assert!(pair.counters(0).rnr_drops > 0 && pair.statuses(0).is_empty());
    pair.post_recv(0, 3, 20_000, 100);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(1), [(1, Status::Success)]);
    assert_eq!(pair.statuses(0), [(3, Status::Success), (2, Status::Success)]);
}

#[test]
fn a_wrong_key_fails_that_request_and_spares_those_before() {
    for lost in [&[][..], &[0], &[1]] {
        let mut pair = Pair::new(dropping(lost), 40_000, |_| {});
        let rkey = pair.open_memory(1);
        let small = MemoryRegion {
            buffer: Buffer(0),
            addr: 0,
            len: 100,
            access: Access::READ,
            scope: Scope::DEFAULT,
        };
        let small = pair.hosts[1].endpoint.register(small, 0).unwrap();
        pair.post(0, 1, Op::Write { rkey, remote_addr: 0 }, 0, 2 * u64::from(MTU));
        pair.post(0, 2, Op::Write { rkey: small, remote_addr: 0 }, 0, 50);
        pair.post(0, 3, Op::Write { rkey, remote_addr: 0 }, 0, 50);
        pair.run(LIMIT);
        let expected = [(1, Status::Success), (2, Status::RemoteAccess), (3, Status::Flushed)];
        assert_eq!(pair.statuses(0), expected, "PSNs {lost:?} lost");
    }
}

#[test]
fn a_read_out_of_bounds_is_refused() {
    let mut pair = Pair::new(Channel::new(1), 1_000, |_| {});
    let rkey = pair.open_memory(1);
    pair.post(0, 1, Op::Read { rkey, remote_addr: 500 }, 0, 501);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RemoteAccess)]);
}

#[test]
fn a_message_longer_than_its_receive_fails_both_ends() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |_| {});
    pair.post_recv(1, 7, 20_000, 1_500);
    pair.post_recv(1, 8, 20_000, 1_500);
    pair.post(0, 1, Op::Send, 0, 1_501);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RemoteInvalidRequest)]);
    assert_eq!(pair.statuses(1), [(7, Status::LocalLength), (8, Status::Flushed)]);
}

#[test]
fn marked_packets_are_reported_and_notified_once_an_interval() {
    let mut channel = Channel::new(1);
    channel.mark = 1.0;
    let mut pair = Pair::new(channel, 40_000, |config| {
        config.receive = ReceiveMode::Discard;
        config.cnp = CnpPolicy { mode: CnpMode::OnMark, interval: Duration::from_us(1) };
    });
    pair.post(0, 1, Op::Send, 0, 16 * u64::from(MTU));
    pair.run(LIMIT);
    // A packet takes 91 ns at 100 Gb/s: packets 0 and 11 lie a microsecond apart.
    assert_eq!((pair.counters(1).marked_received, pair.counters(1).cnps_sent), (16, 2));
    let log = &pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap().log;
    let marked = log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Ack { timed: true, marked: true });
    assert_eq!(marked.count(), 16);
    assert_eq!(log.iter().filter(|(_, kind, _)| *kind == FeedbackKind::Cnp).count(), 2);
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
    assert_eq!(pair.counters(0).retransmitted, 0);
}

#[test]
fn the_sender_keeps_to_the_window_of_the_receiver() {
    let mut pair = Pair::new(dropping(&[0]), 400_000, |config| {
        config.policy.window = 1_000;
        config.recovery = Recovery::SelectiveRepeat { reorder_packets: 0, window_packets: 8 };
    });
    pair.post_recv(1, 1, 200_000, 200_000);
    pair.post(0, 1, Op::Send, 0, 100 * u64::from(MTU));
    pair.run(LIMIT);
    assert_eq!((pair.counters(1).beyond_window_drops, pair.counters(0).retransmitted), (0, 1));
}

#[test]
fn a_paced_sender_keeps_its_pace() {
    let mut pair = Pair::new(Channel::new(1), 10, |config| {
        config.receive = ReceiveMode::Discard;
        config.policy.gap = Duration::from_us(3);
    });
    pair.post(0, 1, Op::Send, 0, 4);
    pair.post(0, 2, Op::Send, 0, 4);
    pair.post(0, 3, Op::Send, 0, 4);
    pair.run(LIMIT);
    let sent: Vec<_> = pair.trace.iter().filter(|(_, host, _)| *host == 0).map(|(at, ..)| *at).collect();
    assert_eq!(sent, [Time::ZERO, Time::from_us(3), Time::from_us(6)]);
}

#[test]
fn late_packets_of_a_destroyed_queue_pair_are_foreign() {
    let mut pair = Pair::new(Channel::new(1), 10_000, |config| config.receive = ReceiveMode::Discard);
    pair.post(0, 1, Op::Send, 0, 5_000);
    pair.drain();
    let old = pair.qps[1];
    pair.hosts[1].endpoint.destroy_qp(old).unwrap();
    let new = pair.hosts[1].endpoint.create_qp(pair.now, pair::config(0, 16));
    pair.hosts[1].endpoint.connect(new, pair.qps[0]).unwrap();
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RetryExceeded)]);
    assert_eq!(pair.counters(1).foreign, pair.counters(0).data_sent);
    assert_eq!(pair.hosts[1].endpoint.qp_counters(new).unwrap().data_received, 0);
}

#[test]
fn four_gibibytes_take_no_memory_before_they_are_sent() {
    let mut pair = Pair::new(Channel::new(1), 0, |config| config.receive = ReceiveMode::Discard);
    // Nothing is stepped to the end: the message is only begun.
    pair.channel.dead_from = Time::ZERO;
    let endpoint = &mut pair.hosts[0].endpoint;
    for wr_id in 0..1_000 {
        let request = WorkRequest { wr_id, op: Op::Send, local: Buffer(0), len: 1 << 32 };
        endpoint.post(Time::ZERO, pair.qps[0], request).unwrap();
    }
    let too_long = WorkRequest { wr_id: 0, op: Op::Send, local: Buffer(0), len: (1 << 32) + 1 };
    let error = endpoint.post(Time::ZERO, pair.qps[0], too_long).unwrap_err();
    assert_eq!(error.to_string(), "a message of 4294967297 bytes; at most 4294967296 bytes are allowed");
}

#[test]
fn both_ends_read_at_once_one_at_a_time() {
    let mut pair = Pair::new(Channel::new(1), 40_000, |config| {
        (config.max_reads_out, config.max_reads_in) = (1, 1);
    });
    let keys = [pair.open_memory(0), pair.open_memory(1)];
    for i in 0..4 {
        for host in 0..2 {
            pair.post(
                host,
                i,
                Op::Read { rkey: keys[1 - host], remote_addr: i * 3_000 },
                20_000 + i * 3_000,
                3_000,
            );
        }
    }
    pair.run(LIMIT);
    for host in 0..2 {
        assert_eq!(pair.statuses(host), (0..4).map(|i| (i, Status::Success)).collect::<Vec<_>>());
        assert!(pair.hosts[host].memory[20_000..32_000] == pair.hosts[1 - host].memory[..12_000]);
    }
}

#[test]
fn a_probe_comes_back_with_its_round_trip() {
    let mut pair = Pair::new(Channel::new(1), 10, |config| {
        config.receive = ReceiveMode::Discard;
        config.policy.probes = 1;
    });
    pair.post(0, 1, Op::Send, 0, 4);
    pair.run(LIMIT);
    let endpoint = &pair.hosts[0].endpoint;
    let told = &endpoint.policy(pair.qps[0]).unwrap().told;
    assert_eq!(*told, [(ControlKind::ProbeReply, Duration::from_us(2))]);
    let sent = endpoint.order_counters(pair.qps[0]).unwrap().controls_sent;
    assert_eq!((sent[ControlKind::Probe], pair.counters(0).data_sent), (1, 1));
}

#[test]
fn an_echo_of_the_edge_is_heard_and_acknowledges_nothing() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 1, ..EndpointConfig::new(HostId(0)) });
    let qp = endpoint.create_qp(Time::ZERO, pair::config(1, 4));
    endpoint.connect(qp, QpNum(9)).unwrap();
    let at = Time::from_us;
    let echo = |sent_at| Segment {
        dst_qp: qp,
        src_qp: QpNum(9),
        path: PathId(0),
        body: Body::Control(Control::EdgeEcho { sent_at }),
    };
    // Before anything was sent, or from the future, it makes no sense.
    endpoint.on_packet(at(1), HostId(1), &echo(Time::ZERO), false);
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
    endpoint.post(at(1), qp, request).unwrap();
    while endpoint.poll_transmit(at(1), Gate { data_ports: 1 }).is_some() {}
    endpoint.on_packet(at(2), HostId(1), &echo(at(3)), false);
    let before = (endpoint.inflight(qp), endpoint.qp_counters(qp).unwrap());
    assert_eq!((before.0.unwrap().0, before.1.malformed), (4, 2));
    endpoint.on_packet(at(8), HostId(1), &echo(at(1)), false);
    assert_eq!((endpoint.inflight(qp), endpoint.qp_counters(qp).unwrap()), before);
    assert!(endpoint.poll_transmit(at(8), Gate { data_ports: 1 }).is_none(), "no window opens");
    assert!(!endpoint.has_event());
    assert!(endpoint.policy(qp).unwrap().log.is_empty());
    assert_eq!(endpoint.policy(qp).unwrap().told, [(ControlKind::EdgeEcho, Duration::from_us(7))]);
    endpoint.assert_invariants();
}

#[test]
fn a_stamp_renewed_on_the_way_measures_from_there() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 1, ..EndpointConfig::new(HostId(0)) });
    let qp = endpoint.create_qp(Time::ZERO, pair::config(1, 4));
    endpoint.connect(qp, QpNum(9)).unwrap();
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 4 };
    endpoint.post(Time::from_us(1), qp, request).unwrap();
    assert!(endpoint.poll_transmit(Time::from_us(1), Gate { data_ports: 1 }).is_some());
    let ack = Ack {
        cumulative: 1,
        psn: 0,
        sack: 1,
        echo_sent_at: Time::from_us(500),
        received_at: Time::from_us(503),
        packets: 1,
        marked: 0,
        notices: Notices::Welcome,
    };
    let segment = Segment { dst_qp: qp, src_qp: QpNum(9), path: PathId(0), body: Body::Ack(ack) };
    endpoint.on_packet(Time::from_us(1_006), HostId(1), &segment, false);
    let timed = FeedbackKind::Ack { timed: true, marked: false };
    assert_eq!(endpoint.policy(qp).unwrap().log, [(0, timed, Duration::from_us(506))]);
}

#[test]
fn a_packet_waits_for_its_port_and_control_does_not() {
    let mut endpoint = Endpoint::new(EndpointConfig { nic_ports: 2, ..EndpointConfig::new(HostId(0)) });
    let mut config = pair::config(1, 16);
    config.policy.paths = 4;
    let qp = endpoint.create_qp(Time::ZERO, config);
    endpoint.connect(qp, QpNum(9)).unwrap();
    let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
    endpoint.post(Time::ZERO, qp, request).unwrap();
    let path_and_port = |transmit: Option<Transmit>| transmit.map(|t| (t.segment.path.0, t.port));
    // Paths 0, 1, 2, 3 in turn leave by ports 0, 1, 0, 1.
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, Gate::port(1))), None);
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, Gate::OPEN)), Some((0, 0)));
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, Gate::port(0))), None);
    let probe = Body::Control(Control::Probe { sent_at: Time::ZERO });
    let segment = Segment { dst_qp: qp, src_qp: QpNum(9), path: PathId(0), body: probe };
    endpoint.on_packet(Time::ZERO, HostId(1), &segment, false);
    assert_eq!(endpoint.poll_transmit(Time::ZERO, Gate::CONTROL).unwrap().class, Class::Control);
    assert_eq!(path_and_port(endpoint.poll_transmit(Time::ZERO, Gate::port(1))), Some((1, 1)));
    endpoint.assert_invariants();
}

#[test]
fn queue_pairs_take_turns() {
    let mut endpoint = Endpoint::new(EndpointConfig::new(HostId(0)));
    let qps: Vec<QpNum> = (0..3)
        .map(|_| {
            let qp = endpoint.create_qp(Time::ZERO, pair::config(1, 2));
            endpoint.connect(qp, QpNum(9)).unwrap();
            let request = WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len: 1 << 20 };
            endpoint.post(Time::ZERO, qp, request).unwrap();
            qp
        })
        .collect();
    let sent = core::iter::from_fn(|| endpoint.poll_transmit(Time::ZERO, Gate::OPEN));
    let order: Vec<QpNum> = sent.map(|transmit| transmit.segment.src_qp).collect();
    assert_eq!(order, [qps.clone(), qps].concat(), "two packets each, then the window is full");
}
