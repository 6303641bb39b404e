//! The event queue: a wheel of buckets over intrusive lists, a heap for what lies beyond its horizon.
//!
//! Events pop in order of time, and of insertion where times are equal; nothing else decides, so a run is the same
//! on every machine. Appending to a bucket on equal or later times is O(1): synchronised starts put hundreds of
//! events on one instant, and a sorted insert that walked over them would dominate the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_units::Time;

use crate::prefetch::prefetch;

/// What an event belongs to: an index into the sources given to [`EventQueue::new`].
pub type SourceId = u32;

const NONE: u32 = u32::MAX;
const UNSCHEDULED: u64 = u64::MAX;

/// The wheel reaches this far ahead where that takes no more than [`MAX_BUCKETS`]: 2^22 ps = 4.2 us, beyond a hop inside
/// a data centre.
const REACH_SHIFT: u32 = 22;
/// 1 MiB of buckets.
const MAX_BUCKETS: u64 = 1 << 17;

/// Width of a bucket, as a power of two in picoseconds: about half of the sources have an event within a hop of a
/// microsecond or so, and a bucket should hold one of them, so that there is nothing to sort and little to skip.
fn bucket_shift(sources: usize) -> u32 {
    ((1 << 21) / sources.max(1) as u64).max(1).ilog2().clamp(2, 10)
}

/// How many events ahead [`EventQueue::scout`] runs.
const SCOUT_LEAD: u32 = 16;
/// Buckets the scout may be ahead: two words. Where events are so far apart, memory is not what they wait for.
const SCOUT_REACH: u64 = 128;

#[derive(Clone, Copy)]
struct Slot {
    time: u64,
    next: u32,
    /// Tells a live entry of the far heap from one whose source has been moved since.
    epoch: u32,
}

#[derive(Clone, Copy)]
struct Bucket {
    head: u32,
    tail: u32,
}

/// A monotone queue of events, at most one a source.
pub struct EventQueue {
    slots: Vec<Slot>,
    /// A power of two of them.
    buckets: Vec<Bucket>,
    /// See [`bucket_shift`].
    shift: u32,
    /// One bit a bucket, and one bit a word of those: the next busy bucket is two scans away.
    busy: Vec<u64>,
    busy_words: Vec<u64>,
    /// Events beyond the horizon: (time, insertion number, source, epoch).
    far: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    far_inserted: u64,
    /// No later than the first event beyond the horizon.
    far_first: u64,
    now: u64,
    /// Where [`EventQueue::scout`] has come to.
    scout: u32,
    pending: usize,
    near: usize,
}

impl EventQueue {
    /// A queue for `sources` sources, at time zero.
    pub fn new(sources: usize) -> Self {
        assert!(sources < NONE as usize, "more sources than a 32-bit index can tell apart");
        let shift = bucket_shift(sources);
        let buckets = (1u64 << (REACH_SHIFT - shift)).min(MAX_BUCKETS) as usize;
        let words = buckets / 64;
        EventQueue {
            slots: vec![Slot { time: UNSCHEDULED, next: NONE, epoch: 0 }; sources],
            buckets: vec![Bucket { head: NONE, tail: NONE }; buckets],
            shift,
            busy: vec![0; words],
            busy_words: vec![0; words.div_ceil(64)],
            far: BinaryHeap::new(),
            far_inserted: 0,
            far_first: u64::MAX,
            now: 0,
            scout: 0,
            pending: 0,
            near: 0,
        }
    }

    /// Time of the last event popped.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// The bucket of an instant within the horizon.
    #[inline(always)]
    fn bucket_of(&self, time: u64) -> usize {
        (time >> self.shift) as usize & (self.buckets.len() - 1)
    }

