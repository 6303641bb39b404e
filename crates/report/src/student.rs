//! Quantiles of Student's t distribution.

/// Returns the two-sided quantile of Student's t: the number that a variable with `freedom` degrees of freedom exceeds
/// in magnitude with probability `error`.
///
/// # Panics
/// If `freedom` is 0, or `error` is not between 0 and 1.
pub(crate) fn two_sided_quantile(freedom: usize, error: f64) -> f64 {
    assert!(freedom > 0 && error > 0.0 && error < 1.0, "{freedom} degrees of freedom, error {error}");
    let (mut low, mut high) = (0.0, 1.0);
    while exceeds(freedom, high) > error {
        (low, high) = (high, 2.0 * high);
    }
    // Each step halves the bracket. 60 steps exhaust the digits of a double.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if exceeds(freedom, middle) > error { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability that the magnitude exceeds `t`, by the finite series for whole degrees of freedom
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn exceeds(freedom: usize, t: f64) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // Odd: cos + 2/3 cos^3 + 2/3 4/5 cos^5 + ...; even: 1 + 1/2 cos^2 + 1/2 3/4 cos^4 + ...
    let (mut term, first) = if is_odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for power in (first..=freedom.saturating_sub(2)).step_by(2) {
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
        sum += term;
    }
    let within = if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    1.0 - within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        let near = |freedom, error, expected: f64| {
            let found = two_sided_quantile(freedom, error);
            assert!((found - expected).abs() < 0.0006, "{freedom} {error}: {found}, not {expected}");
        };
        for (freedom, expected) in [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042)]
        {
            near(freedom, 0.05, expected);
        }
        for (freedom, expected) in [(1, 63.657), (2, 9.925), (5, 4.032), (19, 2.861)] {
            near(freedom, 0.01, expected);
        }
        // One degree of freedom is Cauchy's distribution: a quarter lies beyond 1 on each side.
        near(1, 0.5, 1.0);
    }
}
