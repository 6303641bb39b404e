//! Mean over seeds with a confidence interval.

use crate::student::two_sided_quantile;

/// Mean of independent runs, and half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Mean of the runs.
    pub mean: f64,
    /// Half width of the interval, or `None` for a single run, which has no spread. [`Estimate::with_error`] gives the
    /// half width of an interval that misses the mean less often.
    pub ci95: Option<f64>,
    /// Number of runs.
    pub n: usize,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// Computes the estimate from one value a seed, or returns `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let quantile = |n: usize| T95.get(n - 2).copied().unwrap_or(1.96);
        Self::with_quantile(values, quantile)
    }

    /// Computes the estimate with an interval that misses the mean with probability `error` instead of 0.05.
    pub fn with_error(values: &[f64], error: f64) -> Option<Self> {
        Self::with_quantile(values, |n| two_sided_quantile(n - 1, error))
    }

    /// Computes the estimate. `quantile` returns the number of standard errors in the half width, by the number of
    /// values.
    fn with_quantile(values: &[f64], quantile: impl Fn(usize) -> f64) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            quantile(n) * (variance / n as f64).sqrt()
        });
        Some(Estimate { mean, ci95, n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Mean 2, variance 1, standard error 1/sqrt(3), t(2) = 4.303.
        let e = Estimate::from_values(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((e.mean, e.n), (2.0, 3));
        assert!((e.ci95.unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::from_values(&[5.0]), Some(Estimate { mean: 5.0, ci95: None, n: 1 }));
        assert_eq!(Estimate::from_values(&[]), None);
        // An error of 1 % with two degrees of freedom: t = 9.925.
        let wide = Estimate::with_error(&[1.0, 2.0, 3.0], 0.01).unwrap();
        assert!((wide.ci95.unwrap() - 9.925 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(Estimate::with_error(&[5.0], 0.01), Estimate::from_values(&[5.0]));
    }
}
