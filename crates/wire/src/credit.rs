//! Numbers of credit that a receiver grants.

use core::num::NonZeroU32;

/// Bits of a number that travel.
const BITS: u32 = 31;
const SPACE: u64 = 1 << BITS;

/// A cumulative number of quanta of credit as packets carry it: its low 31 bits. How many bytes a quantum has, both ends of a
/// queue pair know from their scheme. Numbers are cumulative, so that a packet that is lost takes nothing with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
// With the highest bit set, so that a packet without one takes no room for saying so.
pub struct CreditNumber(NonZeroU32);

impl CreditNumber {
    /// The number of so many quanta in all.
    pub const fn new(quanta: u64) -> Self {
        match NonZeroU32::new((quanta & (SPACE - 1)) as u32 | 1 << BITS) {
            Some(number) => CreditNumber(number),
            None => unreachable!(),
        }
    }

    /// The quanta whose number this is and which are nearest to `near`: exact for `near - 2^30 <= quanta < near + 2^30`. None
    /// are below zero: near the start a number that would be is taken for one cycle later.
    pub const fn quanta(self, near: u64) -> u64 {
        let start = near.saturating_sub(SPACE / 2);
        let ahead = (self.0.get() as u64).wrapping_sub(start) & (SPACE - 1);
        start.wrapping_add(ahead)
    }

    /// As four bytes of a packet: the highest bit is 1.
    pub(crate) const fn to_wire(self) -> u32 {
        self.0.get()
    }

    /// From four bytes of a packet; `None` if the highest bit is 0.
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
