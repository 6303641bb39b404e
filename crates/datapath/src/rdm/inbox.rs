//! Assignment of messages to receives.
//!
//! Messages of a source take receives in the order in which they were posted at the source, in whatever order their
//! packets arrive. The first arriving packet of a message assigns receives to all messages of its source up to that
//! one. A receive for one source takes precedence over one for any source. Without a receive, a message is stored
//! within a bound until one is posted. A message beyond the bound is refused, and its sender waits. Complete messages
//! are kept when their sender is forgotten, under the sender's name, so that they occupy no slot of a peer.
//!
//! The number of incomplete messages of a source that have an assignment is bounded. The first packet of a message
//! far ahead therefore takes no receives for the messages in between.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use pathweave_transport::Status;

use super::address_vector::Peer;
use crate::places::BufferTable;

/// A posted receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posted {
    /// Handle of its memory.
    pub(super) handle: u64,
    /// Source whose messages it takes; `None`: any source.
    pub(super) from: Option<u32>,
    /// Position in the order of posting.
    order: u64,
}

/// A completed receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) posted: Posted,
    /// Sender of its message.
    pub(super) by: Sender,
    pub(super) status: Status,
    pub(super) bytes: u64,
}

/// Sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The source with this number.
    Known(u32),
    /// A source that has been forgotten since.
    Forgotten(Peer),
}

/// Assignment of a message.
#[derive(Debug)]
enum Target {
    /// Into a receive; `cut`: the message does not fit entirely.
    Receive { posted: Posted, cut: bool },
    /// Into the store, under this number.
    Kept(u64),
}

/// Received part of a message without a receive.
#[derive(Debug)]
struct Kept {
    from: Sender,
    msg: u64,
    bytes: Vec<u8>,
    /// Bytes reserved for it, out of the bound on all stored bytes.
    granted: u64,
    /// Length of the message, once it is complete.
    whole: Option<u64>,
}

/// Messages of a source.
#[derive(Debug, Default)]
struct Source {
    /// First message without an assignment.
    next: u64,
    bound: BTreeMap<u64, Target>,
}

impl Source {
    /// Removes a finished message. An empty map is replaced, since it keeps a node, which would cost memory for every
    /// source.
    fn take(&mut self, msg: u64) -> Option<Target> {
        let target = self.bound.remove(&msg);
        if self.bound.is_empty() {
            self.bound = BTreeMap::new();
        }
        target
    }
}

/// Posted receives, and incomplete messages with their assignments.
#[derive(Debug)]
pub(super) struct Inbox {
    any: VecDeque<Posted>,
    of_one: HashMap<u32, VecDeque<Posted>>,
    sources: HashMap<u32, Source>,
    /// Stored messages in order of arrival.
    kept: BTreeMap<u64, Kept>,
    /// Numbers of the stored messages of each source.
    kept_of: HashMap<u32, BTreeSet<u64>>,
    /// Numbers of the stored messages of each forgotten source.
    left_by: HashMap<Peer, BTreeSet<u64>>,
    /// Bytes reserved for all stored messages.
    kept_bytes: u64,
    kept_limit: u64,
    /// Largest number of assigned, incomplete messages of a source.
    most_bound: usize,
    count: u64,
    /// True if there may be new room.
    changed: bool,
}

/// Bytes charged for a stored message besides its content, so that small messages are not free.
const BYTES_A_KEPT: u64 = 128;

/// Bytes of state of an idle source: its slot in a map that is at most half empty.
pub(super) const BYTES_A_SOURCE: usize = 2 * (size_of::<(u32, Source)>() + 1);

impl Inbox {
    /// `kept_limit`: bound on bytes stored without a receive. `most_bound`: largest number of assigned, incomplete
    /// messages of a source.
    pub(super) fn new(kept_limit: usize, most_bound: usize) -> Self {
        Inbox {
            any: VecDeque::new(),
            of_one: HashMap::new(),
            sources: HashMap::new(),
            kept: BTreeMap::new(),
            kept_of: HashMap::new(),
            left_by: HashMap::new(),
            kept_bytes: 0,
            kept_limit: kept_limit as u64,
            most_bound,
            count: 0,
            changed: false,
        }
    }

