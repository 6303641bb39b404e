//! STrack's window (Le et al., "STrack: A Reliable Multipath Transport for AI/ML Clusters", arXiv 2407.15266), **as
//! understood**: the rules come from second-hand descriptions of the paper, not from its text. Delay determines how
//! much to change the window; a mark determines when to shrink it.
//!
//! | | delay below target | up to `high_delay` targets | above |
//! |---|---|---|---|
//! | not marked | grow in proportion to the rest of the target (alpha) | hold | grow by a fair step (beta) |
//! | marked | no change | shrink in proportion to the excess (gamma), once a round trip | likewise |
//!
//! An unmarked packet with a long delay means that the queue drains. A mark below the target means that only this
//! path is congested; the picker leaves it.
//!
//! Each round trip adds a small step (eta), whatever the delay. After a loss or a very long delay the window falls to
//! the packets acknowledged since the last check.
//!
//! Our choices: windows count packets; a window that is not filled does not grow; checks are a base round trip plus a
//! target apart.

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::{above, between, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, ConfigError, Feedback, FeedbackKind, HostDelay, HostEnv, MarkUse, PolicyCx, PolicyEnv,
    SendRequest, SendWindow, Sent,
};

/// Network for which increases are given: 100 Gb/s and 12 us, with a bandwidth-delay product of 150,000 bytes. In
/// other networks they scale with the bandwidth-delay product, as in NSCC, which adopted them.
const REFERENCE_BDP_BYTES: f64 = 150_000.0;
const REFERENCE_TARGET_PS: f64 = 12e6;

/// Parameters of [`Strack`]. Increases are given for 100 Gb/s and a base round-trip time of 12 us; in other networks
/// they scale with the bandwidth-delay product.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct StrackConfig {
    /// Target of the queueing delay, in idle round-trip times of the pair of hosts. Default 1. The simulator takes
    /// the round-trip time from the topology; real hosts measure it, the delay of hosts included.
    pub delay_target: f64,
    /// Queueing delay, in targets, from which unmarked packets earn `fair_increase`. Default 3; text and table of the
    /// paper have 2 and 3.
    pub high_delay: f64,
    /// alpha: packets added per round trip without a queue; below the target in proportion to the rest of it. Default
    /// 4.
    pub proportional_increase: f64,
    /// beta: packets added per round trip above `high_delay`. Default 5.
    pub fair_increase: f64,
    /// eta: packets added per base round-trip time, whatever the delay. Default 0.15.
    pub constant_increase: f64,
    /// gamma: decrease per relative excess of the average delay over the target. Default 0.8.
    pub decrease: f64,
    /// Largest decrease at once, as a fraction of the window. Default 0.5.
    pub max_decrease: f64,
    /// Weight of the newest queueing delay in its average. Default 0.0125 (NSCC; the paper's value is unknown to us).
    pub delay_gain: f64,
    /// Queueing delay, in targets, that reduces the window to the packets acknowledged since the last check, like a
    /// loss. Default 4 (NSCC; the paper's value is unknown to us).
    pub collapse_delay: f64,
    /// Largest window, in bandwidth-delay products; also the first window. Default 1.5 (NSCC).
    pub max_bdp: f64,
}

impl Default for StrackConfig {
    fn default() -> Self {
        StrackConfig {
            delay_target: 1.0,
            high_delay: 3.0,
            proportional_increase: 4.0,
            fair_increase: 5.0,
            constant_increase: 0.15,
            decrease: 0.8,
            max_decrease: 0.5,
            delay_gain: 0.0125,
            collapse_delay: 4.0,
            max_bdp: 1.5,
        }
    }
}

impl HasControlModel for StrackConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_DELAY
    }
}

