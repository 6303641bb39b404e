//! Instants and spans in integer picoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// An instant, in picoseconds since the start of the run (simulator) or of the process (datapath).
/// Covers 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Time(u64);

/// A span of time in picoseconds. Never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every instant a run can reach; means "never".
    pub const MAX: Time = Time(u64::MAX);

    /// Creates an instant from picoseconds since the start.
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }
    /// Creates an instant from nanoseconds since the start.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }
    /// Creates an instant from microseconds since the start.
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }
    /// Returns the picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Returns the nanoseconds since the start, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns the span since `earlier`, or [`Duration::ZERO`] if `earlier` is in fact later. Compares stamps of
    /// different clocks; within one clock use `-`, which asserts the order.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// Returns `self + span`, or [`Time::MAX`] if that overflows.
    pub const fn saturating_add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
    /// Returns `self - span`, or [`Time::ZERO`] if that would be before the start.
    pub const fn saturating_sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// A span of zero.
    pub const ZERO: Duration = Duration(0);
    /// The longest span.
    pub const MAX: Duration = Duration(u64::MAX);

    /// Creates a span from picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Duration(ps)
    }
    /// Creates a span from nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns * 1_000)
    }
    /// Creates a span from microseconds.
    pub const fn from_us(us: u64) -> Self {
        Duration(us * 1_000_000)
    }
    /// Creates a span from milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Duration(ms * 1_000_000_000)
    }
    /// Returns the picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Returns the nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns the seconds, for reports; not for simulation arithmetic.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Returns the difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// Returns this span times a non-negative factor, rounded to the nearest picosecond. Only for algorithms that are
    /// published with real-valued factors.
    pub fn scale(self, factor: f64) -> Duration {
        debug_assert!(factor >= 0.0, "a span cannot be scaled by {factor}");
        Duration((self.0 as f64 * factor + 0.5) as u64)
    }
    /// Returns the quotient `self / other` as a real number.
    pub fn ratio(self, other: Duration) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}
impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.checked_sub(span.0).expect("an instant before the start of the run"))
    }
}
impl Sub for Time {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        Duration(self.0.checked_sub(earlier.0).expect("time ran backwards"))
    }
}
impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.checked_sub(other.0).expect("a negative span of time"))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, times: u64) -> Duration {
        Duration(self.0 * times)
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, parts: u64) -> Duration {
        Duration(self.0 / parts)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(iter: I) -> Duration {
        iter.fold(Duration::ZERO, |a, b| a + b)
    }
}

/// Writes the span in the largest unit in which it is a whole number, so that the text parses back exactly.
fn write_duration(ps: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const UNITS: [(u64, &str); 5] =
        [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
    for (unit, name) in UNITS {
        if ps.is_multiple_of(unit) && (ps > 0 || name == "s") {
            return write!(f, "{}{name}", ps / unit);
        }
    }
    unreachable!("every number is a multiple of one")
}
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, f)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, f)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, f)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_duration(self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_between_instants() {
        let start = Time::from_us(3);
        assert_eq!((start + Duration::from_ns(5)) - start, Duration::from_ps(5_000));
        assert_eq!(start.saturating_since(start + Duration::from_ns(1)), Duration::ZERO);
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn time_does_not_run_backwards() {
        let _ = Time::ZERO - Time::from_ps(1);
    }

    #[test]
    fn text_uses_the_largest_exact_unit() {
        use std::string::ToString;
        assert_eq!(Duration::from_ps(1_500_000).to_string(), "1500ns");
        assert_eq!(Duration::from_ms(4).to_string(), "4ms");
        assert_eq!(Duration::ZERO.to_string(), "0s");
    }
}
