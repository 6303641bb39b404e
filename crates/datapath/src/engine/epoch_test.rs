//! Clock resets of long-lived devices.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Jump;
use crate::{Access, CloseReason, Connection, Device, DeviceConfig, Region, Status};

const PATIENCE: Duration = Duration::from_secs(60);
const DAY_NS: u64 = 86_400_000_000_000;

fn config() -> DeviceConfig {
    DeviceConfig { paths: 4, mtu_payload: 1_344, ..DeviceConfig::loopback() }
}

fn exchange(near: &Connection, server: &Device, salt: u8) {
    let bytes: Vec<u8> = (0..200_000usize).map(|i| (i * 7 + i / 251) as u8 ^ salt).collect();
    let board =
        server.register(&Region::zeroed(bytes.len()).expect("memory"), Access::READ_WRITE).expect("a key");
    let done = |wr_id| {
        let done = near.wait(PATIENCE).expect("a completion");
        assert_eq!((done.wr_id, done.status), (wr_id, Status::Success));
    };
    near.write(1, Region::from_bytes(&bytes).expect("memory").all(), board.remote(0)).expect("room");
    done(1);
    let back = Region::zeroed(bytes.len()).expect("memory");
    near.read(2, back.all(), board.remote(0)).expect("room");
    done(2);
    assert!(back.to_vec(0..bytes.len()).expect("its bytes") == bytes);
}

#[test]
fn a_device_that_has_been_open_for_213_days_takes_connections_as_on_its_first() {
    let jump = Jump::for_devices_of_this_thread();
    let server = Device::open(config()).expect("a device");
    let client = Device::open(config()).expect("a device");
    let listener = server.listen().expect("nobody listens yet");
    for days in [9, 11, 199, 213, 214, 1_000, 100_000] {
        jump.to_ns.store(days * DAY_NS, Ordering::Relaxed);
        // The clock must not jump during a handshake, or it would time out.
        std::thread::sleep(Duration::from_millis(50));
        let near = client.connect(server.local_addr()).expect("a connection");
        let far = listener.accept(PATIENCE).expect("the other end of it");
        exchange(&near, &server, days as u8);
        near.close();
        assert_eq!(far.wait_closed(PATIENCE), Ok(CloseReason::Peer), "after {days} days");
        // A closed connection lingers for a while; afterwards there is none.
        while [&server, &client].iter().any(|device| device.stats().expect("it is open").connections > 0) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn connections_older_than_time_are_closed_and_others_follow() {
    let jump = Jump::for_devices_of_this_thread();
    let server = Device::open(config()).expect("a device");
    jump.unset();
    let client = Device::open(config()).expect("a device");
    let listener = server.listen().expect("nobody listens yet");
    let near = client.connect(server.local_addr()).expect("a connection");
    let far = listener.accept(PATIENCE).expect("the other end of it");
    exchange(&near, &server, 1);
    jump.to_ns.store(201 * DAY_NS, Ordering::Relaxed);
    assert_eq!(far.wait_closed(PATIENCE), Ok(CloseReason::ClockRenewed));
    assert_eq!(near.wait_closed(PATIENCE), Ok(CloseReason::Peer));
    let near = client.connect(server.local_addr()).expect("a connection");
    let far = listener.accept(PATIENCE).expect("the other end of it");
    exchange(&near, &server, 2);
    assert_eq!(far.close_reason(), None);
}
