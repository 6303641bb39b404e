//! Two numbers fitted to measurements: a factor of the latencies of the protocol Simple, and the part of the rate of
//! links that the library keeps busy.

use pathweave_scenario::nccl::Fitted;
use serde::Serialize;

/// Least part of the latency in the time of a row that determines the factor of the latency.
const LEAST_LATENCY: f64 = 0.05;
/// Steps of the method of Gauss and Newton.
const STEPS: u32 = 6;
/// Bounds of the factor of latency.
const LATENCY: [f64; 2] = [0.05, 50.0];
/// Bounds of the part of the rate.
const BANDWIDTH: [f64; 2] = [0.1, 1.2];

/// Parts of a step that are tried, until one makes the error smaller.
const PARTS: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

/// Outcome of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// The numbers.
    pub fitted: Fitted,
    /// True if the rows have enough latency to determine its factor. Otherwise it is that of the start.
    pub latency_fitted: bool,
}

/// Fits the numbers by least squares of the relative errors of time. `time_us` simulates a row with numbers.
///
/// The time is close to a L + x T, with the factor a of the latency, and x = 1 / bandwidth. A step takes both slopes of
/// each row from simulations nearby, and solves for the change of a and x. The numbers never describe the rows worse than
/// those of `start` do.
///
/// # Errors
/// A simulation fails.
pub fn fit<E>(
    measured_us: &[f64],
    start: Fitted,
    time_us: &mut dyn FnMut(usize, Fitted) -> Result<f64, E>,
) -> Result<Numbers, E> {
    let mut numbers = Numbers { fitted: start, latency_fitted: false };
    for step in 0..STEPS {
        let mut slopes = Vec::with_capacity(measured_us.len());
        for (row, &measured) in measured_us.iter().enumerate() {
            slopes.push(slope(row, measured, numbers.fitted, time_us)?);
        }
        if step == 0 {
            let has_latency = |slope: &Slope| slope.latency * start.latency > LEAST_LATENCY * slope.time;
            numbers.latency_fitted = measured_us.len() > 1 && slopes.iter().any(has_latency);
        }
        let change = change(&slopes, numbers.latency_fitted);
        let error = slopes.iter().map(|slope| (1.0 - slope.time).powi(2)).sum();
        let Some(better) = better(measured_us, numbers.fitted, (change, error), time_us)? else { break };
        let before = numbers.fitted;
        numbers.fitted = better;
        let moved =
            (better.latency / before.latency - 1.0).abs() + (better.bandwidth / before.bandwidth - 1.0).abs();
        if moved < 1e-5 {
            break;
        }
    }
    Ok(numbers)
}

/// Returns numbers on the way of a change that describe the rows with a smaller error, if there are any.
fn better<E>(
    measured_us: &[f64],
    before: Fitted,
    ((latency, inverse), error): ((f64, f64), f64),
    time_us: &mut dyn FnMut(usize, Fitted) -> Result<f64, E>,
) -> Result<Option<Fitted>, E> {
    for part in PARTS {
        let found = Fitted {
            latency: (before.latency + part * latency).clamp(LATENCY[0], LATENCY[1]),
            bandwidth: (1.0 / (1.0 / before.bandwidth + part * inverse)).clamp(BANDWIDTH[0], BANDWIDTH[1]),
        };
        let mut sum = 0.0;
        for (row, &measured) in measured_us.iter().enumerate() {
            sum += (1.0 - time_us(row, found)? / measured).powi(2);
        }
        if sum < error {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Time of a row and its slopes, over the measured time.
struct Slope {
    time: f64,
    latency: f64,
    inverse: f64,
}

fn slope<E>(
    row: usize,
    measured_us: f64,
    at: Fitted,
    time_us: &mut dyn FnMut(usize, Fitted) -> Result<f64, E>,
) -> Result<Slope, E> {
    let time = time_us(row, at)?;
    let latency = 0.1 * at.latency;
    let slower = time_us(row, Fitted { latency: at.latency + latency, ..at })?;
    let inverse = 0.02 / at.bandwidth;
    let narrower = time_us(row, Fitted { bandwidth: 1.0 / (1.0 / at.bandwidth + inverse), ..at })?;
    Ok(Slope {
        time: time / measured_us,
        latency: (slower - time) / latency / measured_us,
        inverse: (narrower - time) / inverse / measured_us,
    })
}

/// Returns the change of both numbers for which the sum of the squares of errors is least.
fn change(slopes: &[Slope], with_latency: bool) -> (f64, f64) {
    let (mut ll, mut lx, mut xx, mut l, mut x) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for slope in slopes {
        let missing = 1.0 - slope.time;
        ll += slope.latency * slope.latency;
        lx += slope.latency * slope.inverse;
        xx += slope.inverse * slope.inverse;
        l += slope.latency * missing;
        x += slope.inverse * missing;
    }
    let determinant = ll * xx - lx * lx;
    match with_latency && determinant > 1e-12 {
        true => ((l * xx - x * lx) / determinant, (ll * x - lx * l) / determinant),
        false if xx > 0.0 => (0.0, x / xx),
        false => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Rows of a model whose time is a L + x T.
    fn fitted(rows: &[(f64, f64, f64)]) -> Numbers {
        let measured: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let mut time = |row: usize, numbers: Fitted| {
            let (latency, transfer, _) = rows[row];
            Ok::<f64, Infallible>(numbers.latency * latency + transfer / numbers.bandwidth)
        };
        fit(&measured, Fitted::NONE, &mut time).unwrap()
    }

    /// Two rows determine two numbers: 20 a + 100 x = 165 and 20 a + 1,000 x = 1,290 give a = 2 and x = 1.25.
    #[test]
    fn two_rows_determine_two_numbers() {
        let found = fitted(&[(20.0, 100.0, 165.0), (20.0, 1_000.0, 1_290.0)]);
        assert!(found.latency_fitted);
        assert!((found.fitted.latency - 2.0).abs() < 1e-6, "{found:?}");
        assert!((found.fitted.bandwidth - 0.8).abs() < 1e-6, "{found:?}");
    }

    /// Rows whose latency is 1 % of their time say nothing about it: 10 + 990 x = 1,252.5 gives x = 1.255.
    #[test]
    fn rows_without_latency_determine_bandwidth_only() {
        let found = fitted(&[(10.0, 990.0, 1_252.5), (10.0, 990.0, 1_252.5)]);
        assert_eq!((found.fitted.latency, found.latency_fitted), (1.0, false));
        assert!((found.fitted.bandwidth - 990.0 / 1_242.5).abs() < 1e-6, "{found:?}");
        // One row cannot determine both.
        let one = fitted(&[(100.0, 1_900.0, 2_095.0)]);
        assert!(one.fitted.latency == 1.0 && (one.fitted.bandwidth - 1_900.0 / 1_995.0).abs() < 1e-6);
        assert_eq!(fitted(&[]).fitted, Fitted::NONE);
    }

    /// Rows that the start describes exactly are left to it, however little they determine.
    #[test]
    fn a_fit_is_never_worse_than_its_start() {
        let start = Fitted { latency: 2.5, bandwidth: 0.96 };
        // The time falls where the slopes let it rise: no step helps.
        let mut time = |_: usize, numbers: Fitted| {
            let off = (numbers.latency - 2.5).abs() + (numbers.bandwidth - 0.96).abs();
            Ok::<f64, Infallible>(100.0 + 50.0 * off)
        };
        assert_eq!(fit(&[100.0], start, &mut time).unwrap().fitted, start);
        assert_eq!(fit(&[99.0, 101.0], start, &mut time).unwrap().fitted, start);
    }
}
