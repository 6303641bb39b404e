//! Matching of messages with receives (specification, section 4, "Matching").
//!
//! A few posted receives are searched linearly, oldest first. More are indexed by the fields they compare: one class
//! for each combination of tag mask and use of the source, and within a class one queue for each value. A message is
//! looked up once in each class, of which applications have a handful, and the oldest of the queue heads found wins.
//!
//! Unexpected messages are kept in order of arrival and indexed by source and tag. If there are many, and receives
//! that compare fewer bits search for them, they are also indexed by the fields those receives compare.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::quality::FixedState;
use hashbrown::HashMap;

use crate::memory::PeerId;

type Hash = FixedState;

/// Match criteria of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) from: Option<PeerId>,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
}

impl Pattern {
    pub(crate) fn fits(&self, from: PeerId, tag: u64) -> bool {
        (self.tag ^ tag) & !self.ignore == 0 && self.from.is_none_or(|peer| peer == from)
    }
}

/// Key of a queue: the source, or zero if any source matches, and the tag bits that matter.
type Value = (PeerId, u64);

/// Fields of source and tag that a receive compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MatchFields {
    sourced: bool,
    ignore: u64,
}

impl MatchFields {
    fn of(pattern: Pattern) -> Self {
        MatchFields { sourced: pattern.from.is_some(), ignore: pattern.ignore }
    }
    fn value(self, from: PeerId, tag: u64) -> Value {
        (if self.sourced { from } else { PeerId(0) }, tag & !self.ignore)
    }
    fn value_of(self, pattern: Pattern) -> Value {
        self.value(pattern.from.unwrap_or(PeerId(0)), pattern.tag)
    }
}

#[derive(Debug)]
struct Class {
    compared: MatchFields,
    queues: HashMap<Value, VecDeque<(u64, u64)>, Hash>,
}

/// Posted receives, by their numbers.
#[derive(Debug)]
pub(crate) struct Posted {
    /// All receives, oldest first, while there are few.
    linear: Vec<(Pattern, u64)>,
    /// All receives, while there are many.
    classes: Vec<Class>,
    /// Number of receives in the classes.
    classed: usize,
    /// Sequence number of the next receive to post.
    sequence: u64,
    /// Empty queues for reuse: most receives create a queue and remove it again.
    spare: Vec<VecDeque<(u64, u64)>>,
    hash: Hash,
}

/// Largest length of `spare`.
const MOST_SPARE: usize = 64;

impl Posted {
    pub(crate) fn new(seed: u64) -> Self {
        let hash = FixedState::with_seed(seed);
        Posted { linear: Vec::new(), classes: Vec::new(), classed: 0, sequence: 0, spare: Vec::new(), hash }
    }

    pub(crate) fn post(&mut self, pattern: Pattern, receive: u64) {
        if self.classed == 0 && self.linear.len() < FEW {
            return self.linear.push((pattern, receive));
        }
        for (pattern, receive) in core::mem::take(&mut self.linear) {
            self.post_in_class(pattern, receive);
        }
        self.post_in_class(pattern, receive);
    }

    fn post_in_class(&mut self, pattern: Pattern, receive: u64) {
        let compared = MatchFields::of(pattern);
        let place = self.classes.iter().position(|class| class.compared == compared);
        let place = place.unwrap_or_else(|| {
            self.classes.push(Class { compared, queues: HashMap::with_hasher(self.hash.clone()) });
            self.classes.len() - 1
        });
        let (class, value) = (&mut self.classes[place], compared.value_of(pattern));
        let queue = class.queues.entry(value).or_insert_with(|| self.spare.pop().unwrap_or_default());
        queue.push_back((self.sequence, receive));
        self.sequence += 1;
        self.classed += 1;
    }

    /// Returns the oldest receive that matches a message.
    pub(crate) fn find(&self, from: PeerId, tag: u64) -> Option<u64> {
        if self.classed == 0 {
            return self
                .linear
                .iter()
                .find(|(pattern, _)| pattern.fits(from, tag))
                .map(|(_, receive)| *receive);
        }
        let heads = self.classes.iter().filter_map(|c| c.queues.get(&c.compared.value(from, tag))?.front());
        heads.min().map(|(_, receive)| *receive)
    }

