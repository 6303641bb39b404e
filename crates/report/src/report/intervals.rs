//! Intervals of pictures over time: the sampled instants, several to one interval if there are many.

use std::collections::BTreeSet;

use pathweave_records::SeriesSample;

/// Intervals that end at sampled instants.
pub(super) struct Intervals {
    pub(super) ends_ps: Vec<u64>,
    /// Number of sampled instants in each interval. Instants are equally spaced.
    pub(super) instants: Vec<u32>,
}

impl Intervals {
    /// Creates at most `most` intervals.
    pub(super) fn from_series(series: &[SeriesSample], most: usize) -> Self {
        let times: BTreeSet<u64> = series.iter().map(|s| s.time_ps).collect();
        let times: Vec<u64> = times.into_iter().collect();
        let each = times.len().div_ceil(most.max(1)).max(1);
        Intervals {
            ends_ps: times.chunks(each).map(|c| c[c.len() - 1]).collect(),
            instants: times.chunks(each).map(|c| c.len() as u32).collect(),
        }
    }
    pub(super) fn len(&self) -> usize {
        self.ends_ps.len()
    }
    /// Returns the interval of an instant, which includes its end. Later instants belong to the last interval.
    pub(super) fn at(&self, time_ps: u64) -> usize {
        self.ends_ps.partition_point(|&end| end < time_ps).min(self.len() - 1)
    }
    pub(super) fn start(&self, i: usize) -> u64 {
        if i == 0 { 0 } else { self.ends_ps[i - 1] }
    }
}
