//! Delays in the circuit's representation.

use pathweave_units::Duration;

/// A delay in ticks of 1,024 ps, 24 bits wide. Longer delays saturate at 17.2 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticks(u32);

impl Ticks {
    /// Bits of a delay.
    pub const BITS: u32 = 24;
    /// The longest delay.
    pub const MAX: Ticks = Ticks((1 << Self::BITS) - 1);

    /// Creates a delay of `ticks` ticks, at most [`Ticks::MAX`].
    pub const fn new(ticks: u64) -> Self {
        if ticks > Self::MAX.0 as u64 { Self::MAX } else { Ticks(ticks as u32) }
    }
    /// Returns the delay between two time stamps in picoseconds, or zero if `received_ps` is before `sent_ps`.
    pub const fn between(sent_ps: u64, received_ps: u64) -> Self {
        Self::new(received_ps.saturating_sub(sent_ps) >> 10)
    }
    /// Returns the number of ticks.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// Returns twice the delay, at most [`Ticks::MAX`].
    pub const fn doubled(self) -> Self {
        Self::new(self.0 as u64 * 2)
    }
}

impl From<Duration> for Ticks {
    #[inline]
    fn from(delay: Duration) -> Self {
        Self::between(0, delay.as_ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_cut_to_ticks_and_end_at_24_bits() {
        assert_eq!(Ticks::from(Duration::from_ps(4_251_520)).get(), 4_151);
        assert_eq!(Ticks::from(Duration::from_ps(1_023)).get(), 0);
        assert_eq!(Ticks::between(5_000, 4_999).get(), 0);
        assert_eq!(Ticks::from(Duration::from_ms(17)).get(), 16_601_562);
        assert_eq!(Ticks::from(Duration::from_ms(18)), Ticks::MAX);
        assert_eq!((Ticks::new(10).doubled().get(), Ticks::MAX.doubled()), (20, Ticks::MAX));
    }
}
