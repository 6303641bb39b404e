//! SMaRTT (Bonato et al., "SMaRTT-REPS", arXiv 2404.01630), the ancestor of NSCC, **as understood**. The rules come
//! from a second-hand description of a port by others, not from the paper's text. Compare trends with it, not exact
//! values.
//!
//! The state is a window in bytes. Each acknowledgement of `m` bytes with round-trip time `r` changes it; `w` is the
//! window, `T` the target. With `fair increase = 0.02 m BDP / w` and `fair decrease = 0.5 m w / BDP`:
//!
//! | | `r` below `T` | above |
//! |---|---|---|
//! | not marked | grow by `min(m, 2 m m (T - r) / (r w)) + fair increase` | grow by the fair increase |
//! | marked | shrink by the fair decrease | shrink by `min(m, m (r - T) / r + fair decrease)` |
//!
//! Marks shrink the window only while more than 0.3 of the recent acknowledgements are marked.
//!
//! If nothing queues for more than a window, the window grows by `m` per acknowledgement. A trim or a loss removes
//! its bytes from the window. *Quick adapt* checks once per target: after a trim or loss the window becomes the bytes
//! acknowledged, and marks, trims and losses of data in flight at that time are ignored.
//!
//! Our choice, because the description does not specify it: the first and largest window is NSCC's, 1.5
//! bandwidth-delay products.

use alloc::boxed::Box;

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::{AT_MOST_A_SECOND, above, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, ConfigError, Feedback, FeedbackKind, HostDelay, HostEnv, MarkUse, PolicyCx, PolicyEnv,
    SendRequest, SendWindow, Sent,
};

/// Parameters of [`Smartt`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct SmarttConfig {
    /// Target of the round-trip time, in idle round-trip times; also the interval of quick adapt. Default 1.5.
    pub rtt_target: f64,
    /// Packets added per acknowledged packet in a round trip, times the relative rest of the target. Default 2.
    pub proportional_increase: f64,
    /// Bandwidth-delay products added per window acknowledged without marks. Default 0.02.
    pub fair_increase: f64,
    /// Fraction of the marked bytes that a window of one bandwidth-delay product loses. Default 0.5.
    pub fair_decrease: f64,
    /// Fraction of the marked bytes that the window loses per relative excess of the round-trip time over the target.
    /// Default 1.
    pub multiplicative_decrease: f64,
    /// Packets added per acknowledged packet once a window of them had a queueing delay of at most `fast_delay`.
    /// Default 1.
    pub fast_increase: f64,
    /// Queueing delay up to which nothing counts as queued. Default 1 us, whatever the network.
    pub fast_delay: Duration,
    /// Weight of the newest acknowledgement in the fraction of marked ones. Default 0.05.
    pub mark_gain: f64,
    /// Fraction of marked acknowledgements above which marks shrink the window. Default 0.3.
    pub mark_share: f64,
    /// Largest window, in bandwidth-delay products; also the first window. Default 1.5 (NSCC).
    pub max_bdp: f64,
}

impl Default for SmarttConfig {
    fn default() -> Self {
        SmarttConfig {
            rtt_target: 1.5,
            proportional_increase: 2.0,
            fair_increase: 0.02,
            fair_decrease: 0.5,
            multiplicative_decrease: 1.0,
            fast_increase: 1.0,
            fast_delay: Duration::from_us(1),
            mark_gain: 0.05,
            mark_share: 0.3,
            max_bdp: 1.5,
        }
    }
}

impl HasControlModel for SmarttConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_DELAY
    }
}

impl Adapt for SmarttConfig {
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

impl SmarttConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("rtt_target", self.rtt_target, above(1.0, 1e3), "idle round-trip times")?;
        within("proportional_increase", self.proportional_increase, 0.0..=1e3, "")?;
        within("fair_increase", self.fair_increase, above(0.0, 1e3), "")?;
        within("fair_decrease", self.fair_decrease, 0.0..=1e3, "")?;
        within("multiplicative_decrease", self.multiplicative_decrease, 0.0..=1e3, "")?;
        within("fast_increase", self.fast_increase, 0.0..=1e3, "")?;
        within("fast_delay", self.fast_delay, AT_MOST_A_SECOND, "")?;
        within("mark_gain", self.mark_gain, above(0.0, 1.0), "")?;
        within("mark_share", self.mark_share, 0.0..=1.0, "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")
    }
}

