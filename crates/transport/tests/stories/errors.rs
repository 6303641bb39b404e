//! Events that end a request or a queue pair with an error, and events that do not.

use crate::pair::{Channel, MTU, Pair};
use crate::{LIMIT, dropping};
use pathweave_transport::{
    Access, Buffer, Event, MemoryRegion, Op, PostError, ReceiveMode, Scope, Status, WorkRequest,
};
use pathweave_units::Time;
use pathweave_wire::{Body, Operation};

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
    // The response is behind a message for which host 0 has no receive yet, longer than it would wait in silence.
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
fn late_packets_of_a_destroyed_queue_pair_are_foreign() {
    let mut pair = Pair::new(Channel::new(1), 10_000, |config| config.receive = ReceiveMode::Discard);
    pair.post(0, 1, Op::Send, 0, 5_000);
    pair.drain();
    let old = pair.qps[1];
    pair.hosts[1].endpoint.destroy_qp(old).unwrap();
    let new = pair.hosts[1].endpoint.create_qp(pair.now, crate::pair::config(0, 16));
    pair.hosts[1].endpoint.connect(new, pair.qps[0]).unwrap();
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::RetryExceeded)]);
    assert_eq!(pair.counters(1).foreign, pair.counters(0).sent_packets);
    assert_eq!(pair.hosts[1].endpoint.qp_counters(new).unwrap().data_received, 0);
}
