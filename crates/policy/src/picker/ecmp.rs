//! Single-path ECMP: the switches hash what never changes.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::{Feedback, PathView, Sent, Want};

/// One path for the life of the queue pair, drawn from its random stream. Another is drawn when it goes down; it
/// does not return when the first comes up again.
#[derive(Clone, Debug)]
pub struct Ecmp {
    path: PathId,
}

impl Ecmp {
    /// A queue pair with `paths` paths to choose from.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        Ecmp { path: PathSet::all(paths).draw(rng) }
    }
    /// The path in use.
    pub fn path(&self) -> PathId {
        self.path
    }
}

impl PathPicker for Ecmp {
    #[inline]
    fn pick(&self, _want: &Want) -> PathId {
        self.path
    }
    #[inline]
    fn on_sent(&mut self, _sent: &Sent, _rng: &mut Rng) {}
    #[inline]
    fn on_feedback(&mut self, _now: Time, _feedback: &Feedback, _rng: &mut Rng) {}
    fn on_paths(&mut self, paths: &[PathView], rng: &mut Rng) {
        self.path = PathSet::of(paths).keep_or_draw(self.path, rng);
    }
}
