//! Tests of the backend alone, over a port that loops frames back (`net_ring`).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_bypass::dpdk::DpdkBackend;
use pathweave_datapath::backend::{Backend, Rail, SendBatch, Sent, Wait};
use pathweave_units::PathId;
use pathweave_wire::Ecn;

use crate::link::net::{End, Family, config};
use crate::places::{config_of, local};

fn ring(name: &str, family: Family) -> DpdkBackend {
    let config = config(End::Near, family);
    DpdkBackend::open(&config_of(name, Some(local(End::Near, family)), 1_500, &config)).expect("a ring")
}

fn batch<'a>(to: SocketAddr, bytes: &'a [u8], segment_bytes: usize) -> SendBatch<'a> {
    SendBatch { to, rail: Rail::FIRST, path: Some(PathId(1)), ecn: Ecn::Experienced, segment_bytes, bytes }
}

#[test]
fn packets_to_oneself_arrive_unchanged() {
    for (name, family) in [("net_ring10", Family::V4), ("net_ring11", Family::V6)] {
        let mut ring = ring(name, family);
        let to = ring.local_addr();
        let bytes: Vec<u8> = (0..3_500u32).map(|byte| byte as u8).collect();
        assert_eq!(ring.send(&batch(to, &bytes, 1_000)).unwrap(), Sent::Done);
        ring.flush();
        let path_port = ring.source_ports()[1];
        let mut lengths = Vec::new();
        let mut all = Vec::new();
        ring.receive(&mut |received| {
            assert_eq!((received.from, received.at), (SocketAddr::new(to.ip(), path_port), None));
            assert_eq!((received.ecn, received.rail), (Ecn::Experienced, Rail::FIRST));
            lengths.push(received.bytes.len());
            all.extend_from_slice(received.bytes);
        })
        .unwrap();
        assert_eq!(lengths, [1_000, 1_000, 1_000, 500]);
        assert!(all == bytes);
        let tally = ring.counters().read();
        assert_eq!((tally.sent, tally.received, tally.foreign, tally.flawed), (4, 4, 0, [0; 8]));
    }
}

#[test]
fn a_full_port_makes_wait_and_loses_nothing() {
    let mut ring = ring("net_ring12", Family::V4);
    let to = ring.local_addr();
    let bytes = vec![7; 64 * 100];
    // No one receives: the ring fills up, and then the queue for it.
    let mut sent = 0;
    while ring.send(&batch(to, &bytes, 100)).unwrap() == Sent::Done {
        ring.flush();
        sent += 64;
        assert!(sent < 100_000, "never full");
    }
    assert!(sent >= 1_024, "{sent} frames");
    let start = Instant::now();
    ring.wait(Wait { at_most: Some(Duration::from_secs(60)), for_room: true }).unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "who waits for room does not wait for frames");
    let mut received = 0;
    for _ in 0..10_000 {
        ring.receive(&mut |_| received += 1).unwrap();
        if received == sent {
            break;
        }
    }
    assert_eq!(received, sent);
    assert_eq!(ring.counters().read().lost, 0);
}

#[test]
fn waiting_ends_with_frames_wakeups_and_time() {
    let mut ring = ring("net_ring13", Family::V4);
    let to = ring.local_addr();
    let wait = |ring: &mut DpdkBackend, at_most| {
        let start = Instant::now();
        ring.wait(Wait { at_most, for_room: false }).unwrap();
        start.elapsed()
    };
    // The announcement of the link comes back through the ring.
    wait(&mut ring, None);
    ring.receive(&mut |_| panic!("no datagram")).unwrap();
    let slept = wait(&mut ring, Some(Duration::from_millis(20)));
    assert!((Duration::from_millis(20)..Duration::from_secs(5)).contains(&slept), "{slept:?}");
    assert!(wait(&mut ring, Some(Duration::ZERO)) < Duration::from_secs(5));
    let waker = ring.waker();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            waker.wake();
        });
        assert!(wait(&mut ring, None) >= Duration::from_millis(29));
    });
    // A frame sent before the wait ends it at once.
    ring.send(&batch(to, b"x", 1)).unwrap();
    wait(&mut ring, None);
    let mut count = 0;
    ring.receive(&mut |_| count += 1).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn unsendable_packets_are_errors_or_lost() {
    let mut ring = ring("net_ring14", Family::V4);
    let number = |result: std::io::Result<Sent>| result.unwrap_err().raw_os_error();
    let elsewhere = "192.0.2.1:5".parse().unwrap();
    assert_eq!(number(ring.send(&batch(elsewhere, b"x", 1))), Some(libc::EHOSTUNREACH));
    let to = ring.local_addr();
    assert_eq!(number(ring.send(&batch(to, &[0; 1_600], 1_600))), Some(libc::EMSGSIZE));
    // No one answers for a missing neighbour. The request comes back through the ring, and is not for our address.
    let nobody = "10.99.0.77:5".parse().unwrap();
    assert_eq!(ring.send(&batch(nobody, b"x", 1)).unwrap(), Sent::Done);
    ring.flush();
    ring.receive(&mut |_| panic!("no datagram")).unwrap();
    let tally = ring.counters().read();
    assert_eq!((tally.lost, tally.received, tally.flawed), (1, 1, [0; 8]));
}
