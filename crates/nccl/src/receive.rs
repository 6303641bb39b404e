//! The receiving end: groups of receives that are announced to the peer, and the messages that fill them.

use pathweave_datapath::{Access, Completion, Opcode, PostError, Region, Registration};

use crate::abi::{Fault, MAX_BYTES, MAX_GROUPS, MAX_RECEIVES};
use crate::guard::{Outcome, warn};
use crate::link::{Link, PLACES};
use crate::memory::Mr;
use crate::notes::{Content, Entry, GROUP_BITS, Immediate, Note, Sizes};

/// Number of receives for messages; the others are those of places for notes.
const IS_MESSAGE: u64 = 1 << 32;

/// State of the receiving end.
pub(crate) struct Receiver {
    lost: Option<Fault>,
    /// Number of the next group.
    next: u32,
    /// Groups in progress, by number modulo their count.
    groups: [Option<Group>; MAX_GROUPS],
    /// Places for notes that are not in use.
    places: Vec<usize>,
    /// Memory for receives without bytes and without memory of their own.
    nowhere: Option<Registration>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    number: u32,
    rooms: [usize; MAX_RECEIVES],
    tags: [i32; MAX_RECEIVES],
    /// Receives that have their message.
    filled: [bool; MAX_RECEIVES],
    sizes: Sizes,
    failed: Option<Fault>,
}

/// A receive that NCCL posts.
pub(crate) struct Wanted<'a> {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) tag: i32,
    pub(crate) memory: Option<&'a Mr>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Receiver {
            lost: None,
            next: 0,
            groups: [None; MAX_GROUPS],
            places: (0..PLACES).rev().collect(),
            nowhere: None,
        }
    }

    /// Fails all groups that are not complete, and everything from now on.
    pub(crate) fn lose(&mut self, fault: Fault) {
        self.lost.get_or_insert(fault);
        for group in self.groups.iter_mut().flatten() {
            if !group.is_complete() {
                group.failed.get_or_insert(fault);
            }
        }
    }

    pub(crate) fn test(&mut self, index: usize) -> Outcome<Option<Sizes>> {
        match &self.groups[index] {
            None => Err(self.lost.unwrap_or(Fault::Usage)),
            Some(group) if group.is_complete() => {
                let (sizes, failed) = (group.sizes, group.failed);
                self.groups[index] = None;
                failed.map_or(Ok(Some(sizes)), Err)
            }
            Some(group) if self.lost.is_some() => Err(group.failed.unwrap_or(Fault::Remote)),
            Some(_) => Ok(None),
        }
    }

    /// Returns the group that an immediate names, if its receive waits for a message.
    fn waiting(&mut self, imm: Immediate) -> Option<&mut Group> {
        let group = self.groups[imm.group as usize % MAX_GROUPS].as_mut()?;
        let waits = group.number == imm.group && imm.entry < group.sizes.count && !group.filled[imm.entry];
        waits.then_some(group)
    }
}

impl Group {
    fn is_complete(&self) -> bool {
        self.filled[..self.sizes.count].iter().all(|filled| *filled)
    }
}

impl Receiver {
    /// Posts the receives whose completions tell of messages: one for each message that can be announced, and some that
    /// are not posted again yet.
    pub(crate) fn await_messages(link: &Link) {
        (0..(MAX_GROUPS + 4) * MAX_RECEIVES).for_each(|_| Receiver::await_message(link));
    }

    fn await_message(link: &Link) {
        if let Ok(nothing) = link.nothing() {
            // It fails only if the connection has ended, of which an event tells.
            let _ = link.connection.recv(IS_MESSAGE, nothing);
        }
    }

