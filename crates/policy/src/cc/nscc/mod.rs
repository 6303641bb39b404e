//! NSCC, the network-signal congestion control of Ultra Ethernet (specification 1.0, section 3.6.13), as in its
//! reference simulator (uet-htsim, commit 40ccb05): a window in bytes, driven by delay and marks together.
//!
//! | | delay below target | above |
//! |---|---|---|
//! | not marked | grow in proportion to the rest of the target (alpha) | grow by a fair step: the queue drains |
//! | marked | no change | shrink in proportion to the excess (gamma), once a round trip |
//!
//! Without a queue the window grows fast. A mark below the target means that only this path is congested; the picker
//! leaves it.
//!
//! Increases are summed, and applied every eight packets or once a round trip, together with a small step (eta) per
//! round trip. *Quick adapt* checks once per round trip plus target. If a packet was trimmed or the delay is far
//! above the target, while few bytes were acknowledged, the window becomes the bytes acknowledged. Marks of data in
//! flight at that time are ignored.
//!
//! The unit is one acknowledgement: one delay, one mark, a number of bytes. Feedback arrives packet by packet.
//! Feedback of one instant is therefore combined, and processed when other feedback arrives or a packet wants to
//! leave.

mod law;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::{AT_MOST_A_SECOND, above, between, check, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, BasePath, ConfigError, FabricEnv, Feedback, FeedbackKind, FullBufferAction, HostDelay, HostEnv,
    MarkUse, PolicyCx, PolicyEnv, QueuePairId, SendRequest, SendWindow, Sent,
};
use law::{Acked, Controller};

/// Parameters of [`Nscc`]. Increases are given for 100 Gb/s and 12 us; in other networks they scale with the
/// bandwidth-delay product.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct NsccConfig {
    /// Rules where simulator and specification differ: "htsim" (default) or "ue1.0".
    pub profile: NsccProfile,
    /// Round-trip time of the idle network, from which target, largest window and increases are computed. Absent:
    /// that of the pair's longest path. uet-htsim uses that of the network's longest path for every pair.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub network_rtt: Option<Duration>,
    /// Target of the queueing delay, in idle round-trip times. Absent: 0.75 if switches trim, otherwise 1.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub delay_target: Option<f64>,
    /// alpha: packets added per round trip without a queue; below the target in proportion to the rest of it. Default
    /// 4.
    pub proportional_increase: f64,
    /// fi: packets added per round trip if unmarked above the target. Default 5.
    pub fair_increase: f64,
    /// eta: packets added once per round trip, whatever the delay. Default 0.15.
    pub constant_increase: f64,
    /// Fraction of the acknowledged bytes that is added once a window of them had a queueing delay below
    /// `fast_delay`. Default 0.25.
    pub fast_increase: f64,
    /// Queueing delay below which nothing counts as queued. Default 1 us, whatever the network.
    pub fast_delay: Duration,
    /// gamma: decrease per relative excess of the average delay over the target. Default 0.8.
    pub decrease: f64,
    /// Largest decrease at once, as a fraction of the window. Default 0.5.
    pub max_decrease: f64,
    /// Weight of the newest queueing delay in its average. Default 0.0125.
    pub delay_gain: f64,
    /// Largest number of packets of the last half window whose median queueing delay replaces that of each packet
    /// (MNSCC: 4, from a second-hand description). Absent: no median.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub median_packets: Option<u16>,
    /// Quick adapt: queueing delay, in targets, above which it counts like a trim. Absent: 4; with profile "ue1.0"
    /// and switches that trim, no delay counts like a trim.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub collapse_delay: Option<f64>,
    /// Quick adapt: fraction of the largest window below which few bytes were acknowledged. Default 0.125.
    pub collapse_share: f64,
    /// Packets acknowledged after which increases are applied. Default 8.
    pub apply_packets: f64,
    /// Largest window, in bandwidth-delay products; also the first window. Default 1.5.
    pub max_bdp: f64,
    /// Effect of packets trimmed at the last hop. "cut" (default): the window loses their bytes. "spare": it does
    /// not, because receivers grant credit and control the last hop themselves.
    pub last_hop_trims: LastHopTrims,
}

/// Effect of a packet trimmed at the last hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum LastHopTrims {
    /// The window loses the packet's bytes.
    #[default]
    Cut,
    /// The window does not change.
    Spare,
}

