//! Which message goes to which receive (specification, section 4, "Matching").
//!
//! Posted receives are held by what they compare: a class for each mask of tag bits and for whether the source matters, and
//! in it a queue for each value. A message is looked up once a class, of which applications have a handful, and of the
//! heads that it finds the oldest wins. Unexpected messages are held in the order of arrival and by source and tag.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::quality::FixedState;
use hashbrown::HashMap;

use crate::memory::PeerId;

type Hash = FixedState;

/// What a receive compares.
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

/// Source, or zero where any is right, and the tag's bits that matter.
type Value = (PeerId, u64);

#[derive(Debug)]
struct Class {
    sourced: bool,
    ignore: u64,
    queues: HashMap<Value, VecDeque<(u64, u64)>, Hash>,
}

impl Class {
    fn value(&self, from: PeerId, tag: u64) -> Value {
        (if self.sourced { from } else { PeerId(0) }, tag & !self.ignore)
    }
}

/// Posted receives, by their numbers.
#[derive(Debug)]
pub(crate) struct Posted {
    classes: Vec<Class>,
    /// When the next one is posted.
    turn: u64,
    hash: Hash,
}

impl Posted {
    pub(crate) fn new(seed: u64) -> Self {
        Posted { classes: Vec::new(), turn: 0, hash: FixedState::with_seed(seed) }
    }

    pub(crate) fn post(&mut self, pattern: Pattern, receive: u64) {
        let sourced = pattern.from.is_some();
        let place = self.classes.iter().position(|c| c.sourced == sourced && c.ignore == pattern.ignore);
        let place = place.unwrap_or_else(|| {
            let queues = HashMap::with_hasher(self.hash.clone());
            self.classes.push(Class { sourced, ignore: pattern.ignore, queues });
            self.classes.len() - 1
        });
        let class = &mut self.classes[place];
        let value = class.value(pattern.from.unwrap_or(PeerId(0)), pattern.tag);
        class.queues.entry(value).or_default().push_back((self.turn, receive));
        self.turn += 1;
    }

    /// The oldest receive that a message fits.
    pub(crate) fn find(&self, from: PeerId, tag: u64) -> Option<u64> {
        let heads = self.classes.iter().filter_map(|c| c.queues.get(&c.value(from, tag))?.front());
        heads.min().map(|(_, receive)| *receive)
    }

    /// Takes a receive out, the head of its queue at no more cost than [`find`](Self::find).
    pub(crate) fn remove(&mut self, pattern: Pattern, receive: u64) {
        let sourced = pattern.from.is_some();
        let place = self.classes.iter().position(|c| c.sourced == sourced && c.ignore == pattern.ignore);
        let Some(place) = place else { return };
        let class = &mut self.classes[place];
        let value = class.value(pattern.from.unwrap_or(PeerId(0)), pattern.tag);
        let Some(queue) = class.queues.get_mut(&value) else { return };
        if let Some(at) = queue.iter().position(|(_, posted)| *posted == receive) {
            queue.remove(at);
        }
        if queue.is_empty() {
            class.queues.remove(&value);
        }
        // Masks come and go; those in use are looked at for each message.
        if class.queues.is_empty() && self.classes.len() > 4 {
            self.classes.swap_remove(place);
        }
    }
}

/// Messages that no receive has been found for, oldest first.
#[derive(Debug)]
pub(crate) struct Unexpected<T> {
    /// By turn of arrival, from 1.
    all: BTreeMap<u64, Entry<T>>,
    /// The oldest and newest of each source and tag; [`Entry::next`] leads from one to the other.
    chains: HashMap<Value, (u64, u64), Hash>,
    turn: u64,
}

#[derive(Debug)]
struct Entry<T> {
    from: PeerId,
    tag: u64,
    /// The next of this source and tag; zero is none.
    next: u64,
    message: T,
}

impl<T> Unexpected<T> {
    pub(crate) fn new(seed: u64) -> Self {
        let hash = FixedState::with_seed(FixedState::with_seed(seed).hash_one(1));
        Unexpected { all: BTreeMap::new(), chains: HashMap::with_hasher(hash), turn: 0 }
    }
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
    pub(crate) fn push(&mut self, from: PeerId, tag: u64, message: T) {
        self.turn += 1;
        self.all.insert(self.turn, Entry { from, tag, next: 0, message });
        self.chain(from, tag, self.turn);
    }
    fn chain(&mut self, from: PeerId, tag: u64, turn: u64) {
        let ends = self.chains.entry((from, tag)).or_insert((turn, 0));
        if let Some(last) = self.all.get_mut(&ends.1) {
            last.next = turn;
        }
        ends.1 = turn;
    }
    /// The oldest message that fits.
    pub(crate) fn find(&self, pattern: Pattern) -> Option<u64> {
        match pattern.from {
            Some(from) if pattern.ignore == 0 => self.chains.get(&(from, pattern.tag)).map(|ends| ends.0),
            _ => self.all.iter().find(|(_, e)| pattern.fits(e.from, e.tag)).map(|(turn, _)| *turn),
        }
    }
    pub(crate) fn get(&self, turn: u64) -> Option<&T> {
        self.all.get(&turn).map(|entry| &entry.message)
    }
    /// Takes out what [`find`](Self::find) found: always the oldest of its source and tag.
    pub(crate) fn take(&mut self, turn: u64) -> Option<T> {
        let entry = self.all.remove(&turn)?;
        let value = (entry.from, entry.tag);
        if entry.next == 0 {
            self.chains.remove(&value);
        } else if let Some(ends) = self.chains.get_mut(&value) {
            ends.0 = entry.next;
        }
        Some(entry.message)
    }
    /// Drops those that fit.
    pub(crate) fn drop_where(&mut self, mut fits: impl FnMut(PeerId, &T) -> bool) {
        let before = self.all.len();
        self.all.retain(|_, entry| !fits(entry.from, &entry.message));
        if self.all.len() == before {
            return;
        }
        self.chains.clear();
        let values: Vec<(u64, PeerId, u64)> =
            self.all.iter().map(|(turn, e)| (*turn, e.from, e.tag)).collect();
        for (turn, from, tag) in values {
            if let Some(entry) = self.all.get_mut(&turn) {
                entry.next = 0;
            }
            self.chain(from, tag, turn);
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

    #[test]
    fn unexpected_messages_are_found_oldest_first_by_either_way() {
        let mut unexpected = Unexpected::new(3);
        for (from, tag, message) in [(1, 5, 'a'), (2, 5, 'b'), (1, 5, 'c')] {
            unexpected.push(PeerId(from), tag, message);
        }
        let first = unexpected.find(exact(1, 5)).expect("there");
        assert_eq!(Some(first), unexpected.find(ANY));
        assert_eq!(unexpected.take(first), Some('a'));
        let c = unexpected.find(exact(1, 5)).expect("there");
        assert_eq!(unexpected.get(c), Some(&'c'));
        unexpected.drop_where(|from, _| from == PeerId(2));
        assert_eq!(unexpected.find(ANY), Some(c));
        assert_eq!(unexpected.take(c), Some('c'));
        assert_eq!((unexpected.find(exact(1, 5)), unexpected.len()), (None, 0));
    }
}
