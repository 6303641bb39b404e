//! Single-path ECMP: the hashed header fields never change.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// One path for the life of the queue pair, drawn from its random stream. If it goes down, another one is drawn,
/// which stays when the first comes up again.
#[derive(Clone, Debug)]
pub struct Ecmp {
    path: PathId,
}

impl Ecmp {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        Ecmp { path: PathSet::all(paths).draw(rng) }
    }
    /// Returns the path in use.
    pub fn path(&self) -> PathId {
        self.path
    }
}

impl HasSpread for Ecmp {
    const SPREAD: Spread = Spread::OnePath;
}

impl PathPicker for Ecmp {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, _want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.path
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.path = PathSet::usable(paths).keep_or_draw(self.path, cx.rng);
    }
}
