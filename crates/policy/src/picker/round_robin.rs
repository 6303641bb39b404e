//! Round robin over the paths.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::{Feedback, PathView, Sent, Want};

/// Packet after packet takes path after path, from a random start so that queue pairs do not march in step.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    paths: PathSet,
    next: u32,
}

impl RoundRobin {
    /// A queue pair with `paths` paths to choose from.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        RoundRobin { paths: PathSet::all(paths), next: rng.below(u32::from(paths)) }
    }
}

impl PathPicker for RoundRobin {
    #[inline]
    fn pick(&self, _want: &Want) -> PathId {
        self.paths.get(self.next)
    }
    #[inline]
    fn on_sent(&mut self, _sent: &Sent, _rng: &mut Rng) {
        self.next = if self.next + 1 < self.paths.len() { self.next + 1 } else { 0 };
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, _feedback: &Feedback, _rng: &mut Rng) {}
    fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = PathSet::of(paths);
        if self.next >= self.paths.len() {
            self.next = rng.below(self.paths.len());
        }
    }
}
