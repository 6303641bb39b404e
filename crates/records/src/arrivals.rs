//! Number of finished flows over time, in memory that does not grow with the number of flows.

/// Largest number of intervals; a power of two.
const INTERVALS: usize = 4_096;

/// Counts of arrivals in equal intervals from time 0. If an arrival lies beyond the last interval, the length of all
/// intervals doubles, so the counts do not depend on the order in which arrivals are added. The resolution is 1/2,048
/// of the last instant.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Length of an interval, as a power of two of picoseconds.
    log2_ps: u32,
    counts: Vec<u64>,
    last_ps: u64,
}

impl Arrivals {
    pub(crate) fn add(&mut self, finish_ps: u64) {
        while finish_ps >> self.log2_ps >= INTERVALS as u64 {
            self.coarsen();
        }
        let interval = (finish_ps >> self.log2_ps) as usize;
        if interval >= self.counts.len() {
            self.counts.resize(interval + 1, 0);
        }
        self.counts[interval] += 1;
        self.last_ps = self.last_ps.max(finish_ps);
    }

    fn coarsen(&mut self) {
        self.log2_ps += 1;
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
    }

    /// Merges the arrivals of several sets of flows.
    pub fn of_all<'a>(sets: impl Iterator<Item = &'a Arrivals>) -> Arrivals {
        let mut all = Arrivals::default();
        for set in sets {
            let mut set = set.clone();
            while set.log2_ps < all.log2_ps {
                set.coarsen();
            }
            while all.log2_ps < set.log2_ps {
                all.coarsen();
            }
            if all.counts.len() < set.counts.len() {
                all.counts.resize(set.counts.len(), 0);
            }
            all.counts.iter_mut().zip(&set.counts).for_each(|(sum, count)| *sum += count);
            all.last_ps = all.last_ps.max(set.last_ps);
        }
        all
    }

    /// Returns the number of flows that have arrived by each instant. Instants are the ends of intervals with
    /// arrivals.
    pub fn points(&self) -> Vec<(u64, u64)> {
        let mut arrived = 0;
        let mut points = Vec::new();
        for (interval, &count) in (1u64..).zip(&self.counts) {
            arrived += count;
            if count > 0 {
                points.push((((interval << self.log2_ps) - 1).min(self.last_ps), arrived));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instants: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        instants.iter().for_each(|&instant| arrivals.add(instant));
        arrivals
    }

    #[test]
    fn few_instants_are_exact_and_their_order_does_not_matter() {
        assert_eq!(of(&[30, 10, 4_000, 10]).points(), [(10, 2), (30, 3), (4_000, 4)]);
        assert_eq!(of(&[]).points(), []);
        let instants: Vec<u64> = (0..1_000).map(|i: u64| (i * 7_919) % 1_000 * 1_000_003).collect();
        let mut sorted = instants.clone();
        sorted.sort_unstable();
        let points = of(&instants).points();
        assert_eq!(points, of(&sorted).points());
        assert_eq!(points.last(), Some(&(999 * 1_000_003, 1_000)));
        // The counts are exact, and the instants are at most 1/2,048 of the last one late.
        for (instant, arrived) in points {
            let by = |end: u64| sorted.partition_point(|&t| t <= end) as u64;
            assert_eq!(arrived, by(instant));
            let earlier = instant.checked_sub(999 * 1_000_003 / 2_048);
            assert!(earlier.is_none_or(|earlier| by(earlier) < arrived));
        }
    }

    #[test]
    fn sets_of_different_length_are_put_together() {
        let (short, long) = (of(&[1, 2, 3]), of(&[1_000_000, 2_000_000]));
        let together = Arrivals::of_all([&short, &long].into_iter()).points();
        assert_eq!(together, of(&[1, 2, 3, 1_000_000, 2_000_000]).points());
        assert_eq!(together.iter().map(|point| point.1).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(Arrivals::of_all([&long, &short].into_iter()).points(), together);
    }
}
