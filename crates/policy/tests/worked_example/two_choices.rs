//! Power of two choices.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{PathId, Rng, Time};

use crate::fluid::{HasSpread, Spread};
use crate::picker::{PathPicker, PathSet};
use crate::{Feedback, FeedbackKind, PathView, PolicyCx, SendRequest, Sent};

/// For every packet, draws two random paths and takes the one with fewer recent marks (M. Mitzenmacher, "The Power of
/// Two Choices in Randomized Load Balancing", 2001).
#[derive(Clone, Debug)]
pub struct TwoChoices {
    known: Box<Known>,
    /// Next path. Drawn ahead, so that a pick is cheap and does not change the state.
    next: PathId,
}

/// State behind a pointer: every queue pair has room for the largest picker.
#[derive(Clone, Debug)]
struct Known {
    paths: PathSet,
    /// Recent marks by path; an unmarked acknowledgement halves them.
    marks: Box<[u16]>,
}

impl TwoChoices {
    /// Creates the picker of a queue pair with `paths` paths.
    pub fn new(paths: u16, rng: &mut Rng) -> Self {
        let marks = vec![0; usize::from(paths)].into();
        let known = Box::new(Known { paths: PathSet::all(paths), marks });
        TwoChoices { next: known.draw(rng), known }
    }
}

impl Known {
    fn draw(&self, rng: &mut Rng) -> PathId {
        let (one, other) = (self.paths.draw(rng), self.paths.draw(rng));
        if self.marks[other.index()] < self.marks[one.index()] { other } else { one }
    }
}

/// Spreading for fluid models, which have no marks.
impl HasSpread for TwoChoices {
    const SPREAD: Spread = Spread::Random;
}

impl PathPicker for TwoChoices {
    crate::ignores!(on_open, on_close);
    fn pick(&self, _now: Time, _request: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.next
    }
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.next = self.known.draw(cx.rng);
        0
    }
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let marks = &mut self.known.marks[feedback.path.index()];
        match feedback.kind {
            FeedbackKind::Ack { marked: false, .. } => *marks /= 2,
            FeedbackKind::Ack { marked: true, .. } => *marks = marks.saturating_add(1),
            // Worse than any mark: the path may be dead.
            FeedbackKind::Lost | FeedbackKind::Timeout => *marks = marks.saturating_add(8),
            _ => {}
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.known.paths = PathSet::usable(paths);
        self.next = self.known.draw(cx.rng);
    }
}
