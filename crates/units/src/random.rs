//! Seeded random streams. One stream per component, derived from (run seed, component), so that no
//! order of execution can change a result.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A random stream. Small, fast, portable: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Creates the stream of one component of a run. `component` names the kind ("nic", "red", ...), `index`
    /// distinguishes the components of a kind.
    pub fn for_component(run_seed: u64, component: &str, index: u64) -> Self {
        Rng(Xoshiro256PlusPlus::seed_from_u64(derive_seed(run_seed, component, index)))
    }
    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Returns a number in `0..n`, by multiplication (its bias is below 2^-32 for every `n`). Panics if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "nothing to choose from");
        (((self.0.next_u64() >> 32) * u64::from(n)) >> 32) as u32
    }
    /// Returns a real number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Returns true with probability `p`. Draws no random number if `p` is at most 0 or at least 1.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        p > 0.0 && (p >= 1.0 || self.unit_f64() < p)
    }
    /// Shuffles `items` (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(u32::try_from(i + 1).expect("more than 2^32 items")) as usize;
            items.swap(i, j);
        }
    }
}

/// Returns the seed of a component's stream: a hash (FNV-1a, then [`mix64`]) of run seed, kind and index.
pub fn derive_seed(run_seed: u64, component: &str, index: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in component.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix64(mix64(run_seed ^ hash).wrapping_add(index))
}

/// A bijective 64-bit mixer (the finaliser of SplitMix64; Steele, Lea and Flood, 2014). Every input bit changes every
/// output bit with probability near one half. Used for ECMP hashes and seeds.
#[inline]
pub const fn mix64(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_components_differ() {
        let mut a = Rng::for_component(1, "nic", 0);
        let mut b = Rng::for_component(1, "nic", 1);
        let mut c = Rng::for_component(1, "red", 0);
        let (x, y, z) = (a.next_u64(), b.next_u64(), c.next_u64());
        assert!(x != y && y != z && x != z);
    }

    #[test]
    fn below_is_in_range_and_covers_it() {
        let mut rng = Rng::for_component(7, "test", 0);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn certain_events_draw_nothing() {
        let mut rng = Rng::for_component(7, "test", 0);
        let before = rng.clone();
        assert!(rng.bernoulli(1.0) && !rng.bernoulli(0.0));
        assert_eq!(rng, before);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: [u32; 64] = core::array::from_fn(|i| i as u32);
        Rng::for_component(3, "test", 0).shuffle(&mut items);
        let mut sorted = items;
        sorted.sort_unstable();
        assert_eq!(sorted, core::array::from_fn::<u32, 64, _>(|i| i as u32));
        assert_ne!(sorted, items);
    }
}
