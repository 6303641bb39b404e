//! What a receiver says of a packet that arrived.

use pathweave_wire::NackReason;

/// What to do with a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one expected.
    InOrder,
    /// Ahead of a gap, welcome nevertheless.
    Ahead,
    /// It has arrived before.
    Duplicate,
    /// Not wanted; with or without telling the sender.
    Refused { reason: NackReason, tell: bool },
}

/// Bit i for every `psn - i` below `expected`, and not below 0.
pub(super) fn arrived_in_order(psn: u64, expected: u64) -> u64 {
    let real = if psn >= 63 { u64::MAX } else { (1 << (psn + 1)) - 1 };
    match psn.checked_sub(expected) {
        None => real,
        Some(ahead) if ahead >= 63 => 0,
        Some(ahead) => real & (u64::MAX << (ahead + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_in_order_shows_in_the_sack() {
        assert_eq!(arrived_in_order(0, 1), 1);
        assert_eq!(arrived_in_order(2, 0), 0);
        assert_eq!(arrived_in_order(5, 3), 0b111_000);
        assert_eq!(arrived_in_order(100, 101), u64::MAX);
        assert_eq!(arrived_in_order(100, 38), 1 << 63);
        assert_eq!(arrived_in_order(100, 37), 0);
    }
}
