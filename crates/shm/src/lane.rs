//! Lane: the shared memory and the socket between two processes.
#![allow(unsafe_code, reason = "copies between memory named by address")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::meeting::{CannotShare, ListenerName, OfferedMemory, Ticket, hand_over};
use crate::note::{MOST_NOTE_BYTES, MemoryRequest};
use crate::process_copy::{copy, permit_sibling_access};
use crate::ring::{Front, Inbound, MessageKind, Outbound, Pushed, Reader, Writer};
use crate::segment::{READS, READS_NOT, Segment, Side, WAKE_ON_MESSAGE, WAKE_ON_SPACE};

/// Largest number of wake-up bytes received per call.
const BELLS_AT_ONCE: usize = 16;

/// Method of accessing the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// The kernel copies, if it permits this process to. Otherwise the peer is asked.
    ByKernel,
    /// The peer is asked for the bytes.
    ByPeer,
}

/// Events for which a sleeping side is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeEvents {
    /// Messages and notes of the peer.
    Messages,
    /// Messages and notes, and space in the ring for more of its own notes.
    UntilMailOrRoom,
}

/// Result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The message is in the ring.
    Yes,
    /// The ring has no space yet.
    Full,
    /// The peer violated the protocol.
    Broken,
}

/// Result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// There is no message.
    Nothing,
    /// Message with its length in bytes.
    Message(usize),
    /// Note. It stays in the ring with the [bytes](ShmChannel::note_bytes) behind it until [`take_note`](ShmChannel::take_note).
    Note(MemoryRequest),
    /// The peer violated the protocol.
    Broken,
}

/// State of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeState {
    /// The peer may have sent messages.
    Rung,
    /// The peer has closed its end, or exited. Its earlier messages are still in the ring.
    Gone,
}

/// Publishes the address and value of a random number in this process, by which the peer finds out whether it can
/// read our memory. Returns the number.
fn announce(segment: &Segment, side: Side) -> io::Result<Box<AtomicU64>> {
    permit_sibling_access();
    let mut number = [0; 8];
    getrandom(&mut number[..], GetRandomFlags::empty())?;
    let number = u64::from_ne_bytes(number);
    let probe = Box::new(AtomicU64::new(number));
    let own = segment.words(side);
    own.probe_number.store(number, Ordering::Relaxed);
    own.probe_address.0.store(probe.as_ptr() as u64, Ordering::Release);
    Ok(probe)
}

/// One end of a lane between two processes. Dropping it closes it, and the peer is notified.
pub struct ShmChannel {
    side: Side,
    outbound: Outbound,
    inbound: Inbound,
    segment: Arc<Segment>,
    socket: OwnedFd,
    pid: i32,
    /// Id of the process that opened this end. A forked child does not close it.
    own_pid: u32,
    /// Number that the peer reads to find out whether it can.
    _probe: Box<AtomicU64>,
    /// True if this end can read the peer's memory. `None` until it is known.
    reads: Option<bool>,
    /// Note that was received and not yet taken.
    note: Option<Pending>,
}

/// Length of the bytes behind a note, and of the whole message.
#[derive(Clone, Copy, Debug)]
struct Pending {
    behind: usize,
    len: usize,
}

impl ShmChannel {
    /// Creates a lane and hands it to the process that issued the ticket. It can be used at once, and the peer finds
    /// the messages sent before it takes the lane.
    ///
    /// # Errors
    /// [`CannotShare`] if the processes cannot share memory. They then use the network.
    pub fn offer(to: ListenerName, ticket: Ticket, copies: CopyMethod) -> Result<Self, CannotShare> {
        let (segment, file) = Segment::create()?;
        // Neither side has looked at the lane yet, so both are marked as asleep.
        for side in [Side::Offerer, Side::Accepter] {
            segment.words(side).asleep.0.store(WAKE_ON_MESSAGE, Ordering::Relaxed);
        }
        let probe = announce(&segment, Side::Offerer)?;
        let (socket, pid) = hand_over(to, ticket, &file)?;
        Ok(ShmChannel::new(Side::Offerer, segment, probe, (socket, pid), copies))
    }

    /// Takes a lane that a peer has offered.
    ///
    /// # Errors
    /// If the memory is invalid or cannot be mapped.
    pub fn take(brought: OfferedMemory, copies: CopyMethod) -> io::Result<Self> {
        let segment = Segment::open(&brought.memory)?;
        let probe = announce(&segment, Side::Accepter)?;
        Ok(ShmChannel::new(Side::Accepter, segment, probe, (brought.socket, brought.pid), copies))
    }

