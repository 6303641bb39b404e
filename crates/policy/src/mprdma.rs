//! MP-RDMA (Lu et al., "Multi-Path Transport for RDMA in Datacenters", NSDI 2018): one window for all paths, driven by
//! ECN, and ACK clocking that keeps each path's share of it without state per path.
//!
//! - Window: an unmarked acknowledgement adds 1/cwnd packets, a marked one removes half a *packet*. (Baselines in the
//!   literature halve the *window*; `decrease = "half_window"` simulates them.)
//! - Clock: an acknowledgement releases up to two packets on its own path, as far as the window has room. The paper
//!   computes the room with `inflate`, the number of packets acknowledged out of order. Here the endpoint counts the
//!   packets in flight, which gives the same value.
//! - Out of order: an acknowledgement more than Delta behind the highest removes one packet from the window and
//!   releases nothing on its path; it permits one retransmission on another path. The endpoint's loss recovery
//!   decides which packet is retransmitted and when it counts as lost.
//! - Idle start: releases that found nothing to send are kept, up to the window, for random paths. After a pause
//!   longer than the burst timer the flow restarts with at most the initial window.

use core::fmt;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};

use crate::ack_clock::AckClock;
use crate::error::{above, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, Spread};
use crate::late_acks::LateAckDetector;
use crate::{
    Adapt, ConfigError, Egress, Feedback, FeedbackKind, Grant, MarkUse, Memo, PathView, Policy, PolicyCx,
    PolicyEnv, SendRequest, Sent,
};

/// Effect of a mark on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Decrease {
    /// Every marked acknowledgement removes half a packet (NSDI 2018).
    #[default]
    HalfPacket,
    /// A marked acknowledgement halves the window, at most once a round trip. Not MP-RDMA.
    HalfWindow,
    /// Every marked acknowledgement halves the window. Not MP-RDMA.
    HalfWindowEachMark,
}

impl fmt::Display for Decrease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decrease::HalfPacket => "half_packet",
            Decrease::HalfWindow => "half_window",
            Decrease::HalfWindowEachMark => "half_window_each_mark",
        })
    }
}

/// Parameters of MP-RDMA.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct MpRdmaConfig {
    /// Effect of a mark on the window: "half_packet" (default), "half_window" or "half_window_each_mark".
    pub decrease: Decrease,
    /// Initial window, in bandwidth-delay products. Default 1: a RoCE queue pair starts at line rate.
    pub initial_window_bdp: f64,
    /// p: probability that a packet explores a random path instead of the acknowledgement's. Default 0.01 (NSDI
    /// 2018).
    pub explore: f64,
    /// Delta: an acknowledgement more than this many packets behind the highest is out of order. 0 disables the
    /// check. Default 64 (UDMP, figure 7; NSDI 2018 has 32).
    pub ooo_packets: u32,
    /// Burst timer: a flow that has had nothing to send for this long restarts with at most the initial window.
    /// Default 0s, which means the base round-trip time.
    pub burst_timer: Duration,
}

impl Default for MpRdmaConfig {
    fn default() -> Self {
        MpRdmaConfig {
            decrease: Decrease::default(),
            initial_window_bdp: 1.0,
            explore: 0.01,
            ooo_packets: 64,
            burst_timer: Duration::ZERO,
        }
    }
}

impl AsFluid for MpRdmaConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: ControlModel::BY_MARKS }
    }
}

impl Adapt for MpRdmaConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::Alone
    }
}

impl MpRdmaConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("initial_window_bdp", self.initial_window_bdp, above(0.0, 1e3), "")?;
        within("explore", self.explore, 0.0..=1.0, "")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> MpRdma {
        MpRdma::new(self, env, rng)
    }
}

/// Budget to which a granted packet is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charge {
    /// A release by an acknowledgement.
    Release,
    /// A release kept for later, or the initial window.
    Kept,
    /// The retransmission that a late acknowledgement or a loss permits.
    Resend,
    /// None: nothing is in flight, and the clock needs a packet to run.
    Start,
}

/// Largest window: far beyond any bandwidth-delay product, and low enough for exact arithmetic.
const MOST_PACKETS: f64 = 1_048_576.0;

/// Memo that [`MpRdma`] attaches to a retransmission.
const RETRANSMITTED: Memo = Memo(1);

/// Policy of one direction of one queue pair.
#[derive(Clone, Debug)]
pub struct MpRdma {
    /// Congestion window in packets, at least 1.
    cwnd: f64,
    clock: AckClock,
    ooo: LateAckDetector,
    /// Packets that may leave on any path.
    kept: u32,
    /// Unused part of the grants of short packets, in full packets.
    spare: f64,
    /// Retransmissions that may leave on any path.
    resends: u32,
    /// PSN that must be acknowledged before the window is halved again.
    recover: u64,
    next_psn: u64,
    last_ack: Time,
    /// True if the last acknowledgement found nothing to send.
    idle: bool,
    charge: Charge,
    params: Params,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    decrease: Decrease,
    initial: u32,
    burst_timer: Duration,
    line: Rate,
    packet_time: Duration,
    packet_bytes: f64,
    base_rtt: Duration,
}