/// State of one queue pair. Sizes are bytes on the wire.
#[derive(Clone, Debug)]
pub struct Smartt {
    window: f64,
    in_flight: u64,
    /// Average fraction of marked acknowledgements.
    marked_share: f64,
    /// Bytes acknowledged in a row without a queue, and the window at the last one with a queue.
    unqueued: f64,
    window_at_last_queue: f64,
    /// State of quick adapt: bytes acknowledged since the last check; time of the next check, zero before the first;
    /// whether a packet was trimmed or lost since; number of bytes whose marks are ignored, and how many of them have
    /// arrived.
    achieved: u64,
    look_at: Time,
    refused: bool,
    to_ignore: u64,
    ignored: u64,
    // Boxed, because it never changes.
    params: Box<Params>,
}

#[derive(Clone, Debug)]
struct Params {
    config: SmarttConfig,
    line: Rate,
    base_rtt: Duration,
    target: Duration,
    bdp: f64,
    mtu: f64,
    max: f64,
}

impl Smartt {
    /// Creates the state of one queue pair, with its largest window.
    pub fn new(config: &SmarttConfig, env: &PolicyEnv) -> Self {
        let (bdp, mtu) = (env.bdp_bytes() as f64, f64::from(env.mtu_wire_bytes));
        let max = (config.max_bdp * bdp).max(mtu);
        // Idle round-trip time of the section that is measured.
        let idle = env.measured.base_rtt;
        Smartt {
            window: max,
            in_flight: 0,
            marked_share: 0.0,
            unqueued: 0.0,
            window_at_last_queue: max,
            achieved: 0,
            look_at: Time::ZERO,
            refused: false,
            to_ignore: 0,
            ignored: 0,
            params: Box::new(Params {
                line: env.line_rate,
                base_rtt: idle,
                target: Duration::from_ps((idle.as_ps() as f64 * config.rtt_target) as u64),
                bdp: bdp.max(mtu),
                mtu,
                max,
                config: config.clone(),
            }),
        }
    }

    /// Returns the bytes that may be in flight.
    pub fn window_bytes(&self) -> u64 {
        self.window as u64
    }

    /// Processes an acknowledgement of `bytes` bytes. Without a measurement only the bytes count.
    fn on_ack(&mut self, now: Time, bytes: u64, rtt: Option<Duration>, marked: bool) {
        self.achieved += bytes;
        self.note_gone(bytes);
        if self.adapts(now) {
            return;
        }
        let c = &self.params.config;
        self.marked_share += c.mark_gain * (f64::from(u8::from(marked)) - self.marked_share);
        let Some(rtt) = rtt else { return };
        if marked {
            if self.ignored >= self.to_ignore && self.marked_share > c.mark_share {
                self.window -= self.decrease(bytes as f64, rtt);
            }
        } else {
            self.window += self.increase(bytes as f64, rtt);
        }
        self.note_queue(bytes as f64, rtt, marked);
        self.bound();
    }

    fn increase(&self, bytes: f64, rtt: Duration) -> f64 {
        let (p, c) = (&self.params, &self.params.config);
        if self.unqueued > self.window_at_last_queue {
            return c.fast_increase * bytes;
        }
        let (target, taken) = (p.target.as_ps() as f64, rtt.as_ps().max(1) as f64);
        let left = (target - taken).max(0.0) / taken;
        let proportional = (c.proportional_increase * bytes * p.mtu * left / self.window).min(bytes);
        proportional + c.fair_increase * bytes * p.bdp / self.window
    }

    fn decrease(&self, bytes: f64, rtt: Duration) -> f64 {
        let (p, c) = (&self.params, &self.params.config);
        let (target, taken) = (p.target.as_ps() as f64, rtt.as_ps().max(1) as f64);
        let excess = (taken - target).max(0.0) / taken;
        let fair = c.fair_decrease * bytes * self.window / p.bdp;
        (c.multiplicative_decrease * bytes * excess + fair).min(bytes)
    }

    fn note_queue(&mut self, bytes: f64, rtt: Duration, marked: bool) {
        if !marked && rtt.saturating_sub(self.params.base_rtt) <= self.params.config.fast_delay {
            self.unqueued += bytes;
        } else {
            self.unqueued = 0.0;
            self.window_at_last_queue = self.window;
        }
    }

    fn note_gone(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.ignored = self.ignored.saturating_add(bytes);
    }

