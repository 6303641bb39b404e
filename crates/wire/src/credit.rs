//! Cumulative numbers of the credit that a receiver grants.

use core::num::NonZeroU32;

/// Bits of a number on the wire.
const BITS: u32 = 31;
const SPACE: u64 = 1 << BITS;

/// A cumulative number of quanta of credit in the form of the wire: its low 31 bits. Both ends of a queue pair know
/// the bytes of a quantum from their scheme. Numbers are cumulative, so the loss of a packet loses no credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
// The highest bit is always set, so that `Option<CreditNumber>` takes 4 bytes.
pub struct CreditNumber(NonZeroU32);

impl CreditNumber {
    /// Returns the number for a total of `quanta`.
    pub const fn new(quanta: u64) -> Self {
        match NonZeroU32::new((quanta & (SPACE - 1)) as u32 | 1 << BITS) {
            Some(number) => CreditNumber(number),
            None => unreachable!(),
        }
    }

    /// Returns the total nearest to `near` that has this number. Exact for `near - 2^30 <= quanta < near + 2^30`. No
    /// total is below zero: near the start, a number that would be is read as one cycle later.
    pub const fn quanta(self, near: u64) -> u64 {
        let start = near.saturating_sub(SPACE / 2);
        let ahead = (self.0.get() as u64).wrapping_sub(start) & (SPACE - 1);
        start.wrapping_add(ahead)
    }

    /// Encodes the number as four bytes of a packet, whose highest bit is 1.
    pub(crate) const fn to_wire(self) -> u32 {
        self.0.get()
    }

    /// Decodes four bytes of a packet. `None` if the highest bit is 0.
    pub(crate) const fn from_wire(wire: u32) -> Option<Self> {
        if wire >> BITS == 0 { None } else { Some(CreditNumber::new(wire as u64)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let number = |quanta| CreditNumber::new(quanta);
        assert_eq!(number(0).to_wire(), 0x8000_0000);
        assert_eq!(number(64).to_wire(), 0x8000_0040);
        assert_eq!(number(SPACE + 5), number(5));
        assert_eq!(number(5).quanta(SPACE), SPACE + 5);
        assert_eq!(number(SPACE - 1).quanta(SPACE + 2), SPACE - 1);
        assert_eq!(number(SPACE - 1).quanta(3), SPACE - 1, "near the start nothing lies before 0");
        assert_eq!(CreditNumber::from_wire(5), None);
        assert_eq!(CreditNumber::from_wire(0x8000_0005), Some(number(5)));
        assert_eq!(size_of::<Option<CreditNumber>>(), 4);
    }

    proptest! {
        #[test]
        fn exact_within_half_a_cycle(near in 0..u64::MAX >> 1, ahead in -(1i64 << 30)..(1i64 << 30)) {
            if let Some(quanta) = near.checked_add_signed(ahead) {
                prop_assert_eq!(CreditNumber::new(quanta).quanta(near), quanta);
            }
        }
    }
}