    /// Whether an instant, not before now, is within the horizon.
    #[inline(always)]
    fn is_near(&self, time: u64) -> bool {
        (time >> self.shift) - (self.now >> self.shift) < self.buckets.len() as u64
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// When the source's event is due, if it has one.
    #[inline]
    pub fn scheduled(&self, source: SourceId) -> Option<Time> {
        let time = self.slots[source as usize].time;
        (time != UNSCHEDULED).then(|| Time::from_ps(time))
    }

    /// Schedules the event of a source that has none. Panics if `at` lies in the past; a source that is scheduled
    /// already is a bug of the caller.
    #[inline(always)]
    pub fn schedule(&mut self, source: SourceId, at: Time) {
        let time = at.as_ps();
        assert!(time >= self.now, "an event in the past");
        debug_assert!(self.scheduled(source).is_none(), "source {source} is scheduled already");
        self.slots[source as usize].time = time;
        self.pending += 1;
        // The horizon moves with the bucket of `now`, so that a bucket never holds two turns of the wheel.
        if self.is_near(time) {
            self.insert_near(source, time);
        } else {
            self.insert_far(source, time);
        }
    }

    #[cold]
    fn insert_far(&mut self, source: u32, time: u64) {
        self.far_inserted += 1;
        let epoch = self.slots[source as usize].epoch;
        self.far.push(Reverse((time, self.far_inserted, source, epoch)));
        self.far_first = self.far_first.min(time);
    }

    /// Schedules the event of a source, moving it if it is pending: it then counts as inserted now.
    #[inline]
    pub fn reschedule(&mut self, source: SourceId, at: Time) {
        self.cancel(source);
        self.schedule(source, at);
    }

    /// Schedules the event of a source unless one is pending at `at` or before.
    #[inline]
    pub fn schedule_no_later(&mut self, source: SourceId, at: Time) {
        if self.slots[source as usize].time > at.as_ps() {
            self.reschedule(source, at);
        }
    }

    /// Removes a source's event, if it has one.
    pub fn cancel(&mut self, source: SourceId) {
        let time = self.slots[source as usize].time;
        if time == UNSCHEDULED {
            return;
        }
        self.pending -= 1;
        let slot = &mut self.slots[source as usize];
        slot.time = UNSCHEDULED;
        if self.is_near(time) && self.remove_near(source, self.bucket_of(time)) {
            return;
        }
        // It waits in the heap; the new epoch makes that entry void.
        self.slots[source as usize].epoch += 1;
    }

    /// A source whose event is about to come, a dozen or so events from now; meant to be called once a pop, so
    /// that what the event will touch can be loaded in time. Only a hint: events scheduled behind its back or moved
    /// are skipped. `None` where nothing is near.
    #[inline(always)]
    pub fn scout(&mut self) -> Option<SourceId> {
        // Not pending, in the past, or fired since and scheduled again: in each case its time is not just ahead.
        let ahead_ps = self.slots[self.scout as usize].time.wrapping_sub(self.now);
        if ahead_ps >> self.shift > SCOUT_REACH {
            return self.scout_anew();
        }
        self.scout = self.scout_behind(self.scout)?;
        // Looked at with the next call.
        prefetch(&self.slots[self.scout as usize]);
        Some(self.scout)
    }

    /// The scout has been overtaken: sends it ahead again.
    #[cold]
    fn scout_anew(&mut self) -> Option<SourceId> {
        if self.near == 0 {
            return None;
        }
        self.scout = self.buckets[self.next_busy_bucket()].head;
        for _ in 0..SCOUT_LEAD {
            let Some(next) = self.scout_behind(self.scout) else { break };
            self.scout = next;
        }
        Some(self.scout)
    }

    /// The source whose event follows that of `source`, unless it is far away.
    #[inline(always)]
    fn scout_behind(&self, source: SourceId) -> Option<SourceId> {
        let slot = &self.slots[source as usize];
        if slot.next != NONE {
            return Some(slot.next);
        }
        let bucket = self.bucket_of(slot.time);
        let mut word = bucket / 64;
        let mut rest = self.busy[word] & (u64::MAX << (bucket % 64)) & !(1 << (bucket % 64));
        if rest == 0 {
            word = (word + 1) % self.busy.len();
            rest = self.busy[word];
        }
        (rest != 0).then(|| self.buckets[word * 64 + rest.trailing_zeros() as usize].head)
    }

    /// Removes and returns the earliest event.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, SourceId)> {
        if self.near == 0 && !self.jump_to_far() {
            return None;
        }
        let bucket = self.next_busy_bucket();
        let source = self.buckets[bucket].head;
        let slot = &mut self.slots[source as usize];
        let time = slot.time;
        slot.time = UNSCHEDULED;
        let next = slot.next;
        // Whether a bucket runs dry is a coin toss, so no branch hangs on it; whether 64 of them do is none.
        let dry = next == NONE;
        let at = &mut self.buckets[bucket];
        at.head = next;
        at.tail = if dry { NONE } else { at.tail };
        let word = bucket / 64;
        self.busy[word] &= !(u64::from(dry) << (bucket % 64));
        if self.busy[word] == 0 {
            self.busy_words[word / 64] &= !(1 << (word % 64));
        }
        self.near -= 1;
        self.pending -= 1;
        self.now = time;
        if self.is_near(self.far_first) {
            self.pull_far();
        }
        Some((Time::from_ps(time), source))
    }

