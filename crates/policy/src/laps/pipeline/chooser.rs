//! Weights of the paths of every destination, as trees of sums, and the draw of a path in proportion to its weight.

use alloc::boxed::Box;
use alloc::vec;

use super::{Scale, Ticks, weight};

/// Result of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The path drawn.
    Path(usize),
    /// No path of the destination has a weight: all paths are down, or their weights have underflowed to 0.
    None,
}

/// Weights of the paths of all destinations. Each inner node of a tree holds the sum of its left subtree, each
/// destination the sum of all its weights. A draw therefore reads one number per level, and an update adds a
/// difference to one number per level. Integers do not drift.
#[derive(Clone, Debug)]
pub struct PathSampler {
    /// Bits of a path number.
    levels: u32,
    scales: Box<[Scale]>,
    totals: Box<[u64]>,
    /// Weights of the paths of each destination.
    leaves: Box<[u32]>,
    /// Left sums of each destination's nodes in heap order: node 1 is the root, the children of node n are `2n` and
    /// `2n+1`. Node 0 is unused.
    left_sums: Box<[u64]>,
}

impl PathSampler {
    /// Creates the table without any weight, for `destinations` destinations of `paths` paths each. Panics unless
    /// `paths` is a power of two.
    pub fn new(destinations: usize, paths: usize) -> Self {
        assert!(paths.is_power_of_two(), "{paths} paths: a power of two");
        let flat = Scale { factor: 0, reference: Ticks::new(0) };
        PathSampler {
            levels: paths.ilog2(),
            scales: vec![flat; destinations].into_boxed_slice(),
            totals: vec![0; destinations].into_boxed_slice(),
            leaves: vec![0; destinations * paths].into_boxed_slice(),
            left_sums: vec![0; destinations * paths].into_boxed_slice(),
        }
    }

    /// Sets the scale that turns delays to the destination into weights, for updates from now on. Existing weights
    /// stay: after a change of scale the caller repeats the update of each path.
    pub fn set_scale(&mut self, destination: usize, scale: Scale) {
        self.scales[destination] = scale;
    }

    /// Returns the scale that turns delays to the destination into weights.
    #[inline]
    pub fn scale(&self, destination: usize) -> Scale {
        self.scales[destination]
    }

    /// Updates the weight of a path to that of `delay`; with `None` the path is never drawn.
    #[inline]
    pub fn update(&mut self, destination: usize, path: usize, delay: Option<Ticks>) {
        let new = delay.map_or(0, |delay| weight(self.scales[destination], delay));
        let first = destination << self.levels;
        let old = core::mem::replace(&mut self.leaves[first + path], new);
        // The old weight of the leaf is part of each sum that changes, so no sum falls below zero.
        let change = |sum: u64| sum + u64::from(new) - u64::from(old);
        self.totals[destination] = change(self.totals[destination]);
        let mut node = 1;
        for level in (0..self.levels).rev() {
            let right = path >> level & 1;
            if right == 0 {
                self.left_sums[first + node] = change(self.left_sums[first + node]);
            }
            node = 2 * node + right;
        }
    }

    /// Returns the path at `draw` / 2^32 of the sum of all weights, never one of weight 0.
    #[inline]
    pub fn choose(&self, destination: usize, draw: u32) -> Choice {
        let total = self.totals[destination];
        if total == 0 {
            return Choice::None;
        }
        let first = destination << self.levels;
        // With 2^16 paths a total has 40 bits.
        let mut target = ((u128::from(total) * u128::from(draw)) >> 32) as u64;
        let mut node = 1;
        for _ in 0..self.levels {
            let left = self.left_sums[first + node];
            let right = target >= left;
            target -= if right { left } else { 0 };
            node = 2 * node + usize::from(right);
        }
        Choice::Path(node - (1 << self.levels))
    }

    /// Returns the weight of a path.
    #[inline]
    pub fn weight(&self, destination: usize, path: usize) -> u32 {
        self.leaves[(destination << self.levels) + path]
    }

    /// Returns the sum of the weights of a destination.
    #[inline]
    pub fn total(&self, destination: usize) -> u64 {
        self.totals[destination]
    }

    /// Returns the left sums of the nodes between the root and a path, root first: the values that a circuit reads at
    /// each level.
    pub fn left_sums(&self, destination: usize, path: usize) -> impl Iterator<Item = u64> {
        let leaf = path + (1 << self.levels);
        (1..=self.levels).rev().map(move |up| self.left_sums[(destination << self.levels) + (leaf >> up)])
    }

