//! The event queue: a wheel of buckets over intrusive lists, a heap for what lies beyond its horizon, and in front a
//! sorted list of what is next.
//!
//! Events pop in order of time, and of source where times are equal; nothing else decides, so a run is the same on every
//! machine, and does not depend on when it became known that something would happen. A bucket is sorted when its turn
//! comes, so that an insertion is O(1) even where synchronised starts put thousands of events on one instant; and since
//! the next events are a list, whoever executes them can look ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_units::Time;

use pathweave_fabric::prefetch;

/// What an event belongs to: an index into the sources given to [`EventQueue::new`].
pub(crate) type SourceId = u32;

const NONE: u32 = u32::MAX;
const UNSCHEDULED: u64 = u64::MAX;

/// Stands in [`Slot::before`] for: the event is in the sorted list.
const SOON: u32 = u32::MAX - 1;
/// The event is in the heap.
const FAR: u32 = u32::MAX - 2;

/// The wheel reaches this far ahead where that takes no more than [`MAX_BUCKETS`]: 2^22 ps = 4.2 us, beyond a hop inside
/// a data centre.
const REACH_SHIFT: u32 = 22;
/// 512 KiB of buckets.
const MAX_BUCKETS: u64 = 1 << 17;

/// How many of the next events [`EventQueue::upcoming`] tells.
pub(crate) const LOOK_AHEAD: usize = 17;

/// The sorted list is filled up when fewer events than this are in it: enough to look ahead where there is so much
/// memory that it has to be loaded ahead of time, and few where not, since to schedule an event among them costs more.
fn sorted_ahead(sources: usize) -> usize {
    (sources / 64).clamp(2, LOOK_AHEAD + 7)
}

/// Width of a bucket, as a power of two in picoseconds: about half of the sources have an event within a hop of a
/// microsecond or so, and a bucket should hold a few of them.
fn bucket_shift(sources: usize) -> u32 {
    ((1 << 21) / sources.max(1) as u64).max(1).ilog2().clamp(5, 10)
}

#[derive(Clone, Copy)]
struct Slot {
    time: u64,
    /// Neighbours in the bucket's list, which is in no order.
    before: u32,
    behind: u32,
}

/// An event of the sorted list: its time, then its source. One number, so that comparing two takes no branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    #[inline(always)]
    fn new(time: u64, source: SourceId) -> Self {
        Entry(u128::from(time) << 32 | u128::from(source))
    }
    #[inline(always)]
    fn time(self) -> u64 {
        (self.0 >> 32) as u64
    }
    #[inline(always)]
    fn source(self) -> SourceId {
        self.0 as u32
    }
}

/// A monotone queue of events, at most one a source.
pub(crate) struct EventQueue {
    slots: Vec<Slot>,
    /// First event of each bucket. A power of two of them.
    buckets: Vec<u32>,
    /// See [`bucket_shift`].
    shift: u32,
    /// One bit a bucket, and one bit a word of those: the next busy bucket is two scans away.
    busy: Vec<u64>,
    busy_words: Vec<u64>,
    /// Events of the buckets whose turn has come, sorted; those before `next` are done. May hold void entries.
    soon: Vec<Entry>,
    next: usize,
    /// Events of the bucket whose turn it is: picoseconds since its begin, then source, since such words are sorted
    /// without branches. Kept for its memory.
    sorting: Vec<u64>,
    /// See [`sorted_ahead`].
    sorted_ahead: usize,
    /// Turn of the first bucket that is not in `soon` yet: its time over the width.
    turn: u64,
    /// Events beyond the wheel: (time, source). May hold void entries.
    far: BinaryHeap<Reverse<(u64, SourceId)>>,
    /// No later than the first of them.
    far_first: u64,
    now: u64,
    /// Events in the wheel.
    near: usize,
}

impl EventQueue {
    /// A queue for `sources` sources, at time zero.
    pub(crate) fn new(sources: usize) -> Self {
        assert!(sources < FAR as usize, "more sources than a 32-bit index can tell apart");
        let shift = bucket_shift(sources);
        let buckets = (1u64 << (REACH_SHIFT - shift)).min(MAX_BUCKETS) as usize;
        let words = buckets / 64;
        EventQueue {
            slots: vec![Slot { time: UNSCHEDULED, before: NONE, behind: NONE }; sources],
            buckets: vec![NONE; buckets],
            shift,
            busy: vec![0; words],
            busy_words: vec![0; words.div_ceil(64)],
            soon: Vec::new(),
            next: 0,
            sorting: Vec::new(),
            sorted_ahead: sorted_ahead(sources),
            turn: 0,
            far: BinaryHeap::new(),
            far_first: u64::MAX,
            now: 0,
            near: 0,
        }
    }