    #[inline(always)]
    fn insert_near(&mut self, source: u32, time: u64) {
        let index = self.bucket_of(time);
        self.near += 1;
        let Bucket { head, tail } = self.buckets[index];
        if tail == NONE {
            self.slots[source as usize].next = NONE;
            self.buckets[index] = Bucket { head: source, tail: source };
            self.busy[index / 64] |= 1 << (index % 64);
            self.busy_words[index / 4096] |= 1 << (index / 64 % 64);
            return;
        }
        if self.slots[tail as usize].time <= time {
            self.slots[tail as usize].next = source;
            self.slots[source as usize].next = NONE;
            self.buckets[index].tail = source;
            return;
        }
        self.insert_sorted(source, time, index, head);
    }

    /// Into the middle of a bucket: behind all that are due no later.
    #[cold]
    fn insert_sorted(&mut self, source: u32, time: u64, index: usize, head: u32) {
        let (mut before, mut after) = (NONE, head);
        while self.slots[after as usize].time <= time {
            before = after;
            after = self.slots[after as usize].next;
        }
        self.slots[source as usize].next = after;
        if before == NONE {
            self.buckets[index].head = source;
        } else {
            self.slots[before as usize].next = source;
        }
    }

    fn remove_near(&mut self, source: u32, index: usize) -> bool {
        let (mut before, mut at) = (NONE, self.buckets[index].head);
        while at != source {
            if at == NONE {
                return false;
            }
            before = at;
            at = self.slots[at as usize].next;
        }
        let next = self.slots[source as usize].next;
        if before == NONE {
            self.buckets[index].head = next;
        } else {
            self.slots[before as usize].next = next;
        }
        if next == NONE {
            self.buckets[index].tail = before;
            if before == NONE {
                self.clear_busy(index);
            }
        }
        self.near -= 1;
        true
    }