    /// Returns true if no message of a source is incomplete, and no receive is for it alone.
    pub(super) fn is_idle(&self, from: u32) -> bool {
        !self.is_under_way(from) && !self.of_one.contains_key(&from)
    }

    /// Forgets an idle source. Its complete messages stay, under its name.
    pub(super) fn part(&mut self, from: u32, peer: Peer) {
        let Some(numbers) = self.kept_of.remove(&from) else { return };
        self.own(&numbers, Sender::Forgotten(peer));
        self.left_by.insert(peer, numbers);
    }

    /// Adds a peer as a source again, and returns its stored messages to it.
    pub(super) fn meet(&mut self, peer: Peer) {
        if !self.left_by.is_empty()
            && let Some(numbers) = self.left_by.remove(&peer)
        {
            self.own(&numbers, Sender::Known(peer.index));
            self.kept_of.insert(peer.index, numbers);
        }
    }

    fn own(&mut self, numbers: &BTreeSet<u64>, sender: Sender) {
        for number in numbers {
            self.kept.get_mut(number).expect("kept as long as it is listed").from = sender;
        }
    }

    /// Returns true if a message of a source is incomplete.
    pub(super) fn is_under_way(&self, from: u32) -> bool {
        self.sources.get(&from).is_some_and(|source| !source.bound.is_empty())
    }

    /// Returns the bytes stored for receives that are not posted yet.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Returns true if there may be new room since the last call: a receive was posted, or a message has finished.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns true if there is a receive or room for the complete message, assuming that all receives were assigned
    /// now. Assigns nothing.
    pub(super) fn may_take(&self, from: u32, msg: u64, total: u64) -> bool {
        let source = self.sources.get(&from);
        let (next, bound) = source.map_or((0, 0), |source| (source.next, source.bound.len() as u64));
        let more = match source.and_then(|source| source.bound.get(&msg)) {
            Some(Target::Receive { .. }) => return true,
            Some(Target::Kept(number)) => total.saturating_sub(self.kept[number].granted),
            None if msg < next => return true,
            None => {
                let (own, places) = (self.of_one.get(&from).map_or(0, VecDeque::len), msg - next + 1);
                if bound + places > self.most_bound as u64 {
                    return false;
                }
                match places.saturating_sub((own + self.any.len()) as u64) {
                    0 => return true,
                    kept => total.saturating_add(kept * BYTES_A_KEPT),
                }
            }
        };
        self.kept_bytes.saturating_add(more) <= self.kept_limit
    }

    /// Returns true if a packet of message `msg` that ends at `end` is admitted. Assigns the message if it has no
    /// assignment. `total`: length of the message, if known.
    ///
    /// A stored message gets its whole length reserved as soon as that is known, so that incomplete messages never
    /// block each other. Until then it may use the remainder of half of the bound.
    pub(super) fn admits(&mut self, from: u32, msg: u64, end: u64, total: Option<u64>) -> bool {
        let source = self.sources.entry(from).or_default();
        if source.next <= msg && source.bound.len() as u64 + (msg - source.next) >= self.most_bound as u64 {
            return false;
        }
        while source.next <= msg {
            let own = self.of_one.get_mut(&from).and_then(VecDeque::pop_front);
            if own.is_some() && self.of_one.get(&from).is_some_and(VecDeque::is_empty) {
                self.of_one.remove(&from);
            }
            let target = match own.or_else(|| self.any.pop_front()) {
                Some(posted) => Target::Receive { posted, cut: false },
                None if self.kept_bytes + BYTES_A_KEPT > self.kept_limit => return false,
                None => {
                    self.kept_bytes += BYTES_A_KEPT;
                    let kept = Kept {
                        from: Sender::Known(from),
                        msg: source.next,
                        bytes: Vec::new(),
                        granted: 0,
                        whole: None,
                    };
                    self.kept.insert(self.count, kept);
                    self.kept_of.entry(from).or_default().insert(self.count);
                    self.count += 1;
                    Target::Kept(self.count - 1)
                }
            };
            source.bound.insert(source.next, target);
            source.next += 1;
        }
        match source.bound.get(&msg) {
            // The message has finished: the packet is a duplicate, which is not placed.
            None | Some(Target::Receive { .. }) => true,
            Some(Target::Kept(number)) => {
                let kept = self.kept.get_mut(number).expect("kept as long as it is bound");
                let (wanted, limit) = match total {
                    Some(total) => (total, self.kept_limit),
                    None => (end, self.kept_limit / 2),
                };
                let more = wanted.saturating_sub(kept.granted);
                if self.kept_bytes + more <= limit {
                    kept.granted += more;
                    self.kept_bytes += more;
                }
                end <= kept.granted
            }
        }
    }

