//! Judgement of a receiver on a packet that arrived.

use pathweave_units::{PathId, Time, TrimmedAt};
use pathweave_wire::NackReason;

/// Treatment of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The packet is the next expected one.
    InOrder,
    /// The packet is ahead of a gap, and accepted.
    Ahead,
    /// The packet has arrived before.
    Duplicate,
    /// The packet is not accepted. `tell`: the sender is informed.
    Refused { reason: NackReason, tell: bool },
}

/// Header of a packet whose payload a switch has trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrimmedHeader {
    pub(crate) psn: u64,
    pub(crate) path: PathId,
    pub(crate) at: TrimmedAt,
    pub(crate) marked: bool,
    pub(crate) sent_at: Time,
}

/// Bitmap with bit i set if `psn - i` is below `expected` and not negative.
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
    fn packets_in_order_show_in_the_sack() {
        assert_eq!(arrived_in_order(0, 1), 1);
        assert_eq!(arrived_in_order(2, 0), 0);
        assert_eq!(arrived_in_order(5, 3), 0b111_000);
        assert_eq!(arrived_in_order(100, 101), u64::MAX);
        assert_eq!(arrived_in_order(100, 38), 1 << 63);
        assert_eq!(arrived_in_order(100, 37), 0);
    }
}
