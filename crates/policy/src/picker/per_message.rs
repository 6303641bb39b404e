//! A random path for every message.

use pathweave_units::{PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{PathView, PolicyCx, SendRequest, Sent};

/// All packets of a message take one path, drawn when its first packet is sent. Retransmissions of an earlier message
/// take the path of the current message.
#[derive(Clone, Debug)]
pub struct PerMessage {
    paths: PathSet,
    path: PathId,
    /// Path of the next message, drawn ahead.
    next: PathId,
    msn: u32,
}

impl PerMessage {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let paths = PathSet::all(paths);
        PerMessage { path: paths.draw(rng), next: paths.draw(rng), msn: 0, paths }
    }
    fn begins(&self, msn: u32) -> bool {
        // Sequence numbers wrap; a message is later if it is ahead by less than half their range.
        (msn.wrapping_sub(self.msn) as i32) > 0
    }
}

impl HasSpread for PerMessage {
    const SPREAD: Spread = Spread::PathPerMessage;
}

impl PathPicker for PerMessage {
    crate::ignores!(on_open, on_close, on_feedback);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        if self.begins(want.msn) { self.next } else { self.path }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        if self.begins(sent.msn) {
            self.msn = sent.msn;
            self.path = self.next;
            self.next = self.paths.draw(cx.rng);
        }
        0
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths = PathSet::usable(paths);
        self.path = self.paths.keep_or_draw(self.path, cx.rng);
        self.next = self.paths.keep_or_draw(self.next, cx.rng);
    }
}
