//! The worked example of docs/add-a-scheme.md: a path picker, on the bench that every scheme has to pass.

use pathweave_policy::cc::{AnyCc, CcConfig, DcqcnConfig};
use pathweave_policy::picker::{PathPicker, PathSet};
use pathweave_policy::testing::{Scenario, random_operations};
use pathweave_policy::{Feedback, FeedbackKind, PathView, PolicyCx, PolicyEnv, Sent, Split, Want};
use pathweave_units::{PathId, Rng, Time};

/// For every packet, of two random paths the one with fewer marks of late (M. Mitzenmacher, "The Power of Two Choices
/// in Randomized Load Balancing", 2001).
struct TwoChoices {
    paths: PathSet,
    /// Marks of late, by path; a clean acknowledgement halves them.
    marks: Vec<u16>,
    /// Drawn ahead, so that asking costs nothing and changes nothing.
    next: PathId,
}

impl TwoChoices {
    fn new(paths: u16, rng: &mut Rng) -> Self {
        let marks = vec![0; usize::from(paths)];
        let mut picker = TwoChoices { paths: PathSet::all(paths), marks, next: PathId(0) };
        picker.draw(rng);
        picker
    }
    fn draw(&mut self, rng: &mut Rng) {
        let (one, other) = (self.paths.draw(rng), self.paths.draw(rng));
        let marks = |path: PathId| self.marks[path.index()];
        self.next = if marks(other) < marks(one) { other } else { one };
    }
}

impl PathPicker for TwoChoices {
    pathweave_policy::ignores!(on_open, on_close);
    fn pick(&self, _now: Time, _want: &Want, _cx: &mut PolicyCx<'_>) -> PathId {
        self.next
    }
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.draw(cx.rng);
        0
    }
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let marks = &mut self.marks[feedback.path.index()];
        match feedback.kind {
            FeedbackKind::Ack { marked: false, .. } => *marks /= 2,
            FeedbackKind::Ack { marked: true, .. } => *marks = marks.saturating_add(1),
            // Worse than any mark: there may be nothing at the end of this path.
            FeedbackKind::Lost | FeedbackKind::Timeout => *marks = marks.saturating_add(8),
            _ => {}
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths = PathSet::usable(paths);
        self.draw(cx.rng);
    }
}

/// With DCQCN, as `rps` is.
fn two_choices(env: &PolicyEnv, rng: &mut Rng) -> Split<AnyCc, TwoChoices> {
    Split { cc: CcConfig::Dcqcn(DcqcnConfig::default()).build(env), picker: TwoChoices::new(env.paths, rng) }
}

#[test]
fn every_situation_ends() {
    for (name, scenario) in Scenario::all() {
        let report = scenario.run(two_choices);
        assert!(report.senders.iter().all(|sender| sender.done_at.is_some()), "{name}");
    }
}

#[test]
fn what_nobody_marks_is_used_evenly() {
    // 1,000 packets on 4 paths; the standard deviation of a path's share is below 14.
    let sent = &Scenario::steady().run(two_choices).senders[0].sent;
    assert!(sent.iter().all(|&packets| (180..320).contains(&packets)), "{sent:?}");
}

#[test]
fn a_marked_path_is_taken_only_against_itself() {
    // Both draws have to fall on it: 1 packet of 16, not 1 of 4, once its first marks are back.
    let sent = &Scenario::one_path_marked().run(two_choices).senders[0].sent;
    assert!(sent[0] < 120 && sent[1..].iter().all(|&packets| packets > 220), "{sent:?}");
}

#[test]
fn random_operations_break_nothing() {
    for seed in 0..50 {
        random_operations(seed, 2_000, &Scenario::steady().env, two_choices);
    }
}