    /// Returns the memory that the arrays take, bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.scales)
            + size_of_val(&*self.totals)
            + size_of_val(&*self.leaves)
            + size_of_val(&*self.left_sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laps::pipeline::FULL_WEIGHT;
    use pathweave_units::Rng;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn chooser(paths: usize, scale: Scale) -> PathSampler {
        let mut chooser = PathSampler::new(1, paths);
        chooser.set_scale(0, scale);
        chooser
    }

    #[test]
    fn a_draw_worked_out_by_hand() {
        let unit = Ticks::new(10_000);
        let mut two = chooser(2, Scale::new(1.0, unit, unit));
        two.update(0, 0, Some(unit));
        two.update(0, 1, Some(Ticks::new(20_000)));
        assert_eq!(two.total(0), 22_950_543);
        assert_eq!(two.choose(0, 0xbb23_ddf5), Choice::Path(0));
        assert_eq!(two.choose(0, 0xbb23_ddf6), Choice::Path(1));
    }

    #[test]
    fn dead_paths_are_not_drawn() {
        let mut eight = chooser(8, Scale::new(1.0, Ticks::new(10_000), Ticks::new(0)));
        let draws = [0, 1, 0x8000_0000, 0xffff_ffff];
        assert!(draws.iter().all(|&draw| eight.choose(0, draw) == Choice::None));
        for path in 0..8 {
            eight.update(0, path, Some(Ticks::new(1_000)));
            assert!(draws.iter().all(|&draw| eight.choose(0, draw) == Choice::Path(path)), "{path} alone");
            eight.update(0, path, None);
        }
        assert!(draws.iter().all(|&draw| eight.choose(0, draw) == Choice::None));
    }

    #[test]
    fn the_last_of_several_updates_holds() {
        let mut eight = chooser(8, Scale::new(5.0, Ticks::new(10_000), Ticks::new(0)));
        for delay in [1_000, 30_000, 0] {
            eight.update(0, 5, Some(Ticks::new(delay)));
        }
        assert_eq!((eight.total(0), eight.weight(0, 5)), (u64::from(FULL_WEIGHT), FULL_WEIGHT));
    }

    /// Delays with a common random spread, in picoseconds and as ticks of the circuit.
    struct Delays {
        ps: Vec<u64>,
        threshold_ps: f64,
    }

    impl Delays {
        fn random(rng: &mut Rng, paths: usize, spread: f64) -> Self {
            let threshold_ps = 1e6 + rng.unit_f64() * 30e6;
            let least = rng.unit_f64() * 2.0 * threshold_ps;
            let ps = (0..paths).map(|_| (least + rng.unit_f64() * spread * threshold_ps) as u64).collect();
            Delays { ps, threshold_ps }
        }
        /// Returns the shares of the circuit, and those of the exact equation for the same delays and factor.
        fn shares(&self, alpha: f64) -> (Vec<f64>, Vec<f64>) {
            let ticks: Vec<Ticks> = self.ps.iter().map(|&ps| Ticks::between(0, ps)).collect();
            let reference = ticks.iter().copied().min().expect("a path");
            let scale = Scale::new(alpha, Ticks::new((self.threshold_ps / 1_024.0) as u64), reference);
            let mut chooser = chooser(ticks.len(), scale);
            (0..).zip(&ticks).for_each(|(path, &delay)| chooser.update(0, path, Some(delay)));
            let total = chooser.total(0) as f64;
            let fixed = (0..ticks.len()).map(|path| f64::from(chooser.weight(0, path)) / total).collect();
            let per_tick = f64::from(scale.factor) / f64::from(1u32 << 26) / core::f64::consts::LOG2_E;
            let weights: Vec<f64> = ticks
                .iter()
                .map(|ticks| libm::exp(-per_tick * f64::from(ticks.get() - reference.get())))
                .collect();
            let sum: f64 = weights.iter().sum();
            (fixed, weights.iter().map(|weight| weight / sum).collect())
        }
    }

    /// Checks the distance of the circuit's shares from the softmax: Kullback-Leibler divergence in nats and total
    /// variation, over 20,000 sets of delays that spread over 0.2 to 3 times the threshold.
    #[test]
    fn the_shares_are_nearly_those_of_the_exact_softmax() {
        let mut rng = Rng::for_component(1, "hardware-test", 0);
        let (mut most_divergence, mut most_variation) = (0.0f64, 0.0f64);
        for round in 0..20_000 {
            let paths = [8, 64, 256][round % 20 / 9];
            let delays = Delays::random(&mut rng, paths, [0.2, 1.0, 3.0][round % 3]);
            let (fixed, exact) = delays.shares(5.0);
            let mut divergence = 0.0;
            let mut variation = 0.0;
            for (&p, &q) in fixed.iter().zip(&exact) {
                divergence += if p > 0.0 { p * libm::log(p / q) } else { 0.0 };
                variation += (p - q).abs() / 2.0;
            }
            most_divergence = most_divergence.max(divergence);
            most_variation = most_variation.max(variation);
        }
        assert!(most_divergence <= 1e-7, "{most_divergence}");
        assert!(most_variation <= 5e-4, "{most_variation}");
    }

    /// A million draws have the frequencies of the exact softmax at 8, 64 and 256 paths: chi-square at p = 0.001.
    #[test]
    fn draws_have_the_frequencies_of_the_exact_softmax() {
        const DRAWS: u32 = 1_000_000;
        for (paths, most) in [(8, 24.32), (64, 103.44), (256, 330.52)] {
            let mut rng = Rng::for_component(2, "hardware-test", paths as u64);
            let unit = Ticks::new(10_000);
            let scale = Scale::new(5.0, unit, Ticks::new(0));
            let mut chooser = chooser(paths, scale);
            let delays: Vec<u32> = (0..paths).map(|_| 5_000 + rng.below(5_000)).collect();
            (0..).zip(&delays).for_each(|(p, &ticks)| chooser.update(0, p, Some(Ticks::new(ticks.into()))));
            let weights: Vec<f64> =
                delays.iter().map(|&ticks| libm::exp(-5.0 * f64::from(ticks) / 10_000.0)).collect();
            let sum: f64 = weights.iter().sum();
            let mut counts = std::vec![0u32; paths];
            for _ in 0..DRAWS {
                let Choice::Path(path) = chooser.choose(0, (rng.next_u64() >> 32) as u32) else {
                    panic!("every path is up")
                };
                counts[path] += 1;
            }
            let square: f64 = counts
                .iter()
                .zip(&weights)
                .map(|(&count, weight)| {
                    let expected = f64::from(DRAWS) * weight / sum;
                    (f64::from(count) - expected) * (f64::from(count) - expected) / expected
                })
                .sum();
            assert!(square < most, "{paths} paths: chi-square {square}");
        }
    }

    proptest! {
        /// After any sequence of operations every sum equals that of its leaves, and a choice equals a linear scan of
        /// the leaves.
        #[test]
        fn sums_are_those_of_the_leaves(
            levels in 0u32..7,
            destinations in 1usize..4,
            operations in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(0..1u64 << 18), any::<u32>()),
                1..200,
            ),
            factor in 0u32..1 << 18,
        ) {
            let paths = 1 << levels;
            let mut chooser = PathSampler::new(destinations, paths);
            for destination in 0..destinations {
                chooser.set_scale(destination, Scale { factor, reference: Ticks::new(10_000) });
            }
            for (destination, path, delay, draw) in operations {
                let (destination, path) = (destination.index(destinations), path.index(paths));
                chooser.update(destination, path, delay.map(Ticks::new));
                let weights: Vec<u64> =
                    (0..paths).map(|path| chooser.weight(destination, path).into()).collect();
                prop_assert_eq!(chooser.total(destination), weights.iter().sum::<u64>());
                for (level, left_sum) in (1..=levels).rev().zip(chooser.left_sums(destination, path)) {
                    let first = path >> level << level;
                    prop_assert_eq!(left_sum, weights[first..first + (1 << (level - 1))].iter().sum::<u64>());
                }
                let mut left_over = (chooser.total(destination) * u64::from(draw)) >> 32;
                let walked = weights.iter().position(|&weight| {
                    let here = left_over < weight;
                    left_over -= if here { 0 } else { weight };
                    here
                });
                let expected = walked.map_or(Choice::None, Choice::Path);
                prop_assert_eq!(chooser.choose(destination, draw), expected);
            }
        }
    }
}
