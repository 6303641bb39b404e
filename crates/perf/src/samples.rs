//! Samples of message times, and their statistics.

use serde::Serialize;

/// Number of stored samples at which every second one is dropped. From then on only every second, fourth, ... sample
/// is stored.
const MOST: usize = 1 << 22;

/// Measured times.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    kept_ns: Vec<u32>,
    keep_every: u64,
    count: u64,
    sum_ns: f64,
    sum_squares: f64,
    min_ns: u64,
    max_ns: u64,
}

/// Statistics of the times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) min_us: f64,
    pub(crate) typical_us: f64,
    pub(crate) avg_us: f64,
    pub(crate) stdev_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Samples {
            kept_ns: Vec::new(),
            keep_every: 1,
            count: 0,
            sum_ns: 0.0,
            sum_squares: 0.0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += ns as f64;
        self.sum_squares += (ns as f64).powi(2);
        if self.count.is_multiple_of(self.keep_every) {
            self.kept_ns.push(u32::try_from(ns).unwrap_or(u32::MAX));
            if self.kept_ns.len() == MOST {
                let mut index = 0;
                self.kept_ns.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.keep_every *= 2;
            }
        }
        self.count += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the statistics of the times multiplied by `factor`. `None` if there are no samples.
    pub(crate) fn latency(&self, factor: f64) -> Option<Latency> {
        if self.count == 0 {
            return None;
        }
        let mut sorted = self.kept_ns.clone();
        sorted.sort_unstable();
        let us = |ns: f64| ns * factor / 1e3;
        let at = |share: f64| us(f64::from(sorted[((sorted.len() - 1) as f64 * share).round() as usize]));
        let count = self.count as f64;
        let mean = self.sum_ns / count;
        let variance = (self.sum_squares / count - mean * mean).max(0.0);
        Some(Latency {
            min_us: us(self.min_ns as f64),
            typical_us: at(0.5),
            avg_us: us(mean),
            stdev_us: us(variance.sqrt()),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(self.max_ns as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let mut samples = Samples::new();
        assert_eq!(samples.latency(1.0), None);
        (1..=101).for_each(|n| samples.add(1_000 * n));
        let latency = samples.latency(0.5).unwrap();
        assert_eq!((latency.min_us, latency.typical_us, latency.avg_us), (0.5, 25.5, 25.5));
        assert_eq!((latency.p90_us, latency.p99_us, latency.max_us), (45.5, 50.0, 50.5));
        // The variance of 1 to 101 is (101^2 - 1) / 12 = 850.
        assert!((latency.stdev_us - 850f64.sqrt() / 2.0).abs() < 1e-9);
    }

    #[test]
    fn many_times_take_a_bounded_room_and_keep_their_percentiles() {
        let mut samples = Samples::new();
        let all = 3 * MOST as u64;
        (0..all).for_each(|n| samples.add(1_000 + n % 1_000));
        assert!(samples.kept_ns.len() < MOST && samples.count() == all);
        let latency = samples.latency(1.0).unwrap();
        assert!((latency.typical_us - 1.5).abs() < 0.01 && (latency.p99_us - 1.99).abs() < 0.01);
    }
}
