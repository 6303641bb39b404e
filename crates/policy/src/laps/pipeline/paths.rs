//! What the circuit knows of each path: its delay, and when it is to be probed.

use alloc::boxed::Box;
use alloc::vec;

use super::Ticks;

/// Paths that a choice looks at, one of each bank of memory.
pub const LOOKED_AT: usize = 4;

/// An entry. Instants are the low 32 bits of ticks, which wrap after 4.4 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathEntry {
    /// The latest delay measured, or the guess that replaces it while the path is probed.
    pub real: Ticks,
    /// After this instant the path is probed: two delays after it was last heard of.
    pub due: u32,
    /// It may be used.
    pub up: bool,
    /// `real` is a measurement.
    pub measured: bool,
}

/// How far behind an instant may be before the sweep moves it up: a quarter of what 32 bits can tell from the future.
const OLD: u32 = 1 << 29;

impl PathEntry {
    fn set(&mut self, now: u32, real: Ticks, measured: bool) {
        let due = now.wrapping_add(real.get() * 2);
        *self = PathEntry { real, due, measured, ..*self };
    }
    /// Nothing was heard of it for more than two of its delays.
    pub fn is_silent(&self, now: u32) -> bool {
        self.up && self.is_past(now)
    }
    /// Now is after `due`, by less than half of what 32 bits tell.
    fn is_past(&self, now: u32) -> bool {
        self.due.wrapping_sub(now) >> 31 == 1
    }
}

/// The entries of all paths of all destinations.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Bits of a path.
    levels: u32,
    entries: Box<[PathEntry]>,
}

impl Paths {
    /// All down, for `destinations` of `paths` paths each. Panics unless the paths are a power of two and [`LOOKED_AT`] at least.
    pub fn new(destinations: usize, paths: usize) -> Self {
        assert!(paths.is_power_of_two() && paths >= LOOKED_AT, "{paths} paths: a power of two, 4 at least");
        let entries = vec![PathEntry::default(); destinations * paths].into_boxed_slice();
        Paths { levels: paths.ilog2(), entries }
    }

    /// What is known of a path.
    pub fn entry(&self, destination: usize, path: usize) -> PathEntry {
        self.entries[(destination << self.levels) + path]
    }

    fn entry_mut(&mut self, destination: usize, path: usize) -> &mut PathEntry {
        &mut self.entries[(destination << self.levels) + path]
    }

    /// A packet or a probe came back, after `delay`.
    pub fn measured(&mut self, now: u32, destination: usize, path: usize, delay: Ticks) {
        self.entry_mut(destination, path).set(now, delay, true);
    }

    /// The host says whether a path may be used, and what delay it is thought to have.
    pub fn told(&mut self, now: u32, destination: usize, path: usize, up: bool, delay: Ticks) {
        let entry = self.entry_mut(destination, path);
        entry.up = up;
        entry.set(now, delay, false);
    }

    /// A packet is about to leave: of the four paths from `first` on, the first that has been silent for too long. It is to be
    /// probed, and its delay counts as double until it answers.
    pub fn look(&mut self, now: u32, destination: usize, first: usize) -> Option<usize> {
        let paths = 1 << self.levels;
        let mut looked = (0..LOOKED_AT).map(|i| (first + i) % paths);
        let silent = looked.find(|&path| self.entry(destination, path).is_silent(now))?;
        let entry = self.entry_mut(destination, silent);
        entry.set(now, entry.real.doubled(), false);
        Some(silent)
    }

    /// An instant long past must not become one to come: once in a second each entry is looked at, and brought nearer.
    pub fn sweep(&mut self, now: u32, destination: usize, path: usize) {
        let entry = self.entry_mut(destination, path);
        let oldest = now.wrapping_sub(OLD);
        if entry.is_past(now) && (1..1 << 31).contains(&oldest.wrapping_sub(entry.due)) {
            entry.due = oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_silent_path_is_probed_and_counts_double() {
        let mut paths = Paths::new(2, 8);
        paths.told(0, 1, 6, true, Ticks::new(10));
        paths.measured(0, 1, 6, Ticks::new(10));
        assert_eq!(paths.look(20, 1, 4), None);
        assert_eq!(paths.look(21, 1, 7), None, "6 is not among 7, 0, 1, 2");
        let mut probed = std::vec![];
        for now in 21..200 {
            probed.extend(paths.look(now, 1, 4).map(|path| (now, path, paths.entry(1, 6).real.get())));
        }
        assert_eq!(probed, [(21, 6, 20), (62, 6, 40), (143, 6, 80)]);
        assert!(!paths.entry(1, 6).measured);
        paths.measured(200, 1, 6, Ticks::new(12));
        assert_eq!((paths.look(224, 1, 6), paths.look(225, 1, 3)), (None, Some(6)));
    }

    #[test]
    fn what_is_down_is_not_probed_and_four_are_looked_at_around_the_end() {
        let mut paths = Paths::new(1, 8);
        assert_eq!(paths.look(1_000, 0, 0), None);
        paths.told(0, 0, 1, true, Ticks::new(1));
        assert_eq!(paths.look(1_000, 0, 6), Some(1));
        paths.told(0, 0, 1, false, Ticks::new(1));
        assert_eq!(paths.look(2_000, 0, 6), None);
    }

    proptest! {
        /// Swept once in a second, a path of which nothing is heard stays silent for as long as one likes, and one that is
        /// heard of is not silent.
        #[test]
        fn instants_may_wrap(start in any::<u32>(), sweeps in prop::collection::vec(1u32..1 << 30, 1..20), real in 0u64..1 << 24) {
            let mut paths = Paths::new(1, 4);
            paths.told(start, 0, 2, true, Ticks::new(real));
            prop_assert!(!paths.entry(0, 2).is_silent(start));
            let mut now = start.wrapping_add(2 * real as u32);
            prop_assert!(!paths.entry(0, 2).is_silent(now));
            for sweep in sweeps {
                now = now.wrapping_add(sweep);
                paths.sweep(now, 0, 2);
                prop_assert!(paths.entry(0, 2).is_silent(now));
            }
            paths.measured(now, 0, 2, Ticks::new(real));
            prop_assert!(!paths.entry(0, 2).is_silent(now));
        }
    }
}
