//! One-way delays between clocks that are not synchronized. Only differences of delays are meaningful, so the
//! shortest recent delay of any path stands for that of an idle path.
//!
//! Clocks also drift, so a minimum counts for one to two periods: each path keeps the minima of the current and of
//! the previous period.
//! before are kept.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{Duration, Time};

/// No delay in that period.
const UNSEEN: i64 = i64::MAX;
/// Largest difference of a delay from the shortest one, in picoseconds: 1 s. The peer reports arrival times, and can
/// report anything.
const MOST_ABOVE: i64 = 1_000_000_000_000;

/// Shortest delays, in picoseconds, including the offset of the clocks.
#[derive(Debug)]
pub(super) struct Calibration {
    /// Minimum of each path: in this period, and in the previous one.
    shortest: Box<[[i64; 2]]>,
    /// Minimum of all paths.
    anchor: i64,
    period: Duration,
    period_ends: Time,
}

impl Calibration {
    pub(super) fn new(paths: usize, period: Duration) -> Self {
        Calibration {
            shortest: vec![[UNSEEN; 2]; paths].into_boxed_slice(),
            anchor: UNSEEN,
            period,
            period_ends: Time::ZERO,
        }
    }

    /// Records a delay. Returns `None` if nothing changes that depends on the shortest delays, which is the usual
    /// case. Otherwise returns the decrease of the shortest delay of all (negative: increase). The very first delay
    /// returns 0, because there is nothing to compare it with.
    #[inline]
    pub(super) fn note(&mut self, now: Time, path: usize, one_way_ps: i64) -> Option<i64> {
        let old = self.anchor;
        let begins = now >= self.period_ends;
        if begins {
            self.begin_period(now);
        }
        let [shortest, before] = &mut self.shortest[path];
        let is_news = one_way_ps < (*shortest).min(*before);
        *shortest = (*shortest).min(one_way_ps);
        self.anchor = self.anchor.min(one_way_ps);
        let moved = if old == UNSEEN { 0 } else { old.saturating_sub(self.anchor) };
        (begins || is_news).then_some(moved)
    }

    #[cold]
    fn begin_period(&mut self, now: Time) {
        self.period_ends = now.saturating_add(self.period);
        for path in &mut self.shortest {
            *path = [UNSEEN, path[0]];
        }
        self.anchor = self.shortest.iter().map(|path| path[1]).min().unwrap_or(UNSEEN);
    }

    /// Returns the difference between a delay and the shortest of all; 1 s at most.
    #[inline]
    pub(super) fn above_shortest(&self, one_way_ps: i64) -> u64 {
        one_way_ps.saturating_sub(self.anchor).clamp(0, MOST_ABOVE) as u64
    }

    /// Returns the difference between the shortest delay of a path and the shortest of all; 0 for a path without
    /// measurement.
    pub(super) fn idle_above(&self, path: usize) -> u64 {
        let [now, before] = self.shortest[path];
        let shortest = now.min(before);
        if shortest == UNSEEN { 0 } else { self.above_shortest(shortest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_counts_for_one_to_two_periods() {
        let us = Time::from_us;
        let mut calibration = Calibration::new(2, Duration::from_us(100));
        // The receiver's clock is 1,000 ps behind.
        assert_eq!(calibration.note(us(0), 0, -900), Some(0));
        assert_eq!(calibration.note(us(1), 1, -950), Some(50));
        assert_eq!(calibration.note(us(2), 0, -700), None);
        assert_eq!((calibration.above_shortest(-700), calibration.idle_above(0)), (250, 50));
        // The minimum still counts in the next period, but not in the one after it.
        assert_eq!(calibration.note(us(100), 0, -800), Some(0));
        assert_eq!(calibration.idle_above(1), 0);
        assert_eq!(calibration.note(us(200), 0, -790), Some(-150));
        assert_eq!(calibration.above_shortest(-790), 10);
    }

    #[test]
    fn stamps_of_a_liar_are_a_second_above_the_shortest_at_most() {
        let mut calibration = Calibration::new(2, Duration::from_us(100));
        calibration.note(Time::ZERO, 0, i64::MIN);
        calibration.note(Time::ZERO, 1, i64::MAX - 1);
        let second = Duration::from_ms(1_000).as_ps();
        assert_eq!((calibration.above_shortest(0), calibration.idle_above(1)), (second, second));
    }
}
