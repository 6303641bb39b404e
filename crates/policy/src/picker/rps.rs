//! Random packet spraying.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::{Feedback, PathView, Sent, Want};

/// Every packet takes a uniformly random path of those that are up (Dixit et al., INFOCOM 2013).
#[derive(Clone, Debug)]
pub struct Rps {
    paths: PathSet,
    /// Drawn ahead, so that asking costs nothing and changes nothing.
    next: PathId,
}

impl Rps {
    /// A queue pair with `paths` paths to choose from.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        Rps { next: paths.draw(rng), paths }
    }
}

impl PathPicker for Rps {
    #[inline]
    fn pick(&self, _want: &Want) -> PathId {
        self.next
    }
    #[inline]
    fn on_sent(&mut self, _sent: &Sent, rng: &mut Rng) {
        self.next = self.paths.draw(rng);
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, _feedback: &Feedback, _rng: &mut Rng) {}
    fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.paths = PathSet::of(paths);
        self.next = self.paths.keep_or_draw(self.next, rng);
    }
}
