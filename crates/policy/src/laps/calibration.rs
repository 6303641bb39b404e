//! One-way delays by clocks that differ: only differences of delays mean anything, so the shortest delay seen of late on
//! any path stands for that of an idle path.
//!
//! Clocks also drift. So a minimum counts for one to two periods: of each path the minima of this period and of the one
//! before are kept.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{Duration, Time};

/// Not seen in that period.
const UNSEEN: i64 = i64::MAX;
/// What a delay is above the shortest at most, in picoseconds: 1 s. The other end says when packets arrived, and can say
/// what it likes.
const MOST_ABOVE: i64 = 1_000_000_000_000;

/// Shortest delays, in picoseconds with the clocks' offset in them.
#[derive(Debug)]
pub(super) struct Calibration {
    /// Of each path: in this period, and in the one before.
    shortest: Box<[[i64; 2]]>,
    /// Of all.
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

    /// Takes in a delay. `None` mostly: nothing that is computed from the shortest delays changes. Else by how much the
    /// shortest of all became less (or, negative, more). The first delay of all moves nothing, since there was nothing
    /// to compare with.
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

    /// How far a delay is above the shortest of all; 1 s at most.
    #[inline]
    pub(super) fn above_shortest(&self, one_way_ps: i64) -> u64 {
        one_way_ps.saturating_sub(self.anchor).clamp(0, MOST_ABOVE) as u64
    }

    /// How far the shortest of a path is above the shortest of all; 0 for a path never heard of.
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
        // The next period still knows of the one before, the one after it does not.
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
