//! Messages for which there is neither a receive nor room: they wait at their sender, and no packet is sent in vain.

use std::time::Duration;

use crate::support::endpoints::{open, stats};
use crate::support::{PATIENCE, pattern, rdm_loopback, region_of, until_or};
use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint};
use pathweave_datapath::{Opcode, Region, Status};

/// A message of `len` bytes waits for its receive, much longer than the retransmission timeout, and then arrives
/// completely.
fn waits_for_its_receive(config: &RdmConfig, len: usize, a_while: Duration) {
    let (near, far, other) = (open(config), open(config), open(config));
    let to = near.insert(far.local_addr()).expect("room");
    near.send(1, to, region_of(&pattern(len, 1)).all()).expect("room");
    near.send(2, to, region_of(b"behind it").all()).expect("room");
    until_or(|| stats(&near).counters.waits_received > 0, || format!("{:?}", stats(&far)));
    std::thread::sleep(a_while);
    assert!(near.poll().is_none(), "neither done nor given up");
    let (waiting, there) = (stats(&near).counters, stats(&far));
    let packets = len.div_ceil(8_960) as u64;
    assert_eq!((waiting.retransmitted, there.waiting_peers), (0, 1), "{waiting:?}");
    assert!(there.kept_bytes <= config.unexpected_bytes as u64, "{there:?}");
    // Nothing is sent meanwhile.
    assert_eq!(stats(&near).counters.data_sent, waiting.data_sent);
    // Other peers are not delayed.
    let from_other = far.insert(other.local_addr()).expect("room");
    let small = Region::zeroed(100).expect("memory");
    far.recv_from(from_other, 7, small.all()).expect("room");
    other.send(3, other.insert(far.local_addr()).expect("room"), region_of(b"hello").all()).expect("room");
    assert_eq!(far.wait(PATIENCE).expect("a completion").wr_id, 7);
    assert_eq!(other.wait(PATIENCE).expect("a completion").result(), Ok(5));
    let room = Region::zeroed(len).expect("memory");
    far.recv(8, room.all()).expect("room");
    far.recv(9, small.all()).expect("room");
    let mut arrived: Vec<(u64, u64)> = (0..2)
        .map(|_| far.wait(PATIENCE).expect("a completion"))
        .map(|done| (done.wr_id, done.result().expect("success")))
        .collect();
    arrived.sort_unstable();
    assert_eq!(arrived, [(8, len as u64), (9, 9)]);
    assert!(room.to_vec(0..len).expect("all of it") == pattern(len, 1));
    (0..2).for_each(|_| assert!(near.wait(PATIENCE).expect("a completion").is_success()));
    // Only packets that left before the sender was told to wait were retransmitted, and packets that the machine was
    // too slow to accept.
    let after = stats(&near).counters;
    assert!(after.retransmitted <= 2 * (packets + 1), "{packets} packets, {after:?}");
    assert_eq!((stats(&far).kept_bytes, stats(&far).waiting_peers), (0, 0));
}

#[test]
fn a_message_waits_for_its_receive() {
    let config = RdmConfig { unexpected_bytes: 70_000, ..rdm_loopback() };
    waits_for_its_receive(&config, 8 << 20, Duration::from_secs(2));
}

/// Uses the default bound.
#[test]
fn a_message_of_100_mb_waits_for_its_receive() {
    waits_for_its_receive(&rdm_loopback(), 100_000_000, Duration::from_millis(500));
}

/// One TCP connection is shared by three peers, so that each is closed repeatedly while messages wait and are
/// permitted to continue.
#[test]
fn waiting_outlasts_side_channels_that_break() {
    let config = RdmConfig { unexpected_bytes: 20_000, side_channels: 1, ..rdm_loopback() };
    let hub = open(&config);
    let others: Vec<RdmEndpoint> = (0..3).map(|_| open(&config)).collect();
    let len = 200_000;
    for (n, other) in (0..).zip(&others) {
        let to = other.insert(hub.local_addr()).expect("room");
        for k in 0..4 {
            other.send(k, to, region_of(&pattern(len, 10 * n + k)).all()).expect("room");
        }
    }
    until_or(|| stats(&hub).waiting_peers == 3, || format!("{:?}", stats(&hub)));
    for k in 0..12 {
        let room = Region::zeroed(len).expect("memory");
        hub.recv(k, room.all()).expect("room");
        let done = hub.wait(PATIENCE).expect("a completion");
        assert_eq!((done.wr_id, done.result()), (k, Ok(len as u64)), "{:?}", stats(&hub));
        let from = done.peer.expect("somebody sent it").address();
        let n = (0..).zip(&others).find(|(_, other)| other.local_addr() == from).expect("one of them").0;
        let bytes = room.to_vec(0..len).expect("all of it");
        assert!((0..4).any(|k| bytes == pattern(len, 10 * n + k)), "a message of {from:?}");
    }
    for other in &others {
        (0..4).for_each(|_| assert!(other.wait(PATIENCE).expect("a completion").is_success()));
    }
    let side = stats(&hub).side;
    assert!(side.closed + side.broken > 0, "{side:?}");
}

#[test]
fn a_message_that_waits_fails_when_its_peer_is_gone() {
    let mut config = RdmConfig { unexpected_bytes: 20_000, ..rdm_loopback() };
    config.device.peer_timeout = Duration::from_millis(600);
    let (near, far) = (open(&config), open(&config));
    let to = near.insert(far.local_addr()).expect("room");
    near.send(1, to, region_of(&pattern(1 << 20, 1)).all()).expect("room");
    until_or(|| stats(&near).counters.waits_received > 0, || format!("{:?}", stats(&far)));
    // A peer that is alive may take its time.
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(near.poll().is_none());
    drop(far);
    let done = near.wait(PATIENCE).expect("never a hang");
    assert_eq!((done.wr_id, done.opcode, done.status), (1, Opcode::Send, Status::RetryExceeded));
}

/// The sender disappears: nothing of its message is stored, and the next receive takes another message.
#[test]
fn a_sender_that_goes_while_it_waits_leaves_nothing() {
    let mut config = RdmConfig { unexpected_bytes: 40_000, ..rdm_loopback() };
    config.device.peer_timeout = Duration::from_millis(600);
    let (near, far) = (open(&config), open(&config));
    let to = near.insert(far.local_addr()).expect("room");
    near.send(1, to, region_of(&pattern(1 << 20, 1)).all()).expect("room");
    until_or(|| stats(&far).waiting_peers > 0, || format!("{:?}", stats(&far)));
    drop(near);
    until_or(
        || (stats(&far).kept_bytes, stats(&far).associations) == (0, 0),
        || format!("{:?}", stats(&far)),
    );
    let third = open(&config);
    third.send(2, third.insert(far.local_addr()).expect("room"), region_of(b"hello").all()).expect("room");
    far.recv(5, Region::zeroed(100).expect("memory").all()).expect("room");
    let done = far.wait(PATIENCE).expect("a completion");
    assert_eq!((done.wr_id, done.result()), (5, Ok(5)));
    until_or(|| stats(&far).waiting_peers == 0, || format!("{:?}", stats(&far)));
}
