//! Paths in turn, except those with a penalty: Ultra Ethernet's bitmap, as in uet-htsim.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{PathId, Rng, Time};

use super::path_feedback::PathFeedback;
use super::rotation::{PathRotation, RotationPosition};
use super::{PathPicker, PathSet};
use crate::error::check;
use crate::fluid::{HasSpread, Spread};
use crate::{ConfigError, Egress, Feedback, PathView, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`Penalties`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct PenaltiesConfig {
    /// Penalty of a path for a marked packet. Default 1.
    pub marked: u8,
    /// Penalty of a path for a packet that was trimmed before the last hop, or found lost. Default 4.
    pub refused: u8,
    /// Penalty of a path for a packet that timed out. Default 15.
    pub silent: u8,
    /// Largest penalty of a path. Default 15.
    pub most: u8,
    /// Paths skipped for a packet whose penalty falls by one: "first" (default) or "each".
    pub forgives: Forgives,
}

/// Skipped paths whose penalty falls by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Forgives {
    /// The first skipped path (uet-htsim): several bad paths in a row recover slowly.
    #[default]
    First,
    /// Each skipped path (EQDS).
    Each,
}

impl Default for PenaltiesConfig {
    fn default() -> Self {
        PenaltiesConfig { marked: 1, refused: 4, silent: 15, most: 15, forgives: Forgives::First }
    }
}

impl PenaltiesConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check(self.most > 0, "most", self.most, "1 to 255")
    }
}

/// Takes paths in turn, each lap in a different order. A path with a penalty is skipped, which lowers the penalty.
/// After a lap in which all paths have a penalty, the next one is taken nevertheless.
#[derive(Clone, Debug)]
pub struct Penalties {
    // Boxed, because most queue pairs have another picker.
    round: Box<Round>,
}

#[derive(Clone, Debug)]
struct Round {
    config: PenaltiesConfig,
    laps: PathRotation,
    /// Penalties by path number.
    penalties: Box<[u8]>,
    /// Result of [`Round::search`], which is repeated when it may have changed.
    next: Next,
}

/// Result of a search for the next path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Next {
    path: PathId,
    place: RotationPosition,
    /// First skipped path.
    passed: Option<PathId>,
}

impl Penalties {
    /// Creates the picker of a queue pair in this environment.
    pub fn new(config: &PenaltiesConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let laps = PathRotation::new(PathSet::all(env.paths), rng);
        let penalties = vec![0; usize::from(env.paths)].into_boxed_slice();
        let (place, path) = laps.first_from(laps.here());
        let next = Next { path, place, passed: None };
        Penalties { round: Box::new(Round { config: *config, laps, penalties, next }) }
    }

    /// Adds the penalty for feedback on a path.
    pub(super) fn hear(&mut self, path: PathId, news: PathFeedback) {
        let round = &mut *self.round;
        let more = match news {
            PathFeedback::Good => return,
            PathFeedback::Marked => round.config.marked,
            PathFeedback::Dropped => round.config.refused,
            PathFeedback::TimedOut => round.config.silent,
        };
        if let Some(penalty) = round.penalties.get_mut(path.index()) {
            *penalty = penalty.saturating_add(more).min(round.config.most);
            // Paths that were skipped stay skipped, and those behind the next one have not been looked at.
            if path == round.next.path {
                round.next = round.search();
            }
        }
    }

    /// Returns true if the path is up.
    pub(super) fn can_use(&self, path: PathId) -> bool {
        self.round.laps.paths().contains(path)
    }

    /// Returns the path of the next packet.
    #[inline]
    pub(super) fn next(&self) -> PathId {
        self.round.next.path
    }

    /// Returns the path, moved to a free NIC port if possible ([`PathSet::move_to_free_port`]).
    pub(super) fn settle(&self, path: PathId, egress: Egress) -> PathId {
        self.round.laps.paths().move_to_free_port(path, egress)
    }

    /// Records that the packet of [`Penalties::next`] has left.
    pub(super) fn sent(&mut self, rng: &mut Rng) {
        let round = &mut *self.round;
        let Next { place, passed, .. } = round.next;
        if round.config.forgives == Forgives::Each {
            let mut at = round.laps.here();
            loop {
                let (found, path) = round.laps.first_from(at);
                if found == place {
                    break;
                }
                round.lower_penalty(path);
                at = round.laps.after(found);
            }
        } else if let Some(path) = passed {
            round.lower_penalty(path);
        }
        let after = round.laps.after(place);
        round.laps.go_to(after, rng);
        round.next = round.search();
    }
}

impl Round {
    fn penalty(&self, path: PathId) -> u8 {
        self.penalties.get(path.index()).copied().unwrap_or(0)
    }

    fn lower_penalty(&mut self, path: PathId) {
        if let Some(penalty) = self.penalties.get_mut(path.index()) {
            *penalty = penalty.saturating_sub(1);
        }
    }