impl Adapt for StrackConfig {
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

impl StrackConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("delay_target", self.delay_target, above(0.0, 1e3), "base round-trip times")?;
        within("high_delay", self.high_delay, 1.0..=1e3, "targets")?;
        within("proportional_increase", self.proportional_increase, above(0.0, 1e3), "")?;
        within("fair_increase", self.fair_increase, above(0.0, 1e3), "")?;
        within("constant_increase", self.constant_increase, 0.0..=1e3, "")?;
        within("decrease", self.decrease, above(0.0, 1.0), "")?;
        within("max_decrease", self.max_decrease, between(0.0, 1.0), "")?;
        within("delay_gain", self.delay_gain, above(0.0, 1.0), "")?;
        within("collapse_delay", self.collapse_delay, 1.0..=1e3, "targets")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")
    }
}

/// State of one queue pair. Windows are in packets, times in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Strack {
    window: f64,
    /// Average queueing delay.
    delay: f64,
    last_decrease: Time,
    /// Time at which the step of a round trip was last taken.
    last_step: Time,
    /// Packets acknowledged since the last check; whether one was lost or very late; and the time of the next check.
    achieved: f64,
    severe: bool,
    check_at: Time,
    params: Params,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    /// Idle round-trip times: of the section that is measured, and of the whole path.
    idle_rtt: f64,
    base_rtt: Duration,
    target: f64,
    high: f64,
    collapse: f64,
    proportional: f64,
    fair: f64,
    constant: f64,
    decrease: f64,
    max_decrease: f64,
    delay_gain: f64,
    max: f64,
    line: Rate,
    packet_time: f64,
    packet_bytes: f64,
}

impl Strack {
    /// Creates the state of one queue pair, with its largest window.
    pub fn new(config: &StrackConfig, env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f64;
        let bdp_bytes = env.bdp_bytes() as f64;
        let max = (config.max_bdp * bdp_bytes / f64::from(env.mtu_wire_bytes)).max(2.0);
        let target = config.delay_target * ps(env.measured.base_rtt);
        let scale = bdp_bytes / REFERENCE_BDP_BYTES;
        Strack {
            window: max,
            delay: 0.0,
            last_decrease: Time::ZERO,
            last_step: Time::ZERO,
            achieved: 0.0,
            severe: false,
            check_at: Time::ZERO,
            params: Params {
                idle_rtt: ps(env.measured.base_rtt),
                base_rtt: env.base_rtt,
                target,
                high: config.high_delay * target,
                collapse: config.collapse_delay * target,
                proportional: config.proportional_increase * scale * target / REFERENCE_TARGET_PS,
                fair: config.fair_increase * scale,
                constant: config.constant_increase * scale,
                decrease: config.decrease,
                max_decrease: config.max_decrease,
                delay_gain: config.delay_gain,
                max,
                line: env.line_rate,
                packet_time: ps(env.line_rate.time_for(u64::from(env.mtu_wire_bytes))),
                packet_bytes: f64::from(env.mtu_wire_bytes),
            },
        }
    }

    fn on_ack(&mut self, now: Time, rtt: Option<Duration>, marked: bool, backlogged: bool) {
        let p = self.params;
        self.achieved += 1.0;
        let measured = rtt.map(|rtt| (rtt.as_ps() as f64 - p.idle_rtt).max(0.0));
        if let Some(delay) = measured {
            self.delay += p.delay_gain * (delay - self.delay);
            self.severe |= delay >= p.collapse;
        }
        let delay = measured.unwrap_or(self.delay);
        if now >= self.check_at && self.collapses(now) {
            return;
        }
        if marked {
            self.shrink(now, delay);
        } else if backlogged {
            // A window that is not filled may be too large already, so it does not grow.
            self.window += if delay < p.target {
                p.proportional * (1.0 - delay / p.target) / self.window
            } else if delay >= p.high {
                p.fair / self.window
            } else {
                0.0
            };
        }
        if backlogged && now.saturating_since(self.last_step) >= p.base_rtt {
            self.window += p.constant;
            self.last_step = now;
        }
        self.bound();
    }

    fn shrink(&mut self, now: Time, delay: f64) {
        let p = &self.params;
        let excess = (self.delay - p.target) / self.delay;
        if delay >= p.target && excess > 0.0 && now.saturating_since(self.last_decrease) >= p.base_rtt {
            self.window *= 1.0 - (p.decrease * excess).min(p.max_decrease);
            self.last_decrease = now;
        }
    }