    /// Announces a group of receives, and returns the number of the request. Returns `None` if as many are in progress as
    /// are allowed.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn start(&mut self, link: &Link, wanted: &[Wanted<'_>]) -> Outcome<Option<usize>> {
        let too_long = wanted.iter().any(|wanted| wanted.bytes > MAX_BYTES);
        if too_long || !(1..=MAX_RECEIVES).contains(&wanted.len()) {
            return Err(Fault::Usage);
        }
        if let Some(fault) = self.lost {
            return Err(fault);
        }
        let (number, index) = (self.next, self.next as usize % MAX_GROUPS);
        if self.groups[index].is_some() {
            return Ok(None);
        }
        let Some(place) = self.places.pop() else { return Ok(None) };
        let posted = self.announce(link, number, wanted, place);
        if !matches!(posted, Ok(true)) {
            self.places.push(place);
            return posted.map(|_| None);
        }
        let mut group = Group {
            number,
            rooms: [0; MAX_RECEIVES],
            tags: [0; MAX_RECEIVES],
            filled: [false; MAX_RECEIVES],
            sizes: Sizes { count: wanted.len(), ..Sizes::default() },
            failed: None,
        };
        for (at, wanted) in wanted.iter().enumerate() {
            (group.rooms[at], group.tags[at]) = (wanted.bytes, wanted.tag);
        }
        self.groups[index] = Some(group);
        self.next = (number + 1) & ((1 << GROUP_BITS) - 1);
        Ok(Some(index))
    }

    /// Sends the note. Returns false if the queue is full.
    fn announce(&mut self, link: &Link, number: u32, wanted: &[Wanted<'_>], place: usize) -> Outcome<bool> {
        let mut entries = Vec::with_capacity(wanted.len());
        for Wanted { address, bytes, tag, memory } in wanted {
            let (address, rkey) = match memory {
                Some(memory) => (*address as u64, memory.key(*address, *bytes)?),
                None if *bytes == 0 => (0, self.nowhere(link)?),
                None => return Err(Fault::Usage),
            };
            entries.push(Entry { address, rkey, bytes: *bytes, tag: *tag });
        }
        let note = link.write(place, &Note { group: number, entries }.encode());
        match link.connection.send(place as u64, note.map_err(|_| Fault::Internal)?) {
            Ok(()) => Ok(true),
            Err(PostError::Full { .. }) => Ok(false),
            Err(_) => {
                self.lose(Fault::Remote);
                Err(Fault::Remote)
            }
        }
    }

    /// Returns a key that the peer may use for a message without bytes.
    fn nowhere(&mut self, link: &Link) -> Outcome<u64> {
        if self.nowhere.is_none() {
            let region = Region::zeroed(1).map_err(|_| Fault::System)?;
            let registered = link.connection.register(&region, Access::WRITE).map_err(|_| Fault::Remote)?;
            self.nowhere = Some(registered);
        }
        self.nowhere.as_ref().map(Registration::rkey).ok_or(Fault::Internal)
    }

    /// Processes a completion.
    pub(crate) fn completed(&mut self, link: &Link, done: &Completion) {
        if done.opcode == Opcode::Send {
            if (done.wr_id as usize) < PLACES {
                self.places.push(done.wr_id as usize);
            }
            return;
        }
        if !done.is_success() {
            return;
        }
        Receiver::await_message(link);
        let Some(imm) = done.imm.map(Immediate::decode) else {
            return link.reject("it sends a message without a receive");
        };
        let Some(group) = self.waiting(imm) else {
            return link.reject("it sends a message into a receive that waits for none");
        };
        let bytes = done.byte_len as usize;
        if imm.content == Content::TooLong || bytes > group.rooms[imm.entry] {
            warn(format_args!(
                "a message of {} with tag {} is longer than its receive of {} bytes; the sender logs its length",
                link.connection.peer_addr(),
                group.tags[imm.entry],
                group.rooms[imm.entry]
            ));
            group.failed = Some(Fault::Usage);
        }
        group.filled[imm.entry] = true;
        group.sizes.bytes[imm.entry] = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new();
        receiver.groups[3] = Some(Group {
            number: 35,
            rooms: [10; MAX_RECEIVES],
            tags: [0; MAX_RECEIVES],
            filled: [false; MAX_RECEIVES],
            sizes: Sizes { count: 2, ..Sizes::default() },
            failed: None,
        });
        receiver
    }

    #[test]
    fn a_message_fills_a_receive_that_waits_and_no_other() {
        let mut receiver = receiver();
        let imm = |group, entry| Immediate { content: Content::Message, group, entry };
        assert!(receiver.waiting(imm(3, 0)).is_none(), "an earlier group in this place");
        assert!(receiver.waiting(imm(35, 2)).is_none() && receiver.waiting(imm(36, 0)).is_none());
        receiver.waiting(imm(35, 1)).unwrap().filled[1] = true;
        assert!(receiver.waiting(imm(35, 1)).is_none(), "twice");
        assert_eq!(receiver.test(3), Ok(None));
        receiver.waiting(imm(35, 0)).unwrap().filled[0] = true;
        assert_eq!(receiver.test(3).unwrap().unwrap().count, 2);
        assert_eq!(receiver.test(3), Err(Fault::Usage), "tested after its end");
    }

    #[test]
    fn a_lost_peer_fails_what_is_not_complete() {
        let mut receiver = receiver();
        receiver.lose(Fault::Remote);
        assert_eq!((receiver.test(3), receiver.test(3)), (Err(Fault::Remote), Err(Fault::Remote)));
        assert_eq!(receiver.test(4), Err(Fault::Remote));
    }
}
