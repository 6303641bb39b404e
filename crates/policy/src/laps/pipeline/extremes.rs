//! The shortest and the longest delay among the paths of a destination, from which rates are computed.

use alloc::boxed::Box;
use alloc::vec;

use super::Ticks;

/// The measured delays of all paths of all destinations.
#[derive(Clone, Debug)]
pub struct DelayRange {
    /// Bits of a path number.
    levels: u32,
    delays: Box<[Option<Ticks>]>,
}

impl DelayRange {
    /// Creates the table without any delay, for `destinations` destinations of `paths` paths each. Panics unless
    /// `paths` is a power of two.
    pub fn new(destinations: usize, paths: usize) -> Self {
        assert!(paths.is_power_of_two(), "{paths} paths: a power of two");
        DelayRange { levels: paths.ilog2(), delays: vec![None; destinations * paths].into_boxed_slice() }
    }

    /// Sets the delay of a path; `None` if it is down or has not been measured. Returns the shortest and the longest
    /// of the delays known then.
    pub fn set(&mut self, destination: usize, path: usize, delay: Option<Ticks>) -> Option<(Ticks, Ticks)> {
        let first = destination << self.levels;
        self.delays[first + path] = delay;
        let known = || self.delays[first..first + (1 << self.levels)].iter().flatten().copied();
        Some((known().min()?, known().max()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_delays_do_not_count() {
        let mut extremes = DelayRange::new(2, 4);
        let [three, five, nine] = [3, 5, 9].map(Ticks::new);
        assert_eq!(extremes.set(1, 0, Some(five)), Some((five, five)));
        assert_eq!(extremes.set(1, 3, Some(nine)), Some((five, nine)));
        assert_eq!(extremes.set(0, 3, Some(three)), Some((three, three)));
        assert_eq!(extremes.set(1, 0, None), Some((nine, nine)));
        assert_eq!(extremes.set(1, 3, None), None);
    }
}
