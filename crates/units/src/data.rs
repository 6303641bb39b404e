//! Amounts of data and the rates at which they move.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::time::Duration;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Rate(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Bytes(u64);

impl Rate {
    /// A rate of zero.
    pub const ZERO: Rate = Rate(0);

    /// Creates a rate from bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }
    /// Creates a rate from megabits (10^6 bits) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Rate(mbps * 1_000_000)
    }
    /// Creates a rate from gigabits (10^9 bits) per second.
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }
    /// Returns the bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the time to send `bytes` at this rate, rounded up to a whole picosecond, so that the last bit is sent
    /// by its end. [`Duration::MAX`] at rate zero.
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // A frame fits 64-bit arithmetic; only whole messages need more.
        if bytes < 2_000_000 {
            return Duration::from_ps((bytes * 8_000_000_000_000).div_ceil(self.0));
        }
        let ps = (bytes as u128 * 8 * PS_PER_SECOND).div_ceil(self.0 as u128);
        Duration::from_ps(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }
    /// Returns the whole bytes sent at this rate in `span`, rounded down.
    pub const fn bytes_in(self, span: Duration) -> u64 {
        (self.0 as u128 * span.as_ps() as u128 / (8 * PS_PER_SECOND)) as u64
    }
    /// Returns this rate times a non-negative factor, rounded to the nearest bit per second.
    pub fn scale(self, factor: f64) -> Rate {
        debug_assert!(factor >= 0.0, "a rate cannot be scaled by {factor}");
        Rate((self.0 as f64 * factor + 0.5) as u64)
    }
    /// Returns the sum, or the largest rate if the sum overflows.
    pub const fn saturating_add(self, other: Rate) -> Rate {
        Rate(self.0.saturating_add(other.0))
    }
}

impl Bytes {
    /// No data.
    pub const ZERO: Bytes = Bytes(0);

    /// Creates an amount from bytes.
    pub const fn new(bytes: u64) -> Self {
        Bytes(bytes)
    }
    /// Creates an amount from kilobytes of 1,000 bytes.
    pub const fn from_kb(kb: u64) -> Self {
        Bytes(kb * 1_000)
    }
    /// Creates an amount from megabytes of 1,000,000 bytes.
    pub const fn from_mb(mb: u64) -> Self {
        Bytes(mb * 1_000_000)
    }
    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Returns the difference, or zero if `other` is more.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0 + other.0)
    }
}
impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("a negative amount of data"))
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, |a, b| a + b)
    }
}

/// Writes the value in the largest decimal multiple in which it is whole, so that the text parses back exactly.
fn write_decimal(value: u64, unit: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (scale, prefix) in [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "K")] {
        if value > 0 && value.is_multiple_of(scale) {
            return write!(f, "{}{prefix}{unit}", value / scale);
        }
    }
    write!(f, "{value}{unit}")
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0, "bps", f)
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0, "B", f)
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_100_gbps_takes_80_ps() {
        let rate = Rate::from_gbps(100);
        assert_eq!(rate.time_for(1), Duration::from_ps(80));
        assert_eq!(rate.time_for(4_178), Duration::from_ps(334_240));
        assert_eq!(rate.bytes_in(Duration::from_us(1)), 12_500);
    }

    #[test]
    fn transmission_time_rounds_up() {
        // 8e12 / 3e9 = 2666.67 ps
        assert_eq!(Rate::from_gbps(3).time_for(1), Duration::from_ps(2_667));
    }

    #[test]
    fn short_and_long_arithmetic_agree_where_they_meet() {
        let rate = Rate::from_bps(99_999_999_977);
        for bytes in [1_999_999u64, 2_000_000, 2_000_001] {
            let exact = (u128::from(bytes) * 8_000_000_000_000).div_ceil(99_999_999_977);
            assert_eq!(u128::from(rate.time_for(bytes).as_ps()), exact);
        }
    }

    #[test]
    fn rate_zero_never_finishes() {
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
    }
}
