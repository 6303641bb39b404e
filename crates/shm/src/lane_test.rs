//! Tests with both ends of a lane in one process.

use super::*;
use crate::meeting::{Listener, Offer};
use crate::note::{More, RemoteLocation};
use crate::ring::MAX_MESSAGE_BYTES;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn lanes() -> (ShmChannel, ShmChannel) {
    let meeting = Listener::open().unwrap();
    let ticket = Ticket::new().unwrap();
    let near = ShmChannel::offer(meeting.name(), ticket, CopyMethod::ByKernel).unwrap();
    let Offer::Memory(shown, brought) = meeting.newcomer().unwrap().offer() else { panic!("an offer") };
    assert_eq!(shown, ticket);
    (near, ShmChannel::take(brought, CopyMethod::ByKernel).unwrap())
}

fn say(lane: &mut ShmChannel, bytes: &[u8]) {
    assert_eq!(lane.send(bytes.len(), |writer| writer.put(bytes)), Sent::Yes);
}

fn heard(lane: &mut ShmChannel) -> Option<Vec<u8>> {
    let mut into = Vec::new();
    match lane.receive(&mut into) {
        Received::Message(len) => Some(into[..len].to_vec()),
        Received::Nothing => None,
        Received::Note(note) => panic!("{note:?}"),
        Received::Broken => panic!("broken"),
    }
}

#[test]
fn messages_go_both_ways_and_who_sleeps_is_rung_for_once() {
    let (mut near, mut far) = lanes();
    assert!(!far.has_message());
    say(&mut near, b"one");
    say(&mut near, b"two");
    assert!(far.has_message());
    assert_eq!((heard(&mut far).unwrap(), heard(&mut far).unwrap()), (b"one".into(), b"two".into()));
    // The far end has not looked at the lane yet.
    assert_eq!(recv(&far.socket, &mut [0; 4], RecvFlags::DONTWAIT).map(|(len, _)| len), Ok(1));
    assert!(recv(&far.socket, &mut [0; 4], RecvFlags::DONTWAIT).is_err(), "once");
    far.arm_wakeup(WakeEvents::Messages);
    say(&mut near, b"three");
    say(&mut far, b"four");
    assert_eq!(far.receive_wakeups(), WakeState::Rung);
    assert_eq!((heard(&mut far).unwrap(), heard(&mut near).unwrap()), (b"three".into(), b"four".into()));
}

#[test]
fn messages_sent_before_the_end_arrive() {
    let (mut near, mut far) = lanes();
    say(&mut near, b"last");
    drop(near);
    assert_eq!(far.receive_wakeups(), WakeState::Gone);
    assert_eq!(heard(&mut far).unwrap(), b"last");
    assert_eq!(heard(&mut far), None);
    let mut bytes = [0; 1];
    let here = [(bytes.as_mut_ptr() as usize, 1)];
    // SAFETY: the part is the byte above.
    let read = unsafe { far.read(&here, here[0].0 as u64) };
    assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::ESRCH));
}

/// An earlier wake-up must not hide the end of the peer. Bytes copied after it may be something else.
#[test]
fn memory_of_who_is_gone_is_not_taken_for_its_own() {
    let (mut near, far) = lanes();
    let bytes = [0u8; 1];
    let mut into = [1u8; 1];
    let here = [(into.as_mut_ptr() as usize, 1)];
    // SAFETY: the part is the bytes above.
    let read = || unsafe { far.read(&here, bytes.as_ptr() as u64) };
    say(&mut near, b"a bell, as nobody has looked yet");
    assert!(read().is_ok());
    // A forked child would keep the socket open like this.
    let _kept = near.socket.try_clone().unwrap();
    drop(near);
    assert_eq!(read().unwrap_err().raw_os_error(), Some(libc::ESRCH));
}