    /// Time of the last event popped.
    pub(crate) fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Schedules the event of a source that has none. Panics if `at` lies in the past; a source that is scheduled
    /// already is a bug of the caller.
    #[inline(always)]
    fn schedule(&mut self, source: SourceId, at: Time) {
        let time = at.as_ps();
        assert!(time >= self.now, "an event in the past");
        let free = self.slots[source as usize].time == UNSCHEDULED;
        debug_assert!(free, "source {source} is scheduled already");
        let turn = time >> self.shift;
        if turn.wrapping_sub(self.turn) < self.buckets.len() as u64 {
            self.insert_near(source, time);
        } else if turn < self.turn {
            self.insert_soon(source, time);
        } else {
            self.insert_far(source, time);
        }
    }

    #[inline(always)]
    fn insert_near(&mut self, source: SourceId, time: u64) {
        let bucket = (time >> self.shift) as usize & (self.buckets.len() - 1);
        let first = std::mem::replace(&mut self.buckets[bucket], source);
        self.slots[source as usize] = Slot { time, before: NONE, behind: first };
        if first != NONE {
            self.slots[first as usize].before = source;
        }
        self.near += 1;
        self.busy[bucket / 64] |= 1 << (bucket % 64);
        self.busy_words[bucket / 4096] |= 1 << (bucket / 64 % 64);
    }

    /// Among those whose bucket's turn has come already.
    #[cold]
    fn insert_soon(&mut self, source: SourceId, time: u64) {
        self.slots[source as usize] = Slot { time, before: SOON, behind: NONE };
        // From behind: what is scheduled now is seldom among the first.
        let entry = Entry::new(time, source);
        let mut place = self.soon.len();
        self.soon.push(entry);
        while place > self.next && self.soon[place - 1] > entry {
            self.soon[place] = self.soon[place - 1];
            place -= 1;
        }
        self.soon[place] = entry;
    }

    #[cold]
    fn insert_far(&mut self, source: SourceId, time: u64) {
        self.slots[source as usize] = Slot { time, before: FAR, behind: NONE };
        self.far.push(Reverse((time, source)));
        self.far_first = self.far_first.min(time);
    }

    /// Schedules the event of a source, moving it if it is pending.
    #[inline]
    fn reschedule(&mut self, source: SourceId, at: Time) {
        if self.slots[source as usize].time != UNSCHEDULED {
            self.cancel(source);
        }
        self.schedule(source, at);
    }

    /// Schedules the event of a source unless one is pending at `at` or before.
    #[inline]
    pub(crate) fn schedule_no_later(&mut self, source: SourceId, at: Time) {
        if self.slots[source as usize].time > at.as_ps() {
            self.reschedule(source, at);
        }
    }

    /// Removes a source's event, if it has one.
    #[inline]
    fn cancel(&mut self, source: SourceId) {
        let Slot { time, before, behind } = self.slots[source as usize];
        if time == UNSCHEDULED {
            return;
        }
        self.slots[source as usize].time = UNSCHEDULED;
        if before == SOON || before == FAR {
            // The entry there is void now.
            return;
        }
        self.near -= 1;
        if behind != NONE {
            self.slots[behind as usize].before = before;
        }
        if before != NONE {
            self.slots[before as usize].behind = behind;
            return;
        }
        let bucket = (time >> self.shift) as usize & (self.buckets.len() - 1);
        self.buckets[bucket] = behind;
        if behind == NONE {
            self.clear_busy(bucket);
        }
    }

    /// The sources of events behind the next one, `ahead` of it, or nearly so: a hint for who wants to load what the
    /// events will touch. Events that are scheduled in between show up late, those that were moved away still do; `None`
    /// where so few are near that memory is not what they wait for. `ahead` is below [`LOOK_AHEAD`].
    #[inline(always)]
    pub(crate) fn upcoming<const N: usize>(&self, ahead: [usize; N]) -> Option<[SourceId; N]> {
        let near: &[Entry; LOOK_AHEAD] = self.soon.get(self.next..)?.first_chunk()?;
        Some(ahead.map(|n| near[n].source()))
    }

