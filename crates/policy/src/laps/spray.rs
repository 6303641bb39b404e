//! Softmax over path delays (equation 1): a path of delay d is drawn with probability exp(-beta d) over the sum of
//! all.
//!
//! The weights are the leaves of a binary tree whose nodes hold the sum of their two children. A new delay changes
//! one leaf and the nodes above it; a draw goes from the root to a leaf. Sums are never adjusted by differences, so
//! they do not drift from the formula.

use alloc::boxed::Box;
use alloc::vec;

/// Range of the sum of weights. Delays far from the reference may move the sum out of it; then the reference changes.
const LEAST: f64 = 1e-200;
const MOST: f64 = 1e200;

/// Weights of the paths of a host pair.
#[derive(Clone, Debug)]
pub(super) struct Spray {
    /// Nodes in heap order: node 1 is the root, the children of node n are `2n` and `2n+1`, the leaves are the second
    /// half.
    tree: Box<[f64]>,
    /// Delay of weight 1, in picoseconds. Arbitrary, because a common factor of all weights has no effect.
    reference: f64,
    /// Factor of the delay in the exponent, per picosecond.
    beta: f64,
}

impl Spray {
    /// Creates weights for `paths` paths; [`Spray::rebuild`] fills them.
    pub(super) fn new(paths: usize) -> Self {
        Spray { tree: vec![0.0; 2 * paths.next_power_of_two()].into_boxed_slice(), reference: 0.0, beta: 0.0 }
    }

