//! Statistics of a summary, each defined once.

use serde::Serialize;

use crate::described::{described, kinds};

kinds! {
    "distribution": Distribution;
}

described! {
    /// Mean and order statistics of a set of values. All zero when the set is empty.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
    pub struct Distribution {
        /// Number of values.
        pub count: u64,
        /// Arithmetic mean.
        pub mean: f64,
        /// Smallest value.
        pub min: f64,
        /// Median.
        pub p50: f64,
        /// 95th percentile.
        pub p95: f64,
        /// 99th percentile.
        pub p99: f64,
        /// 99.9th percentile.
        pub p999: f64,
        /// Largest value.
        pub max: f64,
    }
}

impl Distribution {
    /// Computes the distribution of `values`, and sorts them. None may be NaN.
    pub fn from_values(values: &mut [f64]) -> Self {
        if values.is_empty() {
            return Distribution::default();
        }
        values.sort_unstable_by(f64::total_cmp);
        // Summed in ascending order, so that the mean does not depend on the order of the records.
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let at = |per_mille| percentile(values, per_mille);
        Distribution {
            count: values.len() as u64,
            mean,
            min: values[0],
            p50: at(500),
            p95: at(950),
            p99: at(990),
            p999: at(999),
            max: values[values.len() - 1],
        }
    }

    /// Returns the distribution of as many values, each of them `times` times. Nearest-rank percentiles stay as they
    /// are.
    #[must_use]
    pub(crate) fn repeated(self, times: u64) -> Self {
        Distribution { count: self.count * times, ..self }
    }
}

/// Returns the nearest-rank percentile of sorted values: the smallest value that at least `per_mille`/1000 of the
/// values do not exceed. It is always one of the values, never interpolated. The rank is computed in integers, so
/// that no rounding changes it.
pub fn percentile(sorted: &[f64], per_mille: u64) -> f64 {
    let rank = (sorted.len() as u64 * per_mille).div_ceil(1_000).max(1);
    sorted[rank as usize - 1]
}

/// Returns Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all values are equal, 1/n if one value is everything.
/// `None` without a positive value. (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.)
pub fn jain_index(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_ten_values() {
        // Ranks of 10 values: P50 ceil(5.0)=5, P95 ceil(9.5)=10, P99 ceil(9.9)=10.
        let mut values: Vec<f64> = (1..=10).rev().map(|v| f64::from(v) * 10.0).collect();
        let d = Distribution::from_values(&mut values);
        assert_eq!((d.count, d.min, d.p50, d.p95, d.p99, d.max), (10, 10.0, 50.0, 100.0, 100.0, 100.0));
        assert_eq!(d.mean, 55.0);
    }

    #[test]
    fn percentiles_of_a_thousand_values() {
        // 99.9 % of 1000 is rank 999 exactly; a float product would give 999.0000000000001 and rank 1000.
        let mut values: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let d = Distribution::from_values(&mut values);
        assert_eq!((d.p50, d.p95, d.p99, d.p999), (500.0, 950.0, 990.0, 999.0));
    }

    #[test]
    fn one_value_is_every_percentile() {
        let d = Distribution::from_values(&mut [7.0]);
        assert_eq!((d.mean, d.min, d.p50, d.p999, d.max), (7.0, 7.0, 7.0, 7.0, 7.0));
        assert_eq!(Distribution::from_values(&mut []), Distribution::default());
    }

    #[test]
    fn jain_of_known_sets() {
        assert_eq!(jain_index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1+2+3)^2 / (3 * 14) = 36/42
        assert_eq!(jain_index(&[1.0, 2.0, 3.0]), Some(36.0 / 42.0));
        assert_eq!(jain_index(&[]), None);
    }

    proptest! {
        #[test]
        fn a_percentile_splits_the_set_as_it_says(
            mut values in prop::collection::vec(0.0f64..1e9, 1..200),
            per_mille in 1u64..=1_000,
        ) {
            values.sort_unstable_by(f64::total_cmp);
            let p = percentile(&values, per_mille);
            let at_most = values.iter().filter(|&&v| v <= p).count() as u64;
            let below = values.iter().filter(|&&v| v < p).count() as u64;
            let n = values.len() as u64;
            prop_assert!(at_most * 1_000 >= per_mille * n);
            prop_assert!(below * 1_000 < per_mille * n);
        }
    }
}
