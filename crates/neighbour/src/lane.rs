//! What two processes share.
#![allow(unsafe_code, reason = "copies between memory named by address")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::meeting::{Apart, Brought, Name, Ticket, hand_over};
use crate::reach::{Way, copy, let_siblings};
use crate::ring::{Inbound, Outbound, Popped, Pushed, Writer};
use crate::segment::{Segment, Side};

/// Bells that are taken at a time.
const BELLS_AT_ONCE: usize = 16;
const NO: u32 = 1;
const YES: u32 = 2;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is there.
    Yes,
    /// There is no room yet.
    Full,
    /// The peer has broken the lane.
    Broken,
}

/// What there is of the peer's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// A message of so many bytes.
    Message(usize),
    /// The peer has broken the lane.
    Broken,
}

/// What the socket says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bell {
    /// There may be messages.
    Rung,
    /// The peer has closed its end, or died. What it has sent before is there.
    Gone,
}

/// Says where the other end finds a number of this process, if it can read its memory; the number.
fn announce(segment: &Segment, side: Side) -> io::Result<Box<AtomicU64>> {
    let_siblings();
    let mut number = [0; 8];
    getrandom(&mut number[..], GetRandomFlags::empty())?;
    let number = u64::from_ne_bytes(number);
    let probe = Box::new(AtomicU64::new(number));
    let own = segment.words(side);
    own.probe_number.store(number, Ordering::Relaxed);
    own.probe_address.0.store(probe.as_ptr() as u64, Ordering::Release);
    Ok(probe)
}

/// One end of a lane between two processes. Dropping it closes it, which the other end hears.
pub struct Lane {
    side: Side,
    outbound: Outbound,
    inbound: Inbound,
    segment: Arc<Segment>,
    socket: OwnedFd,
    pid: i32,
    /// The peer reads it to see whether it can.
    _probe: Box<AtomicU64>,
    /// Whether this end can read the peer's memory, once known.
    reads: Option<bool>,
}

impl Lane {
    /// Makes a lane and hands it to who has given the ticket. It may be used at once: the other end finds what was sent.
    ///
    /// # Errors
    /// [`Apart`]: they cannot share memory, and talk otherwise.
    pub fn offer(to: Name, ticket: Ticket) -> Result<Self, Apart> {
        let (segment, file) = Segment::create()?;
        // Who nobody has looked after yet is to be rung for.
        for side in [Side::Offerer, Side::Taker] {
            segment.words(side).asleep.0.store(1, Ordering::Relaxed);
        }
        let probe = announce(&segment, Side::Offerer)?;
        let (socket, pid) = hand_over(to, ticket, &file)?;
        Ok(Lane::new(Side::Offerer, segment, probe, socket, pid))
    }

    /// Takes a lane that was offered.
    ///
    /// # Errors
    /// What is wrong with the memory.
    pub fn take(brought: Brought) -> io::Result<Self> {
        let segment = Segment::open(&brought.memory)?;
        let probe = announce(&segment, Side::Taker)?;
        let mut lane = Lane::new(Side::Taker, segment, probe, brought.socket, brought.pid);
        lane.reads_peer();
        Ok(lane)
    }

    fn new(side: Side, segment: Segment, probe: Box<AtomicU64>, socket: OwnedFd, pid: i32) -> Self {
        let segment = Arc::new(segment);
        let outbound = Outbound::new(segment.clone(), side.other());
        let inbound = Inbound::new(segment.clone(), side);
        Lane { side, outbound, inbound, segment, socket, pid, _probe: probe, reads: None }
    }

