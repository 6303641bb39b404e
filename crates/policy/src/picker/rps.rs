//! Random packet spraying.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// Every packet takes a uniformly random path among those that are up (Dixit et al., INFOCOM 2013).
#[derive(Clone, Debug)]
pub struct Rps {
    paths: PathSet,
    /// Next path. Drawn ahead, so that a pick is cheap and does not change the state.
    next: PathId,
}

impl Rps {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        Rps { next: paths.draw(rng), paths }
    }
}

impl HasSpread for Rps {
    const SPREAD: Spread = Spread::Random;
}

impl PathPicker for Rps {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.paths.move_to_free_port(self.next, want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.next = self.paths.draw(cx.rng);
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths = PathSet::usable(paths);
        self.next = self.paths.keep_or_draw(self.next, cx.rng);
    }
}