    /// Copies the payload of an admitted packet to its place.
    pub(super) fn place(&mut self, places: &BufferTable, from: u32, msg: u64, offset: u64, payload: &[u8]) {
        let target = self.sources.get_mut(&from).and_then(|source| source.bound.get_mut(&msg));
        match target {
            Some(Target::Receive { posted, cut }) => {
                let place = places.get(posted.handle);
                *cut |= !place.is_some_and(|place| place.memory.place(offset, payload));
            }
            Some(Target::Kept(number)) => {
                let kept = self.kept.get_mut(number).expect("kept as long as it is bound");
                let (start, end) = (offset as usize, offset as usize + payload.len());
                if kept.bytes.len() < end {
                    kept.bytes.resize(end, 0);
                }
                kept.bytes[start..end].copy_from_slice(payload);
            }
            None => {}
        }
    }

    /// Records that a message is complete. Returns its receive, if it has one.
    pub(super) fn delivered(&mut self, from: u32, msg: u64, bytes: u64) -> Option<Filled> {
        // There is room for another message of this source.
        self.changed = true;
        match self.sources.get_mut(&from)?.take(msg)? {
            Target::Receive { posted, cut } => Some(filled(posted, Sender::Known(from), cut, bytes)),
            Target::Kept(number) => {
                self.kept.get_mut(&number).expect("kept as long as it is bound").whole = Some(bytes);
                None
            }
        }
    }

    /// Records that a message will never complete: its receive takes another one.
    pub(super) fn abandoned(&mut self, places: &BufferTable, from: u32, msg: u64) -> Vec<Filled> {
        let target = self.sources.get_mut(&from).and_then(|source| source.take(msg));
        self.release(places, target)
    }

    /// Drops all incomplete messages of a source that starts anew or is gone. Complete ones stay.
    pub(super) fn begin_anew(&mut self, places: &BufferTable, from: u32) -> Vec<Filled> {
        let targets = self.sources.remove(&from).map(|source| source.bound).unwrap_or_default();
        self.release(places, targets.into_values())
    }

    /// Drops everything of a removed source, complete messages without a receive included. Returns the receives for
    /// this source alone, and receives that other messages have filled.
    pub(super) fn forget(&mut self, places: &BufferTable, from: u32) -> (Vec<Posted>, Vec<Filled>) {
        let filled = self.begin_anew(places, from);
        let own = self.of_one.remove(&from).unwrap_or_default().into();
        let gone = self.kept_of.get(&from).cloned().unwrap_or_default();
        gone.into_iter().for_each(|number| drop(self.take_kept(number)));
        (own, filled)
    }

    /// Posts a receive. A stored message may fill it at once.
    pub(super) fn post(&mut self, places: &BufferTable, handle: u64, from: Option<u32>) -> Option<Filled> {
        let posted = Posted { handle, from, order: self.count };
        self.count += 1;
        self.changed = true;
        self.offer(places, posted)
    }

    /// Removes and returns all posted receives, whether assigned or not.
    pub(super) fn drain(&mut self) -> Vec<Posted> {
        let mut all: Vec<Posted> = self.any.drain(..).collect();
        all.extend(self.of_one.drain().flat_map(|(_, posted)| posted));
        for target in self.sources.drain().flat_map(|(_, source)| source.bound.into_values()) {
            if let Target::Receive { posted, .. } = target {
                all.push(posted);
            }
        }
        all.sort_unstable_by_key(|posted| posted.order);
        all
    }

