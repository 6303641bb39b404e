//! Messages of every kind reach the peer completely.

use crate::LIMIT;
use crate::pair::{Channel, Pair};
use pathweave_policy::FeedbackKind;
use pathweave_transport::{Buffer, Event, Op, Opcode, ReceiveMode, Status, WorkRequest};
use pathweave_units::{Duration, Time};
use pathweave_wire::Operation;

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
    assert_eq!((pair.counters(0).sent_packets, pair.counters(1).acks_sent), (3, 3));
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
    // Two microseconds of channel, without any queueing.
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
    // The last WRITE was acknowledged long before the READ response arrived; it completes behind the READ all the
    // same.
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
fn four_gibibytes_take_no_memory_before_they_are_sent() {
    let mut pair = Pair::new(Channel::new(1), 0, |config| config.receive = ReceiveMode::Discard);
    // The run does not continue to the end: the message is only begun.
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
