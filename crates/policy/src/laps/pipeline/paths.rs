//! State of each path in the circuit: its delay, and the time at which it is due for a probe.

use alloc::boxed::Box;
use alloc::vec;

use super::Ticks;

/// Number of paths that a choice examines, one of each memory bank.
pub const EXAMINED_PATHS: usize = 4;

/// State of one path. Instants are the low 32 bits of ticks, which wrap after 4.4 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathEntry {
    /// Latest measured delay, or the estimate that replaces it while the path is probed.
    pub real: Ticks,
    /// Instant after which the path is probed: two delays after its last measurement or update.
    pub due: u32,
    /// True if the path may be used.
    pub up: bool,
    /// True if `real` is a measurement.
    pub measured: bool,
}

/// Largest age of an instant before the sweep moves it up, in ticks: a quarter of the age at which 32 bits can still
/// tell past from future.
const OLD: u32 = 1 << 29;

impl PathEntry {
    fn set(&mut self, now: u32, real: Ticks, measured: bool) {
        let due = now.wrapping_add(real.get() * 2);
        *self = PathEntry { real, due, measured, ..*self };
    }
    /// Returns true if the path is up and has been silent for more than two of its delays.
    pub fn is_silent(&self, now: u32) -> bool {
        self.up && self.is_past(now)
    }
    /// Returns true if `now` is after `due`, by less than half of the 32-bit range.
    fn is_past(&self, now: u32) -> bool {
        self.due.wrapping_sub(now) >> 31 == 1
    }
}

/// The entries of all paths of all destinations.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Bits of a path number.
    levels: u32,
    entries: Box<[PathEntry]>,
}

impl Paths {
    /// Creates all paths, down, for `destinations` destinations of `paths` paths each. Panics unless `paths` is a
    /// power of two and at least [`EXAMINED_PATHS`].
    pub fn new(destinations: usize, paths: usize) -> Self {
        assert!(
            paths.is_power_of_two() && paths >= EXAMINED_PATHS,
            "{paths} paths: a power of two, 4 at least"
        );
        let entries = vec![PathEntry::default(); destinations * paths].into_boxed_slice();
        Paths { levels: paths.ilog2(), entries }
    }

    /// Returns the state of a path.
    pub fn entry(&self, destination: usize, path: usize) -> PathEntry {
        self.entries[(destination << self.levels) + path]
    }

    fn entry_mut(&mut self, destination: usize, path: usize) -> &mut PathEntry {
        &mut self.entries[(destination << self.levels) + path]
    }

    /// Records the delay that a packet or a probe has measured.
    pub fn measured(&mut self, now: u32, destination: usize, path: usize, delay: Ticks) {
        self.entry_mut(destination, path).set(now, delay, true);
    }

    /// Sets whether a path may be used, and its estimated delay, as the host reports them.
    pub fn set_path(&mut self, now: u32, destination: usize, path: usize, up: bool, delay: Ticks) {
        let entry = self.entry_mut(destination, path);
        entry.up = up;
        entry.set(now, delay, false);
    }

    /// Called before a packet leaves. Returns the first silent path among the four from `first` on. The caller probes
    /// that path; its delay counts as double until the probe returns.
    pub fn probe_candidate(&mut self, now: u32, destination: usize, first: usize) -> Option<usize> {
        let paths = 1 << self.levels;
        let mut looked = (0..EXAMINED_PATHS).map(|i| (first + i) % paths);
        let silent = looked.find(|&path| self.entry(destination, path).is_silent(now))?;
        let entry = self.entry_mut(destination, silent);
        entry.set(now, entry.real.doubled(), false);
        Some(silent)
    }

    /// Moves an instant long past nearer to now, so that it does not wrap into the future. Called once a second for
    /// each entry.
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
        paths.set_path(0, 1, 6, true, Ticks::new(10));
        paths.measured(0, 1, 6, Ticks::new(10));
        assert_eq!(paths.probe_candidate(20, 1, 4), None);
        assert_eq!(paths.probe_candidate(21, 1, 7), None, "6 is not among 7, 0, 1, 2");
        let mut probed = std::vec![];
        for now in 21..200 {
            probed.extend(
                paths.probe_candidate(now, 1, 4).map(|path| (now, path, paths.entry(1, 6).real.get())),
            );
        }
        assert_eq!(probed, [(21, 6, 20), (62, 6, 40), (143, 6, 80)]);
        assert!(!paths.entry(1, 6).measured);
        paths.measured(200, 1, 6, Ticks::new(12));
        assert_eq!((paths.probe_candidate(224, 1, 6), paths.probe_candidate(225, 1, 3)), (None, Some(6)));
    }

    #[test]
    fn dead_paths_are_not_probed_and_four_are_examined_around_the_end() {
        let mut paths = Paths::new(1, 8);
        assert_eq!(paths.probe_candidate(1_000, 0, 0), None);
        paths.set_path(0, 0, 1, true, Ticks::new(1));
        assert_eq!(paths.probe_candidate(1_000, 0, 6), Some(1));
        paths.set_path(0, 0, 1, false, Ticks::new(1));
        assert_eq!(paths.probe_candidate(2_000, 0, 6), None);
    }

    proptest! {
        /// With a sweep once a second, a path without any measurement stays silent for any length of time, and a path
        /// with recent measurements is not silent.
        #[test]
        fn instants_may_wrap(start in any::<u32>(), sweeps in prop::collection::vec(1u32..1 << 30, 1..20), real in 0u64..1 << 24) {
            let mut paths = Paths::new(1, 4);
            paths.set_path(start, 0, 2, true, Ticks::new(real));
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
