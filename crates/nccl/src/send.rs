//! The sending end: announced groups of receives, and messages into them.

use std::collections::VecDeque;

use pathweave_datapath::{Completion, Opcode, PostError, Remote, Slice};

use crate::abi::{Fault, MAX_BYTES, MAX_GROUPS, MAX_RECEIVES};
use crate::guard::{Outcome, warn};
use crate::link::{Link, PLACES};
use crate::memory::Mr;
use crate::notes::{Content, Entry, Immediate, Note, Sizes};

/// Bit of the numbers of receives for notes; the others are those of requests.
const IS_NOTE: u64 = 1 << 32;

/// State of the sending end.
pub(crate) struct Sender {
    lost: Option<Fault>,
    groups: VecDeque<Group>,
    /// Requests that are not in use.
    free: Vec<usize>,
    requests: Vec<State>,
}

/// A group of receives of the peer.
struct Group {
    number: u32,
    /// Receives that no message has filled.
    open: Vec<Option<Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// In flight, with the bytes of the message and the way in which it ends once the peer has it.
    Flying {
        bytes: usize,
        end: Result<(), Fault>,
    },
    Done {
        bytes: usize,
    },
    Failed(Fault),
}

/// A message to send.
pub(crate) struct Message<'a> {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) tag: i32,
    pub(crate) memory: Option<&'a Mr>,
}

impl Sender {
    pub(crate) fn new() -> Self {
        let requests = MAX_GROUPS * MAX_RECEIVES;
        Sender {
            lost: None,
            groups: VecDeque::new(),
            free: (0..requests).rev().collect(),
            requests: vec![State::Free; requests],
        }
    }

    /// Fails what is in flight, and everything from now on.
    pub(crate) fn lose(&mut self, fault: Fault) {
        self.lost.get_or_insert(fault);
        for state in &mut self.requests {
            if let State::Flying { .. } = state {
                *state = State::Failed(fault);
            }
        }
    }

    pub(crate) fn test(&mut self, index: usize) -> Outcome<Option<Sizes>> {
        match self.requests[index] {
            State::Done { bytes } => {
                self.requests[index] = State::Free;
                self.free.push(index);
                let mut sizes = Sizes { count: 1, ..Sizes::default() };
                sizes.bytes[0] = bytes;
                Ok(Some(sizes))
            }
            State::Flying { .. } => Ok(None),
            State::Failed(fault) => {
                if self.lost.is_none() {
                    self.requests[index] = State::Free;
                    self.free.push(index);
                }
                Err(fault)
            }
            State::Free => Err(self.lost.unwrap_or(Fault::Usage)),
        }
    }

    /// Returns the receive that a message with this tag fills: the first one of the oldest group. Later groups have to
    /// wait.
    fn find(&self, tag: i32) -> Option<(u32, usize, Entry)> {
        let group = self.groups.front()?;
        let mut open = group.open.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?)));
        let (at, entry) = open.find(|(_, entry)| entry.tag == tag)?;
        Some((group.number, at, entry))
    }

    /// Records that a message fills the receive.
    fn fill(&mut self, at: usize) {
        if let Some(group) = self.groups.front_mut() {
            group.open[at] = None;
            if group.open.iter().all(Option::is_none) {
                self.groups.pop_front();
            }
        }
    }
}

impl Message<'_> {
    /// Returns the memory of the message.
    fn slice(&self, link: &Link) -> Outcome<Slice> {
        match self.memory {
            _ if self.bytes == 0 => link.nothing(),
            Some(memory) => memory.slice(self.address, self.bytes),
            None => Err(Fault::Usage),
        }
    }
}

impl Sender {
    /// Posts the receives for notes.
    pub(crate) fn await_notes(link: &Link) {
        (0..PLACES).for_each(|place| Sender::await_note(link, place));
    }

    fn await_note(link: &Link, place: usize) {
        if let Ok(slice) = link.place(place) {
            // It fails only if the connection has ended, of which an event tells.
            let _ = link.connection.recv(IS_NOTE | place as u64, slice);
        }
    }

