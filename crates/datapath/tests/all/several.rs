//! A thread that waits for a listener and several connections at once.

use std::time::Duration;

use crate::support::{PATIENCE, done, loopback};
use pathweave_datapath::{Connection, Device, DeviceConfig, Driving, Region};

enum Event {
    Opened(Connection),
    Received(usize),
}

fn a_server_of_one_thread(driving: Driving) {
    let server = Device::open(DeviceConfig { driving, ..loopback() }).unwrap();
    let address = server.local_addr();
    // A connection request without a listener is refused.
    let listener = server.listen().unwrap();
    let client = move |salt: u8| {
        let device = Device::open(loopback()).unwrap();
        let connection = device.connect(address).unwrap();
        for round in 0..3 {
            let inbox = Region::zeroed(1).unwrap();
            connection.recv(1, inbox.all()).unwrap();
            let byte = 16 * salt + round;
            connection.send(2, Region::from_bytes(&[byte]).unwrap().all()).unwrap();
            let (first, second) =
                (connection.wait(PATIENCE).unwrap().wr_id, connection.wait(PATIENCE).unwrap().wr_id);
            assert_eq!(first + second, 3);
            assert_eq!(inbox.to_vec(0..1).unwrap(), [!byte]);
        }
    };
    let clients: Vec<_> = [1, 2, 3].map(|salt| std::thread::spawn(move || client(salt))).into();
    let mut open: Vec<(Connection, Region)> = Vec::new();
    let mut answered = 0;
    while answered < 9 {
        let ready = || {
            let received = |(at, (connection, _)): (usize, &(Connection, Region))| {
                // Completions of the answers are ignored.
                std::iter::from_fn(|| connection.take())
                    .find(|done| done.wr_id == 1 && done.is_success())
                    .map(|_| at)
            };
            let opened = listener.take().map(Event::Opened);
            opened.or_else(|| open.iter().enumerate().find_map(received).map(Event::Received))
        };
        match server.wait_until(PATIENCE, ready).unwrap().expect("something happens") {
            Event::Opened(connection) => {
                let inbox = Region::zeroed(1).unwrap();
                connection.recv(1, inbox.all()).unwrap();
                open.push((connection, inbox));
            }
            Event::Received(at) => {
                let (connection, inbox) = &open[at];
                let byte = inbox.to_vec(0..1).unwrap()[0];
                connection.recv(1, inbox.all()).unwrap();
                connection.send(2, Region::from_bytes(&[!byte]).unwrap().all()).unwrap();
                answered += 1;
            }
        }
    }
    // The thread that drives the loop must continue until the last answer has arrived.
    let served = || clients.iter().all(std::thread::JoinHandle::is_finished).then_some(());
    while server.wait_until(Duration::from_millis(10), served).unwrap().is_none() {}
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn driven_by_a_thread() {
    a_server_of_one_thread(Driving::Thread { core: None });
}

#[test]
fn driven_by_whoever_waits() {
    a_server_of_one_thread(Driving::Caller);
}

#[test]
fn driven_by_whoever_waits_or_the_thread() {
    a_server_of_one_thread(Driving::Standby);
}

#[test]
fn waiting_for_nothing_ends() {
    let device = Device::open(loopback()).unwrap();
    assert!(device.wait_until(Duration::from_millis(1), || None::<()>).unwrap().is_none());
    assert_eq!(device.wait_until(Duration::ZERO, || Some(7)).unwrap(), Some(7));
    let pair = crate::support::Pair::new();
    assert!(pair.near.take().is_none() && pair.listener.take().is_none());
    pair.far.recv(1, Region::zeroed(1).unwrap().all()).unwrap();
    pair.near.send(2, Region::from_bytes(&[1]).unwrap().all()).unwrap();
    assert_eq!(done(&pair.far, 1), 1);
}
