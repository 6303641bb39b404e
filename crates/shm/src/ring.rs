//! Ring of messages in one direction: one process writes, the other reads.
//!
//! A message starts at a 64-byte line with a 64-bit word. The upper half holds its length plus one, and in the
//! highest bit its kind ([`MessageKind`]). The lower half holds the number of its line. The writer first copies the bytes
//! behind that word. It then clears the word of the line behind the message; several lines are cleared at a time.
//! Last it stores the message's own word. The reader looks only at the word of its next line, and therefore sees 0 or
//! a complete message. A short message transfers a single cache line. The reader publishes its position in a separate
//! word, which the writer reads when it runs out of space.

#![allow(unsafe_code, reason = "copies to memory named by address")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::segment::{LINE, RING_BYTES, Segment, Side};

const WORD_BYTES: u64 = 8;
/// Size of the largest message in bytes.
pub const MAX_MESSAGE_BYTES: usize = RING_BYTES - 2 * LINE as usize;

/// Returns the bytes that a message takes in the ring.
fn bytes_taken(len: usize) -> u64 {
    (len as u64 + WORD_BYTES).next_multiple_of(LINE)
}

/// Receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// Application that uses the lane.
    Application,
    /// Lane itself: a note about memory, with the bytes behind it.
    Note,
}

const NOTE_BIT: u64 = 1 << 63;

fn first_word(position: u64, sort: MessageKind, len: usize) -> u64 {
    let sort = if sort == MessageKind::Note { NOTE_BIT } else { 0 };
    sort | (len as u64 + 1) << 32 | u64::from((position / LINE) as u32)
}

/// Result of writing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The message is in the ring.
    Yes,
    /// There is no space until the peer has read.
    Full,
    /// The peer published an impossible position.
    Broken,
}

/// Number of lines that the writer clears at a time. They are in its own cache when it writes there, and each message
/// takes one line from the peer's cache instead of two.
const CLEARED_AT_ONCE: u64 = 16;

/// Writing end of a ring.
pub(crate) struct Outbound {
    segment: Arc<Segment>,
    to: Side,
    written: u64,
    /// End of the range from `written` in which the words of all lines are 0.
    cleared: u64,
    /// Position of the reader as last read.
    taken: u64,
}

/// Writer of a message's bytes.
pub struct Writer<'a> {
    segment: &'a Segment,
    to: Side,
    at: u64,
    left: usize,
}

impl Writer<'_> {
    /// Appends bytes. Bytes beyond the announced length are ignored.
    pub fn put(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.left)];
        self.segment.put(self.to, self.at, bytes);
        self.at += bytes.len() as u64;
        self.left -= bytes.len();
    }
}

impl Outbound {
    pub(crate) fn new(segment: Arc<Segment>, to: Side) -> Self {
        Outbound { segment, to, written: 0, cleared: 0, taken: 0 }
    }

    /// Writes a message of `len` bytes, which `fill` supplies.
    pub(crate) fn push(
        &mut self,
        sort: MessageKind,
        len: usize,
        fill: impl FnOnce(&mut Writer<'_>),
    ) -> Pushed {
        match self.check_space(len) {
            Pushed::Yes => {}
            other => return other,
        }
        let at = self.written + WORD_BYTES;
        fill(&mut Writer { segment: &self.segment, to: self.to, at, left: len });
        let behind = self.written + bytes_taken(len);
        if behind >= self.cleared {
            // Lines that the reader has not released must not be cleared.
            let end =
                (behind + CLEARED_AT_ONCE * LINE).min(self.taken + RING_BYTES as u64).max(behind + LINE);
            for line in (behind..end).step_by(LINE as usize) {
                self.segment.line(self.to, line).store(0, Ordering::Relaxed);
            }
            self.cleared = end;
        }
        self.segment
            .line(self.to, self.written)
            .store(first_word(self.written, sort, len), Ordering::Release);
        self.written = behind;
        Pushed::Yes
    }

    /// Returns [`Pushed::Yes`] if a message of `len` bytes fits now.
    pub(crate) fn check_space(&mut self, len: usize) -> Pushed {
        // The line behind the message is cleared as well.
        let needed = bytes_taken(len) + LINE;
        if len > MAX_MESSAGE_BYTES {
            return Pushed::Broken;
        }
        if self.written - self.taken + needed > RING_BYTES as u64 {
            let taken = self.segment.words(self.to).taken.0.load(Ordering::Acquire);
            if taken < self.taken || taken > self.written {
                return Pushed::Broken;
            }
            self.taken = taken;
            if self.written - taken + needed > RING_BYTES as u64 {
                return Pushed::Full;
            }
        }
        Pushed::Yes
    }
}

/// State of the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// There is no message.
    Empty,
    /// Complete message with its length.
    Message(MessageKind, usize),
    /// The peer wrote an impossible word.
    Broken,
}

