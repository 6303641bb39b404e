//! DCTCP (RFC 8257): a window that shrinks by half the fraction of marked packets, once a round trip.
//!
//! Windows count packets. Above a bandwidth-delay product the window grows by a packet a round trip. Below it the
//! window doubles, as in slow start, until the first mark.

use pathweave_units::{Duration, Rate, Time};

use super::window::Window;
use super::{CongestionControl, Permit};
use crate::error::{above, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, ConfigError, Feedback, FeedbackKind, MarkUse, PolicyCx, PolicyEnv, SendRequest, SendWindow, Sent,
};

/// Parameters of [`Dctcp`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DctcpConfig {
    /// g: weight of the newest round in the average fraction of marked packets. Default 1/16 (RFC 8257, section 4.2).
    pub gain: f64,
    /// Packets added per round trip. Default 1. The LAPS study adds 1 Gb/s a round trip instead: about 1.6 packets of
    /// 1,000 bytes at 13 us.
    pub increase: f64,
    /// Smallest window, in packets. Default 2 (Linux).
    pub min_packets: f64,
    /// Largest window, in bandwidth-delay products. Default 8. It must also hold the packets queued at the marking
    /// threshold.
    pub max_bdp: f64,
    /// Initial window. Default one bandwidth-delay product, as for NICs that begin at line rate; Linux has 10
    /// packets.
    pub initial: Window,
}

impl Default for DctcpConfig {
    fn default() -> Self {
        DctcpConfig {
            gain: 1.0 / 16.0,
            increase: 1.0,
            min_packets: 2.0,
            max_bdp: 8.0,
            initial: Window::Bdp(1.0),
        }
    }
}

impl HasControlModel for DctcpConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_MARKS
    }
}

impl Adapt for DctcpConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::Alone
    }
}

impl DctcpConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("gain", self.gain, above(0.0, 1.0), "")?;
        within("increase", self.increase, above(0.0, 1e3), "packets a round trip")?;
        within("min_packets", self.min_packets, 1.0..=1e3, "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")?;
        self.initial
            .validate()
            .map_err(|error| ConfigError { field: error.field.replace("window", "initial"), ..error })
    }
}

/// State of one queue pair. Windows are in packets.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: f64,
    /// Window below which it doubles each round trip.
    slow_start_below: f64,
    /// alpha: average fraction of marked packets.
    marked_share: f64,
    /// Packets acknowledged in this round, and the marked ones among them.
    acked: u32,
    marked: u32,
    /// PSN whose acknowledgement ends the round.
    round_end: u64,
    /// True if a loss has halved the window in this round.
    halved: bool,
    next_psn: u64,
    gain: f64,
    increase: f64,
    min: f64,
    max: f64,
    packet_bytes: f64,
    base_rtt: Duration,
    line: Rate,
}

impl Dctcp {
    pub(crate) fn new(config: &DctcpConfig, env: &PolicyEnv) -> Self {
        let packet_bytes = f64::from(env.mtu_wire_bytes);
        let bdp = (env.bdp_bytes() as f64 / packet_bytes).max(1.0);
        let max = (config.max_bdp * bdp).max(config.min_packets);
        let initial = config.initial.bytes(env) as f64 / packet_bytes;
        Dctcp {
            window: initial.clamp(config.min_packets, max),
            slow_start_below: bdp.min(max),
            // RFC 8257, section 3.3: a conservative initial value.
            marked_share: 1.0,
            acked: 0,
            marked: 0,
            round_end: 0,
            halved: false,
            next_psn: 0,
            gain: config.gain,
            increase: config.increase,
            min: config.min_packets,
            max,
            packet_bytes,
            base_rtt: env.base_rtt,
            line: env.line_rate,
        }
    }

    fn on_ack(&mut self, psn: u64, marked: bool) {
        self.acked += 1;
        self.marked += u32::from(marked);
        if marked {
            self.slow_start_below = self.slow_start_below.min(self.window);
        } else if self.window < self.slow_start_below {
            self.window = (self.window + 1.0).min(self.slow_start_below);
        } else {
            self.window += self.increase / self.window;
        }
        self.window = self.window.min(self.max);
        if psn >= self.round_end {
            self.end_round();
        }
    }