    /// Sends a message of `len` bytes, which `fill` writes; at most [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    pub fn send(&mut self, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        match self.outbound.push(len, fill) {
            Pushed::Yes => {}
            Pushed::Full => return Sent::Full,
            Pushed::Broken => return Sent::Broken,
        }
        // Either the peer, which says that it sleeps before it looks a last time, sees the message, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        let asleep = &self.segment.words(self.side.other()).asleep.0;
        if asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0 {
            // Where there is no room for another bell it hears one already; where it is gone that is told otherwise.
            let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        Sent::Yes
    }

    /// Whether [`send`](Lane::send) has room for a message of `len` bytes: what it would say.
    pub fn room(&mut self, len: usize) -> Sent {
        match self.outbound.room(len) {
            Pushed::Yes => Sent::Yes,
            Pushed::Full => Sent::Full,
            Pushed::Broken => Sent::Broken,
        }
    }

    /// Whether there may be a message.
    #[inline]
    pub fn has_mail(&self) -> bool {
        !self.inbound.is_empty()
    }

    /// Copies the next message to the first bytes of `into`, which grows to hold it.
    pub fn hear(&mut self, into: &mut Vec<u8>) -> Heard {
        match self.inbound.pop(into) {
            Popped::Empty => Heard::Nothing,
            Popped::Message(len) => Heard::Message(len),
            Popped::Broken => Heard::Broken,
        }
    }

    /// From now on the peer rings when it has sent something, once. Look once more after this.
    pub fn rest(&self) {
        self.segment.words(self.side).asleep.0.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Takes the bells that were rung.
    pub fn bell(&self) -> Bell {
        let mut byte = [0];
        for _ in 0..BELLS_AT_ONCE {
            match recv(&self.socket, &mut byte[..], RecvFlags::DONTWAIT) {
                Ok((1.., _)) => {}
                Ok((0, _)) => return Bell::Gone,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Bell::Rung,
                Err(_) => return Bell::Gone,
            }
        }
        Bell::Rung
    }

    /// Whether this end can copy from and to the peer's memory. Found out at the first call after the peer has taken the lane,
    /// by reading a number there.
    pub fn reads_peer(&mut self) -> bool {
        if let Some(known) = self.reads {
            return known;
        }
        let there = self.segment.words(self.side.other());
        let address = there.probe_address.0.load(Ordering::Acquire);
        if address == 0 || self.pid == 0 {
            return false;
        }
        let mut number = [0; 8];
        let here = [(number.as_mut_ptr() as usize, number.len())];
        // SAFETY: the bytes of `number`, which nobody else has.
        let read = unsafe { copy(self.pid, Way::ToHere, &here, address) };
        let known = read.is_ok() && u64::from_ne_bytes(number) == there.probe_number.load(Ordering::Relaxed);
        self.reads = Some(known);
        self.segment.words(self.side).reads.store(if known { YES } else { NO }, Ordering::Release);
        known
    }

    /// Whether the peer says that it can read memory of this process.
    pub fn is_read_by_peer(&self) -> bool {
        self.segment.words(self.side.other()).reads.load(Ordering::Acquire) == YES
    }

    /// Copies from memory of the peer, from `address` on, to parts of memory here: addresses and lengths.
    ///
    /// # Errors
    /// What the kernel says. ESRCH also where the peer is gone: what came is not to be trusted.
    ///
    /// # Safety
    /// The parts are memory of this process that nobody else uses meanwhile.
    pub unsafe fn read(&self, parts: &[(usize, usize)], address: u64) -> io::Result<()> {
        // SAFETY: as the caller says.
        unsafe { copy(self.pid, Way::ToHere, parts, address) }?;
        // Its number may be another process's by now.
        self.check_alive()
    }

    /// Copies to memory of the peer.
    ///
    /// # Errors
    /// What the kernel says. ESRCH also where the peer is gone.
    ///
    /// # Safety
    /// The parts are memory of this process that nobody else writes meanwhile.
    pub unsafe fn write(&self, parts: &[(usize, usize)], address: u64) -> io::Result<()> {
        self.check_alive()?;
        // SAFETY: as the caller says.
        unsafe { copy(self.pid, Way::ToThere, parts, address) }
    }

    fn check_alive(&self) -> io::Result<()> {
        let mut byte = [0];
        match recv(&self.socket, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }
}

impl AsFd for Lane {
    /// Readable when the peer has rung or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("side", &self.side).field("pid", &self.pid).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meeting::{Meeting, Offer};

    fn lanes() -> (Lane, Lane) {
        let meeting = Meeting::open().unwrap();
        let ticket = Ticket::new().unwrap();
        let near = Lane::offer(meeting.name(), ticket).unwrap();
        let Offer::Memory(shown, brought) = meeting.newcomer().unwrap().offer() else { panic!("an offer") };
        assert_eq!(shown, ticket);
        (near, Lane::take(brought).unwrap())
    }

    fn say(lane: &mut Lane, bytes: &[u8]) {
        assert_eq!(lane.send(bytes.len(), |writer| writer.put(bytes)), Sent::Yes);
    }

    fn heard(lane: &mut Lane) -> Option<Vec<u8>> {
        let mut into = Vec::new();
        match lane.hear(&mut into) {
            Heard::Message(len) => Some(into[..len].to_vec()),
            Heard::Nothing => None,
            Heard::Broken => panic!("broken"),
        }
    }

    #[test]
    fn messages_go_both_ways_and_who_sleeps_is_rung_for_once() {
        let (mut near, mut far) = lanes();
        assert!(!far.has_mail());
        say(&mut near, b"one");
        say(&mut near, b"two");
        assert!(far.has_mail());
        assert_eq!((heard(&mut far).unwrap(), heard(&mut far).unwrap()), (b"one".into(), b"two".into()));
        // Nobody had looked after the lane.
        assert_eq!(recv(&far.socket, &mut [0; 4], RecvFlags::DONTWAIT).map(|(len, _)| len), Ok(1));
        assert!(recv(&far.socket, &mut [0; 4], RecvFlags::DONTWAIT).is_err(), "once");
        far.rest();
        say(&mut near, b"three");
        say(&mut far, b"four");
        assert_eq!(far.bell(), Bell::Rung);
        assert_eq!((heard(&mut far).unwrap(), heard(&mut near).unwrap()), (b"three".into(), b"four".into()));
    }

    #[test]
    fn what_was_sent_before_the_end_is_there() {
        let (mut near, mut far) = lanes();
        say(&mut near, b"last");
        drop(near);
        assert_eq!(far.bell(), Bell::Gone);
        assert_eq!(heard(&mut far).unwrap(), b"last");
        assert_eq!(heard(&mut far), None);
        let mut bytes = [0; 1];
        let here = [(bytes.as_mut_ptr() as usize, 1)];
        // SAFETY: the byte above.
        let read = unsafe { far.read(&here, here[0].0 as u64) };
        assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn memory_is_copied_between_processes_in_parts() {
        let (mut near, far) = lanes();
        assert!(near.reads_peer() && far.is_read_by_peer() && near.is_read_by_peer());
        let there: Vec<u8> = (0..200_000u32).map(|at| at as u8).collect();
        let (mut first, mut second) = (vec![0; 70_000], vec![0; 130_000]);
        let parts = [(first.as_mut_ptr() as usize, 70_000), (second.as_mut_ptr() as usize, 130_000)];
        // SAFETY: memory of this test, which plays both processes.
        unsafe { near.read(&parts, there.as_ptr() as u64) }.unwrap();
        assert!(first == there[..70_000] && second == there[70_000..]);
        let mut back = vec![0; 200_000];
        // SAFETY: as above.
        unsafe { near.write(&parts, back.as_mut_ptr() as u64) }.unwrap();
        assert!(back == there);
        // SAFETY: as above; nothing is mapped there.
        let nowhere = unsafe { near.read(&parts, 64) };
        assert_eq!(nowhere.unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn who_is_elsewhere_is_not_met_and_nonsense_is_sent_away() {
        let meeting = Meeting::open().unwrap();
        let name = meeting.name();
        let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert!(hand_over(name, Ticket::new().unwrap(), &socket.into()).is_ok());
        let Offer::Memory(_, brought) = meeting.newcomer().unwrap().offer() else { panic!("an offer") };
        assert!(Lane::take(brought).is_err(), "a socket is no memory");
        drop(meeting);
        assert!(matches!(Lane::offer(name, Ticket::new().unwrap()), Err(Apart::Elsewhere)));
    }

    /// Hosts of a lab are network namespaces of one kernel: between them is a network, and it is to be used.
    #[test]
    #[allow(clippy::print_stderr, reason = "says why a test is skipped")]
    fn a_process_in_another_network_namespace_is_elsewhere() {
        let meeting = Meeting::open().unwrap();
        let name = meeting.name();
        let other = std::thread::spawn(move || {
            // SAFETY: changes the namespace of this thread alone, which ends here.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                eprintln!("skipped: no right to a network namespace");
                return;
            }
            let offered = Lane::offer(name, Ticket::new().unwrap());
            assert!(matches!(offered, Err(Apart::Elsewhere)), "{offered:?}");
        });
        other.join().unwrap();
        assert!(Lane::offer(name, Ticket::new().unwrap()).is_ok(), "from here it can be reached");
    }

    /// Two threads that sleep whenever they find nothing: a lost bell would be a sleep without end.
    #[test]
    fn no_bell_is_lost() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let (mut near, mut far) = lanes();
        const COUNT: u32 = 20_000;
        let wait = |lane: &mut Lane| loop {
            if let Some(bytes) = heard(lane) {
                return u32::from_ne_bytes(bytes.try_into().unwrap());
            }
            lane.rest();
            if lane.has_mail() {
                continue;
            }
            let long = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut [PollFd::new(lane, PollFlags::IN)], Some(&long)), Ok(1), "a lost bell");
            assert_eq!(lane.bell(), Bell::Rung);
        };
        let echo = std::thread::spawn(move || {
            for expected in 0..COUNT {
                assert_eq!(wait(&mut far), expected);
                say(&mut far, &expected.to_ne_bytes());
            }
            // Until the last is heard.
            far
        });
        for number in 0..COUNT {
            say(&mut near, &number.to_ne_bytes());
            assert_eq!(wait(&mut near), number);
        }
        echo.join().unwrap();
    }
}
