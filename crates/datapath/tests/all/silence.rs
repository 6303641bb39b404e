//! Peers whose process hangs: their kernel answers on TCP and accepts datagrams, but nothing processes them.

use std::time::{Duration, Instant};

use crate::support::{PATIENCE, pattern, rdm_loopback, region_of};
use pathweave_datapath::rdm::{Peer, RdmCompletion, RdmEndpoint};
use pathweave_datapath::{Driving, Opcode, Region, Status};

/// An end with its own thread, and one that does nothing unless it is called.
struct Ends {
    near: RdmEndpoint,
    far: RdmEndpoint,
    to_far: Peer,
    to_near: Peer,
}

impl Ends {
    /// Returns two ends that have negotiated keys.
    fn met() -> Self {
        let mut config = rdm_loopback();
        config.device.peer_timeout = Duration::from_millis(600);
        let near = RdmEndpoint::open(config.clone()).expect("an endpoint");
        config.device.driving = Driving::Caller;
        // The far end must never give up the near one.
        config.device.peer_timeout = PATIENCE;
        let far = RdmEndpoint::open(config).expect("an endpoint");
        let to_far = near.insert(far.local_addr()).expect("room");
        let to_near = far.insert(near.local_addr()).expect("room");
        let ends = Ends { near, far, to_far, to_near };
        std::thread::scope(|scope| {
            let reached = scope.spawn(|| ends.near.reach(ends.to_far));
            while !reached.is_finished() {
                ends.far.progress();
            }
            reached.join().expect("no panic").expect("it is there");
        });
        ends
    }

    fn wait_near(&self) -> RdmCompletion {
        self.near.wait(PATIENCE).expect("never a hang")
    }

    /// Drives the far loop until the near end has a completion.
    fn turn_until_near_tells(&self) -> RdmCompletion {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "{:?}", self.near.stats());
            self.far.progress();
            if let Some(done) = self.near.poll() {
                return done;
            }
        }
    }
}

#[test]
fn messages_to_a_peer_that_hangs_end_with_an_error_and_it_may_come_back() {
    let ends = Ends::met();
    // A packet, several packets, and more than the sockets hold.
    let sizes = [1, 100_000, 32 << 20];
    for (wr_id, size) in (0..).zip(sizes) {
        ends.near.send(wr_id, ends.to_far, region_of(&pattern(size, wr_id)).all()).expect("room");
    }
    let mut ended: Vec<u64> = sizes
        .iter()
        .map(|_| {
            let done = ends.wait_near();
            let expected = (Opcode::Send, Status::RetryExceeded, Some(ends.to_far), 0);
            assert_eq!((done.opcode, done.status, done.peer, done.byte_len), expected);
            done.wr_id
        })
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2]);
    let stats = ends.near.stats().expect("its loop runs");
    assert_eq!((stats.peers, stats.associations), (1, 0));
    // Its process continues. It may find some of the earlier packets, and newly sent messages arrive.
    let rooms = [0; 3].map(|_| Region::zeroed(200_000).expect("memory"));
    for (wr_id, room) in (0..).zip(&rooms) {
        ends.far.recv(wr_id, room.all()).expect("room");
    }
    ends.near.send(9, ends.to_far, region_of(&pattern(100, 9)).all()).expect("room");
    let done = ends.turn_until_near_tells();
    assert_eq!((done.wr_id, done.status), (9, Status::Success));
    let arrived =
        std::iter::from_fn(|| ends.far.poll()).find(|done| done.byte_len == 100).expect("it is there");
    let bytes = rooms[arrived.wr_id as usize].to_vec(0..100).expect("all of it");
    assert!(arrived.is_success() && bytes == pattern(100, 9));
}

#[test]
fn a_message_of_a_peer_that_hangs_lets_its_receive_go() {
    let ends = Ends::met();
    let len = 32 << 20;
    let room = Region::zeroed(len).expect("memory");
    ends.near.recv(5, room.all()).expect("room");
    ends.far.send(1, ends.to_near, region_of(&pattern(len, 1)).all()).expect("room");
    let arrived = || ends.near.stats().expect("its loop runs").counters.payload_bytes_received;
    while arrived() == 0 {
        ends.far.progress();
    }
    // Now it hangs in the middle of the message.
    let deadline = Instant::now() + PATIENCE;
    while ends.near.stats().expect("its loop runs").associations > 0 {
        assert!(Instant::now() < deadline, "{:?}", ends.near.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(arrived() < len as u64 && ends.near.poll().is_none());
    // The receive waits for the next message, whoever sends it.
    let third = RdmEndpoint::open(rdm_loopback()).expect("an endpoint");
    let to_near = third.insert(ends.near.local_addr()).expect("room");
    third.send(2, to_near, region_of(b"hello").all()).expect("room");
    let done = ends.wait_near();
    assert_eq!((done.wr_id, done.result()), (5, Ok(5)));
    assert_eq!(done.peer.expect("somebody sent it").address(), third.local_addr());
}

/// Sends a long message to a peer that sends nothing while it arrives. The peer answers probes.
#[test]
fn a_peer_that_has_nothing_to_say_is_not_taken_for_dead() {
    let mut config = rdm_loopback();
    config.device.peer_timeout = Duration::from_millis(600);
    // At this rate 4 MB take 1.3 s.
    config.device.line_rate = pathweave_units::Rate::from_mbps(25);
    let (near, far) = (RdmEndpoint::open(config.clone()), RdmEndpoint::open(config));
    let (near, far) = (near.expect("an endpoint"), far.expect("an endpoint"));
    let to = near.insert(far.local_addr()).expect("room");
    let room = Region::zeroed(4_000_000).expect("memory");
    far.recv(1, room.all()).expect("room");
    near.send(2, to, region_of(&pattern(4_000_000, 3)).all()).expect("room");
    assert_eq!(near.wait(PATIENCE).expect("a completion").result(), Ok(4_000_000));
    assert_eq!(far.wait(PATIENCE).expect("a completion").result(), Ok(4_000_000));
    assert!(room.to_vec(0..4_000_000).expect("all of it") == pattern(4_000_000, 3));
}