    /// Removes a receive. For the head of a queue this costs no more than [`find`](Self::find).
    pub(crate) fn remove(&mut self, pattern: Pattern, receive: u64) {
        if self.classed == 0 {
            if let Some(at) = self.linear.iter().position(|(_, posted)| *posted == receive) {
                self.linear.remove(at);
            }
            return;
        }
        let compared = MatchFields::of(pattern);
        let Some(place) = self.classes.iter().position(|class| class.compared == compared) else { return };
        let (class, value) = (&mut self.classes[place], compared.value_of(pattern));
        let Some(queue) = class.queues.get_mut(&value) else { return };
        if let Some(at) = queue.iter().position(|(_, posted)| *posted == receive) {
            queue.remove(at);
            self.classed -= 1;
        }
        if queue.is_empty() {
            let queue = class.queues.remove(&value);
            // Queues that were long once are freed instead.
            let spare = queue.filter(|queue| queue.capacity() <= 16 && self.spare.len() < MOST_SPARE);
            self.spare.extend(spare);
        }
        // Masks come and go, and every message searches all classes, so an unused one is removed.
        if class.queues.is_empty() && self.classes.len() > 4 {
            self.classes.swap_remove(place);
        }
    }
}

/// Largest number of messages and receives that are searched linearly.
const FEW: usize = 16;
/// Largest number of indexes besides the one by source and tag. Receives of MPI ignore some bits, with or without a
/// source.
const MOST_INDEXES: usize = 2;

/// Index of unexpected messages by the fields that some receives compare.
#[derive(Debug)]
struct Index {
    compared: MatchFields,
    /// Sequence numbers of messages. An entry of a removed message stays until it reaches the front.
    turns: HashMap<Value, VecDeque<u64>, Hash>,
    /// Number of entries.
    entries: usize,
}

impl Index {
    fn push(&mut self, (from, tag): (PeerId, u64), turn: u64) {
        self.turns.entry(self.compared.value(from, tag)).or_default().push_back(turn);
        self.entries += 1;
    }
    /// Returns the oldest message with this value that is still present, and drops removed ones before it.
    fn first(&mut self, value: Value, is_there: impl Fn(u64) -> bool) -> Option<u64> {
        let turns = self.turns.get_mut(&value)?;
        while let Some(turn) = turns.front().copied() {
            if is_there(turn) {
                return Some(turn);
            }
            turns.pop_front();
            self.entries -= 1;
        }
        self.turns.remove(&value);
        None
    }
}

/// Message that knows its source and tag.
pub(crate) trait HasEnvelope {
    fn label(&self) -> (PeerId, u64);
}

/// Messages that have matched no receive, oldest first.
#[derive(Debug)]
pub(crate) struct Unexpected<T> {
    /// Messages by their order of arrival, from 1.
    all: BTreeMap<u64, Entry<T>>,
    /// Oldest and newest message of each source and tag. [`Entry::next`] links them.
    chains: HashMap<Value, (u64, u64), Hash>,
    indexes: Vec<Index>,
    turn: u64,
}

#[derive(Debug)]
struct Entry<T> {
    /// Next message of this source and tag, or zero.
    next: u64,
    message: T,
}

