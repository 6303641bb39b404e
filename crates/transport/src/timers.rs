//! Timers of all queue pairs.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use pathweave_units::{QpNum, Time};

/// Reason why a queue pair must be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimerKind {
    /// A packet in flight, or a requested READ response, may have been lost.
    Retransmit,
    /// A delayed acknowledgement must leave, or packets that were announced as late are due.
    DelayedAck,
    /// The policy granted a packet for this time.
    Pacing,
    /// The timer of the policy.
    Policy,
    /// The back-off after "receiver not ready" ends.
    RnrBackoff,
    /// A path to some host may have been silent for too long (recovery by path order). Belongs to no queue pair: its
    /// number is 0, which no queue pair has.
    PathOrder,
    /// A grant of credit or a request for credit is due. Belongs to no queue pair, as above.
    Credit,
}

/// Number of timer kinds of a queue pair.
const KINDS: usize = 5;
const ALL: [TimerKind; KINDS + 2] = [
    TimerKind::Retransmit,
    TimerKind::DelayedAck,
    TimerKind::Pacing,
    TimerKind::Policy,
    TimerKind::RnrBackoff,
    TimerKind::PathOrder,
    TimerKind::Credit,
];

/// For each timer of a queue pair, the time at which the heap will fire it, or [`Time::MAX`] if it is not armed.
/// Re-arming for a later time leaves the heap unchanged: the timer fires early, detects that, and is armed for the
/// rest.
#[derive(Debug)]
pub(crate) struct Armed([Time; KINDS]);

impl Armed {
    pub(crate) const NONE: Armed = Armed([Time::MAX; KINDS]);

    /// Returns true if the timer is in the heap.
    pub(crate) fn is_armed(&self, kind: TimerKind) -> bool {
        self.0[kind as usize] != Time::MAX
    }
    /// Disarms the timer if `at` is its time, and returns true. Returns false for a stale heap entry.
    pub(crate) fn take(&mut self, at: Time, kind: TimerKind) -> bool {
        let armed = &mut self.0[kind as usize];
        let current = *armed == at;
        if current {
            *armed = Time::MAX;
        }
        current
    }
}

/// Heap of timers. Ties are ordered by queue pair, then kind, so that the order never depends on the heap's history.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Timers {
    /// Time of the first entry of the heap, or [`Time::MAX`] if it is empty. The time is read far more often than it
    /// changes; this copy costs no access to the heap's memory.
    next: Time,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Timers { next: Time::MAX, heap: BinaryHeap::new() }
    }
    /// Arms `kind` of `qp` for `at`, unless it is armed for an earlier time.
    #[inline]
    pub(crate) fn arm(&mut self, armed: &mut Armed, qp: QpNum, kind: TimerKind, at: Time) {
        let current = &mut armed.0[kind as usize];
        if at < *current {
            *current = at;
            self.next = self.next.min(at);
            self.heap.push(Reverse((at, qp.0 << 3 | kind as u32)));
        }
    }
    /// Arms a timer of the endpoint itself for `at`.
    pub(crate) fn arm_endpoint(&mut self, kind: TimerKind, at: Time) {
        debug_assert!(kind as usize >= KINDS, "{kind:?} belongs to a queue pair");
        self.next = self.next.min(at);
        self.heap.push(Reverse((at, kind as u32)));
    }
    /// Time of the next entry, which may turn out to be early or stale.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }
    /// Next entry: time, queue pair and kind.
    pub(crate) fn peek(&self) -> Option<(Time, QpNum, TimerKind)> {
        let &Reverse((at, key)) = self.heap.peek()?;
        Some((at, QpNum(key >> 3), ALL[(key & 7) as usize]))
    }
    /// Removes and returns the next entry if it is due at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, QpNum, TimerKind)> {
        let next = self.peek().filter(|(at, ..)| *at <= now)?;
        self.heap.pop();
        self.next = self.heap.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arming_for_later_does_not_touch_the_heap() {
        let (mut timers, mut armed, qp) = (Timers::new(), Armed::NONE, QpNum(5));
        timers.arm(&mut armed, qp, TimerKind::Retransmit, Time::from_us(10));
        timers.arm(&mut armed, qp, TimerKind::Retransmit, Time::from_us(20));
        assert_eq!((timers.heap.len(), timers.next()), (1, Some(Time::from_us(10))));
    }

    #[test]
    fn arming_for_earlier_voids_the_later_entry() {
        let (mut timers, mut armed, qp) = (Timers::new(), Armed::NONE, QpNum(5));
        timers.arm(&mut armed, qp, TimerKind::Policy, Time::from_us(20));
        timers.arm(&mut armed, qp, TimerKind::Policy, Time::from_us(10));
        assert_eq!(timers.pop(Time::from_us(9)), None);
        let (at, _, kind) = timers.pop(Time::from_us(30)).unwrap();
        assert!(armed.take(at, kind) && !armed.is_armed(kind));
        let (at, _, kind) = timers.pop(Time::from_us(30)).unwrap();
        assert!(!armed.take(at, kind));
    }

    #[test]
    fn ties_go_by_queue_pair_then_kind() {
        let (mut timers, mut a, mut b) = (Timers::new(), Armed::NONE, Armed::NONE);
        let at = Time::from_us(1);
        timers.arm(&mut b, QpNum(9), TimerKind::Retransmit, at);
        timers.arm(&mut a, QpNum(2), TimerKind::Policy, at);
        timers.arm(&mut a, QpNum(2), TimerKind::Pacing, at);
        let order: [_; 3] =
            core::array::from_fn(|_| timers.pop(at).map(|(_, qp, kind)| (qp.0, kind)).unwrap());
        assert_eq!(order, [(2, TimerKind::Pacing), (2, TimerKind::Policy), (9, TimerKind::Retransmit)]);
    }
}
