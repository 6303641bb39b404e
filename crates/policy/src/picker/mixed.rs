//! Recycled paths, or the bitmap's next path if there is none: the default of uet-htsim.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use pathweave_units::{PathId, Rng, Time};

use super::path_feedback::PathFeedback;
use super::penalties::{Penalties, PenaltiesConfig};
use super::{PathPicker, PathSet};
use crate::fluid::{HasSpread, Spread};
use crate::{Feedback, PathView, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`Mixed`]: those of its bitmap.
pub type MixedConfig = PenaltiesConfig;

/// A packet takes the oldest recycled path whose NIC port is free: one that returned unmarked and has not been taken
/// since. Without one, it takes the next path without penalty ([`Penalties`]). Both parts process all feedback.
#[derive(Clone, Debug)]
pub struct Mixed {
    #[expect(clippy::box_collection, reason = "most queue pairs have another picker, and pay for its size")]
    returned: Box<VecDeque<PathId>>,
    penalties: Penalties,
}

impl Mixed {
    /// Creates the picker of a queue pair in this environment.
    pub fn new(config: &PenaltiesConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        Mixed { returned: Box::default(), penalties: Penalties::new(config, env, rng) }
    }
}

impl HasSpread for Mixed {
    const SPREAD: Spread = Spread::Balanced;
}

impl PathPicker for Mixed {
    crate::ignores!(on_open, on_close);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        let returned = self.returned.iter().copied().find(|path| want.egress.is_free(*path));
        returned.unwrap_or_else(|| self.penalties.settle(self.penalties.next(), want.egress))
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        match self.returned.iter().position(|path| *path == sent.path) {
            Some(place) => _ = self.returned.remove(place),
            None => self.penalties.sent(cx.rng),
        }
        0
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let Some(news) = PathFeedback::of(feedback) else { return };
        self.penalties.hear(feedback.path, news);
        if news == PathFeedback::Good && self.penalties.can_use(feedback.path) {
            self.returned.push_back(feedback.path);
        }
    }
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        let usable = PathSet::usable(paths);
        self.returned.retain(|&path| usable.contains(path));
        self.penalties.on_paths(now, paths, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_but, send};
    use super::*;
    use crate::FeedbackKind;
    use crate::testing::Scenario;
    use crate::testing::{ACK, Host};

    fn feed(picker: &mut Mixed, path: u16, marked: bool, host: &mut Host) {
        let feedback = Feedback {
            kind: FeedbackKind::Ack { timed: true, marked },
            path: PathId(path),
            wire_bytes: 1_078,
            ..ACK
        };
        picker.on_feedback(Time::ZERO, &feedback, &mut host.cx());
    }

    #[test]
    fn returned_paths_come_before_the_bitmap() {
        let mut host = Host::new(1);
        let env = PolicyEnv { paths: 8, ..Scenario::steady().env };
        let mut picker = Mixed::new(&PenaltiesConfig::default(), &env, &mut host.rng);
        let in_order = picker.penalties.next();
        for (path, marked) in [(3, false), (4, true), (5, false), (3, false)] {
            feed(&mut picker, path, marked, &mut host);
        }
        let sent: [PathId; 4] = [(); 4].map(|()| send(&mut picker, 0, &mut host));
        assert_eq!(sent[..3], [PathId(3), PathId(5), PathId(3)]);
        assert!(sent[3] == in_order || in_order == PathId(4));
        feed(&mut picker, 6, false, &mut host);
        picker.on_paths(Time::ZERO, &all_but(PathId(6), 8), &mut host.cx());
        assert!((0..30).all(|_| send(&mut picker, 0, &mut host) != PathId(6)));
    }
}