/// Reading end of a ring.
pub(crate) struct Inbound {
    segment: Arc<Segment>,
    to: Side,
    read: u64,
}

/// Reader of a message that is still in the ring. The peer may change the bytes during the reading.
pub struct Reader<'a> {
    segment: &'a Segment,
    to: Side,
    at: u64,
    left: usize,
}

impl Reader<'_> {
    /// Returns the number of remaining bytes.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Reduces the reader to the last `len` bytes.
    pub(crate) fn tail(self, len: usize) -> Self {
        let left = len.min(self.left);
        Reader { at: self.at + (self.left - left) as u64, left, ..self }
    }

    /// Copies the next bytes to `into`. If fewer remain, copies them to its start.
    pub fn get(&mut self, into: &mut [u8]) {
        // SAFETY: `into` is borrowed exclusively.
        unsafe { self.get_raw(into.as_mut_ptr(), into.len()) };
    }

    /// Copies the next bytes to memory given by its address.
    ///
    /// # Safety
    /// `len` bytes from `into` on must be writable. Concurrent readers of them may see any values.
    pub unsafe fn get_raw(&mut self, into: *mut u8, len: usize) {
        let len = len.min(self.left);
        // SAFETY: guaranteed by the caller.
        unsafe { self.segment.get(self.to, self.at, into, len) };
        self.at += len as u64;
        self.left -= len;
    }
}

impl Inbound {
    pub(crate) fn new(segment: Arc<Segment>, to: Side) -> Self {
        Inbound { segment, to, read: 0 }
    }