impl<T: HasEnvelope> Unexpected<T> {
    pub(crate) fn new(seed: u64) -> Self {
        let hash = FixedState::with_seed(FixedState::with_seed(seed).hash_one(1));
        let (all, chains) = (BTreeMap::new(), HashMap::with_hasher(hash));
        Unexpected { all, chains, indexes: Vec::new(), turn: 0 }
    }
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
    pub(crate) fn push(&mut self, message: T) {
        self.turn += 1;
        let value = message.label();
        self.all.insert(self.turn, Entry { next: 0, message });
        self.chain(value, self.turn);
        for index in &mut self.indexes {
            index.push(value, self.turn);
        }
        // An index with too many entries of removed messages is dropped, and built again when it is needed.
        let most = 2 * self.all.len() + FEW;
        self.indexes.retain(|index| index.entries <= most);
    }
    fn chain(&mut self, value: Value, turn: u64) {
        let ends = self.chains.entry(value).or_insert((turn, 0));
        if let Some(last) = self.all.get_mut(&ends.1) {
            last.next = turn;
        }
        ends.1 = turn;
    }
    /// Returns the oldest message that matches.
    pub(crate) fn find(&mut self, pattern: Pattern) -> Option<u64> {
        let compared = MatchFields::of(pattern);
        if compared == (MatchFields { sourced: true, ignore: 0 }) {
            return self.chains.get(&compared.value_of(pattern)).map(|ends| ends.0);
        }
        if self.all.len() <= FEW {
            let fits = |(from, tag)| pattern.fits(from, tag);
            return self.all.iter().find(|(_, entry)| fits(entry.message.label())).map(|(turn, _)| *turn);
        }
        let place = self.indexes.iter().position(|index| index.compared == compared);
        let place = place.unwrap_or_else(|| self.add_index(compared));
        self.indexes[place].first(compared.value_of(pattern), |turn| self.all.contains_key(&turn))
    }
    /// Builds an index. It replaces the oldest one if there are [`MOST_INDEXES`] already.
    fn add_index(&mut self, compared: MatchFields) -> usize {
        let turns = HashMap::with_hasher(self.chains.hasher().clone());
        let mut index = Index { compared, turns, entries: 0 };
        for (turn, entry) in &self.all {
            index.push(entry.message.label(), *turn);
        }
        if self.indexes.len() == MOST_INDEXES {
            self.indexes.remove(0);
        }
        self.indexes.push(index);
        self.indexes.len() - 1
    }
    pub(crate) fn get(&self, turn: u64) -> Option<&T> {
        self.all.get(&turn).map(|entry| &entry.message)
    }
    /// Removes a message that [`find`](Self::find) returned, which is always the oldest of its source and tag.
    pub(crate) fn take(&mut self, turn: u64) -> Option<T> {
        let entry = self.all.remove(&turn)?;
        let value = entry.message.label();
        if entry.next == 0 {
            self.chains.remove(&value);
        } else if let Some(ends) = self.chains.get_mut(&value) {
            ends.0 = entry.next;
        }
        Some(entry.message)
    }
    /// Drops all messages that satisfy `fits`.
    pub(crate) fn drop_where(&mut self, mut fits: impl FnMut(&T) -> bool) {
        let before = self.all.len();
        self.all.retain(|_, entry| !fits(&entry.message));
        if self.all.len() == before {
            return;
        }
        self.chains.clear();
        let values: Vec<(u64, Value)> = self.all.iter().map(|(turn, e)| (*turn, e.message.label())).collect();
        for (turn, value) in values {
            if let Some(entry) = self.all.get_mut(&turn) {
                entry.next = 0;
            }
            self.chain(value, turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Pattern = Pattern { from: None, tag: 0, ignore: u64::MAX };

    fn exact(from: u32, tag: u64) -> Pattern {
        Pattern { from: Some(PeerId(from)), tag, ignore: 0 }
    }

    #[test]
    fn the_older_of_wildcard_and_exact_wins() {
        for (patterns, winner) in [([ANY, exact(1, 5)], 10), ([exact(1, 5), ANY], 10)] {
            let mut posted = Posted::new(3);
            posted.post(patterns[0], 10);
            posted.post(patterns[1], 11);
            assert_eq!(posted.find(PeerId(1), 5), Some(winner));
            posted.remove(patterns[0], 10);
            assert_eq!(posted.find(PeerId(1), 5), Some(11));
        }
    }

    #[test]
    fn bits_that_are_ignored_do_not_matter_and_others_do() {
        let mut posted = Posted::new(3);
        posted.post(Pattern { from: None, tag: 1 << 63 | 6, ignore: 1 << 63 | 1 }, 10);
        assert_eq!(posted.find(PeerId(0), 7), Some(10));
        assert_eq!(posted.find(PeerId(9), 6), Some(10));
        assert_eq!(posted.find(PeerId(0), 4), None);
    }

    /// Receives are posted and removed, few and many in turn. Each message finds the same receive as a linear search.
    #[test]
    fn few_and_many_receives_are_found_alike() {
        let mut posted = Posted::new(3);
        let mut all: Vec<(Pattern, u64)> = Vec::new();
        for number in 0..4000u64 {
            let ignore = [0, 1, u64::MAX, 3][number as usize % 4];
            let from = if number % 5 < 2 { None } else { Some(PeerId(number as u32 % 3)) };
            let pattern = Pattern { from, tag: number * 7 % 11, ignore };
            posted.post(pattern, number);
            all.push((pattern, number));
            // Up to 50 receives wait, then none.
            let messages = if number % 100 < 50 { 0 } else { 2 };
            for message in 0..messages {
                let (from, tag) = (PeerId((number + message) as u32 % 3), (number * 5 + message) % 11);
                let place = all.iter().position(|(pattern, _)| pattern.fits(from, tag));
                assert_eq!(posted.find(from, tag), place.map(|place| all[place].1), "{number}");
                if let Some((pattern, receive)) = place.map(|place| all.remove(place)) {
                    posted.remove(pattern, receive);
                }
            }
            if number % 100 == 99 {
                all.drain(..).for_each(|(pattern, receive)| posted.remove(pattern, receive));
                assert!(posted.classed == 0 && posted.find(PeerId(0), 0).is_none());
            }
        }
    }

    impl HasEnvelope for (u32, u64, char) {
        fn label(&self) -> (PeerId, u64) {
            (PeerId(self.0), self.1)
        }
    }

    #[test]
    fn unexpected_messages_are_found_oldest_first_by_either_way() {
        let mut unexpected = Unexpected::new(3);
        for message in [(1, 5, 'a'), (2, 5, 'b'), (1, 5, 'c')] {
            unexpected.push(message);
        }
        let first = unexpected.find(exact(1, 5)).expect("there");
        assert_eq!(Some(first), unexpected.find(ANY));
        assert_eq!(unexpected.take(first), Some((1, 5, 'a')));
        let c = unexpected.find(exact(1, 5)).expect("there");
        assert_eq!(unexpected.get(c), Some(&(1, 5, 'c')));
        unexpected.drop_where(|message| message.0 == 2);
        assert_eq!(unexpected.find(ANY), Some(c));
        assert_eq!(unexpected.take(c), Some((1, 5, 'c')));
        assert_eq!((unexpected.find(exact(1, 5)), unexpected.len()), (None, 0));
    }

    /// Receives of four classes take many messages in turn. Each gets the same message as a linear search: the oldest
    /// that fits.
    #[test]
    fn an_index_finds_what_a_search_finds() {
        let mut unexpected = Unexpected::new(3);
        let mut all = Vec::new();
        for number in 0..2000u32 {
            let (from, tag) = (number % 3, u64::from(number * 7 % 11));
            unexpected.push((from, tag, 'm'));
            all.push((u64::from(number) + 1, from, tag));
            // At first two messages arrive for each that is taken, later the reverse.
            for take in 0..if number < 500 { number % 2 } else { 2 } {
                let ignore = [0, 1, u64::MAX, 3][(number / 2 + take) as usize % 4];
                let source = if number % 5 < 2 { None } else { Some(PeerId(number % 3)) };
                let pattern = Pattern { from: source, tag: u64::from(number % 11), ignore };
                let place = all.iter().position(|(_, from, tag)| pattern.fits(PeerId(*from), *tag));
                let expected = place.map(|place| all.remove(place).0);
                assert_eq!(unexpected.find(pattern), expected, "{number}: {pattern:?}");
                if let Some(turn) = expected {
                    unexpected.take(turn).expect("found");
                }
            }
        }
        let entries: usize = unexpected.indexes.iter().map(|index| index.entries).sum();
        assert!(entries <= 2 * (2 * unexpected.len() + FEW), "{entries}");
    }
}