#[test]
fn each_end_says_what_it_reads_and_how_often_it_has_withdrawn() {
    let (mut near, mut far) = lanes();
    assert!(!near.is_read_by_peer() && !far.is_read_by_peer(), "nobody has tried");
    assert!(near.reads_peer() && far.is_read_by_peer() && !near.is_read_by_peer());
    far.cannot_read_peer();
    assert!(!near.is_read_by_peer());
    near.withdraw();
    near.withdraw();
    assert_eq!((far.peer_withdrawals(), near.peer_withdrawals()), (2, 0));
}

#[test]
fn a_close_is_announced_and_a_kill_is_not() {
    for leaves in [true, false] {
        let (near, far) = lanes();
        if leaves {
            near.announce_close();
        }
        drop(near);
        assert_eq!((far.receive_wakeups(), far.peer_closed()), (WakeState::Gone, leaves));
    }
}

#[test]
fn memory_is_copied_between_processes_in_parts() {
    let (mut near, mut far) = lanes();
    assert!(near.reads_peer() && far.reads_peer());
    let there: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
    let (mut first, mut second) = (vec![0; 70_000], vec![0; 130_000]);
    let parts = [(first.as_mut_ptr() as usize, 70_000), (second.as_mut_ptr() as usize, 130_000)];
    // SAFETY: the parts are memory of this test, which plays both processes.
    unsafe { near.read(&parts, there.as_ptr() as u64) }.unwrap();
    assert!(first == there[..70_000] && second == there[70_000..]);
    // SAFETY: as above. Nothing is mapped at the address.
    let nowhere = unsafe { near.read(&parts, 64) };
    assert_eq!(nowhere.unwrap_err().raw_os_error(), Some(libc::EFAULT));
}

#[test]
fn other_hosts_are_not_met_and_invalid_offers_are_refused() {
    let meeting = Listener::open().unwrap();
    let name = meeting.name();
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    assert!(hand_over(name, Ticket::new().unwrap(), &socket.into()).is_ok());
    let Offer::Memory(_, brought) = meeting.newcomer().unwrap().offer() else { panic!("an offer") };
    assert!(ShmChannel::take(brought, CopyMethod::ByKernel).is_err(), "a socket is no memory");
    drop(meeting);
    assert!(matches!(
        ShmChannel::offer(name, Ticket::new().unwrap(), CopyMethod::ByKernel),
        Err(CannotShare::NotFound)
    ));
}

/// Hosts of a lab are network namespaces of one kernel. Traffic between them must use the network.
#[test]
#[allow(clippy::print_stderr, reason = "says why a test is skipped")]
fn a_process_in_another_network_namespace_is_elsewhere() {
    let meeting = Listener::open().unwrap();
    let name = meeting.name();
    let other = std::thread::spawn(move || {
        // SAFETY: changes the namespace of this thread only, which ends here.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            eprintln!("skipped: no right to a network namespace");
            return;
        }
        let offered = ShmChannel::offer(name, Ticket::new().unwrap(), CopyMethod::ByKernel);
        assert!(matches!(offered, Err(CannotShare::NotFound)), "{offered:?}");
    });
    other.join().unwrap();
    assert!(
        ShmChannel::offer(name, Ticket::new().unwrap(), CopyMethod::ByKernel).is_ok(),
        "from here it can be reached"
    );
}

/// Sleeps until the lane is woken. A lost wake-up would never return.
fn sleep(lane: &mut ShmChannel) {
    let long = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(lane, PollFlags::IN)], Some(&long)), Ok(1), "a lost bell");
    assert_eq!(lane.receive_wakeups(), WakeState::Rung);
}

/// Two threads that sleep whenever they find nothing.
#[test]
fn no_bell_is_lost() {
    let (mut near, mut far) = lanes();
    const COUNT: u32 = 20_000;
    let wait = |lane: &mut ShmChannel| loop {
        if let Some(bytes) = heard(lane) {
            return u32::from_ne_bytes(bytes.try_into().unwrap());
        }
        lane.arm_wakeup(WakeEvents::Messages);
        if lane.has_message() {
            continue;
        }
        sleep(lane);
    };
    let echo = std::thread::spawn(move || {
        for expected in 0..COUNT {
            assert_eq!(wait(&mut far), expected);
            say(&mut far, &expected.to_ne_bytes());
        }
        // Ends when the last message has arrived.
        far
    });
    for number in 0..COUNT {
        say(&mut near, &number.to_ne_bytes());
        assert_eq!(wait(&mut near), number);
    }
    echo.join().unwrap();
}

