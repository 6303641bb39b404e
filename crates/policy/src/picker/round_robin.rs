//! Round robin over the paths.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// Packets take the paths in turn, from a random start, so that queue pairs do not synchronize.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    paths: PathSet,
    next: u32,
}

impl RoundRobin {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        RoundRobin { paths: PathSet::all(paths), next: rng.below(u32::from(paths)) }
    }
}

impl HasSpread for RoundRobin {
    const SPREAD: Spread = Spread::Random;
}

impl PathPicker for RoundRobin {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.paths.move_to_free_port(self.paths.get(self.next), want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next = if self.next + 1 < self.paths.len() { self.next + 1 } else { 0 };
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths = PathSet::usable(paths);
        if self.next >= self.paths.len() {
            self.next = cx.rng.below(self.paths.len());
        }
    }
}
