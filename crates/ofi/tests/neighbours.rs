//! Endpoints on one host: shared memory, permission to copy, and the behaviour when a peer dies, violates the
//! protocol or sleeps.
#![allow(unsafe_code, reason = "calls C tables, and spoils memory")]

mod client;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use client::*;

/// Returns the shared mappings of this process as begins and ends, two for each pair.
fn shared() -> Vec<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.contains("memfd:pathweave"));
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    };
    ours.filter_map(range).collect()
}

/// Serialises the tests of this program, because they inspect all mappings.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exchanges one message in each direction.
fn exchange(pair: &Pair) {
    for (from, to, number, back) in [
        (&pair.near, &pair.far, pair.to_far, pair.to_near),
        (&pair.far, &pair.near, pair.to_near, pair.to_far),
    ] {
        let sent = pattern(100_000, number);
        let mut into = vec![0; sent.len()];
        to.trecv(back, 1, 0, slot(&mut into), 1);
        from.tsend(number, 1, &sent, 2);
        assert_eq!((from.done().op_context as usize, to.done().op_context as usize), (2, 1));
        assert!(into == sent);
    }
}

const ALL: u64 = FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Opens a node with this value of `PATHWEAVE_SHARED_MEMORY`.
fn node(how: &str) -> Node {
    // SAFETY: the tests of this program that read it run one after the other.
    unsafe { std::env::set_var("PATHWEAVE_SHARED_MEMORY", how) };
    let node = Node::new();
    // SAFETY: as above.
    unsafe { std::env::remove_var("PATHWEAVE_SHARED_MEMORY") };
    node
}

/// Exchanges long data in both directions at once: messages, READs and WRITEs, with many of each in flight. A
/// message follows each WRITE, and finds its bytes in place when it arrives.
fn exchange_long(pair: &Pair) {
    const LEN: usize = 700_000;
    const ROUNDS: usize = 6;
    let ends = [(&pair.near, pair.to_far, 1), (&pair.far, pair.to_near, 2)];
    let open = |end: &Node, bytes: &mut Vec<u8>, key| end.register(slot(bytes), key, ALL).unwrap();
    // For each endpoint: the memory that the other one reads, and the memory that it writes to.
    let mut sources: Vec<_> = ends.iter().map(|(.., seed)| pattern(LEN, *seed)).collect();
    let mut targets = vec![vec![0; ROUNDS * LEN]; 2];
    let mrs: Vec<_> = ends
        .iter()
        .zip(sources.iter_mut().zip(&mut targets))
        .flat_map(|((end, ..), (source, target))| [open(end, source, 1), open(end, target, 2)])
        .collect();
    let sent: Vec<Vec<Vec<u8>>> = ends
        .iter()
        .map(|(.., seed)| (0..ROUNDS).map(|round| pattern(LEN, seed + 10 * round as u64)).collect())
        .collect();
    let mut got = vec![vec![vec![0; LEN]; ROUNDS]; 2];
    let mut read = vec![vec![vec![0; LEN]; ROUNDS]; 2];
    let mut behind = vec![vec![vec![0; 5]; ROUNDS]; 2];
    for round in 0..ROUNDS {
        for (at, (end, to, _)) in ends.iter().enumerate() {
            end.trecv(*to, 1, 0, slot(&mut got[at][round]), round);
            end.trecv(*to, 2, 0, slot(&mut behind[at][round]), 100 + round);
            end.tsend(*to, 1, &sent[at][round], 200);
            end.read(*to, 1, 0, slot(&mut read[at][round]), 200);
            end.write(*to, 2, (round * LEN) as u64, &sent[at][round], 200);
            end.tsend(*to, 2, b"it is", 200);
        }
    }
    let (mut left, mut asked) = ([ROUNDS * 6; 2], Instant::now());
    while left != [0; 2] {
        for (at, (end, ..)) in ends.iter().enumerate() {
            let Some(found) = end.poll() else {
                assert!(asked.elapsed() < PATIENCE, "{left:?} are left");
                continue;
            };
            let (entry, _) = found.unwrap_or_else(|error| panic!("an error entry: {error:?}"));
            (left[at], asked) = (left[at] - 1, Instant::now());
            if let Some(round) = (entry.op_context as usize).checked_sub(100).filter(|round| *round < ROUNDS)
            {
                let here = &targets[at][round * LEN..(round + 1) * LEN];
                assert!(here == sent[1 - at][round], "a message overtook the WRITE before it");
            }
        }
    }
    for at in 0..2 {
        assert!(got[at] == sent[1 - at] && read[at].iter().all(|bytes| *bytes == sources[1 - at]));
    }
    mrs.into_iter().for_each(|mr| assert_eq!(close(mr), 0));
}