    #[inline]
    fn clear_busy(&mut self, bucket: usize) {
        let word = bucket / 64;
        self.busy[word] &= !(1 << (bucket % 64));
        if self.busy[word] == 0 {
            self.busy_words[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The first busy bucket at or after the one of `now`, round the wheel. Something is pending in the wheel.
    #[inline(always)]
    fn next_busy_bucket(&self) -> usize {
        let start = self.bucket_of(self.now);
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

    /// Moves what has come within the horizon from the heap into the wheel, in order of (time, insertion).
    #[cold]
    fn pull_far(&mut self) {
        self.far_first = u64::MAX;
        while let Some(&Reverse((time, _, source, epoch))) = self.far.peek() {
            if !self.is_near(time) {
                self.far_first = time;
                return;
            }
            self.far.pop();
            if self.slots[source as usize].epoch == epoch && self.slots[source as usize].time == time {
                // A moved source has a new epoch, so this entry is the live one; guard against a second copy.
                self.slots[source as usize].epoch += 1;
                self.insert_near(source, time);
            }
        }
    }

    /// With an empty wheel, advances to the first live event of the heap.
    #[cold]
    fn jump_to_far(&mut self) -> bool {
        while self.near == 0 {
            let Some(&Reverse((time, _, source, epoch))) = self.far.peek() else { return false };
            if self.slots[source as usize].epoch != epoch {
                self.far.pop();
                continue;
            }
            self.now = time;
            self.pull_far();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    #[test]
    fn equal_times_pop_in_order_of_insertion() {
        let mut queue = EventQueue::new(8);
        for source in [3, 1, 2, 0] {
            queue.schedule(source, at(1_000));
        }
        queue.schedule(7, at(999));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop().map(|(_, s)| s)).collect();
        assert_eq!(order, [7, 3, 1, 2, 0]);
    }

    #[test]
    fn events_beyond_the_horizon_keep_their_place() {
        let mut queue = EventQueue::new(4);
        queue.schedule(0, at(10_000_000_000));
        queue.schedule(1, at(9_999_999_000));
        queue.schedule(2, at(5));
        assert_eq!(queue.pop(), Some((at(5), 2)));
        assert_eq!(queue.pop(), Some((at(9_999_999_000), 1)));
        // Within the horizon now, at the same instant as an event that waited in the heap: behind it.
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
        assert!(queue.is_empty());
    }

    #[test]
    #[should_panic(expected = "in the past")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new(1);
        queue.schedule(0, at(10));
        queue.pop();
        queue.schedule(0, at(9));
    }

    #[derive(Debug, Clone)]
    enum Op {
        Put(u32, u64),
        NoLater(u32, u64),
        Cancel(u32),
        Pop,
    }

    fn op() -> impl Strategy<Value = Op> {
        let delta = prop_oneof![0u64..4, 0u64..3_000, 0u64..6_000_000, 0u64..40_000_000];
        prop_oneof![
            3 => (0u32..40, delta.clone()).prop_map(|(s, d)| Op::Put(s, d)),
            1 => (0u32..40, delta).prop_map(|(s, d)| Op::NoLater(s, d)),
            1 => (0u32..40).prop_map(Op::Cancel),
            3 => Just(Op::Pop),
        ]
    }

    proptest! {
        /// The queue against an ordered map of (time, insertion number).
        #[test]
        fn behaves_like_an_ordered_map(ops in prop::collection::vec(op(), 1..400)) {
            let mut queue = EventQueue::new(40);
            let mut model: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let mut where_is: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            let (mut now, mut inserted) = (0, 0);
            for op in ops {
                match op {
                    Op::Put(source, delta) | Op::NoLater(source, delta) => {
                        let time = now + delta;
                        let keep = matches!(op, Op::NoLater(..))
                            && where_is.get(&source).is_some_and(|key| key.0 <= time);
                        if keep {
                            queue.schedule_no_later(source, at(time));
                            continue;
                        }
                        if let Some(key) = where_is.remove(&source) {
                            model.remove(&key);
                        }
                        inserted += 1;
                        model.insert((time, inserted), source);
                        where_is.insert(source, (time, inserted));
                        if matches!(op, Op::Put(..)) {
                            queue.reschedule(source, at(time));
                        } else {
                            queue.schedule_no_later(source, at(time));
                        }
                    }
                    Op::Cancel(source) => {
                        queue.cancel(source);
                        if let Some(key) = where_is.remove(&source) {
                            model.remove(&key);
                        }
                    }
                    Op::Pop => {
                        let expected = model.pop_first().map(|((time, _), source)| (at(time), source));
                        prop_assert_eq!(queue.pop(), expected);
                        if let Some((time, source)) = expected {
                            now = time.as_ps();
                            where_is.remove(&source);
                        }
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