    /// Updates the average and shrinks the window, once a window of data (section 3.3).
    fn end_round(&mut self) {
        let share = f64::from(self.marked) / f64::from(self.acked);
        self.marked_share += self.gain * (share - self.marked_share);
        if self.marked > 0 {
            self.shrink(1.0 - self.marked_share / 2.0);
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = self.next_psn;
        self.halved = false;
    }

    fn shrink(&mut self, factor: f64) {
        self.window = (self.window * factor).max(self.min);
        self.slow_start_below = self.window;
    }
}

impl CongestionControl for Dctcp {
    crate::ignores!(on_open, on_close, on_timer);
    #[inline]
    fn permit(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        let window_bytes = (self.window * self.packet_bytes) as u64;
        if want.fits(window_bytes) { Permit::Now } else { Permit::Blocked }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next_psn = self.next_psn.max(sent.psn + 1);
        0
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { marked, .. } => self.on_ack(feedback.psn, marked),
            // Section 3.5: respond as any TCP, once a window.
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } if !self.halved => {
                self.halved = true;
                self.shrink(0.5);
            }
            FeedbackKind::Timeout => {
                self.slow_start_below = (self.window / 2.0).max(self.min);
                self.window = self.min;
            }
            _ => {}
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // One window per base round-trip time: the rate while there is no queue.
        let bits = self.window * self.packet_bytes * 8.0;
        Some(Rate::from_bps((bits / self.base_rtt.as_secs_f64().max(1e-12)) as u64).min(self.line))
    }
    fn window(&self) -> Option<SendWindow> {
        let bytes = |packets: f64| (packets * self.packet_bytes) as u64;
        Some(SendWindow {
            bytes: bytes(self.window),
            most_bytes: bytes(self.max),
            base_rtt: self.base_rtt,
            // DCTCP controls the queue length, not the delay.
            delay_target: self.base_rtt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ACK, Host, Scenario, random_operations};
    use crate::{PolicyConfig, SplitConfig};

    /// 102 packets of 1,250 bytes are a bandwidth-delay product.
    fn dctcp(config: &DctcpConfig) -> Dctcp {
        Dctcp::new(config, &Scenario::steady().env)
    }
    fn feed(dctcp: &mut Dctcp, kind: FeedbackKind, psn: u64) {
        let feedback = Feedback { kind, psn, rtt: Duration::ZERO, ..ACK };
        dctcp.on_feedback(Time::ZERO, &feedback, &mut Host::new(1).cx());
    }
    /// Acknowledges a round of `packets`, the first `marked` of them marked.
    fn round(dctcp: &mut Dctcp, packets: u64, marked: u64) {
        let first = dctcp.next_psn;
        (dctcp.round_end, dctcp.next_psn) = (first + packets - 1, first + packets);
        for n in 0..packets {
            feed(dctcp, FeedbackKind::Ack { timed: true, marked: n < marked }, first + n);
        }
    }

    #[test]
    fn the_window_shrinks_by_half_the_average_share_of_marks() {
        let mut dctcp = dctcp(&DctcpConfig::default());
        assert_eq!(dctcp.window, 102.0);
        // All marked: the average stays 1, the window halves.
        round(&mut dctcp, 100, 100);
        assert_eq!((dctcp.marked_share, dctcp.window), (1.0, 51.0));
        // None marked: the average falls to 15/16, and the window grows by about a packet.
        round(&mut dctcp, 50, 0);
        assert_eq!(dctcp.marked_share, 0.9375);
        assert!((dctcp.window - 51.97).abs() < 0.01, "{}", dctcp.window);
        // A quarter marked: the average moves by 1/16 of the difference.
        let before = dctcp.window;
        round(&mut dctcp, 52, 13);
        assert_eq!(dctcp.marked_share, 0.9375 + (0.25 - 0.9375) / 16.0);
        let grown = before + 39.0 / before;
        assert!((dctcp.window - grown * (1.0 - dctcp.marked_share / 2.0)).abs() < 0.05, "{}", dctcp.window);
    }

    #[test]
    fn a_small_start_doubles_each_round_up_to_a_bandwidth_delay_product() {
        let mut dctcp = dctcp(&DctcpConfig { initial: Window::Packets(10), ..DctcpConfig::default() });
        for (packets, after) in [(10, 20.0), (20, 40.0), (40, 80.0), (80, 102.0)] {
            round(&mut dctcp, packets, 0);
            assert!((dctcp.window - after).abs() < 0.6, "{} {after}", dctcp.window);
        }
        round(&mut dctcp, 102, 0);
        assert!((dctcp.window - 103.0).abs() < 0.6, "{}", dctcp.window);
    }

    #[test]
    fn losses_halve_once_a_round_and_a_timeout_starts_anew() {
        let mut dctcp = dctcp(&DctcpConfig::default());
        dctcp.round_end = 1_000;
        (0..5).for_each(|psn| feed(&mut dctcp, FeedbackKind::Lost, psn));
        assert_eq!(dctcp.window, 51.0);
        feed(&mut dctcp, FeedbackKind::Timeout, 9);
        assert_eq!((dctcp.window, dctcp.slow_start_below), (2.0, 25.5));
    }

    /// A window of several bandwidth-delay products causes a queue, not a rate above the line rate.
    #[test]
    fn the_rate_is_the_lines_at_most() {
        let config = DctcpConfig { initial: Window::Bdp(8.0), ..DctcpConfig::default() };
        assert_eq!(dctcp(&config).rate(Time::ZERO), Some(Rate::from_gbps(100)));
    }

    #[test]
    fn random_operations_break_no_invariant() {
        for seed in 0..40 {
            let cc = crate::cc::CcConfig::Dctcp(DctcpConfig { max_bdp: 1.0, ..DctcpConfig::default() });
            let picker = crate::picker::PickerConfig::Plb(Default::default());
            let config = PolicyConfig::Split(SplitConfig { cc, picker });
            assert_eq!(config.validate(), Ok(()));
            random_operations(seed, 2_000, &Scenario::steady().env, |env, rng| config.build(env, rng));
        }
    }

    #[test]
    fn errors_name_the_field() {
        let wrong = |config: DctcpConfig| config.validate().expect_err("must be refused").field;
        assert_eq!(wrong(DctcpConfig { gain: 0.0, ..DctcpConfig::default() }), "gain");
        assert_eq!(wrong(DctcpConfig { min_packets: 0.5, ..DctcpConfig::default() }), "min_packets");
        assert_eq!(
            wrong(DctcpConfig { initial: Window::Packets(0), ..DctcpConfig::default() }),
            "initial.packets"
        );
    }
}
