//! The softmax as the circuit in `hardware/laps` computes it, for one destination. This module also does the work of
//! the circuit's host: it chooses the reference, and repeats all updates when the reference or the unit of alpha
//! changes.

use crate::laps::pipeline::{Choice, PathSampler, Scale, Ticks, weight};
use pathweave_units::Duration;

/// Weight below which there are too few bits for accurate shares.
const LEAST: u32 = 1 << 20;

/// Weights of the paths of a host pair, in integers.
#[derive(Clone, Debug)]
pub(super) struct Circuit(PathSampler);

impl Circuit {
    /// Creates weights for `paths` paths; [`Circuit::rebuild`] fills them.
    pub(super) fn new(paths: usize) -> Self {
        Circuit(PathSampler::new(1, paths.next_power_of_two()))
    }

    /// Recomputes all weights. `delay_ps` is `None` for a path that must not be drawn; at least one path can be
    /// drawn. The reference is 0 if the fastest path then keeps a sixteenth of full weight, so that no path can be
    /// faster than the reference. Otherwise the reference is the fastest path.
    pub(super) fn rebuild(
        &mut self,
        alpha: f64,
        unit: Duration,
        delays_ps: impl Iterator<Item = Option<u64>> + Clone,
    ) {
        let fastest_ps = delays_ps.clone().flatten().min().expect("a path that can be drawn");
        let fastest = Ticks::between(0, fastest_ps);
        let mut scale = Scale::new(alpha, Ticks::from(unit), Ticks::new(0));
        if weight(scale, fastest) < LEAST {
            scale.reference = fastest;
        }
        self.0.set_scale(0, scale);
        for (path, delay_ps) in delays_ps.enumerate() {
            self.0.update(0, path, delay_ps.map(|delay_ps| Ticks::between(0, delay_ps)));
        }
    }

    /// Updates the delay of one path. Returns false if the weights must be rebuilt.
    #[inline]
    #[must_use]
    pub(super) fn set(&mut self, path: usize, delay_ps: u64) -> bool {
        let delay = Ticks::between(0, delay_ps);
        self.0.update(0, path, Some(delay));
        delay >= self.0.scale(0).reference && self.0.total(0) >= u64::from(LEAST)
    }

    /// Returns the path at `draw` (0 to less than 1) of the sum, never one of weight 0.
    #[inline]
    pub(super) fn at(&self, draw: f64) -> usize {
        // The upper 32 of the 53 random bits.
        match self.0.choose(0, (draw * 4_294_967_296.0) as u32) {
            Choice::Path(path) => path,
            Choice::None => unreachable!("a path can be drawn, and has full weight or its share of LEAST"),
        }
    }

    /// Returns the memory that the weights take, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Returns the probability that a path is drawn.
    #[inline]
    pub(super) fn share(&self, path: usize) -> f64 {
        f64::from(self.0.weight(0, path)) / self.0.total(0) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::spray::Spray;
    use super::*;
    use pathweave_units::Rng;
    use proptest::prelude::*;
    use std::vec::Vec;

    const THRESHOLD: Duration = Duration::from_ps(9_257_600);

    fn pair(paths: usize, alpha: f64, delays_ps: &[u64]) -> (Spray, Circuit) {
        let (mut float, mut fixed) = (Spray::new(paths), Circuit::new(paths));
        let delays = delays_ps.iter().map(|&ps| Some(ps));
        float.rebuild(alpha / THRESHOLD.as_ps() as f64, delays.clone());
        fixed.rebuild(alpha, THRESHOLD, delays);
        (float, fixed)
    }

    /// With the same draws, both take a different path once in some thousand draws: if the target falls between the
    /// two boundaries.
    #[test]
    fn integers_and_floating_point_take_the_same_path_but_for_one_in_500() {
        let mut rng = Rng::for_component(1, "circuit-test", 0);
        let mut delays: Vec<u64> = (0..64).map(|_| 5_000_000 + rng.next_u64() % 15_000_000).collect();
        let (mut float, mut fixed) = pair(64, 5.0, &delays);
        let (mut choices, mut different) = (0, 0);
        for round in 0..400_000 {
            if round % 4 == 0 {
                let (path, delay_ps) = (rng.below(64) as usize, 5_000_000 + rng.next_u64() % 15_000_000);
                delays[path] = delay_ps;
                assert!(float.set(path, delay_ps));
                if !fixed.set(path, delay_ps) {
                    fixed.rebuild(5.0, THRESHOLD, delays.iter().map(|&ps| Some(ps)));
                }
            }
            let draw = rng.unit_f64();
            choices += 1;
            different += u32::from(float.at(draw) != fixed.at(draw));
        }
        assert!(different > 0 && different * 500 < choices, "{different} of {choices}");
    }

    proptest! {
        /// After any updates, the shares differ from those of the exact softmax by a few steps of the exponent.
        #[test]
        fn shares_are_near_the_exact_ones(
            paths in 1usize..40,
            alpha in prop::sample::select(std::vec![0.0, 0.3, 1.0, 2.5, 5.0]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 1u64..100_000_000), 0..100),
            draws in prop::collection::vec(0.0..1.0f64, 10),
        ) {
            let mut delays = std::vec![9_000_000; paths];
            let (mut float, mut fixed) = pair(paths, alpha, &delays);
            for (index, delay_ps) in changes {
                let path = index.index(paths);
                delays[path] = delay_ps;
                let all = || delays.iter().map(|&ps| Some(ps));
                if !float.set(path, delay_ps) {
                    float.rebuild(alpha / THRESHOLD.as_ps() as f64, all());
                }
                if !fixed.set(path, delay_ps) {
                    fixed.rebuild(alpha, THRESHOLD, all());
                }
            }
            for path in 0..paths {
                let (exact, share) = (float.share(path), fixed.share(path));
                prop_assert!((exact - share).abs() < 2e-3, "path {}: {} {}", path, exact, share);
            }
            for draw in draws {
                prop_assert!(fixed.share(fixed.at(draw)) > 0.0);
            }
        }
    }
}
