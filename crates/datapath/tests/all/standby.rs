//! Loops driven by callers, and by a thread while no caller does.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Pair, done, loopback, region_of, until};
use pathweave_datapath::{
    Access, Connection, Device, DeviceConfig, Driving, Event, Events, Region, Turned, WaitError,
};

fn open(driving: Driving) -> Device {
    Device::open(DeviceConfig { driving, ..loopback() }).expect("a device")
}

fn pair() -> Pair {
    Pair::of(open(Driving::Thread { core: None }), open(Driving::Standby))
}

#[test]
fn an_idle_caller_stays_alive_to_its_peers() {
    let pair = pair();
    let board = pair.board(8, Access::READ_WRITE);
    let inbox = Region::zeroed(8).unwrap();
    pair.far.recv(1, inbox.all()).unwrap();
    // From here on the far end is not called.
    for round in 0..20u8 {
        pair.near.write(2, region_of(&[round; 8]).all(), board.remote(0)).unwrap();
        assert_eq!(done(&pair.near, 2), 8);
        let back = Region::zeroed(8).unwrap();
        pair.near.read(3, back.all(), board.remote(0)).unwrap();
        assert_eq!(done(&pair.near, 3), 8);
        assert_eq!(back.to_vec(0..8).unwrap(), [round; 8]);
        // The thread has slept in some rounds, and not in others.
        thread::sleep(Duration::from_millis(u64::from(round % 4)));
    }
    pair.near.send(4, region_of(b"a letter").all()).unwrap();
    assert_eq!(done(&pair.near, 4), 8);
    assert_eq!(done(&pair.far, 1), 8);
    assert_eq!(inbox.to_vec(0..8).unwrap(), b"a letter");
}

#[test]
fn busy_callers_hold_the_loop_and_resting_ones_release_it() {
    let pair = pair();
    let turns_itself = || {
        let give_up = Instant::now() + PATIENCE;
        while pair.server.progress() == Turned::Elsewhere {
            assert!(Instant::now() < give_up, "the thread keeps the loop");
        }
    };
    for _ in 0..20 {
        pair.server.rest();
        until("the thread takes over", || pair.server.progress() == Turned::Elsewhere);
        turns_itself();
        // The thread also takes over after a lull, without an announcement.
        thread::sleep(Duration::from_millis(20));
        turns_itself();
    }
}

#[test]
fn a_wait_ends_for_a_message_for_a_call_of_another_thread_and_at_its_end() {
    let pair = pair();
    let nothing = || None::<()>;
    let start = Instant::now();
    assert_eq!(pair.server.wait_until(Duration::from_millis(30), nothing).unwrap(), None);
    assert!(start.elapsed() >= Duration::from_millis(30));
    let flag = AtomicUsize::new(0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let set = || (flag.load(Ordering::Relaxed) > 0).then_some(7);
            pair.server.wait_until(PATIENCE, set)
        });
        thread::sleep(Duration::from_millis(5));
        flag.store(1, Ordering::Relaxed);
        pair.server.rouse();
        assert_eq!(waiter.join().unwrap().unwrap(), Some(7));
        assert!(start.elapsed() < PATIENCE / 2);
    });
    let inbox = Region::zeroed(1).unwrap();
    for number in 0..1_000 {
        pair.far.recv(number, inbox.all()).unwrap();
        pair.near.send(number, region_of(&[1]).all()).unwrap();
        assert_eq!((done(&pair.far, number), done(&pair.near, number)), (1, 1));
    }
}

/// A server whose completions several threads take, in any order.
struct Server {
    events: Events,
    far: Mutex<Option<Connection>>,
    inboxes: Vec<Region>,
    received: AtomicU64,
    sum: AtomicU64,
}

impl Server {
    fn take(&self, event: Event) {
        match event {
            Event::Accepted(connection) => {
                // Until the connection is set, a thread that takes the first completion waits.
                let mut far = self.far.lock().unwrap();
                for (number, inbox) in self.inboxes.iter().enumerate() {
                    connection.recv(number as u64, inbox.all()).unwrap();
                }
                *far = Some(connection);
            }
            Event::Completed(done) => {
                assert!(done.is_success(), "{done:?}");
                let inbox = &self.inboxes[done.wr_id as usize];
                let number = u64::from_le_bytes(inbox.to_vec(0..8).unwrap().try_into().unwrap());
                self.sum.fetch_add(number, Ordering::Relaxed);
                self.received.fetch_add(1, Ordering::Relaxed);
                let far = self.far.lock().unwrap();
                far.as_ref().expect("accepted before").recv(done.wr_id, inbox.all()).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn two_threads_poll_and_one_sleeps_while_a_peer_sends_100_000_messages() {
    const MESSAGES: u64 = 100_000;
    const UNDER_WAY: u64 = 256;
    let device = open(Driving::Standby);
    let server = Arc::new(Server {
        events: device.events(),
        far: Mutex::new(None),
        inboxes: (0..2 * UNDER_WAY).map(|_| Region::zeroed(8).unwrap()).collect(),
        received: AtomicU64::new(0),
        sum: AtomicU64::new(0),
    });
    let _accepting = server.events.accept().unwrap();
    let work = |polls: bool| {
        let server = server.clone();
        thread::spawn(move || {
            let give_up = Instant::now() + 2 * PATIENCE;
            while server.received.load(Ordering::Relaxed) < MESSAGES {
                assert!(Instant::now() < give_up, "{:?} have come", server.received);
                if polls {
                    server.events.poll().into_iter().for_each(|event| server.take(event));
                } else {
                    match server.events.wait(Duration::from_millis(50)) {
                        Ok(event) => server.take(event),
                        Err(WaitError::Timeout(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        })
    };
    let workers = [work(true), work(true), work(false)];
    let client = open(Driving::Standby);
    let near = client.connect(device.local_addr()).unwrap();
    let (mut sent, mut completed) = (0, 0);
    while completed < MESSAGES {
        while sent < MESSAGES && sent - completed < UNDER_WAY {
            near.send(sent, region_of(&sent.to_le_bytes()).all()).unwrap();
            sent += 1;
        }
        assert!(near.wait(PATIENCE).unwrap().is_success());
        completed += 1;
    }
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let sum = MESSAGES * (MESSAGES - 1) / 2;
    assert_eq!(
        (server.received.load(Ordering::Relaxed), server.sum.load(Ordering::Relaxed)),
        (MESSAGES, sum)
    );
}

#[test]
fn a_device_that_is_dropped_in_any_state_is_gone() {
    for round in 0..30u64 {
        let pair = pair();
        let address = pair.server.local_addr();
        match round % 3 {
            // The thread sleeps at the sockets.
            0 => pair.server.rest(),
            // A caller has just had the loop.
            1 => drop(pair.server.stats()),
            _ => thread::sleep(Duration::from_micros(100 * round)),
        }
        drop(pair);
        until("its port is free", || std::net::UdpSocket::bind(address).is_ok());
    }
}