    /// Returns true if there is no message.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segment.line(self.to, self.read).load(Ordering::Relaxed) == 0
    }

    /// Returns the next message, which stays in the ring until [`drop_front`](Inbound::drop_front).
    #[inline]
    pub(crate) fn front(&self) -> Front {
        let word = self.segment.line(self.to, self.read).load(Ordering::Acquire);
        if word == 0 {
            return Front::Empty;
        }
        let sort = if word & NOTE_BIT == 0 { MessageKind::Application } else { MessageKind::Note };
        let len = ((word & !NOTE_BIT) >> 32).wrapping_sub(1) as usize;
        if len > MAX_MESSAGE_BYTES || word != first_word(self.read, sort, len) {
            return Front::Broken;
        }
        Front::Message(sort, len)
    }

    /// Returns the bytes of the next message, whose length the caller got from `front`.
    #[inline]
    pub(crate) fn bytes(&self, len: usize) -> Reader<'_> {
        Reader {
            segment: &self.segment,
            to: self.to,
            at: self.read + WORD_BYTES,
            left: len.min(MAX_MESSAGE_BYTES),
        }
    }

    /// Releases the next message, which has this length, so that the writer may reuse its space.
    #[inline]
    pub(crate) fn drop_front(&mut self, len: usize) {
        self.read += bytes_taken(len.min(MAX_MESSAGE_BYTES));
        self.segment.words(self.to).taken.0.store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn ends() -> (Outbound, Inbound) {
        let (near, file) = Segment::create().unwrap();
        let far = Segment::open(&file).unwrap();
        (Outbound::new(Arc::new(near), Side::Accepter), Inbound::new(Arc::new(far), Side::Accepter))
    }

    fn message(len: usize, seed: u64) -> Vec<u8> {
        (0..len as u64).map(|at| (at.wrapping_mul(31).wrapping_add(seed * 7) >> 1) as u8).collect()
    }

    fn push(out: &mut Outbound, bytes: &[u8]) -> Pushed {
        let (first, rest) = bytes.split_at(bytes.len() / 3);
        out.push(MessageKind::Application, bytes.len(), |writer| {
            writer.put(first);
            writer.put(rest);
        })
    }

    /// Copies the next message to the first bytes of `into` and releases it.
    fn pop(inbound: &mut Inbound, into: &mut Vec<u8>) -> Front {
        let front = inbound.front();
        if let Front::Message(_, len) = front {
            into.resize(into.len().max(len), 0);
            let mut bytes = inbound.bytes(len);
            let (first, rest) = into[..len].split_at_mut(len / 2);
            bytes.get(first);
            bytes.get(rest);
            assert_eq!(bytes.left(), 0);
            inbound.drop_front(len);
        }
        front
    }

    /// A message of 56 bytes and its word fill one line, and one of 57 bytes takes two. One line must stay free
    /// behind the last message. 2,048 lines hold 2,047 messages of the one kind and 1,023 of the other.
    #[test]
    fn a_ring_holds_what_fits_and_no_more() {
        for (len, most) in [(0, 2047), (56, 2047), (57, 1023), (MAX_MESSAGE_BYTES, 1)] {
            let (mut out, mut inbound) = ends();
            let bytes = message(len, 3);
            let pushed = (0..).take_while(|_| push(&mut out, &bytes) == Pushed::Yes).count();
            assert_eq!(pushed, most, "{len} bytes");
            assert_eq!(push(&mut out, &bytes), Pushed::Full);
            let mut into = Vec::new();
            assert_eq!(pop(&mut inbound, &mut into), Front::Message(MessageKind::Application, len));
            assert_eq!(push(&mut out, &bytes), Pushed::Yes, "there is room again");
        }
        let (mut out, _) = ends();
        assert_eq!(push(&mut out, &vec![0; MAX_MESSAGE_BYTES + 1]), Pushed::Broken);
    }

    proptest! {
        /// Compares the ring with a queue: all messages come out whole and in order, many times around the ring.
        #[test]
        fn messages_arrive_unchanged(steps in prop::collection::vec((0usize..9_000, 0u8..3), 1..400)) {
            let (mut out, mut inbound) = ends();
            let (mut model, mut into) = (VecDeque::new(), Vec::new());
            for (seed, (len, takes)) in steps.into_iter().enumerate() {
                let bytes = message(len, seed as u64);
                match push(&mut out, &bytes) {
                    Pushed::Yes => model.push_back(bytes),
                    Pushed::Full => prop_assert!(model.len() > 12),
                    Pushed::Broken => prop_assert!(false, "nothing is broken"),
                }
                for _ in 0..takes {
                    prop_assert_eq!(inbound.is_empty(), model.is_empty());
                    match (pop(&mut inbound, &mut into), model.pop_front()) {
                        (Front::Empty, None) => {}
                        (Front::Message(MessageKind::Application, len), Some(bytes)) => prop_assert!(into[..len] == bytes[..]),
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
            }
        }

        /// The peer may write anything anywhere: no panic, no message above the largest size, and no endless reading.
        #[test]
        fn rubbish_is_a_message_or_the_end(
            junk in prop::collection::vec((0u64..RING_BYTES as u64, prop::collection::vec(any::<u8>(), 1..200)), 0..60),
            words in prop::collection::vec((0u64..2_048, any::<u32>(), 0u32..200_000, any::<bool>()), 0..60),
            taken in any::<u64>(),
        ) {
            let (mut out, mut inbound) = ends();
            prop_assert_eq!(push(&mut out, b"good"), Pushed::Yes);
            for (at, bytes) in &junk {
                out.segment.put(Side::Accepter, *at, bytes);
            }
            for (line, tag, len, note) in words {
                let tag = if tag % 3 == 0 { line as u32 } else { tag };
                let word = u64::from(note) << 63 | u64::from(len) << 32 | u64::from(tag);
                out.segment.line(Side::Accepter, line * LINE).store(word, Ordering::Relaxed);
            }
            let mut into = Vec::new();
            for _ in 0..5_000 {
                match pop(&mut inbound, &mut into) {
                    Front::Message(_, len) => prop_assert!(len <= MAX_MESSAGE_BYTES && len <= into.len()),
                    Front::Empty | Front::Broken => break,
                }
            }
            out.segment.words(Side::Accepter).taken.0.store(taken, Ordering::Relaxed);
            let pushed = (0..5_000).map(|_| push(&mut out, b"more")).find(|pushed| *pushed != Pushed::Yes);
            prop_assert!(pushed.is_some(), "it ends");
        }
    }

    /// Two threads exercise the orders in which stores of one become visible to the other.
    #[test]
    fn threads_at_both_ends_lose_and_tear_nothing() {
        let (mut out, mut inbound) = ends();
        const COUNT: u64 = 60_000;
        let lens = |seed: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        let writer = std::thread::spawn(move || {
            for seed in 0..COUNT {
                let bytes = message(lens(seed), seed);
                while push(&mut out, &bytes) == Pushed::Full {
                    std::thread::yield_now();
                }
            }
        });
        let mut into = Vec::new();
        for seed in 0..COUNT {
            let len = loop {
                match pop(&mut inbound, &mut into) {
                    Front::Message(MessageKind::Application, len) => break len,
                    Front::Empty => std::thread::yield_now(),
                    other => panic!("message {seed} is {other:?}"),
                }
            };
            assert!(into[..len] == message(lens(seed), seed)[..], "message {seed}");
        }
        writer.join().unwrap();
        assert!(inbound.is_empty());
    }
}