    /// Processes a packet that was trimmed or lost.
    fn on_refused(&mut self, now: Time, bytes: u64) {
        self.refused = true;
        let ignores = self.ignored < self.to_ignore;
        self.note_gone(bytes);
        if !self.adapts(now) && !ignores {
            self.window -= bytes as f64;
        }
        self.unqueued = 0.0;
        self.window_at_last_queue = self.window.max(self.params.mtu);
        self.bound();
    }

    /// Quick adapt: returns true if the window has been set to the bytes acknowledged. The first check only starts
    /// the clock.
    fn adapts(&mut self, now: Time) -> bool {
        if now < self.look_at {
            return false;
        }
        let falls = self.look_at > Time::ZERO && self.refused;
        if falls {
            self.window = self.achieved as f64;
            (self.to_ignore, self.ignored) = (self.in_flight, 0);
            self.refused = false;
            self.bound();
        }
        self.achieved = 0;
        self.look_at = now.saturating_add(self.params.target);
        falls
    }

    fn bound(&mut self) {
        self.window = self.window.clamp(self.params.mtu, self.params.max);
    }
}

impl CongestionControl for Smartt {
    crate::ignores!(on_open, on_close, on_timer);
    #[inline]
    fn permit(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if want.fits(self.window_bytes()) { Permit::Now } else { Permit::Blocked }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.in_flight += u64::from(sent.wire_bytes);
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let bytes = u64::from(feedback.wire_bytes);
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                self.on_ack(now, bytes, timed.then_some(feedback.rtt), marked);
            }
            FeedbackKind::Trimmed { .. } | FeedbackKind::Lost | FeedbackKind::Timeout => {
                self.on_refused(now, bytes);
            }
            _ => {}
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // One window per base round-trip time: the rate while there is no queue.
        Some(self.params.line.scale((self.window / self.params.bdp).clamp(1e-6, 1.0)))
    }
    fn window(&self) -> Option<SendWindow> {
        let p = &self.params;
        Some(SendWindow {
            bytes: self.window_bytes(),
            most_bytes: p.max as u64,
            base_rtt: p.base_rtt,
            delay_target: p.target.saturating_sub(p.base_rtt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeasuredSection;
    use crate::testing::{ACK, Host, Scenario, random_operations};

    const US: fn(u64) -> Duration = Duration::from_us;

    /// 100 Gb/s and 12 us are 150,000 bytes; packets have 4,000 bytes; the target is 18 us. Returns a window of
    /// 100,000 just after a check, with all recent acknowledgements marked.
    fn smartt() -> Smartt {
        let env = PolicyEnv {
            base_rtt: US(12),
            measured: MeasuredSection::with_rtt(US(12)),
            mtu_wire_bytes: 4_000,
            ..Scenario::steady().env
        };
        let mut smartt = Smartt::new(&SmarttConfig::default(), &env);
        assert_eq!((smartt.window, smartt.params.bdp), (225_000.0, 150_000.0));
        smartt.window = 100_000.0;
        smartt.window_at_last_queue = 100_000.0;
        smartt.marked_share = 1.0;
        smartt.look_at = Time::from_us(1_018);
        smartt
    }
    fn feed(smartt: &mut Smartt, at_us: u64, kind: FeedbackKind, rtt: Duration) -> f64 {
        let feedback = Feedback { kind, wire_bytes: 4_000, rtt, ..ACK };
        smartt.on_feedback(Time::from_us(at_us), &feedback, &mut Host::new(1).cx());
        smartt.window
    }
    fn ack(smartt: &mut Smartt, at_us: u64, rtt_us: u64, marked: bool) -> f64 {
        feed(smartt, at_us, FeedbackKind::Ack { timed: true, marked }, US(rtt_us))
    }
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
    }

    #[test]
    fn unmarked_it_grows_in_proportion_to_what_is_left_and_by_a_fair_step() {
        // 2 x 4,000 x 4,000 / 100,000 = 320 times (18 - r) / r; 0.02 x 4,000 x 1.5 = 120.
        for (rtt_us, grown) in [(15, 320.0 * 3.0 / 15.0 + 120.0), (18, 120.0), (40, 120.0)] {
            close(ack(&mut smartt(), 1_001, rtt_us, false), 100_000.0 + grown);
        }
        // At most a packet per packet: 2 x 4,000 / 4,000 x 0.5 is one.
        let mut small = smartt();
        small.window = 4_000.0;
        close(ack(&mut small, 1_001, 12, false), 4_000.0 + 4_000.0 + 0.02 * 150_000.0);
    }

    #[test]
    fn marked_it_shrinks_by_the_excess_and_by_its_share() {
        // 0.5 x 4,000 x 100,000 / 150,000 = 1,333.3; 4,000 x (24 - 18) / 24 = 1,000.
        let fair = 4_000.0 / 3.0;
        for (rtt_us, cut) in [(13, fair), (18, fair), (24, 1_000.0 + fair), (180, 3_600.0 + 400.0)] {
            close(ack(&mut smartt(), 1_001, rtt_us, true), 100_000.0 - cut);
        }
    }

    #[test]
    fn few_marks_are_ignored() {
        let mut smartt = smartt();
        smartt.marked_share = 0.0;
        // 1 - 0.95^n is above 0.3 from the seventh on.
        for n in 1..=7 {
            let before = smartt.window;
            let after = ack(&mut smartt, 1_001, 24, true);
            assert_eq!(after < before, n == 7, "{n}");
        }
    }

    #[test]
    fn where_nothing_queues_for_more_than_a_window_it_grows_by_what_is_acknowledged() {
        let mut smartt = smartt();
        // 26 packets of 4,000 are more than a window of 100,000.
        let before = (0..26).fold(0.0, |_, _| ack(&mut smartt, 1_001, 13, false));
        close(ack(&mut smartt, 1_001, 13, false), before + 4_000.0);
        // More than a microsecond counts as a queue, but not for the increase of this acknowledgement.
        ack(&mut smartt, 1_001, 14, false);
        let queued = smartt.window;
        assert!(ack(&mut smartt, 1_001, 12, false) < queued + 1_000.0);
    }

    #[test]
    fn a_trim_costs_its_bytes_and_quick_adapt_all_that_did_not_come_through() {
        let mut smartt = smartt();
        smartt.in_flight = 60_000;
        close(feed(&mut smartt, 1_001, FeedbackKind::Lost, Duration::ZERO), 96_000.0);
        // At the check two packets have been acknowledged, and 48,000 bytes are in flight.
        ack(&mut smartt, 1_002, 30, false);
        assert_eq!(ack(&mut smartt, 1_018, 30, false), 8_000.0);
        assert_eq!((smartt.to_ignore, smartt.look_at), (48_000, Time::from_us(1_036)));
        // Marks and trims of these bytes are ignored, unmarked acknowledgements are not.
        assert_eq!(ack(&mut smartt, 1_019, 30, true), 8_000.0);
        assert_eq!(feed(&mut smartt, 1_019, FeedbackKind::Lost, Duration::ZERO), 8_000.0);
        assert!(ack(&mut smartt, 1_020, 30, false) > 8_000.0);
        smartt.refused = false;
        (0..9).for_each(|_| assert!(ack(&mut smartt, 1_021, 30, false) > 0.0));
        let window = smartt.window;
        assert!(ack(&mut smartt, 1_022, 30, true) < window, "all have come");
    }

    #[test]
    fn errors_name_the_field() {
        let usual = SmarttConfig::default;
        let wrong = |config: SmarttConfig| config.validate().expect_err("must be refused").field;
        assert_eq!(wrong(SmarttConfig { rtt_target: 1.0, ..usual() }), "rtt_target");
        assert_eq!(wrong(SmarttConfig { proportional_increase: -1.0, ..usual() }), "proportional_increase");
        assert_eq!(wrong(SmarttConfig { fair_increase: 0.0, ..usual() }), "fair_increase");
        assert_eq!(wrong(SmarttConfig { fair_decrease: f64::NAN, ..usual() }), "fair_decrease");
        assert_eq!(wrong(SmarttConfig { mark_gain: 0.0, ..usual() }), "mark_gain");
        assert_eq!(wrong(SmarttConfig { mark_share: 1.1, ..usual() }), "mark_share");
        assert_eq!(wrong(SmarttConfig { max_bdp: 0.0, ..usual() }), "max_bdp");
        assert_eq!(usual().validate(), Ok(()));
    }

    #[test]
    fn random_operations_break_no_invariant() {
        use crate::picker::PickerConfig;
        for seed in 0..60 {
            let max_bdp = [1.5, 0.01, 4.0][seed as usize % 3];
            let config = SmarttConfig { max_bdp, ..SmarttConfig::default() };
            random_operations(seed, 2_000, &Scenario::steady().env, |env, rng| crate::SplitPolicy {
                cc: Smartt::new(&config, env),
                picker: PickerConfig::Rps.build(env, rng),
            });
        }
    }
}
