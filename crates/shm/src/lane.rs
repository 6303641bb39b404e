//! What two processes share.
#![allow(unsafe_code, reason = "copies between memory named by address")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::meeting::{Apart, Brought, Name, Ticket, hand_over};
use crate::note::{MOST_NOTE_BYTES, Note};
use crate::reach::{copy, let_siblings};
use crate::ring::{Front, Inbound, Outbound, Pushed, Reader, Sort, Writer};
use crate::segment::{MAIL, READS, READS_NOT, ROOM, Segment, Side};

/// Bells that are taken at a time.
const BELLS_AT_ONCE: usize = 16;

/// How memory of the other process is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// By the kernel, where it lets this process; otherwise the peer is asked.
    ByKernel,
    /// The peer is asked.
    ByPeer,
}

/// What who does not look is to be rung for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Messages and notes.
    UntilMail,
    /// These, and room for more of its notes.
    UntilMailOrRoom,
}

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
    /// A note. It and the [bytes](Lane::bytes) behind it stay until they are [taken](Lane::take_note).
    Note(Note),
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
    /// The process that has opened this end. A child of a fork does not end it.
    own_pid: u32,
    /// The peer reads it to see whether it can.
    _probe: Box<AtomicU64>,
    /// Whether this end can read the peer's memory, once known.
    reads: Option<bool>,
    /// The note that was heard and not taken.
    note: Option<Pending>,
}

/// Where the bytes behind a note are, and the whole of it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    behind: usize,
    len: usize,
}

impl Lane {
    /// Makes a lane and hands it to who has given the ticket. It may be used at once: the other end finds what was sent.
    ///
    /// # Errors
    /// [`Apart`]: they cannot share memory, and talk otherwise.
    pub fn offer(to: Name, ticket: Ticket, copies: Copies) -> Result<Self, Apart> {
        let (segment, file) = Segment::create()?;
        // Who nobody has looked after yet is to be rung for.
        for side in [Side::Offerer, Side::Taker] {
            segment.words(side).asleep.0.store(MAIL, Ordering::Relaxed);
        }
        let probe = announce(&segment, Side::Offerer)?;
        let (socket, pid) = hand_over(to, ticket, &file)?;
        Ok(Lane::new(Side::Offerer, segment, probe, (socket, pid), copies))
    }

    /// Takes a lane that was offered.
    ///
    /// # Errors
    /// What is wrong with the memory.
    pub fn take(brought: Brought, copies: Copies) -> io::Result<Self> {
        let segment = Segment::open(&brought.memory)?;
        let probe = announce(&segment, Side::Taker)?;
        Ok(Lane::new(Side::Taker, segment, probe, (brought.socket, brought.pid), copies))
    }

    fn new(
        side: Side,
        segment: Segment,
        probe: Box<AtomicU64>,
        (socket, pid): (OwnedFd, i32),
        copies: Copies,
    ) -> Self {
        let segment = Arc::new(segment);
        let outbound = Outbound::new(segment.clone(), side.other());
        let inbound = Inbound::new(segment.clone(), side);
        let reads = (copies == Copies::ByPeer).then_some(false);
        let own_pid = std::process::id();
        Lane { side, outbound, inbound, segment, socket, pid, own_pid, _probe: probe, reads, note: None }
    }

