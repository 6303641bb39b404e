//! REPS, recycled entropy packet spraying (Bonato et al., arXiv 2407.21625), with its limits as parameters: paths
//! that returned unmarked are taken again, once each; without one, any path. The scheme `reps` has the same rules and
//! a window of its own.

use alloc::boxed::Box;
use alloc::vec;

use pathweave_units::{Duration, PathId, Rng, Time};

use super::path_feedback::PathFeedback;
use super::{PathPicker, PathRing, PathSet};
use crate::error::check;
use crate::fluid::{HasSpread, Spread};
use crate::{ConfigError, Feedback, PathView, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`Recycled`]. Defaults are those of uet-htsim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct RecycledConfig {
    /// Number of paths stored. Default 8.
    pub ring: u8,
    /// Time after a timeout during which only paths that worked before are taken. Default 10 ms (the paper: 100 us).
    pub freeze: Duration,
    /// Number of packets that take any path at the start. Default 0 (the paper: a bandwidth-delay product).
    pub explore_first: u32,
    /// Number of packets that take any path after that time, which also empties the ring. Default 16.
    pub explore_after: u32,
}

impl Default for RecycledConfig {
    fn default() -> Self {
        RecycledConfig { ring: 8, freeze: Duration::from_ms(10), explore_first: 0, explore_after: 16 }
    }
}

impl RecycledConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check(self.ring > 0, "ring", self.ring, "1 to 255")?;
        check(self.freeze <= Duration::from_ms(10_000), "freeze", self.freeze, "at most 10s")
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Recycled {
    // Boxed, because most queue pairs have another picker.
    state: Box<State>,
}

#[derive(Clone, Debug)]
struct State {
    config: RecycledConfig,
    paths: PathSet,
    ring: PathRing<Box<[PathId]>>,
    /// Number of entries written, at most all.
    filled: u8,
    exploring: u32,
    frozen_until: Option<Time>,
    /// Index of the entry taken next while frozen.
    frozen_at: u8,
    /// Random path. Drawn ahead, so that reading it does not change the state.
    any: PathId,
}

impl Recycled {
    /// Creates the picker of a queue pair in this environment.
    pub fn new(config: &RecycledConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let paths = PathSet::all(env.paths);
        let any = paths.draw(rng);
        let state = State {
            config: *config,
            paths,
            ring: PathRing::new(vec![PathId(0); usize::from(config.ring)].into_boxed_slice()),
            filled: 0,
            exploring: config.explore_first,
            frozen_until: None,
            frozen_at: 0,
            any,
        };
        Recycled { state: Box::new(state) }
    }
}

/// Source of a path.
enum PathSource {
    Anywhere,
    /// The oldest fresh entry.
    Fresh(PathId),
    /// The entry at this index.
    Frozen(u8),
}

impl State {
    fn source(&self) -> PathSource {
        match self.frozen_until {
            _ if self.exploring > 0 || self.filled == 0 => PathSource::Anywhere,
            Some(_) => PathSource::Frozen(self.frozen_at % self.filled),
            None => self.ring.oldest().map_or(PathSource::Anywhere, PathSource::Fresh),
        }
    }

    fn next(&self) -> PathId {
        match self.source() {
            PathSource::Anywhere => self.any,
            PathSource::Fresh(path) => path,
            PathSource::Frozen(at) => self.ring.at(usize::from(at)),
        }
    }

    fn sent(&mut self, rng: &mut Rng) {
        match self.source() {
            PathSource::Anywhere => {
                self.exploring = self.exploring.saturating_sub(1);
                self.any = self.paths.draw(rng);
            }
            PathSource::Fresh(path) => _ = self.ring.take(path),
            PathSource::Frozen(at) => self.frozen_at = ((u16::from(at) + 1) % u16::from(self.filled)) as u8,
        }
    }

