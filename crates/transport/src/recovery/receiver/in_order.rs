//! Receiver of go-back-N as in RoCE NICs: it drops packets out of order and sends one NACK per gap.

use pathweave_units::{Duration, Time};
use pathweave_wire::NackReason;

use super::arrival::{Arrival, arrived_in_order};

#[derive(Debug)]
pub(crate) struct Receiver {
    expected: u64,
    /// Earliest time of the next NACK for the gap at `expected`: at once for the first, [`Time::MAX`] if it is not
    /// repeated.
    tell_from: Time,
    /// Interval after which the NACK is repeated, or `None` if it is not.
    repeat: Option<Duration>,
}

impl Receiver {
    pub(super) fn new(repeat: Option<Duration>) -> Self {
        Receiver { expected: 0, tell_from: Time::ZERO, repeat }
    }
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }
    /// Nothing is accepted ahead of a gap.
    pub(super) fn first_missing(&self, from: u64, _to: u64) -> Option<u64> {
        Some(from)
    }
    pub(super) fn proof_packets(&self) -> u64 {
        0
    }
    pub(super) fn window(&self) -> u64 {
        1
    }
    pub(super) fn held(&self) -> u64 {
        0
    }
    pub(super) fn has_gap(&self) -> bool {
        false
    }
    pub(super) fn judge(&mut self, now: Time, psn: u64) -> Arrival {
        if psn == self.expected {
            Arrival::InOrder
        } else if psn < self.expected {
            Arrival::Duplicate
        } else {
            let tell = now >= self.tell_from;
            if tell {
                self.told(now);
            }
            Arrival::Refused { reason: NackReason::Sequence, tell }
        }
    }
    /// Records that the sender is informed of the missing packet.
    pub(super) fn misses(&mut self, now: Time, psn: u64) {
        debug_assert_eq!(psn, self.expected);
        self.told(now);
    }
    fn told(&mut self, now: Time) {
        self.tell_from = self.repeat.map_or(Time::MAX, |repeat| now.saturating_add(repeat));
    }
    pub(super) fn accept(&mut self, psn: u64) {
        debug_assert_eq!(psn, self.expected);
        self.expected = psn + 1;
        self.tell_from = Time::ZERO;
    }
    pub(super) fn sack(&self, psn: u64) -> u64 {
        arrived_in_order(psn, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn told(tell: bool) -> Arrival {
        Arrival::Refused { reason: NackReason::Sequence, tell }
    }

    #[test]
    fn one_complaint_a_gap() {
        let mut receiver = Receiver::new(None);
        receiver.accept(0);
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(1, 2), judge(2, 3), judge(99, 2)], [told(true), told(false), told(false)]);
        assert_eq!(judge(99, 1), Arrival::InOrder);
        receiver.accept(1);
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(100, 3), judge(100, 1)], [told(true), Arrival::Duplicate]);
        assert_eq!(receiver.sack(4), 0b11_000);
    }

    #[test]
    fn a_complaint_again_after_a_while() {
        let mut receiver = Receiver::new(Some(Duration::from_us(4)));
        let mut judge = |us, psn| receiver.judge(Time::from_us(us), psn);
        assert_eq!([judge(0, 2), judge(3, 3), judge(4, 4)], [told(true), told(false), told(true)]);
        assert_eq!([judge(7, 5), judge(8, 6)], [told(false), told(true)]);
        // A new gap is reported at once.
        receiver.accept(0);
        assert_eq!(receiver.judge(Time::from_us(9), 2), told(true));
    }
}