    /// Recomputes all weights. `delay_ps` is `None` for a path that must not be drawn; at least one path can be
    /// drawn.
    pub(super) fn rebuild(&mut self, beta: f64, delays_ps: impl Iterator<Item = Option<u64>> + Clone) {
        self.beta = beta;
        self.reference = delays_ps.clone().flatten().min().expect("a path that can be drawn") as f64;
        let leaves = self.tree.len() / 2;
        self.tree[leaves..].fill(0.0);
        for (path, delay_ps) in delays_ps.enumerate() {
            self.tree[leaves + path] = delay_ps.map_or(0.0, |delay_ps| self.weight(delay_ps));
        }
        for node in (1..leaves).rev() {
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1];
        }
    }

    /// Updates the delay of one path. Returns false if the weights must be rebuilt.
    #[inline]
    #[must_use]
    pub(super) fn set(&mut self, path: usize, delay_ps: u64) -> bool {
        let mut node = self.tree.len() / 2 + path;
        self.tree[node] = self.weight(delay_ps);
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1];
        }
        (LEAST..MOST).contains(&self.sum())
    }

    fn weight(&self, delay_ps: u64) -> f64 {
        libm::exp(-self.beta * (delay_ps as f64 - self.reference))
    }

    fn sum(&self) -> f64 {
        // With a single path the root is also the leaf.
        self.tree[1]
    }

    /// Returns the path at `draw` (0 to less than 1) of the sum, never one of weight 0.
    #[inline]
    pub(super) fn at(&self, draw: f64) -> usize {
        let leaves = self.tree.len() / 2;
        let mut left_over = draw * self.sum();
        let mut node = 1;
        while node < leaves {
            let left = self.tree[2 * node];
            // By rounding, the remainder may reach the sum of all weights; the last path with a weight then takes it.
            let right = left_over >= left && self.tree[2 * node + 1] > 0.0;
            left_over -= if right { left } else { 0.0 };
            node = 2 * node + usize::from(right);
        }
        node - leaves
    }

    /// Returns the memory that the tree takes, bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.tree)
    }

    /// Returns the probability that a path is drawn.
    #[inline]
    pub(super) fn share(&self, path: usize) -> f64 {
        self.tree[self.tree.len() / 2 + path] / self.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Rng;
    use proptest::prelude::*;
    use std::vec::Vec;

    const US: f64 = 1e6;

    fn spray(beta_per_us: f64, delays_us: &[u64]) -> Spray {
        let mut spray = Spray::new(delays_us.len());
        spray.rebuild(beta_per_us / US, delays_us.iter().map(|us| Some(us * 1_000_000)));
        spray
    }
    fn shares(spray: &Spray, paths: usize) -> Vec<f64> {
        (0..paths).map(|path| spray.share(path)).collect()
    }
    fn assert_near(found: &[f64], expected: &[f64]) {
        let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-6);
        assert!(near && found.len() == expected.len(), "{found:?} {expected:?}");
    }

    #[test]
    fn shares_are_those_of_the_equation() {
        assert_near(&shares(&spray(0.1, &[10, 20]), 2), &[0.73106, 0.26894]);
        assert_near(&shares(&spray(0.0, &[10, 20]), 2), &[0.5, 0.5]);
        assert_near(&shares(&spray(0.2, &[5, 5, 10]), 3), &[0.42232, 0.42232, 0.15536]);
        assert_near(&shares(&spray(1.0, &[8, 9, 10]), 3), &[0.66524, 0.24473, 0.09003]);
        // A clock that is ahead by 7 ms.
        assert_near(&shares(&spray(1.0, &[7_008, 7_009, 7_010]), 3), &[0.66524, 0.24473, 0.09003]);
    }

    #[test]
    fn a_same_index_pair_of_the_rail_fabric() {
        // One path of 4 links and seven of 8; T is the base of the long ones, with one packet per link.
        let mut spray = Spray::new(8);
        let delays = core::iter::once(Some(4_251_520)).chain(core::iter::repeat_n(Some(8_586_880), 7));
        spray.rebuild(1.0 / 9_257_600.0, delays);
        assert!((spray.share(0) - 0.18579).abs() < 5e-6 && (spray.share(7) - 0.11632).abs() < 5e-6);
    }

    #[test]
    fn a_path_alone_is_always_drawn() {
        let mut spray = spray(1.0, &[3]);
        assert_eq!([0.0, 0.5, 0.999_999].map(|draw| spray.at(draw)), [0; 3]);
        assert!(spray.set(0, 4_000_000));
        assert_eq!((spray.at(0.7), spray.share(0)), (0, 1.0));
    }

    #[test]
    fn draws_have_the_frequencies_of_the_shares() {
        let spray = spray(0.2, &[5, 5, 10, 12, 20]);
        let mut rng = Rng::for_component(1, "test", 0);
        let mut counts = [0u32; 5];
        (0..200_000).for_each(|_| counts[spray.at(rng.unit_f64())] += 1);
        for (path, &count) in counts.iter().enumerate() {
            let expected = spray.share(path) * 200_000.0;
            // Five standard deviations.
            let off = (f64::from(count) - expected).abs();
            assert!(off < 5.0 * libm::sqrt(expected), "path {path}: {count}, expected {expected}");
        }
    }

    proptest! {
        /// After any changes the shares equal those of the equation, computed from scratch. A path that is down has
        /// no share and is never drawn. A longer path is never more likely.
        #[test]
        fn shares_stay_exact(
            paths in 1usize..40,
            alpha in prop::sample::select(std::vec![0.0, 0.3, 1.0, 5.0, 1000.0]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 1u64..1 << 44), 0..200),
            down in any::<u64>(),
            draws in prop::collection::vec(0.0..1.0f64, 20),
        ) {
            let beta = alpha / 9_257_600.0;
            let mut delays: Vec<Option<u64>> =
                (0..paths).map(|path| (down >> path & 1 == 0).then_some(9_000_000)).collect();
            delays[0] = Some(8_000_000);
            let mut spray = Spray::new(paths);
            spray.rebuild(beta, delays.iter().copied());
            for (index, delay_ps) in changes {
                let path = index.index(paths);
                if delays[path].is_some() {
                    delays[path] = Some(delay_ps);
                    if !spray.set(path, delay_ps) {
                        spray.rebuild(beta, delays.iter().copied());
                    }
                }
            }
            let least = delays.iter().flatten().min().copied().expect("path 0") as f64;
            let weights: Vec<f64> = delays
                .iter()
                .map(|delay| delay.map_or(0.0, |ps| libm::exp(-beta * (ps as f64 - least))))
                .collect();
            let sum: f64 = weights.iter().sum();
            for path in 0..paths {
                let share = spray.share(path);
                prop_assert!((share - weights[path] / sum).abs() < 1e-12, "path {} {}", path, share);
                prop_assert!(delays[path].is_some() || share == 0.0);
            }
            prop_assert!((shares(&spray, paths).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for draw in draws {
                prop_assert!(spray.share(spray.at(draw)) > 0.0);
            }
        }
    }
}