#[test]
fn what_is_long_comes_whole_whichever_end_may_copy() {
    let _alone = alone();
    environment();
    for (near, far) in [("on", "on"), ("messages", "on"), ("on", "messages"), ("messages", "messages")] {
        let pair = Pair::of(node(near), node(far));
        exchange_long(&pair);
        assert_eq!(shared().len(), 2, "they share memory");
    }
}

/// Body of a separate process, which cannot regain the permission that it gives up.
#[test]
#[ignore = "started by another test of this file"]
fn a_process_that_may_copy_no_more() {
    let pair = Pair::new();
    exchange_long(&pair);
    forbid_copies();
    exchange_long(&pair);
    assert_eq!(shared().len(), 2, "by the same lane");
}

#[test]
fn who_may_copy_no_more_goes_on() {
    let _alone = alone();
    again(&["--ignored", "--exact", "a_process_that_may_copy_no_more"], ("RUST_BACKTRACE", "1"));
}

#[test]
fn again_without_copies() {
    client::again_without_copies();
}

#[test]
fn memory_is_shared_unless_it_is_off_and_goes_with_the_endpoints() {
    let _alone = alone();
    environment();
    assert_eq!(shared(), []);
    let pair = Pair::new();
    exchange(&pair);
    // A segment of 260 KiB, mapped at both ends.
    assert_eq!(shared().iter().map(|(start, end)| end - start).collect::<Vec<_>>(), [260 << 10; 2]);
    drop(pair);
    assert_eq!(shared(), []);
    let pair = Pair::of(node("off"), node("off"));
    let half = Pair::of(node("off"), Node::new());
    exchange(&pair);
    exchange(&half);
    assert_eq!(shared(), []);
}

/// Fills shared memory from its byte `first` on. Uses a new mapping, because the lane's own mappings are
/// removed as soon as it is broken.
fn scribble(start: usize, len: usize, first: usize, junk: u8) {
    // SAFETY: with length 0 the old mapping stays, and the new one shows the same memory. It is removed here.
    unsafe {
        let again = libc::mremap(start as *mut libc::c_void, 0, len, libc::MREMAP_MAYMOVE);
        if again != libc::MAP_FAILED {
            std::ptr::write_bytes(again.cast::<u8>().add(first), junk, len - first);
            assert_eq!(libc::munmap(again, len), 0);
        }
    }
}

/// Whatever is written into the memory, only the lane is lost: nothing crashes, and the next message uses a
/// new lane.
#[test]
fn a_neighbour_that_scribbles_costs_its_lane_and_nothing_else() {
    let _alone = alone();
    let (pair, other) = (Pair::new(), Pair::new());
    exchange(&pair);
    let spoilt = shared();
    exchange(&other);
    for (first, junk) in [(0, 0xff), (4096, 0xff), (0, 0x80), (4096, 0x01)] {
        let spoilt: Vec<_> = shared().into_iter().filter(|range| spoilt.contains(range)).collect();
        if let Some((start, end)) = spoilt.first() {
            scribble(*start, end - start, first, junk);
        }
        let mut into = vec![0; 8];
        let start = Instant::now();
        // Operations in flight fail, at one or both endpoints. Then there is another lane.
        loop {
            pair.near.tsend(pair.to_far, 1, b"again", 7);
            if pair.near.next().is_ok() {
                pair.far.trecv(pair.to_near, 1, 0, slot(&mut into), 8);
                let deadline = Instant::now() + Duration::from_secs(1);
                let found = std::iter::from_fn(|| Some(pair.far.poll()))
                    .find(|found| found.is_some() || Instant::now() > deadline);
                if matches!(found, Some(Some(Ok(_)))) {
                    break;
                }
                pair.far.cancel(8);
                while pair.far.poll().is_some() {}
            }
            assert!(start.elapsed() < PATIENCE, "no new lane");
        }
        assert_eq!(&into[..5], b"again");
        while pair.near.poll().is_some() || pair.far.poll().is_some() {}
        exchange(&other);
    }
}