    /// When the earliest event is due, if there is one.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        match self.first_soon() {
            Some((time, _)) => Some(Time::from_ps(time)),
            None => self.first_far().map(Time::from_ps),
        }
    }

    /// Removes and returns the earliest event if it is due before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<(Time, SourceId)> {
        let (time, source) = match self.first_soon() {
            Some(first) => first,
            None => {
                // Only now: events up to then are sorted as they are inserted.
                self.jump_to_far(end)?;
                self.first_soon()?
            }
        };
        if time >= end.as_ps() {
            return None;
        }
        self.next += 1;
        self.slots[source as usize].time = UNSCHEDULED;
        self.now = time;
        Some((Time::from_ps(time), source))
    }

    /// The first event that is not in the heap.
    #[inline(always)]
    fn first_soon(&mut self) -> Option<(u64, SourceId)> {
        if self.soon.len() - self.next < self.sorted_ahead && self.near > 0 {
            self.fill_up();
        }
        loop {
            let entry = self.soon.get(self.next)?;
            let (time, source) = (entry.time(), entry.source());
            let slot = &self.slots[source as usize];
            if slot.time == time && slot.before == SOON {
                return Some((time, source));
            }
            self.next += 1;
            if self.next == self.soon.len() && self.near > 0 {
                self.fill_up();
            }
        }
    }

    /// Sorts the next buckets into the list, until enough is in it.
    #[inline(never)]
    fn fill_up(&mut self) {
        self.soon.drain(..self.next);
        self.next = 0;
        while self.soon.len() < self.sorted_ahead && self.near > 0 {
            let bucket = self.next_busy_bucket();
            let mut source = std::mem::replace(&mut self.buckets[bucket], NONE);
            self.clear_busy(bucket);
            let begin = self.slots[source as usize].time >> self.shift << self.shift;
            self.sorting.clear();
            while source != NONE {
                let slot = &mut self.slots[source as usize];
                slot.before = SOON;
                self.sorting.push((slot.time - begin) << 32 | u64::from(source));
                source = slot.behind;
            }
            self.near -= self.sorting.len();
            self.sorting.sort_unstable();
            self.soon
                .extend(self.sorting.iter().map(|key| Entry::new(begin + (key >> 32), *key as SourceId)));
            self.turn = (begin >> self.shift) + 1;
            self.pull_far();
        }
        // The next ones to be sorted.
        if self.near > 0 {
            let first = self.buckets[self.next_busy_bucket()];
            prefetch(&self.slots[first as usize]);
        }
    }

    #[inline]
    fn clear_busy(&mut self, bucket: usize) {
        let word = bucket / 64;
        self.busy[word] &= !(1 << (bucket % 64));
        if self.busy[word] == 0 {
            self.busy_words[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The first busy bucket at or after the one whose turn it is, round the wheel. Something is in the wheel.
    #[inline(always)]
    fn next_busy_bucket(&self) -> usize {
        let start = self.turn as usize & (self.buckets.len() - 1);
        let word = start / 64;
        let rest = self.busy[word] & (u64::MAX << (start % 64));
        if rest != 0 {
            return word * 64 + rest.trailing_zeros() as usize;
        }
        let word = self.next_busy_word(word + 1);
        word * 64 + self.busy[word].trailing_zeros() as usize
    }

    #[cold]
    fn next_busy_word(&self, from: usize) -> usize {
        let groups = self.busy_words.len();
        let from = from % self.busy.len();
        let rest = self.busy_words[from / 64] & (u64::MAX << (from % 64));
        if rest != 0 {
            return from / 64 * 64 + rest.trailing_zeros() as usize;
        }
        for step in 1..=groups {
            let group = (from / 64 + step) % groups;
            if self.busy_words[group] != 0 {
                return group * 64 + self.busy_words[group].trailing_zeros() as usize;
            }
        }
        unreachable!("the wheel counts an event that no bucket holds")
    }

    /// Moves what has come within the wheel's reach from the heap into it.
    #[inline]
    fn pull_far(&mut self) {
        while (self.far_first >> self.shift).wrapping_sub(self.turn) < self.buckets.len() as u64 {
            let Some(time) = self.first_far() else {
                self.far_first = u64::MAX;
                return;
            };
            self.far_first = time;
            if (time >> self.shift).wrapping_sub(self.turn) >= self.buckets.len() as u64 {
                return;
            }
            if let Some(Reverse((time, source))) = self.far.pop() {
                self.insert_near(source, time);
            }
        }
    }

    /// Time of the first live event of the heap; drops the void ones before it.
    fn first_far(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, source))) = self.far.peek() {
            let slot = &self.slots[source as usize];
            if slot.time == time && slot.before == FAR {
                return Some(time);
            }
            self.far.pop();
        }
        None
    }

    /// With nothing else pending, advances the wheel to the first event of the heap if that is due before `end`.
    #[cold]
    fn jump_to_far(&mut self, end: Time) -> Option<()> {
        let time = self.first_far().filter(|&time| time < end.as_ps())?;
        self.turn = self.turn.max(time >> self.shift);
        self.far_first = time;
        self.pull_far();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    impl EventQueue {
        fn pop(&mut self) -> Option<(Time, SourceId)> {
            self.pop_before(Time::MAX)
        }
    }

    #[test]
    fn equal_times_pop_in_order_of_source() {
        let mut queue = EventQueue::new(8);
        for source in [3, 1, 2, 0] {
            queue.schedule(source, at(1_000));
        }
        queue.schedule(7, at(999));
        assert_eq!(queue.pop_before(at(999)), None);
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop_before(at(1_001)).map(|(_, s)| s)).collect();
        assert_eq!(order, [7, 0, 1, 2, 3]);
    }

    #[test]
    fn events_beyond_the_horizon_keep_their_place() {
        let mut queue = EventQueue::new(4);
        queue.schedule(0, at(10_000_000_000));
        queue.schedule(1, at(9_999_999_000));
        queue.schedule(2, at(5));
        assert_eq!(queue.pop(), Some((at(5), 2)));
        assert_eq!(queue.pop(), Some((at(9_999_999_000), 1)));
        // Within the horizon now, at the same instant as an event that waited in the heap.
        queue.schedule(3, at(10_000_000_000));
        assert_eq!(queue.pop(), Some((at(10_000_000_000), 0)));
        assert_eq!(queue.pop(), Some((at(10_000_000_000), 3)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_moved_event_fires_once_at_its_new_time() {
        let mut queue = EventQueue::new(2);
        queue.schedule(0, at(1 << 40));
        queue.reschedule(0, at(50));
        queue.schedule_no_later(0, at(70));
        queue.schedule_no_later(0, at(40));
        assert_eq!(queue.pop(), Some((at(40), 0)));
        queue.schedule(0, at(1 << 41));
        assert_eq!(queue.pop(), Some((at(1 << 41), 0)));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new(1);
        queue.schedule(0, at(10));
        queue.pop();
        queue.schedule(0, at(9));
    }

    #[test]
    fn what_comes_next_is_told_ahead() {
        let mut queue = EventQueue::new(2_000);
        (0..30).for_each(|source| queue.schedule(source, at(u64::from(29 - source) * 700)));
        assert_eq!(queue.pop(), Some((at(0), 29)));
        assert_eq!(queue.upcoming([0, 1, LOOK_AHEAD - 1]), Some([28, 27, 12]));
        // Nothing to load where hardly anything is pending.
        (0..20).for_each(|_| assert!(queue.pop().is_some()));
        assert_eq!(queue.upcoming([0]), None);
    }

    #[derive(Debug, Clone)]
    enum Op {
        Put(u32, u64),
        NoLater(u32, u64),
        Cancel(u32),
        Pop(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let delta = prop_oneof![0u64..4, 0u64..3_000, 0u64..6_000_000, 0u64..40_000_000];
        prop_oneof![
            3 => (0u32..40, delta.clone()).prop_map(|(s, d)| Op::Put(s, d)),
            1 => (0u32..40, delta).prop_map(|(s, d)| Op::NoLater(s, d)),
            1 => (0u32..40).prop_map(Op::Cancel),
            3 => prop_oneof![0u64..5_000, Just(u64::MAX >> 1)].prop_map(Op::Pop),
        ]
    }

    proptest! {
        /// The queue against an ordered set of (time, source).
        #[test]
        fn behaves_like_an_ordered_map(
            // Few and many are sorted ahead.
            sources in prop::sample::select(vec![40, 40 * 64]),
            ops in prop::collection::vec(op(), 1..400),
        ) {
            let mut queue = EventQueue::new(sources);
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut time_of: BTreeMap<u32, u64> = BTreeMap::new();
            let mut now = 0;
            for op in ops {
                match op {
                    Op::Put(source, delta) | Op::NoLater(source, delta) => {
                        let time = now + delta;
                        let no_later = matches!(op, Op::NoLater(..));
                        if no_later {
                            queue.schedule_no_later(source, at(time));
                        } else {
                            queue.reschedule(source, at(time));
                        }
                        if no_later && time_of.get(&source).is_some_and(|&pending| pending <= time) {
                            continue;
                        }
                        if let Some(pending) = time_of.insert(source, time) {
                            model.remove(&(pending, source));
                        }
                        model.insert((time, source));
                    }
                    Op::Cancel(source) => {
                        queue.cancel(source);
                        if let Some(pending) = time_of.remove(&source) {
                            model.remove(&(pending, source));
                        }
                    }
                    Op::Pop(reach) => {
                        let first = model.first().copied();
                        prop_assert_eq!(queue.next_time(), first.map(|(time, _)| at(time)));
                        let end = now + reach;
                        let expected = first.filter(|&(time, _)| time < end);
                        prop_assert_eq!(queue.pop_before(at(end)), expected.map(|(time, source)| (at(time), source)));
                        if let Some((time, source)) = expected {
                            now = time;
                            time_of.remove(&source);
                            model.remove(&(time, source));
                        }
                    }
                }
            }
        }
    }
}
