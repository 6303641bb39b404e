//! Median of the latest delays. A single path with a longer delay than others does not change it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::Duration;

/// Largest number of delays stored.
const MOST: usize = 1_024;

/// The latest delays, and a buffer to sort some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Median {
    latest: VecDeque<Duration>,
    sorted: Vec<Duration>,
}

impl Median {
    /// Adds a delay and returns the median of the latest `of` delays, or of all if there are fewer. Of an even number
    /// it is the lower of the two middle ones.
    pub(super) fn next(&mut self, delay: Duration, of: usize) -> Duration {
        if self.latest.len() == MOST {
            self.latest.pop_back();
        }
        self.latest.push_front(delay);
        self.sorted.clear();
        self.sorted.extend(self.latest.iter().take(of.max(1)));
        let middle = (self.sorted.len() - 1) / 2;
        *self.sorted.select_nth_unstable(middle).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_latest() {
        let us = Duration::from_us;
        let mut median = Median::default();
        let found: Vec<Duration> = [9, 1, 5, 7, 2].iter().map(|&delay| median.next(us(delay), 3)).collect();
        // 9; 1 and 9; 9, 1, 5; 1, 5, 7; 5, 7, 2.
        assert_eq!(found, [us(9), us(1), us(5), us(5), us(5)]);
        // 2, 2; 2, 2, 7, 5, with the lower of the middle two; one alone.
        assert_eq!(
            [median.next(us(2), 2), median.next(us(8), 4), median.next(us(6), 0)],
            [us(2), us(2), us(6)]
        );
        (0..3_000).for_each(|n| assert_eq!(median.next(us(n), 1), us(n)));
        assert_eq!(median.latest.len(), MOST);
    }
}