/// Body of the other process of a test.
#[test]
#[ignore = "started by other tests of this file"]
fn a_process_that_receives() {
    receive_for_ever();
}

#[test]
fn a_neighbour_that_is_killed_is_missed_at_once() {
    let _alone = alone();
    // The peer may be silent for a minute, so the test detects its end, not a timeout.
    let (mut child, name) = other_process(&[]);
    let near = Node::new();
    let to = near.insert(&name);
    near.tsend(to, 1, b"hello", 1);
    assert_eq!(near.done().op_context as usize, 1);
    assert_eq!(shared().len(), 1, "the other end is in the other process");
    // The other process does not receive this message.
    let long = pattern(1 << 20, 1);
    near.tsend(to, 2, &long, 2);
    let start = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    let error = near.failed();
    assert_eq!((error.op_context as usize, error.err), (2, FI_ECONNRESET));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(shared(), []);
}

/// No request to the peer is outstanding; the endpoint only waits for a message of it.
#[test]
fn who_only_receives_hears_of_a_neighbour_that_is_killed() {
    let _alone = alone();
    let (mut child, name) = other_process(&[]);
    let near = Node::new();
    let to = near.insert(&name);
    near.tsend(to, 1, b"hello", 1);
    assert_eq!(near.done().op_context as usize, 1);
    let mut into = [vec![0; 8], vec![0; 8], vec![0; 8]];
    near.trecv(to, 1, 0, slot(&mut into[0]), 2);
    near.trecv(FI_ADDR_UNSPEC, 9, 0, slot(&mut into[1]), 3);
    assert!(near.is_silent());
    let start = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    let error = near.failed();
    assert_eq!((error.op_context as usize, error.err), (2, FI_ECONNRESET));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // Any sender may match the other receive, and an endpoint that was closed may be opened again.
    let third = Node::new();
    let (to_near, from_third) = (third.insert(&near.name()), near.insert(&third.name()));
    third.tsend(to_near, 2, b"good", 4);
    assert_eq!(third.done().op_context as usize, 4);
    near.trecv(from_third, 7, 0, slot(&mut into[2]), 5);
    drop(third);
    assert!(near.is_silent(), "the receive from anybody, and that from who has closed");
    for context in [3, 5] {
        near.cancel(context);
        assert_eq!((near.failed().err, context), (FI_ECANCELED, context));
    }
}

/// An endpoint is served even if its application does not poll: the sender of a long message learns that it
/// was read, and a peer reads memory, while the application does something else.
#[test]
fn who_does_not_look_is_served() {
    let _alone = alone();
    let pair = Pair::new();
    exchange(&pair);
    let mut memory = pattern(300_000, 5);
    let mr = pair.far.register(slot(&mut memory), 9, FI_REMOTE_READ | FI_REMOTE_WRITE).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    for round in 0..20 {
        let mut into = vec![0; 300_000];
        pair.near.read(pair.to_far, 9, 0, slot(&mut into), round);
        assert_eq!(pair.near.done().op_context as usize, round);
        assert!(into == memory);
        std::thread::sleep(Duration::from_millis(3 * round as u64 % 7));
    }
    assert_eq!(close(mr), 0);
}
