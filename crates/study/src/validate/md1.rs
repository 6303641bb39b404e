//! Waits in an M/D/1 queue, by formulas.

/// Number of service times up to which [`md1_waits_at_most`] is accurate.
pub(super) const SUM_IS_GOOD: f64 = 15.0;

/// Returns the mean wait in an M/D/1 queue in service times (Pollaczek and Khinchine).
pub(super) fn md1_mean(load: f64) -> f64 {
    load / (2.0 * (1.0 - load))
}

/// Returns the probability that an arrival waits at most `t` service times (Erlang, 1909). The terms alternate in
/// sign. The result is accurate to ten digits up to about 15 service times.
pub(super) fn md1_waits_at_most(load: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..=t.floor() as u32 {
        let x = load * (f64::from(k) - t);
        let mut term = (-x).exp();
        for i in 1..=k {
            term *= x / f64::from(i);
        }
        sum += term;
    }
    (1.0 - load) * sum
}

/// Returns the wait in service times that a share of arrivals does not exceed.
pub(super) fn md1_quantile(load: f64, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        // Beyond the accurate range of the sum, the probability is practically one.
        if middle > SUM_IS_GOOD || md1_waits_at_most(load, middle) >= share {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::figures::Figures;
    use crate::validate::model::Stat;

    #[test]
    fn md1_against_a_long_queue() {
        // Compares the formulas with a simulated queue of a million arrivals.
        let (load, mut state, mut wait, mut waits) = (0.7, 1_u64, 0.0_f64, Vec::new());
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            wait = (wait + 1.0 + uniform.ln() / load).max(0.0);
            waits.push(wait);
        }
        let seen = Figures::from_values(waits).unwrap();
        assert!((seen.mean / md1_mean(load) - 1.0).abs() < 0.02, "{} {}", seen.mean, md1_mean(load));
        for (stat, share) in [(Stat::P50, 0.5), (Stat::P99, 0.99)] {
            let ratio = seen.stat(stat) / md1_quantile(load, share);
            assert!((ratio - 1.0).abs() < 0.03, "{} {ratio}", stat.name());
        }
        // An arrival does not wait with probability 1 - load.
        assert!((md1_waits_at_most(load, 0.0) - 0.3).abs() < 1e-12);
    }
}