    /// Sends a message of `len` bytes, which `fill` writes; at most [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    pub fn send(&mut self, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        self.push(Sort::Mail, len, fill)
    }

    /// Sends a note, and behind it `len` bytes of memory, which `fill` writes; both together are at most
    /// [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    pub fn send_note(&mut self, note: Note, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        let note = note.encode();
        let note = note.as_slice();
        self.push(Sort::Note, note.len() + len, |writer| {
            writer.put(note);
            fill(writer);
        })
    }

    fn push(&mut self, sort: Sort, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        match self.outbound.push(sort, len, fill) {
            Pushed::Yes => {}
            Pushed::Full => return Sent::Full,
            Pushed::Broken => return Sent::Broken,
        }
        self.ring_for(MAIL);
        Sent::Yes
    }

    /// Rings for who sleeps until what has just been done.
    #[inline]
    fn ring_for(&self, what: u32) {
        // Either the peer, which says that it sleeps before it looks a last time, sees it, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        let asleep = &self.segment.words(self.side.other()).asleep.0;
        if asleep.load(Ordering::Relaxed) & what != 0 && asleep.swap(0, Ordering::Relaxed) != 0 {
            // Where there is no room for another bell it hears one already; where it is gone that is told otherwise.
            let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
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

    /// Copies the next message to the first bytes of `into`, which grows to hold it, or says which note is next.
    pub fn hear(&mut self, into: &mut Vec<u8>) -> Heard {
        match self.inbound.front() {
            Front::Empty => Heard::Nothing,
            Front::Message(Sort::Mail, len) => {
                if into.len() < len {
                    into.resize(len, 0);
                }
                self.inbound.bytes(len).get(&mut into[..len]);
                self.inbound.drop_front(len);
                Heard::Message(len)
            }
            Front::Message(Sort::Note, len) => self.hear_note(len),
            Front::Broken => Heard::Broken,
        }
    }

    fn hear_note(&mut self, len: usize) -> Heard {
        let mut first = [0; MOST_NOTE_BYTES];
        let first = &mut first[..len.min(MOST_NOTE_BYTES)];
        self.inbound.bytes(len).get(first);
        let Some((note, behind)) = Note::decode(first, len) else { return Heard::Broken };
        self.note = Some(Pending { behind, len });
        Heard::Note(note)
    }

    /// The bytes behind the note that was heard last.
    pub fn bytes(&self) -> Reader<'_> {
        let Pending { behind, len } = self.note.unwrap_or(Pending { behind: 0, len: 0 });
        self.inbound.bytes(len).last(behind)
    }

    /// The note that was heard last is done with, and the peer may use its place.
    pub fn take_note(&mut self) {
        if let Some(Pending { len, .. }) = self.note.take() {
            self.inbound.drop_front(len);
            self.ring_for(ROOM);
        }
    }

    /// From now on the peer rings, once, for what is said here. Look once more after this.
    pub fn rest(&self, until: Rest) {
        let what = match until {
            Rest::UntilMail => MAIL,
            Rest::UntilMailOrRoom => MAIL | ROOM,
        };
        self.segment.words(self.side).asleep.0.store(what, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Says that this end is closed on purpose, right before it is.
    pub fn leave(&self) {
        self.segment.words(self.side).leaves.store(1, Ordering::Release);
    }

    /// True if the peer has said so. Who is gone and has not was killed.
    pub fn peer_has_left(&self) -> bool {
        self.segment.words(self.side.other()).leaves.load(Ordering::Acquire) != 0
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

    /// Whether the kernel lets this end copy from and to the peer's memory. Found out at the first call after the peer has taken
    /// the lane, by reading a number there; not before the first message of who has taken it.
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
        let read = unsafe { copy(self.pid, &here, address) };
        let known = read.is_ok() && u64::from_ne_bytes(number) == there.probe_number.load(Ordering::Relaxed);
        self.know_reads(known);
        known
    }

    /// The kernel does not let this end do so any more.
    pub fn cannot_read_peer(&mut self) {
        self.know_reads(false);
    }

    fn know_reads(&mut self, known: bool) {
        self.reads = Some(known);
        let said = if known { READS } else { READS_NOT };
        self.segment.words(self.side).reads.0.store(said, Ordering::Relaxed);
    }

    /// The peer has said that the kernel lets it copy from here.
    pub fn is_read_by_peer(&self) -> bool {
        self.segment.words(self.side.other()).reads.0.load(Ordering::Relaxed) == READS
    }

    /// Says that memory is closed to the peer which it may be reading at this moment. The bytes may be used for something else from
    /// now on.
    pub fn withdraw(&self) {
        self.segment.words(self.side).withdrawals.fetch_add(1, Ordering::SeqCst);
        // The peer, which copies before it looks at the count, has copied what was there before, or sees the new count.
        fence(Ordering::SeqCst);
    }

    /// Number of times that the peer has done so. What was [read](Lane::read) before this was asked is the memory that was open, if the peer
    /// has told of as many ([`Note::Withdrawn`]) and not of this one.
    pub fn peer_withdrawals(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.segment.words(self.side.other()).withdrawals.load(Ordering::SeqCst)
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
        unsafe { copy(self.pid, parts, address) }?;
        // Its number may be another process's by now.
        self.check_alive()
    }

    fn check_alive(&self) -> io::Result<()> {
        // Not by what can be received: bells that were rung before the end would hide it.
        let mut socket = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            match poll(&mut socket, Some(&at_once)) {
                Ok(0) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                _ => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
            }
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // A child of a fork may have the socket, too: the peer is to hear of the end all the same, before memory here is used for
        // something else.
        if std::process::id() == self.own_pid {
            let _ = shutdown(&self.socket, Shutdown::Both);
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
#[path = "lane_test.rs"]
mod tests;