    fn new(
        side: Side,
        segment: Segment,
        probe: Box<AtomicU64>,
        (socket, pid): (OwnedFd, i32),
        copies: CopyMethod,
    ) -> Self {
        let segment = Arc::new(segment);
        let outbound = Outbound::new(segment.clone(), side.other());
        let inbound = Inbound::new(segment.clone(), side);
        let reads = (copies == CopyMethod::ByPeer).then_some(false);
        let own_pid = std::process::id();
        ShmChannel {
            side,
            outbound,
            inbound,
            segment,
            socket,
            pid,
            own_pid,
            _probe: probe,
            reads,
            note: None,
        }
    }

    /// Sends a message of `len` bytes, which `fill` writes. The limit is
    /// [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    pub fn send(&mut self, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        self.push(MessageKind::Application, len, fill)
    }

    /// Sends a note, followed by `len` bytes of memory that `fill` writes. The limit for both together is
    /// [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    pub fn send_note(&mut self, note: MemoryRequest, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        let note = note.encode();
        let note = note.as_slice();
        self.push(MessageKind::Note, note.len() + len, |writer| {
            writer.put(note);
            fill(writer);
        })
    }

    fn push(&mut self, sort: MessageKind, len: usize, fill: impl FnOnce(&mut Writer<'_>)) -> Sent {
        match self.outbound.push(sort, len, fill) {
            Pushed::Yes => {}
            Pushed::Full => return Sent::Full,
            Pushed::Broken => return Sent::Broken,
        }
        self.wake_peer(WAKE_ON_MESSAGE);
        Sent::Yes
    }

    /// Wakes the peer if it sleeps until the event that has just happened.
    #[inline]
    fn wake_peer(&self, what: u32) {
        // The peer marks itself asleep before its last look. With both fences, either that look finds the event, or
        // this load finds the mark.
        fence(Ordering::SeqCst);
        let asleep = &self.segment.words(self.side.other()).asleep.0;
        if asleep.load(Ordering::Relaxed) & what != 0 && asleep.swap(0, Ordering::Relaxed) != 0 {
            // If the socket's buffer is full, an earlier wake-up is pending. If the peer is gone, the socket reports
            // it elsewhere.
            let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// Returns the result that [`send`](ShmChannel::send) of a message with `len` bytes would have.
    pub fn room(&mut self, len: usize) -> Sent {
        match self.outbound.check_space(len) {
            Pushed::Yes => Sent::Yes,
            Pushed::Full => Sent::Full,
            Pushed::Broken => Sent::Broken,
        }
    }

    /// Returns true if there may be a message.
    #[inline]
    pub fn has_message(&self) -> bool {
        !self.inbound.is_empty()
    }

    /// Receives the next message into the first bytes of `into`, which grows as necessary. A note is returned and
    /// stays in the ring.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Received {
        match self.inbound.front() {
            Front::Empty => Received::Nothing,
            Front::Message(MessageKind::Application, len) => {
                if into.len() < len {
                    into.resize(len, 0);
                }
                self.inbound.bytes(len).get(&mut into[..len]);
                self.inbound.drop_front(len);
                Received::Message(len)
            }
            Front::Message(MessageKind::Note, len) => self.hear_note(len),
            Front::Broken => Received::Broken,
        }
    }

    fn hear_note(&mut self, len: usize) -> Received {
        let mut first = [0; MOST_NOTE_BYTES];
        let first = &mut first[..len.min(MOST_NOTE_BYTES)];
        self.inbound.bytes(len).get(first);
        let Some((note, behind)) = MemoryRequest::decode(first, len) else { return Received::Broken };
        self.note = Some(Pending { behind, len });
        Received::Note(note)
    }

    /// Returns the bytes behind the note that was received last.
    pub fn note_bytes(&self) -> Reader<'_> {
        let Pending { behind, len } = self.note.unwrap_or(Pending { behind: 0, len: 0 });
        self.inbound.bytes(len).tail(behind)
    }

    /// Releases the note that was received last, and its space in the ring.
    pub fn take_note(&mut self) {
        if let Some(Pending { len, .. }) = self.note.take() {
            self.inbound.drop_front(len);
            self.wake_peer(WAKE_ON_SPACE);
        }
    }

    /// Marks this side as asleep: the peer wakes it once for the given events. The caller must check for messages
    /// once more after this call.
    pub fn arm_wakeup(&self, until: WakeEvents) {
        let what = match until {
            WakeEvents::Messages => WAKE_ON_MESSAGE,
            WakeEvents::UntilMailOrRoom => WAKE_ON_MESSAGE | WAKE_ON_SPACE,
        };
        self.segment.words(self.side).asleep.0.store(what, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Announces that this end is about to be closed on purpose.
    pub fn announce_close(&self) {
        self.segment.words(self.side).closing.store(1, Ordering::Release);
    }

    /// Returns true if the peer has announced its close. A peer that is gone without it was killed.
    pub fn peer_closed(&self) -> bool {
        self.segment.words(self.side.other()).closing.load(Ordering::Acquire) != 0
    }

    /// Receives the pending wake-ups.
    pub fn receive_wakeups(&self) -> WakeState {
        let mut byte = [0];
        for _ in 0..BELLS_AT_ONCE {
            match recv(&self.socket, &mut byte[..], RecvFlags::DONTWAIT) {
                Ok((1.., _)) => {}
                Ok((0, _)) => return WakeState::Gone,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return WakeState::Rung,
                Err(_) => return WakeState::Gone,
            }
        }
        WakeState::Rung
    }

    /// Returns true if the kernel permits this end to copy from the peer's memory. The first call after the peer has
    /// taken the lane finds out, by reading a number there. Earlier calls return false. The peer's first message
    /// proves that it has taken the lane.
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
        // SAFETY: the part is `number`, which is not otherwise in use.
        let read = unsafe { copy(self.pid, &here, address) };
        let known = read.is_ok() && u64::from_ne_bytes(number) == there.probe_number.load(Ordering::Relaxed);
        self.set_reads_peer(known);
        known
    }

    /// Records that the kernel no longer permits copies from the peer's memory.
    pub fn cannot_read_peer(&mut self) {
        self.set_reads_peer(false);
    }

    fn set_reads_peer(&mut self, known: bool) {
        self.reads = Some(known);
        let said = if known { READS } else { READS_NOT };
        self.segment.words(self.side).reads.0.store(said, Ordering::Relaxed);
    }

    /// Returns true if the peer has found that it can copy from our memory.
    pub fn is_read_by_peer(&self) -> bool {
        self.segment.words(self.side.other()).reads.0.load(Ordering::Relaxed) == READS
    }

    /// Announces that memory was closed that the peer may be reading at this moment. The memory may be reused from
    /// now on.
    pub fn withdraw(&self) {
        self.segment.words(self.side).withdrawals.fetch_add(1, Ordering::SeqCst);
        // The peer reads the count after it has copied. So it copied the memory before it was reused, or it sees the
        // new count.
        fence(Ordering::SeqCst);
    }

    /// Returns the number of withdrawals of the peer. Bytes [read](ShmChannel::read) before this call are valid if the peer
    /// has sent as many [`MemoryRequest::Withdrawn`], none of them for this memory.
    pub fn peer_withdrawals(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.segment.words(self.side.other()).withdrawals.load(Ordering::SeqCst)
    }

    /// Copies the peer's memory from `address` on to parts of our memory, given as addresses and lengths.
    ///
    /// # Errors
    /// The errors of the kernel. ESRCH also if the peer is gone, in which case the bytes are not valid.
    ///
    /// # Safety
    /// The parts must be memory of this process that is not otherwise in use during the call.
    pub unsafe fn read(&self, parts: &[(usize, usize)], address: u64) -> io::Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { copy(self.pid, parts, address) }?;
        // The process id may have been reused.
        self.check_alive()
    }

    fn check_alive(&self) -> io::Result<()> {
        // Polls for the hang-up instead of receiving, because earlier wake-ups would hide it.
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

impl Drop for ShmChannel {
    fn drop(&mut self) {
        // A forked child may hold the socket, too. The shutdown notifies the peer all the same, before our memory is
        // reused.
        if std::process::id() == self.own_pid {
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}

impl AsFd for ShmChannel {
    /// The descriptor is readable if the peer has sent a wake-up or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for ShmChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("side", &self.side).field("pid", &self.pid).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "lane_test.rs"]
mod tests;
