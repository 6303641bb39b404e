//! Paths in turn, independent of feedback: Ultra Ethernet's oblivious spraying, as in uet-htsim.

use pathweave_units::{PathId, Rng, Time};

use super::rotation::PathRotation;
use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// Each lap takes every path once, in a different order, so that senders do not synchronize.
#[derive(Clone, Debug)]
pub struct Oblivious {
    laps: PathRotation,
}

impl Oblivious {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        Oblivious { laps: PathRotation::new(PathSet::all(paths), rng) }
    }
}

impl HasSpread for Oblivious {
    const SPREAD: Spread = Spread::Random;
}

impl PathPicker for Oblivious {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.laps.paths().move_to_free_port(self.laps.first_from(self.laps.here()).1, want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        let (place, _) = self.laps.first_from(self.laps.here());
        self.laps.go_to(self.laps.after(place), cx.rng);
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.laps = PathRotation::new(PathSet::usable(paths), cx.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_but, send};
    use super::*;
    use crate::testing::Host;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn a_lap_takes_each_path_once_and_laps_differ() {
        let mut host = Host::new(1);
        for paths in [64, 48, 1, 3] {
            let mut picker = Oblivious::new(paths, &mut host.rng);
            let laps: Vec<Vec<PathId>> =
                (0..8).map(|_| (0..paths).map(|_| send(&mut picker, 0, &mut host)).collect()).collect();
            for lap in &laps {
                assert_eq!(lap.iter().collect::<BTreeSet<_>>().len(), usize::from(paths));
            }
            assert!(paths < 48 || laps.iter().collect::<BTreeSet<_>>().len() > 1);
        }
    }

    #[test]
    fn dead_paths_are_left_out() {
        let mut host = Host::new(1);
        let mut picker = Oblivious::new(8, &mut host.rng);
        picker.on_paths(Time::ZERO, &all_but(PathId(3), 8), &mut host.cx());
        assert!((0..100).all(|_| send(&mut picker, 0, &mut host) != PathId(3)));
    }
}