    /// Offers the receives of dropped messages to others, in their original order.
    fn release(&mut self, places: &BufferTable, targets: impl IntoIterator<Item = Target>) -> Vec<Filled> {
        let mut receives = Vec::new();
        self.changed = true;
        for target in targets {
            match target {
                Target::Receive { posted, .. } => receives.push(posted),
                Target::Kept(number) => drop(self.take_kept(number)),
            }
        }
        receives.sort_unstable_by_key(|posted| posted.order);
        receives.into_iter().filter_map(|posted| self.offer(places, posted)).collect()
    }

    fn take_kept(&mut self, number: u64) -> Option<Kept> {
        let kept = self.kept.remove(&number)?;
        match kept.from {
            Sender::Known(from) => take_number(&mut self.kept_of, &from, number),
            Sender::Forgotten(peer) => take_number(&mut self.left_by, &peer, number),
        }
        self.changed = true;
        self.kept_bytes -= kept.granted + BYTES_A_KEPT;
        Some(kept)
    }

    /// Fills a receive with the oldest stored message that it can take, or queues it.
    fn offer(&mut self, places: &BufferTable, posted: Posted) -> Option<Filled> {
        let first = match posted.from {
            Some(from) => self.kept_of.get(&from).and_then(|numbers| numbers.first().copied()),
            None => self.kept.first_key_value().map(|(&number, _)| number),
        };
        let Some(number) = first else {
            let queue = match posted.from {
                Some(from) => self.of_one.entry(from).or_default(),
                None => &mut self.any,
            };
            let at = queue.partition_point(|other| other.order < posted.order);
            queue.insert(at, posted);
            return None;
        };
        let kept = self.take_kept(number)?;
        let place = places.get(posted.handle);
        let cut = !place.is_some_and(|place| {
            let len = kept.bytes.len().min(place.memory.len());
            place.memory.place(0, &kept.bytes[..len]) && len == kept.bytes.len()
        });
        if let Some(bytes) = kept.whole {
            return Some(filled(posted, kept.from, cut, bytes));
        }
        if let Sender::Known(from) = kept.from
            && let Some(source) = self.sources.get_mut(&from)
        {
            source.bound.insert(kept.msg, Target::Receive { posted, cut });
        }
        None
    }
}

/// Removes a number from those of a source, and the source with its last number.
fn take_number<K: Eq + std::hash::Hash>(of: &mut HashMap<K, BTreeSet<u64>>, source: &K, number: u64) {
    if let Some(numbers) = of.get_mut(source) {
        numbers.remove(&number);
        if numbers.is_empty() {
            of.remove(source);
        }
    }
}

