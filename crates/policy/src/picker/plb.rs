//! PLB (Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022):
//! a flow stays on its path until it was congested for several rounds in a row. It then takes another random path, at
//! once if nothing is in flight, so that nothing is reordered, and otherwise after more rounds.
//!
//! A round is a window of data. It is congested if enough of its packets were marked. Defaults are those of Linux
//! (`tcp_plb_*` in ip-sysctl).

use alloc::boxed::Box;

use pathweave_units::{Duration, PathId, Rng, Time};

use super::{PathPicker, PathSet};
use crate::error::{above, check, within};
use crate::fluid::{HasSpread, Spread};
use crate::{ConfigError, Feedback, FeedbackKind, PathView, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`Plb`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct PlbConfig {
    /// K: fraction of marked packets from which a round is congested. Default 0.5 (Linux: 128 of 256).
    pub congested_share: f64,
    /// M: congested rounds in a row after which the path changes if nothing is in flight. Default 3 (Linux).
    pub idle_rounds: u32,
    /// N: congested rounds in a row after which the path changes in any case; 0: never. Default 12 (Linux).
    pub forced_rounds: u32,
    /// Time after a timeout, which changes the path, for which congestion does not change it again. The actual time
    /// is random between this and twice this. Default 60 s (Linux): there may be no better path, and frequent changes
    /// would only reorder.
    pub suspend_after_timeout: Duration,
}

impl Default for PlbConfig {
    fn default() -> Self {
        PlbConfig {
            congested_share: 0.5,
            idle_rounds: 3,
            forced_rounds: 12,
            suspend_after_timeout: Duration::from_ms(60_000),
        }
    }
}

impl PlbConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("congested_share", self.congested_share, above(0.0, 1.0), "")?;
        within("idle_rounds", self.idle_rounds, 1.., "")?;
        let forced = self.forced_rounds == 0 || self.forced_rounds >= self.idle_rounds;
        check(forced, "forced_rounds", self.forced_rounds, "0 (never), or at least idle_rounds")
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Plb {
    path: PathId,
    // Boxed, because most queue pairs have another picker.
    rounds: Box<Rounds>,
}

/// Congestion of the current path.
#[derive(Clone, Debug)]
struct Rounds {
    paths: PathSet,
    config: PlbConfig,
    /// Packets acknowledged in this round, and the marked ones among them.
    acked: u32,
    marked: u32,
    /// PSN whose acknowledgement ends the round.
    round_end: u64,
    next_psn: u64,
    /// Congested rounds in a row.
    congested: u32,
    suspended_until: Time,
}

impl Plb {
    /// Creates the state of one queue pair.
    pub fn new(config: &PlbConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let paths = PathSet::all(env.paths);
        let path = paths.draw(rng);
        let rounds = Rounds {
            paths,
            config: *config,
            acked: 0,
            marked: 0,
            round_end: 0,
            next_psn: 0,
            congested: 0,
            suspended_until: Time::ZERO,
        };
        Plb { path, rounds: Box::new(rounds) }
    }

    fn change(&mut self, rng: &mut Rng) {
        self.path = self.rounds.paths.draw_other(self.path, rng);
        self.rounds.congested = 0;
    }
}

impl Rounds {
    /// Processes the acknowledgement of a packet. Returns true if the path is to change.
    fn on_ack(&mut self, now: Time, psn: u64, marked: bool, idle: bool) -> bool {
        self.acked += 1;
        self.marked += u32::from(marked);
        psn >= self.round_end && self.end_round(now, idle)
    }

    fn end_round(&mut self, now: Time, idle: bool) -> bool {
        let is_congested = f64::from(self.marked) >= self.config.congested_share * f64::from(self.acked);
        self.congested = if is_congested { self.congested + 1 } else { 0 };
        (self.acked, self.marked) = (0, 0);
        self.round_end = self.next_psn;
        let forced = self.config.forced_rounds > 0 && self.congested >= self.config.forced_rounds;
        let at_ease = idle && self.congested >= self.config.idle_rounds;
        (forced || at_ease) && now >= self.suspended_until
    }

    fn suspend(&mut self, now: Time, rng: &mut Rng) {
        let longer = self.config.suspend_after_timeout.scale(1.0 + rng.unit_f64());
        self.suspended_until = now.saturating_add(longer);
    }
}

impl HasSpread for Plb {
    const SPREAD: Spread = Spread::PathPerMessage;
}

impl PathPicker for Plb {
    crate::ignores!(on_open, on_close);
    #[inline]
    fn pick(&self, _now: Time, _want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        self.path
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.rounds.next_psn = self.rounds.next_psn.max(sent.psn + 1);
        0
    }
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        let idle = feedback.inflight_packets == 0;
        match feedback.kind {
            FeedbackKind::Ack { marked, .. } if self.rounds.on_ack(now, feedback.psn, marked, idle) => {
                self.change(cx.rng);
            }
            // One timeout concerns many packets; those of the previous path are ignored.
            FeedbackKind::Timeout if feedback.path == self.path => {
                self.change(cx.rng);
                self.rounds.suspend(now, cx.rng);
            }
            _ => {}
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.rounds.paths = PathSet::usable(paths);
        self.path = self.rounds.paths.keep_or_draw(self.path, cx.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::{ACK, Host, Scenario};

    /// Returns a picker with 64 paths.
    fn plb(host: &mut Host) -> Plb {
        let env = PolicyEnv { paths: 64, ..Scenario::steady().env };
        Plb::new(&PlbConfig::default(), &env, &mut host.rng)
    }
    /// Runs a round of ten packets, `marked` of them marked, with `left` still in flight at its end. Returns the path
    /// after it.
    fn round(plb: &mut Plb, at_us: u64, marked: u64, left: u32, host: &mut Host) -> PathId {
        let first = plb.rounds.next_psn;
        (plb.rounds.round_end, plb.rounds.next_psn) = (first + 9, first + 10);
        for n in 0..10 {
            let kind = FeedbackKind::Ack { timed: true, marked: n < marked };
            feed(plb, at_us, kind, first + n, left, host);
        }
        plb.path
    }
    fn feed(plb: &mut Plb, at_us: u64, kind: FeedbackKind, psn: u64, left: u32, host: &mut Host) {
        let feedback =
            Feedback { kind, path: plb.path, psn, rtt: Duration::ZERO, inflight_packets: left, ..ACK };
        plb.on_feedback(Time::from_us(at_us), &feedback, &mut host.cx());
    }

    #[test]
    fn twelve_congested_rounds_force_another_path_and_a_calm_one_starts_the_count_anew() {
        let mut host = Host::new(1);
        let mut plb = plb(&mut host);
        let start = plb.path;
        assert!((0..11).all(|at| round(&mut plb, at, 5, 3, &mut host) == start));
        assert_eq!(round(&mut plb, 11, 4, 3, &mut host), start, "four of ten are no congestion");
        assert!((12..23).all(|at| round(&mut plb, at, 10, 3, &mut host) == start));
        assert_ne!(round(&mut plb, 23, 5, 3, &mut host), start);
    }

    #[test]
    fn three_are_enough_when_nothing_is_in_flight() {
        let mut host = Host::new(1);
        let mut plb = plb(&mut host);
        let start = plb.path;
        assert!((0..2).all(|at| round(&mut plb, at, 10, 0, &mut host) == start));
        assert_eq!(round(&mut plb, 2, 10, 1, &mut host), start);
        assert_ne!(round(&mut plb, 3, 10, 0, &mut host), start);
        assert_eq!(plb.rounds.congested, 0);
    }

    #[test]
    fn a_timeout_changes_the_path_and_suspends_for_one_to_two_minutes() {
        let mut host = Host::new(1);
        let mut plb = plb(&mut host);
        let start = plb.path;
        feed(&mut plb, 100, FeedbackKind::Timeout, 0, 0, &mut host);
        let second = plb.path;
        assert_ne!(second, start);
        assert!((1..50).all(|s| round(&mut plb, 1_000_000 * s, 10, 0, &mut host) == second));
        let until = plb.rounds.suspended_until;
        assert!(until >= Time::from_us(60_000_100) && until <= Time::from_us(120_000_100), "{until}");
        assert_ne!(round(&mut plb, 121_000_000, 10, 0, &mut host), second);
    }

    #[test]
    fn errors_name_the_field() {
        let wrong = |config: PlbConfig| config.validate().expect_err("must be refused").field;
        assert_eq!(wrong(PlbConfig { congested_share: 0.0, ..PlbConfig::default() }), "congested_share");
        assert_eq!(wrong(PlbConfig { forced_rounds: 2, ..PlbConfig::default() }), "forced_rounds");
        assert_eq!(PlbConfig { forced_rounds: 0, ..PlbConfig::default() }.validate(), Ok(()));
    }
}