    /// Starts to send a message, and returns the number of the request. Returns `None` if the peer has not announced a
    /// receive for it.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn start(&mut self, link: &Link, message: &Message<'_>) -> Outcome<Option<usize>> {
        if message.bytes > MAX_BYTES {
            return Err(Fault::Usage);
        }
        if let Some(fault) = self.lost {
            // NCCL learns it from the request: a message may be posted before its peer is known to be lost.
            return self.fail_one(fault).map(Some);
        }
        let Some((group, entry, into)) = self.find(message.tag) else { return Ok(None) };
        let Some(&index) = self.free.last() else { return Ok(None) };
        let fits = message.bytes <= into.bytes;
        let (content, slice) = match fits {
            true => (Content::Message, message.slice(link)?),
            false => (Content::TooLong, link.nothing()?),
        };
        let to = Remote { address: into.address, rkey: into.rkey };
        let imm = Immediate { content, group, entry }.encode();
        match link.connection.write_imm(index as u64, slice, to, imm) {
            Ok(()) => {}
            Err(PostError::Full { .. }) => return Ok(None),
            Err(_) => {
                self.lose(Fault::Remote);
                return self.fail_one(Fault::Remote).map(Some);
            }
        }
        if !fits {
            warn(format_args!(
                "a message of {} bytes with tag {} to {} is longer than its receive of {} bytes",
                message.bytes,
                message.tag,
                link.connection.peer_addr(),
                into.bytes
            ));
        }
        self.free.pop();
        let end = if fits { Ok(()) } else { Err(Fault::Usage) };
        self.requests[index] = State::Flying { bytes: message.bytes, end };
        self.fill(entry);
        Ok(Some(index))
    }

    /// Returns the number of a request that has failed. Such requests are never free again, so the last one may be
    /// several requests.
    fn fail_one(&mut self, fault: Fault) -> Outcome<usize> {
        let failed = |state: &State| matches!(state, State::Failed(_));
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.requests.iter().position(failed).ok_or(fault)?,
        };
        self.requests[index] = State::Failed(fault);
        Ok(index)
    }

    /// Processes a completion.
    pub(crate) fn completed(&mut self, link: &Link, done: &Completion) {
        if done.opcode != Opcode::Write {
            if done.is_success() {
                self.on_note(link, (done.wr_id & !IS_NOTE) as usize, done.byte_len as usize);
            }
            return;
        }
        let Some(state) = self.requests.get_mut(done.wr_id as usize) else { return };
        if let State::Flying { bytes, end } = *state {
            *state = match end {
                _ if !done.is_success() => State::Failed(Fault::Remote),
                Ok(()) => State::Done { bytes },
                Err(fault) => State::Failed(fault),
            };
        }
    }

    fn on_note(&mut self, link: &Link, place: usize, bytes: usize) {
        let note = link.read(place, bytes).ok();
        Sender::await_note(link, place);
        match note.and_then(|note| Note::decode(&note)) {
            // An honest peer waits for the messages of a group before it uses its place again.
            Some(_) if self.groups.len() >= MAX_GROUPS => link.reject("it announces too many receives"),
            Some(Note { group, entries }) => {
                let open = entries.into_iter().map(Some).collect();
                self.groups.push_back(Group { number: group, open });
            }
            None => link.reject("it announces receives in bytes that are not understood"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u32, tags: &[i32]) -> Group {
        let entry = |tag: &i32| Some(Entry { address: 0, rkey: 0, bytes: 10, tag: *tag });
        Group { number, open: tags.iter().map(entry).collect() }
    }

    #[test]
    fn tags_choose_among_the_oldest_group_only() {
        let mut sender = Sender::new();
        assert!(sender.find(1).is_none());
        sender.groups.extend([group(5, &[1, 2, 1]), group(6, &[3])]);
        let at = |sender: &Sender, tag| sender.find(tag).map(|(group, at, _)| (group, at));
        assert_eq!((at(&sender, 1), at(&sender, 2), at(&sender, 3)), (Some((5, 0)), Some((5, 1)), None));
        sender.fill(0);
        assert_eq!((at(&sender, 1), at(&sender, 3)), (Some((5, 2)), None));
        sender.fill(2);
        sender.fill(1);
        assert_eq!((at(&sender, 1), at(&sender, 3)), (None, Some((6, 0))));
    }

    #[test]
    fn what_flies_fails_with_the_connection_and_what_is_done_stays_done() {
        let mut sender = Sender::new();
        sender.requests[0] = State::Flying { bytes: 7, end: Ok(()) };
        sender.requests[1] = State::Done { bytes: 9 };
        assert_eq!(sender.test(0), Ok(None));
        sender.lose(Fault::Remote);
        assert_eq!((sender.test(0), sender.test(0)), (Err(Fault::Remote), Err(Fault::Remote)));
        let done = sender.test(1).unwrap().unwrap();
        assert_eq!((done.count, done.bytes[0]), (1, 9));
        // However many messages follow, each gets a request that fails.
        for _ in 0..1_000 {
            let index = sender.fail_one(Fault::Remote).unwrap();
            assert_eq!(sender.test(index), Err(Fault::Remote));
        }
    }
}