    fn hear(&mut self, now: Time, path: PathId, news: PathFeedback) {
        if news == PathFeedback::TimedOut && self.frozen_until.is_none() && self.exploring == 0 {
            self.frozen_until = Some(now.saturating_add(self.config.freeze));
        }
        if self.frozen_until.is_some_and(|until| now > until) {
            // Which entries were fresh no longer matters: while frozen, all are taken in turn.
            self.ring.restart();
            (self.filled, self.frozen_at) = (0, 0);
            self.frozen_until = None;
            self.exploring = self.config.explore_after;
        }
        if news == PathFeedback::Good && self.paths.contains(path) {
            self.ring.push(path);
            self.filled = self.filled.saturating_add(1).min(self.config.ring);
        }
    }
}

impl HasSpread for Recycled {
    const SPREAD: Spread = Spread::Balanced;
}

impl PathPicker for Recycled {
    crate::ignores!(on_open, on_close);
    #[inline]
    fn pick(&self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.state.paths.move_to_free_port(self.state.next(), want.egress)
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, cx: &mut PolicyCx<'_>) -> u32 {
        self.state.sent(cx.rng);
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        if let Some(news) = PathFeedback::of(feedback) {
            self.state.hear(now, feedback.path, news);
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        let state = &mut *self.state;
        state.paths = PathSet::usable(paths);
        state.any = state.paths.keep_or_draw(state.any, cx.rng);
        for path in state.ring.all_mut() {
            *path = state.paths.keep_or_draw(*path, cx.rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::send;
    use super::*;
    use crate::testing::{Host, Scenario};
    use std::vec::Vec;

    fn picker(host: &mut Host) -> Recycled {
        let env = PolicyEnv { paths: 16_384, ..Scenario::steady().env };
        Recycled::new(&RecycledConfig::default(), &env, &mut host.rng)
    }
    fn sends(picker: &mut Recycled, packets: usize, host: &mut Host) -> Vec<u16> {
        (0..packets).map(|_| send(picker, 0, host).0).collect()
    }

    #[test]
    fn returned_paths_are_reused_once_oldest_first() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        for path in [11, 12, 13] {
            picker.state.hear(Time::ZERO, PathId(path), PathFeedback::Good);
        }
        picker.state.hear(Time::ZERO, PathId(14), PathFeedback::Marked);
        let sent = sends(&mut picker, 6, &mut host);
        assert_eq!(sent[..3], [11, 12, 13]);
        // Random paths of 16,384.
        assert!(sent[3..].iter().all(|path| ![11, 12, 13, 14].contains(path)), "{sent:?}");
    }

    #[test]
    fn the_newest_eight_are_kept() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        (0..11).for_each(|path| picker.state.hear(Time::ZERO, PathId(path), PathFeedback::Good));
        assert_eq!(sends(&mut picker, 8, &mut host), [3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(picker.state.ring.fresh(), 0);
    }

    #[test]
    fn frozen_it_goes_round_and_starts_anew_when_that_ends() {
        let mut host = Host::new(1);
        let mut picker = picker(&mut host);
        (0..3).for_each(|path| picker.state.hear(Time::ZERO, PathId(path), PathFeedback::Good));
        picker.state.hear(Time::from_us(1), PathId(9), PathFeedback::TimedOut);
        assert_eq!(sends(&mut picker, 5, &mut host), [0, 1, 2, 0, 1]);
        // Feedback is stored nevertheless.
        picker.state.hear(Time::from_us(2), PathId(7), PathFeedback::Good);
        assert_eq!(sends(&mut picker, 3, &mut host), [2, 7, 0]);
        picker.state.hear(Time::from_us(10_002), PathId(5), PathFeedback::Good);
        // Sixteen packets explore, then the path that has returned since is taken.
        let sent = sends(&mut picker, 17, &mut host);
        assert!(sent[..16].iter().all(|path| ![0, 1, 2, 5, 7].contains(path)), "{sent:?}");
        assert_eq!(sent[16], 5);
    }
}
