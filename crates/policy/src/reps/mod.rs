//! REPS with a window for delay and ECN, as in transports of the Ultra Ethernet generation.
//!
//! REPS chooses the path. Entropies whose packets returned unmarked are used again, at most eight of them are stored,
//! and all other packets take random ones. After a timeout only entropies that worked before are used. The window is
//! independent of this, and follows delay and ECN. Both use the same acknowledgement: a mark with a short queueing
//! delay moves the packet to another path, a mark with a long one shrinks the window.

mod entropy;
mod window;

use pathweave_units::{Duration, Rate, Rng, Time};

use crate::error::{AT_MOST_A_SECOND, above, between, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, Spread};
use crate::{
    Adapt, ConfigError, Feedback, FeedbackKind, Grant, HostDelay, HostEnv, MarkUse, Memo, PathView, Policy,
    PolicyCx, PolicyEnv, SendRequest, Sent,
};
use entropy::Entropies;
use window::Window;

/// Parameters of REPS and its window. Defaults in packets and round-trip times are the usual ones for NSCC in packet
/// simulators, unless stated otherwise.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct RepsConfig {
    /// Packets that explore at the start and after a freeze, in bandwidth-delay products. Default 1 (REPS).
    pub explore_bdp: f64,
    /// Time after a timeout during which no path is explored. Default 100 us.
    pub freeze: Duration,
    /// Target of the queueing delay, in base round-trip times. Default 0.75.
    pub delay_target: f64,
    /// Packets added per round trip without a queue; below the target in proportion to the rest of it. Default 4.
    pub proportional_increase: f64,
    /// Packets added per round trip if unmarked but above the target. Default 0.5.
    pub fair_increase: f64,
    /// gamma: decrease per relative excess of the average delay over the target. Default 0.8.
    pub decrease: f64,
    /// Largest decrease at once, as a fraction of the window. Default 0.5.
    pub max_decrease: f64,
    /// Weight of the newest queueing delay in its average. Default 0.0125.
    pub delay_gain: f64,
    /// Largest window, in bandwidth-delay products; also the first window. Default 1.5.
    pub max_bdp: f64,
}

impl Default for RepsConfig {
    fn default() -> Self {
        RepsConfig {
            explore_bdp: 1.0,
            freeze: Duration::from_us(100),
            delay_target: 0.75,
            proportional_increase: 4.0,
            fair_increase: 0.5,
            decrease: 0.8,
            max_decrease: 0.5,
            delay_gain: 0.0125,
            max_bdp: 1.5,
        }
    }
}

impl AsFluid for RepsConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::Balanced), control: ControlModel::BY_DELAY }
    }
}

impl Adapt for RepsConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::BesideDelay
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.max_bdp *= host.max_inflight_bdps;
    }
}

impl RepsConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("explore_bdp", self.explore_bdp, 0.0..=1e3, "")?;
        within("freeze", self.freeze, AT_MOST_A_SECOND, "")?;
        within("delay_target", self.delay_target, above(0.0, 1e3), "base round-trip times")?;
        within("proportional_increase", self.proportional_increase, above(0.0, 1e3), "")?;
        within("fair_increase", self.fair_increase, above(0.0, 1e3), "")?;
        within("decrease", self.decrease, above(0.0, 1.0), "")?;
        within("max_decrease", self.max_decrease, between(0.0, 1.0), "")?;
        within("delay_gain", self.delay_gain, above(0.0, 1.0), "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Reps {
        let bdp = env.bdp_bytes() as f64 / f64::from(env.mtu_wire_bytes);
        let explore = (self.explore_bdp * bdp + 0.999_999) as u32;
        Reps {
            window: Window::new(self, env),
            entropies: Entropies::new(env.paths, explore, self.freeze, rng),
        }
    }
}

/// Policy of one direction of one queue pair.
#[derive(Clone, Debug)]
pub struct Reps {
    window: Window,
    entropies: Entropies,
}

impl Reps {
    /// Returns the window, in packets.
    pub fn window_packets(&self) -> f64 {
        self.window.packets
    }
}

impl Policy for Reps {
    crate::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Grant {
        // With nothing in flight a packet always fits, because the window is at least one packet.
        if self.window.fits(want.inflight_packets) {
            Grant::Send(self.entropies.next(want.egress))
        } else {
            Grant::Blocked
        }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.entropies.sent(sent.path, cx.rng);
        Memo::default()
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                self.entropies.on_ack(now, feedback.path, marked);
                let rtt = timed.then_some(feedback.rtt);
                self.window.on_ack(now, rtt, marked, feedback.backlogged);
            }
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } => self.window.on_loss(),
            FeedbackKind::Timeout => {
                self.window.on_loss();
                self.entropies.on_failure(now);
            }
            FeedbackKind::Cnp
            | FeedbackKind::EdgeRtt
            | FeedbackKind::PathSample
            | FeedbackKind::Duplicate { .. }
            | FeedbackKind::Late
            | FeedbackKind::NoticeFlow(_) => {}
        }
    }
    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.entropies.on_paths(paths, cx.rng);
    }
    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.window.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scenario, random_operations};

    #[test]
    fn marked_paths_are_left_and_the_line_stays_full() {
        let scenario = Scenario { packets: 10_000, ..Scenario::one_path_marked() };
        let report = scenario.run(|env, rng| RepsConfig::default().build(env, rng));
        let sent = &report.senders[0].sent;
        assert!(sent[0] < 1_500, "{sent:?}"); // a quarter would be 2,500
        assert!(report.done_at() < Time::from_us(1_020), "{}", report.done_at());
    }

    #[test]
    fn random_operations_break_no_invariant() {
        let env = Scenario::steady().env;
        for seed in 0..60 {
            let max_bdp = [1.5, 0.01, 4.0][seed as usize % 3];
            let config = RepsConfig { max_bdp, ..RepsConfig::default() };
            assert_eq!(config.validate(), Ok(()));
            random_operations(seed, 2_000, &env, |env, rng| config.build(env, rng));
        }
    }
}