fn filled(posted: Posted, by: Sender, cut: bool, bytes: u64) -> Filled {
    let status = if cut { Status::LocalLength } else { Status::Success };
    Filled { posted, by, status, bytes: if cut { 0 } else { bytes } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::BufferEntry;
    use crate::region::Region;

    struct World {
        inbox: Inbox,
        places: BufferTable,
        memory: Region,
    }

    impl World {
        fn new(kept_limit: usize) -> Self {
            let memory = Region::zeroed(100).unwrap();
            World { inbox: Inbox::new(kept_limit, 4), places: BufferTable::default(), memory }
        }
        /// Posts a receive of ten bytes at ten times `wr_id`.
        fn post(&mut self, wr_id: usize, from: Option<u32>) -> Option<(u64, Status, u64)> {
            let memory = self.memory.slice(10 * wr_id..10 * wr_id + 10).unwrap();
            let handle = self.places.insert(BufferEntry { memory: memory.into(), wr_id: wr_id as u64 });
            let filled = self.inbox.post(&self.places, handle, from);
            filled.map(|filled| self.name(filled))
        }
        fn name(&self, filled: Filled) -> (u64, Status, u64) {
            (self.places.get(filled.posted.handle).unwrap().wr_id, filled.status, filled.bytes)
        }
        fn packet(&mut self, from: u32, msg: u64, offset: u64, payload: &[u8]) -> bool {
            self.packet_of(from, msg, (offset, None), payload)
        }
        fn packet_of(
            &mut self,
            from: u32,
            msg: u64,
            (offset, total): (u64, Option<u64>),
            payload: &[u8],
        ) -> bool {
            let admitted = self.inbox.admits(from, msg, offset + payload.len() as u64, total);
            if admitted {
                self.inbox.place(&self.places, from, msg, offset, payload);
            }
            admitted
        }
        fn whole(&mut self, from: u32, msg: u64, bytes: u64) -> Option<(u64, Status, u64)> {
            self.inbox.delivered(from, msg, bytes).map(|filled| self.name(filled))
        }
        fn bytes(&self, wr_id: usize) -> Vec<u8> {
            self.memory.to_vec(10 * wr_id..10 * wr_id + 10).unwrap()
        }
    }

    const OK: Status = Status::Success;

    #[test]
    fn messages_take_receives_in_their_order_whatever_arrives_first() {
        let mut world = World::new(4_000);
        (1..=3).for_each(|wr_id| assert_eq!(world.post(wr_id, None), None));
        assert_eq!(world.post(4, Some(7)), None);
        // Message 1 of source 7 arrives first. Message 0 still gets the receive for source 7.
        assert!(world.packet(7, 1, 0, b"second"));
        assert_eq!(world.whole(7, 1, 6), Some((1, OK, 6)));
        assert!(world.packet(7, 0, 0, b"first"));
        assert!(world.packet(8, 0, 0, b"other"));
        assert_eq!(world.whole(8, 0, 5), Some((2, OK, 5)));
        assert_eq!(world.whole(7, 0, 5), Some((4, OK, 5)));
        assert_eq!((&world.bytes(1)[..6], &world.bytes(4)[..5]), (&b"second"[..], &b"first"[..]));
        assert_eq!(world.whole(7, 0, 5), None, "told once");
    }

    #[test]
    fn unexpected_messages_are_kept_within_bounds() {
        let bound = 10 * BYTES_A_KEPT;
        let mut world = World::new(bound as usize);
        let many = [1; 400];
        // Of unknown length: half of the bound, for two messages and their bytes.
        assert!(world.packet(1, 0, 4, b"efgh") && world.packet(2, 0, 0, &many[..60]));
        assert_eq!(world.inbox.kept_bytes(), 2 * BYTES_A_KEPT + 8 + 60);
        assert!(!world.packet(1, 0, 8, &many), "beyond half of the bound");
        // The first is now known to have ten bytes, which are reserved. A third one has room beyond the half.
        assert!(world.packet_of(1, 0, (8, Some(10)), b"ij"));
        assert!(world.packet_of(3, 0, (0, Some(2)), b"xy"));
        assert_eq!(world.inbox.kept_bytes(), 3 * BYTES_A_KEPT + 10 + 60 + 2);
        assert!(!world.packet_of(4, 0, (0, Some(800)), b"x"), "more than is left");
        assert_eq!(world.whole(3, 0, 2), None);
        // The oldest stored message is taken first; it continues in the receive itself.
        assert_eq!(world.post(1, None), None);
        assert!(world.packet(1, 0, 0, b"abcd"));
        assert_eq!(world.whole(1, 0, 10), Some((1, OK, 10)));
        assert_eq!(world.bytes(1), b"abcdefghij");
        assert_eq!(world.post(2, Some(3)), Some((2, OK, 2)));
        assert_eq!(&world.bytes(2)[..2], b"xy");
    }

    #[test]
    fn a_message_too_long_for_its_receive_is_an_error_and_touches_nothing_beside() {
        let mut world = World::new(4_000);
        (1..=2).for_each(|wr_id| assert_eq!(world.post(wr_id, None), None));
        assert!(world.packet(1, 0, 0, b"01234567") && world.packet(1, 0, 8, b"890123"));
        assert_eq!(world.whole(1, 0, 14), Some((1, Status::LocalLength, 0)));
        assert_eq!(world.bytes(2), [0; 10]);
        // A stored message that is too long is an error, too.
        assert!(world.packet(1, 1, 0, b"x") && world.packet(1, 2, 0, b"01234567890"));
        assert_eq!((world.whole(1, 1, 1), world.whole(1, 2, 11)), (Some((2, OK, 1)), None));
        assert_eq!(world.post(3, None), Some((3, Status::LocalLength, 0)));
        assert_eq!(world.bytes(4), [0; 10]);
    }

    /// A packet of a message far ahead takes no receive, and a source takes no more than its share of them.
    #[test]
    fn a_source_takes_no_more_receives_than_its_share() {
        let mut world = World::new(4_000);
        (1..=6).for_each(|wr_id| assert_eq!(world.post(wr_id, None), None));
        assert!(!world.inbox.admits(1, 30_000, 1, Some(1)) && !world.inbox.may_take(1, 30_000, 1));
        assert_eq!(world.inbox.any.len(), 6);
        // Four messages are begun, and none is completed.
        assert!((0..4).all(|msg| world.packet(1, msg, 0, b"x")));
        assert!(!world.packet(1, 4, 0, b"x") && !world.inbox.may_take(1, 4, 1));
        assert_eq!(world.inbox.any.len(), 2);
        assert!(world.packet(2, 0, 0, b"hello"));
        assert_eq!(world.whole(2, 0, 5), Some((5, OK, 5)));
        // One completes: there is room for another.
        world.inbox.has_changed();
        assert_eq!(world.whole(1, 2, 1), Some((3, OK, 1)));
        assert!(world.inbox.has_changed() && world.inbox.may_take(1, 4, 1) && world.packet(1, 4, 0, b"x"));
    }

    #[test]
    fn whether_there_would_be_room_is_known_before_anything_comes() {
        let mut world = World::new(1_000);
        assert!(world.inbox.may_take(1, 0, 872) && !world.inbox.may_take(1, 0, 873));
        assert!(world.inbox.may_take(1, 1, 744) && !world.inbox.may_take(1, 1, 745), "two to be kept");
        assert_eq!(world.post(1, Some(2)), None);
        assert!(!world.inbox.may_take(1, 0, 873) && world.inbox.may_take(2, 0, 1 << 32));
        // Half of the bound for a message of unknown length; then the whole bound counts.
        assert!(world.packet(1, 0, 0, &[1; 300]));
        assert!(world.inbox.may_take(1, 0, 872) && !world.inbox.may_take(1, 0, 873));
        assert_eq!(world.post(2, None), None);
        assert!(world.inbox.may_take(1, 0, 1 << 32), "it has a receive");
    }

    #[test]
    fn receives_of_messages_that_never_come_take_others() {
        let mut world = World::new(4_000);
        (1..=2).for_each(|wr_id| assert_eq!(world.post(wr_id, None), None));
        assert!(world.packet(1, 0, 0, b"lost") && world.packet(1, 1, 0, b"half"));
        assert!(world.inbox.abandoned(&world.places, 1, 0).is_empty());
        assert!(world.packet(2, 0, 0, b"next"));
        assert_eq!(world.whole(2, 0, 4), Some((1, OK, 4)));
        // Source 1 restarts: its messages count from 0 again.
        assert!(world.inbox.begin_anew(&world.places, 1).is_empty());
        assert!(world.packet(1, 0, 0, b"anew"));
        assert_eq!(world.whole(1, 0, 4), Some((2, OK, 4)));
        assert_eq!(world.post(3, Some(1)), None);
        let (own, filled) = world.inbox.forget(&world.places, 1);
        assert_eq!((own.len(), filled.len(), own[0].from), (1, 0, Some(1)));
        assert_eq!(world.post(4, None), None);
        assert!(world.packet(2, 1, 0, b"x"));
        assert_eq!(world.inbox.drain().len(), 1, "the one on its way counts");
    }
}
