//! Two numbers for a generation of GPUs, fitted to the rows marked for it.
//!
//! NCCL's model is for choosing. Its times for the protocol Simple are too short for medium sizes, since real barriers
//! and slots cost more than it counts. The numbers are a factor of the latency of Simple and a factor of its bandwidth.
//! LL and LL128 stay as they are, because no marked row uses them.

use pathweave_scenario::nccl::{Choice, Generation, Protocol};
use serde::Serialize;

/// Least part of the latency in the time of a row that determines the factor of the latency.
const LEAST_LATENCY: f64 = 0.05;

/// Fitted numbers of a generation of GPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Generation of GPUs.
    pub generation: &'static str,
    /// Factor of the latency of the protocol Simple.
    pub latency: f64,
    /// Factor of the bandwidth of the protocol Simple.
    pub bandwidth: f64,
    /// Rows that determine the numbers. Empty if none is marked: the factors are 1.
    pub rows: Vec<String>,
    /// True if the latency of these rows is long enough to determine its factor. Otherwise it is 1.
    pub latency_fitted: bool,
}

/// Row that takes part in a fit.
pub(super) struct Point {
    pub(super) id: String,
    pub(super) model: Choice,
    pub(super) measured_us: f64,
}

/// Returns the name of a generation.
pub(super) const fn name(generation: Generation) -> &'static str {
    match generation {
        Generation::Volta => "V100",
        Generation::Ampere => "A100",
        Generation::Hopper => "H100",
        Generation::Blackwell => "B200",
        Generation::Cdna3 => "MI300X",
    }
}

/// Fits the numbers by least squares of the relative errors of time.
///
/// With a = factor of latency and x = 1 / factor of bandwidth, the time of a row is a L + x T, which is linear. The
/// sum of ((a L + x T) / measured - 1)^2 has its minimum where both derivatives are zero.
pub(super) fn fit(generation: Generation, points: &[Point]) -> Fitted {
    let used: Vec<&Point> = points.iter().filter(|point| point.model.protocol == Protocol::Simple).collect();
    let mut fitted = Fitted {
        generation: name(generation),
        latency: 1.0,
        bandwidth: 1.0,
        rows: used.iter().map(|point| point.id.clone()).collect(),
        latency_fitted: used
            .iter()
            .any(|point| point.model.latency_us > LEAST_LATENCY * point.model.time_us())
            && used.len() > 1,
    };
    if used.is_empty() {
        return fitted;
    }
    let scaled = used.iter().map(|point| {
        (point.model.latency_us / point.measured_us, point.model.transfer_us / point.measured_us)
    });
    let (mut ll, mut lt, mut tt, mut l1, mut t1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (l, t) in scaled {
        ll += l * l;
        lt += l * t;
        tt += t * t;
        l1 += l;
        t1 += t;
    }
    let determinant = ll * tt - lt * lt;
    let (latency, inverse) = match fitted.latency_fitted && determinant > 0.0 {
        true => ((l1 * tt - t1 * lt) / determinant, (ll * t1 - lt * l1) / determinant),
        false => (1.0, (t1 - lt) / tt),
    };
    fitted.latency = latency;
    fitted.bandwidth = 1.0 / inverse;
    fitted
}

impl Fitted {
    /// Returns the time of a choice in microseconds.
    pub(super) fn time_us(&self, choice: &Choice) -> f64 {
        match choice.protocol {
            Protocol::Simple => self.latency * choice.latency_us + choice.transfer_us / self.bandwidth,
            Protocol::Ll | Protocol::Ll128 => choice.time_us(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_scenario::nccl::Algorithm;

    use super::*;

    fn point(latency_us: f64, transfer_us: f64, measured_us: f64) -> Point {
        let (algorithm, protocol) = (Algorithm::Ring, Protocol::Simple);
        let model = Choice { algorithm, protocol, channels: 8, latency_us, transfer_us };
        Point { id: "C".to_owned(), model, measured_us }
    }

    /// Two rows determine two numbers: 20 a + 100 x = 90 and 20 a + 1,000 x = 540 give a = 2 and x = 0.5.
    #[test]
    fn two_rows_determine_two_numbers() {
        let fitted = fit(Generation::Hopper, &[point(20.0, 100.0, 90.0), point(20.0, 1_000.0, 540.0)]);
        assert!((fitted.latency - 2.0).abs() < 1e-9 && (fitted.bandwidth - 2.0).abs() < 1e-9, "{fitted:?}");
        let choice = point(10.0, 50.0, 1.0).model;
        assert!((fitted.time_us(&choice) - 45.0).abs() < 1e-9);
        let low = Choice { protocol: Protocol::Ll, ..choice };
        assert_eq!(fitted.time_us(&low), 60.0, "no row has LL");
    }

    /// Rows whose latency is 1 % of their time say nothing about it: 10 + 990 x = 1,000 gives x = 1.
    #[test]
    fn rows_without_latency_determine_bandwidth_only() {
        let fitted = fit(Generation::Ampere, &[point(10.0, 990.0, 1_000.0), point(10.0, 990.0, 1_000.0)]);
        assert_eq!((fitted.latency, fitted.latency_fitted), (1.0, false));
        assert!((fitted.bandwidth - 1.0).abs() < 1e-12);
        // Half as fast: 100 + 1,900 x = 3,900 gives x = 2. One row cannot determine both.
        let one = fit(Generation::Ampere, &[point(100.0, 1_900.0, 3_900.0)]);
        assert!((one.bandwidth - 0.5).abs() < 1e-12 && one.latency == 1.0, "{one:?}");
        let none = fit(Generation::Cdna3, &[]);
        assert_eq!((none.latency, none.bandwidth), (1.0, 1.0));
    }
}
