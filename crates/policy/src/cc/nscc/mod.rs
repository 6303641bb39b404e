//! NSCC, the network-signal congestion control of Ultra Ethernet (specification 1.0, section 3.6.13), as its reference
//! simulator has it (uet-htsim, commit 40ccb05): a window in bytes, moved by delay and marks together.
//!
//! | | delay below target | above |
//! |---|---|---|
//! | not marked | grow in proportion to what is left of the target (alpha); fast where nothing queues | grow by a fair step: the queue drains |
//! | marked | nothing: the congestion is this path's, which the picker leaves | shrink in proportion to the excess (gamma), once a round trip |
//!
//! Increases are summed and applied every eight packets or once a round trip, with a small step (eta) a round trip.
//! *Quick adapt*: once a round trip and target, if something was trimmed or the delay is far above the target while little came
//! through, the window becomes what came through, and the marks of what was in flight then are ignored.
//!
//! An acknowledgement is the unit: one delay, one mark, so many bytes. Feedback comes packet by packet, so what comes at one
//! instant is put together, and judged when something else comes or a packet wants to leave.

mod law;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::check;
use crate::fluid::{Control, Controls};
use crate::{
    Adapt, ConfigError, FabricEnv, Feedback, FeedbackKind, HostDelay, HostEnv, Member, PolicyCx, PolicyEnv,
    SendWindow, Sent, Want, WhenFull,
};
use law::{Acked, Law};

/// Parameters of [`Nscc`]. Increases are those at 100 Gb/s and 12 us; elsewhere they are larger or smaller by the
/// bandwidth-delay product.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NsccConfig {
    /// Where simulator and specification differ.
    pub profile: NsccProfile,
    /// Round-trip time of the idle network, from which target, largest window and increases are reckoned. Absent: that of the
    /// pair of hosts. uet-htsim has that of the longest path of the network for every pair.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub network_rtt: Option<Duration>,
    /// Target of the queueing delay, in idle round-trip times. Absent: 0.75 where switches trim, otherwise 1.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub delay_target: Option<f64>,
    /// alpha: packets added a round trip while nothing queues (4); in proportion to what is left of the target.
    pub proportional_increase: f64,
    /// fi: packets added a round trip when unmarked above the target (5).
    pub fair_increase: f64,
    /// eta: packets added once a round trip whatever the delay (0.15).
    pub constant_increase: f64,
    /// Share of the bytes acknowledged that is added once a window of them has met a delay below `fast_delay` (0.25).
    pub fast_increase: f64,
    /// Below it nothing queues (1 us, whatever the network).
    pub fast_delay: Duration,
    /// gamma: decrease for each share of the average delay above the target (0.8).
    pub decrease: f64,
    /// Most of the window that goes at once (0.5).
    pub max_decrease: f64,
    /// Weight of the newest queueing delay in its average (0.0125).
    pub delay_gain: f64,
    /// Most packets of the last half window of which the median queueing delay counts for each one's (MNSCC: 4), as understood
    /// at second hand. Absent: each has its own.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub median_packets: Option<u16>,
    /// Quick adapt: a queueing delay of more than this many targets is as bad as a trim. Absent: 4; with profile "ue1.0" no delay
    /// is where switches trim.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub collapse_delay: Option<f64>,
    /// Quick adapt: only if less than this share of the largest window came through (0.125).
    pub collapse_share: f64,
    /// Packets acknowledged after which increases are applied (8).
    pub apply_packets: f64,
    /// Largest window, which is also the first, in bandwidth-delay products (1.5).
    pub max_bdp: f64,
    /// Whether what is trimmed at the last hop takes its bytes from the window: "cut" (default) it does; "spare" it does not,
    /// where receivers grant credit and see to the last hop themselves.
    pub last_hop_trims: LastHopTrims,
}

/// What a trim at the last hop does to the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LastHopTrims {
    /// It takes the packet's bytes from it.
    #[default]
    Cut,
    /// Nothing.
    Spare,
}

/// Whose rules, where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NsccProfile {
    /// uet-htsim's: an acknowledgement without a measurement counts as one of average delay; a loss that was not told by a
    /// trim does not move the window.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "htsim"))]
    Htsim,
    /// The specification's, as known at second hand: without a measurement the window does not move; a loss takes its bytes from
    /// the window; where switches trim, delay alone does not make it collapse. Times start when the queue pair opens.
    #[cfg_attr(feature = "serde", serde(rename = "ue1.0"))]
    Ue10,
}

impl Default for NsccConfig {
    fn default() -> Self {
        NsccConfig {
            profile: NsccProfile::Htsim,
            network_rtt: None,
            delay_target: None,
            proportional_increase: 4.0,
            fair_increase: 5.0,
            constant_increase: 0.15,
            fast_increase: 0.25,
            fast_delay: Duration::from_us(1),
            decrease: 0.8,
            max_decrease: 0.5,
            delay_gain: 0.0125,
            median_packets: None,
            collapse_delay: None,
            collapse_share: 0.125,
            apply_packets: 8.0,
            max_bdp: 1.5,
            last_hop_trims: LastHopTrims::Cut,
        }
    }
}

/// Target where switches trim, and where they do not.
const TARGET_WITH_TRIMS: f64 = 0.75;
const TARGET: f64 = 1.0;

/// Queueing delay that is as bad as a trim, in targets, and one that there never is.
const COLLAPSE_DELAY: f64 = 4.0;
const NO_DELAY: f64 = f64::INFINITY;

impl Controls for NsccConfig {
    fn control(&self) -> Control {
        Control::BY_DELAY
    }
}