/// Returns the next note, with the bytes behind it.
fn noted(lane: &mut ShmChannel) -> Option<(MemoryRequest, Vec<u8>)> {
    let note = match lane.receive(&mut Vec::new()) {
        Received::Nothing => return None,
        Received::Note(note) => note,
        other => panic!("{other:?}"),
    };
    let mut bytes = vec![0; lane.note_bytes().left()];
    lane.note_bytes().get(&mut bytes);
    lane.take_note();
    Some((note, bytes))
}

#[test]
fn notes_come_in_their_turn_with_the_bytes_behind_them() {
    let (mut near, mut far) = lanes();
    let place = RemoteLocation { key: 1, address: 2 };
    let put = MemoryRequest::Put { id: 3, to: place, more: More::Ends };
    let ask = MemoryRequest::Ask { id: 4, from: place, len: 5 };
    say(&mut near, b"before");
    assert_eq!(near.send_note(put, 6, |writer| writer.put(b"memory")), Sent::Yes);
    assert_eq!(near.send_note(ask, 0, |_| ()), Sent::Yes);
    say(&mut near, b"behind");
    assert_eq!(heard(&mut far).unwrap(), b"before");
    assert_eq!(noted(&mut far), Some((put, b"memory".into())));
    assert_eq!(noted(&mut far), Some((ask, vec![])));
    assert_eq!(heard(&mut far).unwrap(), b"behind");
    far.take_note();
    assert_eq!((heard(&mut far), far.note_bytes().left()), (None, 0), "no note is there to be taken");
    // An invalid note closes the lane.
    assert_eq!(near.send_note(MemoryRequest::Give { id: 1 }, 0, |_| ()), Sent::Yes);
    assert_eq!(far.receive(&mut Vec::new()), Received::Broken);
}

#[test]
fn an_end_without_permission_does_not_copy() {
    let meeting = Listener::open().unwrap();
    let ticket = Ticket::new().unwrap();
    let mut near = ShmChannel::offer(meeting.name(), ticket, CopyMethod::ByPeer).unwrap();
    let Offer::Memory(_, brought) = meeting.newcomer().unwrap().offer() else { panic!("an offer") };
    let mut far = ShmChannel::take(brought, CopyMethod::ByKernel).unwrap();
    assert!(!near.reads_peer() && far.reads_peer(), "each for itself");
    far.cannot_read_peer();
    assert!(!far.reads_peer());
}

/// One thread sends more than fits and sleeps whenever the ring is full. The other sleeps whenever it is empty.
#[test]
fn a_sender_that_waits_for_room_is_woken() {
    let (mut near, mut far) = lanes();
    const PIECES: u32 = 5_000;
    const BYTES: usize = 40_000;
    const { assert!(4 * BYTES > MAX_MESSAGE_BYTES, "four are more than there is room for") };
    let taker = std::thread::spawn(move || {
        for id in 0..PIECES {
            let (note, bytes) = loop {
                if let Some(noted) = noted(&mut far) {
                    break noted;
                }
                far.arm_wakeup(WakeEvents::Messages);
                if !far.has_message() {
                    sleep(&mut far);
                }
            };
            assert_eq!(note, MemoryRequest::Give { id });
            assert!(bytes == vec![id as u8; BYTES]);
        }
        far
    });
    for id in 0..PIECES {
        let bytes = vec![id as u8; BYTES];
        while near.send_note(MemoryRequest::Give { id }, BYTES, |writer| writer.put(&bytes)) == Sent::Full {
            near.arm_wakeup(WakeEvents::UntilMailOrRoom);
            if near.room(BYTES + MOST_NOTE_BYTES) == Sent::Full {
                sleep(&mut near);
            }
        }
    }
    taker.join().unwrap();
}
