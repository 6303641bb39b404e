//! Memory that is closed while peers access it.

use pathweave_datapath::{Access, DeregisterError, Device, DeviceConfig, Driving, Event, Region, Status};

use crate::support::{PATIENCE, Pair, done, loopback, pattern, region_of, until};

const LONG: usize = 32 << 20;

#[test]
fn a_write_under_way_touches_nothing_once_its_region_is_closed() {
    let bytes = region_of(&vec![7; LONG]);
    for round in 0..4 {
        let pair = Pair::new();
        let mut board = pair.board(LONG, Access::READ_WRITE);
        let there = board.region().clone();
        let first = round * LONG / 8;
        pair.near.write(1, bytes.all(), board.remote(0)).unwrap();
        until("it is under way", || there.to_vec(first..first + 1).unwrap() == [7]);
        board.close().unwrap();
        // The memory belongs to the application again.
        there.write(0, &vec![0xaa; LONG]).unwrap();
        let done = pair.near.wait(PATIENCE).unwrap();
        assert!(matches!(done.status, Status::RemoteAccess | Status::Success), "{done:?}");
        assert!(there.to_vec(0..LONG).unwrap().iter().all(|byte| *byte == 0xaa));
    }
}

/// Withdraws memory under its key: a peer that continues keeps the connection, but accesses no memory.
#[test]
fn a_write_under_way_touches_nothing_once_its_region_is_withdrawn() {
    let pair = Pair::new();
    let board = pair.board(LONG, Access::READ_WRITE);
    let (there, remote) = (board.region().clone(), board.remote(0));
    pair.near.write(1, region_of(&vec![7; LONG]).all(), remote).unwrap();
    until("it is under way", || there.to_vec(LONG / 8..LONG / 8 + 1).unwrap() == [7]);
    let events = pair.server.events();
    events.withdraw(&board, 5);
    assert!(matches!(events.wait(PATIENCE), Ok(Event::Released { token: 5 })));
    there.write(0, &vec![0xaa; LONG]).unwrap();
    assert_eq!(done(&pair.near, 1), LONG as u64);
    // A READ returns neither the memory nor bytes of another place.
    let inbox = region_of(&[1; 64]);
    pair.near.read(2, inbox.all(), board.remote(LONG as u64 / 16)).unwrap();
    assert_eq!(done(&pair.near, 2), 64);
    assert!([[0; 64], [7; 64]].contains(&inbox.to_vec(0..64).unwrap().try_into().unwrap()));
    assert!(there.to_vec(0..LONG).unwrap().iter().all(|byte| *byte == 0xaa));
    // The key ends with the registration.
    drop(board);
    pair.near.write(3, inbox.all(), remote).unwrap();
    assert_eq!(pair.near.wait(PATIENCE).unwrap().status, Status::RemoteAccess);
}

/// READ responses may have to be retransmitted, so the memory does not belong to the application yet, and closing
/// fails.
#[test]
fn memory_that_a_held_up_peer_is_reading_is_not_closed_before_its_answers_are_there() {
    let near = Device::open(DeviceConfig { driving: Driving::Caller, ..loopback() }).unwrap();
    let pair = Pair::of(near, Device::open(loopback()).unwrap());
    let mut board = pair.board(LONG, Access::READ_WRITE);
    board.region().write(0, &pattern(LONG, 1)).unwrap();
    let inbox = Region::zeroed(LONG).unwrap();
    pair.near.read(1, inbox.all(), board.remote(0)).unwrap();
    // The near end posts a READ and is then not driven for a while.
    let asked = || pair.far.stats().unwrap().counters.data_received > 0;
    until("it has asked", || pair.near.poll().is_none() && asked());
    std::thread::sleep(std::time::Duration::from_millis(50));
    let closed = board.close();
    assert!(matches!(closed, Err(DeregisterError::Memory(_))), "{closed:?}");
    assert_eq!(done(&pair.near, 1), LONG as u64);
    assert!(inbox.to_vec(0..LONG).unwrap() == pattern(LONG, 1));
    until("it is closed", || {
        let _ = pair.near.poll();
        board.close().is_ok()
    });
}