/// Source of the rules where simulator and specification differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
pub enum NsccProfile {
    /// uet-htsim: an acknowledgement without a measurement counts as one of average delay. A loss without a trim does
    /// not change the window.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "htsim"))]
    Htsim,
    /// The specification, from a second-hand description. Without a measurement the window does not change. A loss
    /// removes its bytes from the window. If switches trim, delay alone does not trigger quick adapt. Clocks start
    /// when the queue pair opens.
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

/// Default targets with and without switches that trim.
const TARGET_WITH_TRIMS: f64 = 0.75;
const TARGET: f64 = 1.0;

/// Default queueing delay that counts like a trim, in targets; and a delay that never occurs.
const COLLAPSE_DELAY: f64 = 4.0;
const NO_DELAY: f64 = f64::INFINITY;

impl HasControlModel for NsccConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_DELAY
    }
}

impl Adapt for NsccConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::BesideDelay
    }
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        if fabric.when_full == FullBufferAction::Trim {
            self.delay_target.get_or_insert(TARGET_WITH_TRIMS);
            if self.profile == NsccProfile::Ue10 {
                self.collapse_delay.get_or_insert(NO_DELAY);
            }
        }
    }
    fn base_path(&self) -> BasePath {
        BasePath::Longest
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        self.max_bdp *= host.max_inflight_bdps;
    }
}

impl NsccConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(rtt) = self.network_rtt {
            within("network_rtt", rtt, above(Duration::ZERO, Duration::from_ms(1_000)), "")?;
        }
        if let Some(target) = self.delay_target {
            within("delay_target", target, above(0.0, 1e3), "idle round-trip times")?;
        }
        within("proportional_increase", self.proportional_increase, above(0.0, 1e3), "")?;
        within("fair_increase", self.fair_increase, above(0.0, 1e3), "")?;
        within("constant_increase", self.constant_increase, 0.0..=1e3, "")?;
        within("fast_increase", self.fast_increase, 0.0..=1e3, "")?;
        within("fast_delay", self.fast_delay, AT_MOST_A_SECOND, "")?;
        within("decrease", self.decrease, above(0.0, 1.0), "")?;
        within("max_decrease", self.max_decrease, between(0.0, 1.0), "")?;
        within("delay_gain", self.delay_gain, above(0.0, 1.0), "")?;
        if let Some(packets) = self.median_packets {
            within("median_packets", packets, 1..=1_024, "")?;
        }
        if let Some(delay) = self.collapse_delay {
            within("collapse_delay", delay, 1.0..=1e3, "targets")?;
        }
        let share = (0.0..=1.0).contains(&self.collapse_share);
        check(share, "collapse_share", self.collapse_share, "0 (never collapses) to 1")?;
        within("apply_packets", self.apply_packets, above(0.0, 1e6), "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")
    }
}

/// Part of an acknowledgement that has been received.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Time,
    acked: Acked,
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Nscc {
    law: Controller,
    pending: Option<Pending>,
    line: Rate,
    mtu_bytes: u64,
}

impl Nscc {
    /// Creates the state of one queue pair, with its largest window.
    pub fn new(config: &NsccConfig, env: &PolicyEnv) -> Self {
        Nscc {
            law: Controller::new(config, env),
            pending: None,
            line: env.line_rate,
            mtu_bytes: u64::from(env.mtu_wire_bytes),
        }
    }

    /// Returns the bytes that may be in flight. Feedback that has not been processed yet is not included.
    pub fn window_bytes(&self) -> u64 {
        self.law.window_bytes()
    }

    /// Processes the pending feedback of one acknowledgement.
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
        if pending.acked.rtt.is_none() && rtt.is_some() {
            (pending.acked.rtt, pending.acked.timed_bytes) = (rtt, wire_bytes);
        }
        pending.acked.marked |= marked;
    }
}

impl CongestionControl for Nscc {
    crate::ignores!(on_close, on_timer);
    fn on_open(&mut self, now: Time, _member: &QueuePairId, _cx: &mut PolicyCx<'_>) {
        self.law.begin(now);
    }
    #[inline]
    fn permit(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        self.settle();
        if want.fits(self.law.window_bytes()) { Permit::Now } else { Permit::Blocked }
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
            // The packet that triggered this acknowledgement was reported before: it measures nothing, but its mark
            // counts.
            FeedbackKind::Duplicate { marked } => self.heard(now, 0, None, marked),
            FeedbackKind::Trimmed { at, .. } => {
                self.settle();
                self.law.on_trim(now, bytes, at);
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
        // One window per base round-trip time: the rate while there is no queue.
        let bdp = self.line.bytes_in(self.law.base_rtt()).max(self.mtu_bytes);
        Some(self.line.scale((self.law.window_bytes() as f64 / bdp as f64).clamp(1e-6, 1.0)))
    }
    fn window(&self) -> Option<SendWindow> {
        Some(self.law.send_window())
    }
}