    /// Checks the packets acknowledged since the last check. Returns true if the window has fallen to them. The first
    /// check only starts the clock.
    fn collapses(&mut self, now: Time) -> bool {
        let falls = self.check_at > Time::ZERO && self.severe && self.achieved < self.window;
        if falls {
            self.window = self.achieved;
            self.last_decrease = now;
            self.bound();
        }
        // The time that a window takes with a queue of exactly the target.
        let target = Duration::from_ps(self.params.target as u64);
        self.check_at = now.saturating_add(self.params.base_rtt).saturating_add(target);
        (self.achieved, self.severe) = (0.0, false);
        falls
    }

    fn bound(&mut self) {
        self.window = self.window.clamp(1.0, self.params.max);
    }
}

impl CongestionControl for Strack {
    crate::ignores!(on_open, on_close, on_timer);
    #[inline]
    fn permit(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        // With nothing in flight a packet always fits, because the window is at least one packet.
        if f64::from(want.inflight_packets) + 1.0 <= self.window { Permit::Now } else { Permit::Blocked }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                self.on_ack(now, timed.then_some(feedback.rtt), marked, feedback.backlogged);
            }
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } | FeedbackKind::Timeout => self.severe = true,
            _ => {}
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // One window per base round-trip time: the rate while there is no queue.
        let share = self.window * self.params.packet_time / self.params.base_rtt.as_ps() as f64;
        Some(self.params.line.scale(share.clamp(1e-6, 1.0)))
    }
    fn window(&self) -> Option<SendWindow> {
        let p = &self.params;
        let bytes = |packets: f64| (packets * p.packet_bytes) as u64;
        Some(SendWindow {
            bytes: bytes(self.window),
            most_bytes: bytes(p.max),
            base_rtt: p.base_rtt,
            delay_target: Duration::from_ps(p.target as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeasuredSection;
    use crate::testing::{ACK, Host, Scenario};

    const US: fn(u64) -> Duration = Duration::from_us;

    /// 100 Gb/s and 12 us are 120 packets of 1,250 bytes. Averages follow at once. Returns a window of 100 packets
    /// just after a check and a step.
    fn strack() -> Strack {
        let env = PolicyEnv {
            base_rtt: US(12),
            measured: MeasuredSection::with_rtt(US(12)),
            mtu_wire_bytes: 1_250,
            ..Scenario::steady().env
        };
        let config = StrackConfig { delay_gain: 1.0, ..StrackConfig::default() };
        let mut strack = Strack::new(&config, &env);
        assert_eq!((strack.window, strack.params.max), (180.0, 180.0));
        strack.window = 100.0;
        (strack.last_step, strack.check_at) = (Time::from_us(1_000), Time::from_us(1_020));
        strack
    }
    fn feed(strack: &mut Strack, at_us: u64, kind: FeedbackKind, queue_us: u64) {
        let feedback = Feedback { kind, rtt: US(12 + queue_us), ..ACK };
        strack.on_feedback(Time::from_us(at_us), &feedback, &mut Host::new(1).cx());
    }
    fn ack(strack: &mut Strack, at_us: u64, queue_us: u64, marked: bool) -> f64 {
        feed(strack, at_us, FeedbackKind::Ack { timed: true, marked }, queue_us);
        strack.window
    }
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn unmarked_it_grows_holds_and_grows_again() {
        // 4 packets for a window of acknowledgements, 2 at half of the target of 12 us, none from the target to 36
        // us, then 5.
        for (queue_us, added) in [(0, 4.0), (6, 2.0), (12, 0.0), (35, 0.0), (36, 5.0), (40, 5.0)] {
            close(ack(&mut strack(), 1_005, queue_us, false), 100.0 + added / 100.0);
        }
    }

    #[test]
    fn marked_it_shrinks_with_the_average_once_a_round_trip() {
        close(ack(&mut strack(), 1_005, 11, true), 100.0);
        // 1 - 0.8 x (24 - 12) / 24; 1 - 0.8 x (48 - 12) / 48 is below a half.
        close(ack(&mut strack(), 1_005, 24, true), 60.0);
        close(ack(&mut strack(), 1_005, 47, true), 100.0 * (1.0 - 0.5));
        let mut strack = strack();
        ack(&mut strack, 1_000, 24, true);
        close(ack(&mut strack, 1_011, 24, true), 60.0);
        // The step of 0.15 comes with the same acknowledgement.
        close(ack(&mut strack, 1_012, 24, true), 36.0 + 0.15);
    }

    #[test]
    fn a_step_each_round_trip_whatever_the_delay() {
        let mut strack = strack();
        close(ack(&mut strack, 1_011, 20, false), 100.0);
        close(ack(&mut strack, 1_012, 20, false), 100.15);
        close(ack(&mut strack, 1_019, 20, false), 100.15);
    }

    #[test]
    fn after_a_loss_or_a_very_long_delay_it_is_what_came_through() {
        for severe in
            [FeedbackKind::Lost, FeedbackKind::Timeout, FeedbackKind::Ack { timed: true, marked: true }]
        {
            let mut strack = strack();
            strack.last_decrease = Time::from_us(1_015);
            feed(&mut strack, 1_016, severe, 48);
            let before = u64::from(matches!(severe, FeedbackKind::Ack { .. }));
            for _ in before..29 {
                ack(&mut strack, 1_018, 20, false);
            }
            assert_eq!(ack(&mut strack, 1_020, 20, false), 30.0, "{severe:?}");
            // The next check is a round trip and a target later.
            assert_eq!((strack.check_at, strack.severe), (Time::from_us(1_044), false));
        }
        // Neither loss nor long delay: the window stays. It never falls below a packet.
        let mut strack = strack();
        close(ack(&mut strack, 1_020, 20, false), 100.15);
        feed(&mut strack, 1_021, FeedbackKind::Timeout, 0);
        strack.check_at = Time::from_us(1_030);
        assert_eq!(ack(&mut strack, 1_030, 20, false), 1.0);
    }

    #[test]
    fn increases_grow_with_the_bandwidth_delay_product() {
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(400),
            base_rtt: US(12),
            measured: MeasuredSection::with_rtt(US(12)),
            ..Scenario::steady().env
        };
        let p = Strack::new(&StrackConfig::default(), &env).params;
        assert_eq!((p.proportional, p.fair, p.constant), (16.0, 20.0, 0.6));
        // With half the round-trip time the target is half, too.
        let p = Strack::new(
            &StrackConfig::default(),
            &PolicyEnv { base_rtt: US(6), measured: MeasuredSection::with_rtt(US(6)), ..env },
        );
        assert_eq!((p.params.proportional, p.params.fair), (4.0, 10.0));
    }

    #[test]
    fn errors_name_the_field() {
        let wrong = |config: StrackConfig| config.validate().expect_err("must be refused").field;
        let usual = StrackConfig::default;
        assert_eq!(wrong(StrackConfig { delay_target: 0.0, ..usual() }), "delay_target");
        assert_eq!(wrong(StrackConfig { high_delay: 0.5, ..usual() }), "high_delay");
        assert_eq!(
            wrong(StrackConfig { proportional_increase: f64::NAN, ..usual() }),
            "proportional_increase"
        );
        assert_eq!(wrong(StrackConfig { fair_increase: 0.0, ..usual() }), "fair_increase");
        assert_eq!(wrong(StrackConfig { constant_increase: -1.0, ..usual() }), "constant_increase");
        assert_eq!(wrong(StrackConfig { decrease: 1.1, ..usual() }), "decrease");
        assert_eq!(wrong(StrackConfig { max_decrease: 1.0, ..usual() }), "max_decrease");
        assert_eq!(wrong(StrackConfig { delay_gain: 0.0, ..usual() }), "delay_gain");
        assert_eq!(wrong(StrackConfig { collapse_delay: 0.0, ..usual() }), "collapse_delay");
        assert_eq!(wrong(StrackConfig { max_bdp: 0.0, ..usual() }), "max_bdp");
        assert_eq!(usual().validate(), Ok(()));
    }
}
