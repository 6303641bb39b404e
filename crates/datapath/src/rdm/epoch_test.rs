//! Clock resets of long-lived datagram endpoints.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::Region;
use crate::clock::Jump;
use crate::rdm::{RdmConfig, RdmEndpoint};

const PATIENCE: Duration = Duration::from_secs(60);
const DAY_NS: u64 = 86_400_000_000_000;

fn open() -> RdmEndpoint {
    RdmEndpoint::open(RdmConfig::loopback()).expect("an endpoint")
}

fn pattern(salt: u64) -> Vec<u8> {
    (0..20_000u64).map(|i| (i * 7 + i / 251 + salt * 13) as u8).collect()
}

/// Sends a message from one endpoint to the other, into a receive for that sender alone.
fn send(from: &RdmEndpoint, to: &RdmEndpoint, salt: u64) {
    let room = Region::zeroed(20_000).expect("memory");
    let sender = to.insert(from.local_addr()).expect("room");
    to.recv_from(sender, salt, room.all()).expect("room");
    let receiver = from.insert(to.local_addr()).expect("room");
    from.send(salt, receiver, Region::from_bytes(&pattern(salt)).expect("memory").all()).expect("room");
    for end in [to, from] {
        let done = end.wait(PATIENCE).expect("a completion");
        assert_eq!((done.wr_id, done.result()), (salt, Ok(20_000)));
    }
    assert!(room.to_vec(0..20_000).expect("its bytes") == pattern(salt), "message {salt}");
}

/// Messages arrive on every day, in both directions, whichever end resets its clock, and are still counted.
#[test]
fn endpoints_that_have_been_open_for_213_days_talk_as_on_their_first() {
    for both in [true, false] {
        let jump = Jump::for_devices_of_this_thread();
        let server = open();
        if !both {
            jump.unset();
        }
        let client = open();
        jump.unset();
        for (salt, days) in (0..).step_by(10).zip([1, 9, 11, 199, 201, 213, 214, 1_000]) {
            jump.to_ns.store(days * DAY_NS, Ordering::Relaxed);
            for n in 0..5 {
                send(&server, &client, salt + n);
                send(&client, &server, salt + 5 + n);
            }
        }
        for end in [&server, &client] {
            let stats = end.stats().expect("it is open");
            assert_eq!(stats.counters.messages_done, 40, "counts go on");
        }
    }
}

/// Messages posted during a clock reset wait, and none is lost in either direction.
#[test]
fn no_message_is_lost_while_time_begins_anew() {
    let jump = Jump::for_devices_of_this_thread();
    let server = open();
    jump.unset();
    let client = open();
    let (to, from) = (
        client.insert(server.local_addr()).expect("room"),
        server.insert(client.local_addr()).expect("room"),
    );
    let messages = 400;
    let rooms: Vec<Region> = (0..messages).map(|_| Region::zeroed(20_000).expect("memory")).collect();
    for (wr_id, room) in (0..).zip(&rooms) {
        let (end, peer) = if wr_id % 2 == 0 { (&server, from) } else { (&client, to) };
        end.recv_from(peer, 1_000 + wr_id, room.all()).expect("room");
    }
    let (begin, mut done) = (Instant::now(), 0);
    let take = |end: &RdmEndpoint| {
        let mut taken = 0;
        while let Some(completion) = end.poll() {
            assert_eq!(completion.result(), Ok(20_000), "{completion:?}");
            taken += 1;
        }
        taken
    };
    for wr_id in 0..messages as u64 {
        let (end, peer) = if wr_id % 2 == 0 { (&client, to) } else { (&server, from) };
        end.send(wr_id, peer, Region::from_bytes(&pattern(wr_id)).expect("memory").all()).expect("room");
        if wr_id == 100 {
            jump.to_ns.store(201 * DAY_NS, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(1));
        done += take(&server) + take(&client);
    }
    while done < 2 * messages {
        done += take(&server) + take(&client);
        assert!(begin.elapsed() < PATIENCE, "{done} completions");
        std::thread::sleep(Duration::from_millis(1));
    }
    for (wr_id, room) in (0..).zip(&rooms) {
        assert!(room.to_vec(0..20_000).expect("bytes") == pattern(wr_id), "message {wr_id}");
    }
}
