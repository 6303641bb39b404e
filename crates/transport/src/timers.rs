//! Timers of all queue pairs.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use pathweave_units::{QpNum, Time};

/// Why a queue pair wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimerKind {
    /// A packet in flight, or a READ asked for, may have been lost.
    Retransmit,
    /// An acknowledgement was held back and must leave, or packets announced to be late are due.
    DelayedAck,
    /// The policy granted a packet for this instant.
    Pacing,
    /// The policy's own.
    Policy,
    /// The back-off after "receiver not ready" ends.
    RnrBackoff,
    /// A path to some host may have been silent for too long (recovery by path order). Belongs to no queue pair: its
    /// number is 0, which none has.
    PathOrder,
    /// It is time for a grant of credit, or to ask for some. Belongs to no queue pair, as the last one.
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

/// For each timer of a queue pair, when the heap will wake it: [`Time::MAX`] if it will not. Re-arming for later
/// leaves the heap alone: the timer fires early, sees that it is early and is armed for the rest.
#[derive(Debug)]
pub(crate) struct Armed([Time; KINDS]);

impl Armed {
    pub(crate) const NONE: Armed = Armed([Time::MAX; KINDS]);

    /// Whether the heap will wake this timer.
    pub(crate) fn is_armed(&self, kind: TimerKind) -> bool {
        self.0[kind as usize] != Time::MAX
    }
    /// A heap entry has come up: true if it is the one this timer waits for, which is then no longer armed.
    pub(crate) fn take(&mut self, at: Time, kind: TimerKind) -> bool {
        let armed = &mut self.0[kind as usize];
        let current = *armed == at;
        if current {
            *armed = Time::MAX;
        }
        current
    }
}

/// The heap of wake-ups. Ties go by queue pair, then kind, so that the order never depends on the heap's history.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Timers {
    /// When the first entry of the heap is due, [`Time::MAX`] without one: asked for far more often than it changes,
    /// and here it costs no access to the heap's memory.
    next: Time,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Timers { next: Time::MAX, heap: BinaryHeap::new() }
    }
    /// Wakes `kind` of `qp` at `at` or before.
    #[inline]
    pub(crate) fn arm(&mut self, armed: &mut Armed, qp: QpNum, kind: TimerKind, at: Time) {
        let current = &mut armed.0[kind as usize];
        if at < *current {
            *current = at;
            self.next = self.next.min(at);
            self.heap.push(Reverse((at, qp.0 << 3 | kind as u32)));
        }
    }
    /// Wakes the endpoint itself at `at`, for what belongs to no queue pair.
    pub(crate) fn arm_endpoint(&mut self, kind: TimerKind, at: Time) {
        debug_assert!(kind as usize >= KINDS, "{kind:?} belongs to a queue pair");
        self.next = self.next.min(at);
        self.heap.push(Reverse((at, kind as u32)));
    }
    /// The next wake-up; it may turn out to be early or void.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        (self.next != Time::MAX).then_some(self.next)
    }
    /// The same, with whom it wakes and why.
    pub(crate) fn peek(&self) -> Option<(Time, QpNum, TimerKind)> {
        let &Reverse((at, key)) = self.heap.peek()?;
        Some((at, QpNum(key >> 3), ALL[(key & 7) as usize]))
    }
    /// The next wake-up due at `now`.
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