    /// Looks for the next path.
    fn search(&self) -> Next {
        let (mut place, mut path) = self.laps.first_from(self.laps.here());
        let mut passed = None;
        for _ in 0..=self.laps.paths().len() {
            // If the search reaches the first skipped path again, its penalty counts as already lowered.
            if self.penalty(path) <= u8::from(passed == Some(path)) {
                break;
            }
            passed = passed.or(Some(path));
            (place, path) = self.laps.first_from(self.laps.after(place));
        }
        Next { path, place, passed }
    }
}

impl HasSpread for Penalties {
    const SPREAD: Spread = Spread::ByCapacity;
}

impl PathPicker for Penalties {
    crate::ignores!(on_open, on_close);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.settle(self.next(), want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.sent(cx.rng);
        0
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        if let Some(news) = PathFeedback::of(feedback) {
            self.hear(feedback.path, news);
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.round.laps = PathRotation::new(PathSet::usable(paths), cx.rng);
        self.round.next = self.round.search();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_but, send};
    use super::*;
    use crate::testing::{Host, Scenario};
    use std::vec::Vec;

    fn picker(paths: u16, forgives: Forgives, host: &mut Host) -> Penalties {
        let env = PolicyEnv { paths, ..Scenario::steady().env };
        let config = PenaltiesConfig { forgives, ..PenaltiesConfig::default() };
        Penalties::new(&config, &env, &mut host.rng)
    }

    /// Two trims are a penalty of 8.
    #[test]
    fn a_path_that_refused_twice_is_passed_over_in_eight_laps() {
        let mut host = Host::new(1);
        let mut picker = picker(16, Forgives::First, &mut host);
        (0..2).for_each(|_| picker.hear(PathId(5), PathFeedback::Dropped));
        // Without the path a lap takes 15 packets.
        let sent: Vec<PathId> = (0..8 * 15).map(|_| send(&mut picker, 0, &mut host)).collect();
        assert!(!sent.contains(&PathId(5)));
        let ninth: Vec<PathId> = (0..16).map(|_| send(&mut picker, 0, &mut host)).collect();
        assert_eq!(ninth.iter().filter(|&&path| path == PathId(5)).count(), 1);
    }

    /// Random feedback, departures and changes of paths, with few paths, so that all of them often have penalties.
    #[test]
    fn the_next_path_is_the_one_that_a_search_finds_now() {
        let mut rng = Rng::for_component(3, "penalties", 0);
        for round in 0..60 {
            let forgives = if round % 2 == 0 { Forgives::First } else { Forgives::Each };
            let (mut host, paths) = (Host::new(1), 1 + rng.below(6) as u16);
            let mut picker = picker(paths, forgives, &mut host);
            for _ in 0..200 {
                let path = PathId(rng.below(paths.into()) as u16);
                match rng.below(6) {
                    0 | 1 => picker.hear(path, PathFeedback::Marked),
                    2 => picker.hear(path, PathFeedback::Dropped),
                    3 => picker.on_paths(Time::ZERO, &all_but(path, paths.into()), &mut host.cx()),
                    _ => _ = send(&mut picker, 0, &mut host),
                }
                assert_eq!(picker.round.next, picker.round.search());
            }
        }
    }

    #[test]
    fn penalties_add_up_to_the_most() {
        let mut host = Host::new(1);
        let mut picker = picker(16, Forgives::First, &mut host);
        picker.hear(PathId(5), PathFeedback::TimedOut);
        picker.hear(PathId(5), PathFeedback::Marked);
        picker.hear(PathId(6), PathFeedback::Good);
        assert_eq!((picker.round.penalty(PathId(5)), picker.round.penalty(PathId(6))), (15, 0));
    }

    #[test]
    fn of_two_neighbours_one_or_both_are_forgiven() {
        for (forgives, left) in [(Forgives::First, 1), (Forgives::Each, 0)] {
            let mut host = Host::new(1);
            let mut picker = picker(16, forgives, &mut host);
            let first = picker.next();
            let laps = &picker.round.laps;
            let second = laps.first_from(laps.after(laps.here())).1;
            [first, second].into_iter().for_each(|path| picker.hear(path, PathFeedback::Marked));
            let third = send(&mut picker, 0, &mut host);
            assert!(third != first && third != second);
            let penalties = [first, second].map(|path| picker.round.penalty(path));
            assert_eq!(penalties, [0, left]);
        }
    }

    #[test]
    fn where_all_have_penalties_packets_leave_all_the_same() {
        let mut host = Host::new(1);
        let mut picker = picker(4, Forgives::First, &mut host);
        (0..4).for_each(|path| picker.hear(PathId(path), PathFeedback::TimedOut));
        let sent: Vec<PathId> = (0..200).map(|_| send(&mut picker, 0, &mut host)).collect();
        assert!((0..4).all(|path| sent.contains(&PathId(path))), "{sent:?}");
    }
}