impl Adapt for NsccConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        if fabric.when_full == WhenFull::Trim {
            self.delay_target.get_or_insert(TARGET_WITH_TRIMS);
            if self.profile == NsccProfile::Ue10 {
                self.collapse_delay.get_or_insert(NO_DELAY);
            }
        }
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.max_bdp *= host.held_bdps;
    }
}

impl NsccConfig {
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = |name, x: f64, most: f64, allowed| check(x > 0.0 && x <= most, name, x, allowed);
        let thousand = "more than 0, at most 1000";
        let second = Duration::from_ms(1_000);
        if let Some(rtt) = self.network_rtt {
            check(rtt > Duration::ZERO && rtt <= second, "network_rtt", rtt, "more than 0s, at most 1s")?;
        }
        if let Some(target) = self.delay_target {
            positive("delay_target", target, 1e3, "more than 0, at most 1000 (idle round-trip times)")?;
        }
        positive("proportional_increase", self.proportional_increase, 1e3, thousand)?;
        positive("fair_increase", self.fair_increase, 1e3, thousand)?;
        let from_zero = |name, x: f64| check((0.0..=1e3).contains(&x), name, x, "0 to 1000");
        from_zero("constant_increase", self.constant_increase)?;
        from_zero("fast_increase", self.fast_increase)?;
        check(self.fast_delay <= second, "fast_delay", self.fast_delay, "at most 1s")?;
        positive("decrease", self.decrease, 1.0, "more than 0, at most 1")?;
        let most = self.max_decrease > 0.0 && self.max_decrease < 1.0;
        check(most, "max_decrease", self.max_decrease, "more than 0, less than 1")?;
        positive("delay_gain", self.delay_gain, 1.0, "more than 0, at most 1")?;
        if let Some(packets) = self.median_packets {
            check((1..=1_024).contains(&packets), "median_packets", packets, "1 to 1024")?;
        }
        let targets = "1 to 1000 (targets)";
        if let Some(delay) = self.collapse_delay {
            check((1.0..=1e3).contains(&delay), "collapse_delay", delay, targets)?;
        }
        let share = (0.0..=1.0).contains(&self.collapse_share);
        check(share, "collapse_share", self.collapse_share, "0 (never collapses) to 1")?;
        positive("apply_packets", self.apply_packets, 1e6, "more than 0, at most 1000000")?;
        positive("max_bdp", self.max_bdp, 1e3, thousand)
    }
}

/// What of one acknowledgement has been heard.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Time,
    acked: Acked,
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Nscc {
    law: Law,
    pending: Option<Pending>,
    line: Rate,
    mtu_bytes: u64,
}

impl Nscc {
    /// The state of one queue pair, with its largest window.
    pub fn new(config: &NsccConfig, env: &PolicyEnv) -> Self {
        Nscc {
            law: Law::new(config, env),
            pending: None,
            line: env.line_rate,
            mtu_bytes: u64::from(env.mtu_wire_bytes),
        }
    }

    /// Bytes that may be in flight. What has been heard and not judged yet does not show.
    pub fn window_bytes(&self) -> u64 {
        self.law.window_bytes()
    }

    /// Judges what has been heard of one acknowledgement.
    #[inline]
    fn settle(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.law.on_ack(pending.at, &pending.acked);
        }
    }

    fn heard(&mut self, now: Time, wire_bytes: u32, rtt: Option<Duration>, marked: bool) {
        let is_another =
            |pending: &Pending| pending.at != now || (rtt.is_some() && pending.acked.rtt.is_some());
        if self.pending.as_ref().is_some_and(is_another) {
            self.settle();
        }
        let pending = self.pending.get_or_insert(Pending { at: now, acked: Acked::default() });
        pending.acked.bytes += u64::from(wire_bytes);
        pending.acked.rtt = pending.acked.rtt.or(rtt);
        pending.acked.marked |= marked;
    }
}

impl CongestionControl for Nscc {
    crate::ignores!(on_close, on_timer);
    fn on_open(&mut self, now: Time, _member: &Member, _cx: &mut PolicyCx<'_>) {
        self.law.begin(now);
    }
    #[inline]
    fn permit(&mut self, _now: Time, want: &Want, _cx: &mut PolicyCx<'_>) -> Permit {
        self.settle();
        if super::window::fits(want, self.law.window_bytes()) { Permit::Now } else { Permit::Blocked }
    }
    #[inline]
    fn on_sent(&mut self, _now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.law.on_sent(sent.wire_bytes);
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let bytes = feedback.wire_bytes;
        match feedback.kind {
            FeedbackKind::Ack { timed, marked } => {
                self.heard(now, bytes, timed.then_some(feedback.rtt), marked);
            }
            // The packet that caused this acknowledgement was told of before: it measures nothing, but its mark counts.
            FeedbackKind::Heard { marked } => self.heard(now, 0, None, marked),
            FeedbackKind::Trimmed { at, .. } => {
                self.settle();
                self.law.on_trim(now, bytes, feedback.rtt, at);
            }
            FeedbackKind::Lost => {
                self.settle();
                self.law.on_loss(bytes);
            }
            FeedbackKind::Timeout => {
                self.settle();
                self.law.on_timeout(bytes);
            }
            _ => {}
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // A window a base round-trip time: what it allows while there is no queue.
        let bdp = self.line.bytes_in(self.law.base_rtt()).max(self.mtu_bytes);
        Some(self.line.scale((self.law.window_bytes() as f64 / bdp as f64).clamp(1e-6, 1.0)))
    }
    fn window(&self) -> Option<SendWindow> {
        Some(self.law.send_window())
    }
}
