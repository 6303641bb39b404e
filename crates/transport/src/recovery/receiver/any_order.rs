//! Receiver that accepts packets in any order within a window and reports which have arrived.

use pathweave_wire::NackReason;

use super::arrival::{Arrival, arrived_in_order};
use crate::bits::BitRing;
use crate::warm::Prefetch;

#[derive(Debug)]
pub(crate) struct Receiver {
    expected: u64,
    /// Number of packets from `expected` on that can be accepted.
    window: u32,
    /// Number of packets behind a gap that prove it a loss to the sender.
    proof: u32,
    /// Number of packets held ahead of the gap at `expected`, which is the number of set bits of `ahead`.
    held: u64,
    /// Bitmap of the arrived packets in `expected..expected + window`, which gets its capacity at the first gap.
    ahead: BitRing,
}

impl Receiver {
    pub(super) fn new(window: u32, proof: u32) -> Self {
        Receiver { expected: 0, window, proof, held: 0, ahead: BitRing::new() }
    }
    /// Number of packets from the next expected one on that are accepted.
    pub(super) fn window(&self) -> u64 {
        u64::from(self.window)
    }
    pub(super) fn proof_packets(&self) -> u64 {
        u64::from(self.proof)
    }
    #[inline]
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }
    /// Prefetches the state of a packet.
    #[inline]
    pub(super) fn warm(&self, psn: u64, cache: &mut impl Prefetch) {
        self.ahead.warm(psn, cache);
    }
    /// The first PSN of `from..to` that has not arrived; `from` is not below `expected`.
    pub(super) fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let end = to.min(self.expected + self.window());
        if self.held == 0 || from >= end {
            return Some(from);
        }
        let psn = from + self.ahead.run_of_ones(from, end - from);
        (psn < to).then_some(psn)
    }
    pub(super) fn held(&self) -> u64 {
        self.held
    }
    #[inline]
    pub(super) fn has_gap(&self) -> bool {
        self.held > 0
    }

    #[inline]
    pub(super) fn judge(&mut self, psn: u64) -> Arrival {
        match psn.checked_sub(self.expected) {
            Some(0) => Arrival::InOrder,
            None => Arrival::Duplicate,
            Some(distance) if distance >= self.window() => {
                Arrival::Refused { reason: NackReason::BeyondWindow, tell: true }
            }
            Some(_) if self.held > 0 && self.ahead.get(psn) => Arrival::Duplicate,
            Some(_) => Arrival::Ahead,
        }
    }

    #[inline]
    pub(super) fn accept(&mut self, psn: u64) {
        if psn != self.expected {
            if self.held == 0 {
                self.ahead.make_room_for(self.window());
            }
            self.ahead.set(psn);
            self.held += 1;
        } else if self.held == 0 {
            self.expected += 1;
        } else {
            let run = self.ahead.run_of_ones(psn + 1, self.held);
            self.ahead.clear_range(psn + 1, psn + 1 + run);
            self.held -= run;
            self.expected = psn + 1 + run;
        }
    }

    #[inline]
    pub(super) fn sack(&self, psn: u64) -> u64 {
        let in_order = arrived_in_order(psn, self.expected);
        match psn.checked_sub(self.expected) {
            Some(ahead) if self.held > 0 && ahead < self.window() => {
                let reach = if ahead >= 63 { u64::MAX } else { (1 << (ahead + 1)) - 1 };
                in_order | self.ahead.down_from(psn) & reach
            }
            _ => in_order,
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_takes_a_window_in_any_order() {
        let mut receiver = Receiver::new(4, 0);
        assert_eq!(receiver.judge(4), Arrival::Refused { reason: NackReason::BeyondWindow, tell: true });
        for psn in [3, 1] {
            assert_eq!(receiver.judge(psn), Arrival::Ahead);
            receiver.accept(psn);
        }
        assert_eq!(receiver.judge(3), Arrival::Duplicate);
        assert_eq!((receiver.expected(), receiver.sack(3)), (0, 0b0101));
        receiver.accept(0);
        assert_eq!((receiver.expected(), receiver.sack(3), receiver.has_gap()), (2, 0b1101, true));
        receiver.accept(2);
        assert_eq!((receiver.expected(), receiver.sack(3), receiver.has_gap()), (4, 0b1111, false));
    }
}