impl MpRdma {
    /// Creates a queue pair that may send its initial window on random paths.
    pub fn new(config: &MpRdmaConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let packets = env.bdp_bytes() as f64 * config.initial_window_bdp / f64::from(env.mtu_wire_bytes);
        // Rounded up to a whole packet: less would leave the line idle for the rest of the round trip.
        let initial = (packets.min(MOST_PACKETS - 1.0) + 0.999_999) as u32;
        let initial = initial.max(1);
        let idle = config.burst_timer;
        MpRdma {
            cwnd: f64::from(initial),
            clock: AckClock::new(env.paths, config.explore, rng),
            ooo: LateAckDetector::new(config.ooo_packets),
            kept: initial,
            spare: 0.0,
            resends: 0,
            recover: 0,
            next_psn: 0,
            last_ack: Time::ZERO,
            idle: false,
            charge: Charge::Kept,
            params: Params {
                decrease: config.decrease,
                initial,
                burst_timer: if idle == Duration::ZERO { env.base_rtt } else { idle },
                line: env.line_rate,
                packet_time: env.line_rate.time_for(u64::from(env.mtu_wire_bytes)),
                packet_bytes: f64::from(env.mtu_wire_bytes),
                base_rtt: env.base_rtt,
            },
        }
    }
    /// Returns the window, in packets.
    pub fn window_packets(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn shrink(&mut self, packets: f64) {
        self.cwnd = (self.cwnd - packets).max(1.0);
    }

    fn mark(&mut self, psn: u64) {
        match self.params.decrease {
            Decrease::HalfPacket => self.shrink(0.5),
            Decrease::HalfWindow if psn >= self.recover => {
                self.recover = self.next_psn;
                self.shrink(self.cwnd / 2.0);
            }
            Decrease::HalfWindow => {}
            Decrease::HalfWindowEachMark => self.shrink(self.cwnd / 2.0),
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, feedback: &Feedback, marked: bool, rng: &mut Rng) {
        self.last_ack = now;
        self.idle = !feedback.backlogged;
        // The PSN of a retransmission is always old.
        if feedback.memo != RETRANSMITTED && self.ooo.is_late(feedback.psn) {
            return self.make_way(feedback.path, rng);
        }
        if marked {
            self.mark(feedback.psn);
        } else if feedback.backlogged {
            // A window that is not used up may be too large already, so it does not grow.
            self.cwnd = (self.cwnd + 1.0 / self.cwnd).min(MOST_PACKETS);
        }
        let spoken_for = feedback.inflight_packets + self.clock.pending() + self.kept;
        let packets = (self.cwnd as u32).saturating_sub(spoken_for).min(2);
        if feedback.backlogged {
            self.clock.release(feedback.path, packets, rng);
        } else {
            self.kept += packets;
        }
    }

    /// Responds to a path that lags or loses packets: the window shrinks by one packet, and another path may take the
    /// retransmission.
    fn make_way(&mut self, path: PathId, rng: &mut Rng) {
        self.shrink(1.0);
        self.resends = (self.resends + 1).min(self.params.initial);
        self.clock.avoid(path, rng);
    }

    /// Saves the unused part of a grant for a full packet. Each full packet saved by short packets in a row is kept
    /// for later.
    #[inline]
    fn save(&mut self, wire_bytes: u32) {
        let rest = 1.0 - f64::from(wire_bytes) / self.params.packet_bytes;
        self.spare = if rest > 0.0 { self.spare + rest } else { 0.0 };
        if self.spare >= 1.0 {
            self.spare -= 1.0;
            self.kept = self.kept.saturating_add(1);
        }
    }

    #[inline]
    fn grant(&mut self, charge: Charge, path: PathId, egress: Egress) -> Grant {
        self.charge = charge;
        Grant::Send(self.clock.move_to_free_port(path, egress))
    }
}

impl Policy for MpRdma {
    crate::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, _now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Grant {
        if want.retransmit && self.resends > 0 {
            return self.grant(Charge::Resend, self.clock.random_path(), want.egress);
        }
        if let Some(path) = self.clock.next(want.egress) {
            return self.grant(Charge::Release, path, want.egress);
        }
        if self.kept > 0 && (want.inflight_packets < self.cwnd as u32) {
            return self.grant(Charge::Kept, self.clock.random_path(), want.egress);
        }
        if want.inflight_packets == 0 {
            return self.grant(Charge::Start, self.clock.random_path(), want.egress);
        }
        Grant::Blocked
    }

    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.next_psn = self.next_psn.max(sent.psn + 1);
        match self.charge {
            Charge::Release => self.clock.pop(sent.path),
            Charge::Kept => self.kept -= 1,
            Charge::Resend => self.resends -= 1,
            Charge::Start => {
                if self.idle && now - self.last_ack >= self.params.burst_timer {
                    self.kept = (self.cwnd as u32).min(self.params.initial) - 1;
                }
            }
        }
        if self.charge != Charge::Release {
            self.clock.commit_random_path(cx.rng);
        }
        self.save(sent.wire_bytes);
        if sent.retransmit { RETRANSMITTED } else { Memo::default() }
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { marked, .. } => self.on_ack(now, feedback, marked, cx.rng),
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } => self.make_way(feedback.path, cx.rng),
            // No acknowledgement arrived at all: continue with a single packet, and with what is left of the window.
            FeedbackKind::Timeout => self.shrink(1.0),
            FeedbackKind::Cnp
            | FeedbackKind::EdgeRtt
            | FeedbackKind::PathSample
            | FeedbackKind::Duplicate { .. }
            | FeedbackKind::Late
            | FeedbackKind::NoticeFlow(_) => {}
        }
    }

    fn on_paths(&mut self, _now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.clock.on_paths(paths, cx.rng);
    }
    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {}
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // One window per base round-trip time: the rate while there is no queue.
        let share = self.cwnd * self.params.packet_time.ratio(self.params.base_rtt);
        Some(self.params.line.scale(share.min(1.0)))
    }
}

#[cfg(test)]
mod tests;
