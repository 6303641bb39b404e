//! LAPS (IEEE ToN 2026): every packet is sprayed over explicit paths of unequal length by a softmax over their
//! one-way delays. A window of two threshold delays limits a flow. If switches drop packets, a rate limits it as
//! well, which falls only when even the fastest path is congested.
//!
//! - `table`: a host's state of its paths, shared by its queue pairs.
//! - `spray`: the softmax, and `circuit`: the same in integers; `weights`: either of them.
//! - `rate`: algorithm 2.
//! - `calibration`: delays between clocks that are not synchronized.
//!
//! The transport does loss recovery: by the order of packets on each path in the variants of the paper
//! ([`Recovery::PathOrder`](crate::Recovery::PathOrder)), by time in the default
//! ([`Recovery::Timed`](crate::Recovery::Timed)).
//!
//! Algorithms 1 to 3 as printed have gaps and contradictions. There are three variants: the default (repaired),
//! [`LapsConfig::published`] and [`LapsConfig::code_2025`]. Choices that they share or that a study varies are fields
//! of [`LapsConfig`]; the other rules are in `law`. The default differs from the paper in these points:
//!
//! - *Unit of alpha* ([`AlphaUnit::Noise`]). It is the shortest delay, but at least T, and at least forty times the
//!   average difference between two successive delays of one path. The average is over all paths, with a weight of
//!   1/64 for the newest.
//! - *Probes.* Data measures a path that gets half of an equal share or more. A silent path is therefore probed in
//!   two cases. In the first it gets less, and had no feedback for two of its delays. In the second data went there
//!   and nothing returned for four delays, which are two round trips. One path is probed before a data packet, and
//!   its delay counts as double until the reply. Without the second case a path that loses everything would keep its
//!   share until a timer expires. On the policy bench one dead path of four then takes 353 packets, and 1,000 packets
//!   take 676 us; with it 57 packets and 147 us.
//! - *Limits.* Only a window if switches pause, rate and window if they drop (`limit`). Decreases end at the share of
//!   the line rate that the delay indicates (`decrease`).
//! - *Losses.* On a link that dies nothing overtakes lost packets, so only a path's timer detects them, which must
//!   exceed every pause of a switch. Loss detection by time, learned from all paths, is faster, and not slower if
//!   single packets are dropped. A path that loses a packet and returns nothing counts as probed without reply.
//!
//! If every path is down a packet takes any of them (the paper's draw is undefined then): the state may be stale, and
//! the endpoint's retry limit ends a connection that is really dead.

mod calibration;
mod circuit;
mod code_2025;
mod config;
mod law;
pub mod pipeline;
mod published;
mod rate;
mod spray;
mod table;
mod weights;

use alloc::boxed::Box;
use core::ops::Range;

use pathweave_units::{Duration, PathId, Rate, Rng, Time};
use pathweave_wire::Control;

use crate::peers::PeerIndex;
use crate::shared::StoreId;
use crate::{
    ControlFeedback, Feedback, FeedbackKind, Grant, Memo, Outgoing, PathView, Policy, PolicyCx, PolicyEnv,
    QueuePairId, SendRequest, Sent,
};
use law::{Law, Probing};
use rate::RateControl;
use table::PeerPaths;

pub use config::{AlphaUnit, Arithmetic, LapsConfig, LapsVariant, Limit, Margin, RateCut, WindowOf};
pub use table::{LapsHost, TableSizes};

/// Weight of an acknowledgement in the average share.
const SHARE_GAIN: f64 = 1.0 / 8.0;

/// State of a flow: its rate. The state of paths belongs to the host.
#[derive(Clone, Debug)]
pub struct Laps {
    /// The host's tables and the peer's entry in them, while the queue pair is open.
    joined: Option<(StoreId<LapsHost>, PeerIndex)>,
    law: &'static Law,
    limit: Limit,
    /// Smallest threshold by which the window is computed.
    window_threshold: Duration,
    /// True if the next data packet has had its probe.
    probed: bool,
    /// Random numbers drawn ahead, so that a poll does not change the state: the position of the next packet in the
    /// sum of weights, and the choice of the silent path for the next probe.
    draw: f64,
    probe_draw: f64,
    rate: RateControl,
    /// Average of min(1, T / t), where t is the delay of the fastest path: the part of the window that may be in flight.
    share: f64,
    /// Time before which no packet leaves.
    next_send: Time,
    line_rate: Rate,
    mtu_wire_bytes: u32,
    /// Configuration for the store, until it is joined.
    config: Option<Box<(LapsConfig, PolicyEnv)>>,
}

impl LapsConfig {
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Laps {
        Laps::new(self, env, rng)
    }
}

impl Laps {
    pub(crate) fn new(config: &LapsConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        Laps {
            joined: None,
            law: config.law(),
            limit: config.limit,
            window_threshold: config.least_window_threshold(),
            probed: false,
            draw: rng.unit_f64(),
            probe_draw: rng.unit_f64(),
            rate: RateControl::new(config, env.line_rate),
            share: 1.0,
            next_send: Time::ZERO,
            line_rate: env.line_rate,
            mtu_wire_bytes: env.mtu_wire_bytes,
            config: Some(Box::new((*config, *env))),
        }
    }

    #[inline]
    fn paths<'a>(&self, cx: &'a mut PolicyCx<'_>) -> &'a mut PeerPaths {
        let (store, pair) = self.joined.expect("on_open comes before any other call");
        cx.shared.get(store).pair(pair)
    }

    /// Returns the bytes that may be in flight: those that the line sends in two threshold delays, and a packet.
    #[inline]
    fn window_bytes(&self, threshold: Duration) -> u64 {
        let rate = match self.limit {
            Limit::RateAndScaledWindow => self.rate.rate(),
            Limit::DelayWindow => self.line_rate.scale(self.share),
            Limit::Auto | Limit::Window | Limit::RateAndWindow => self.line_rate,
        };
        rate.bytes_in(threshold.max(self.window_threshold) * 2) + u64::from(self.mtu_wire_bytes)
    }

    fn is_paced(&self) -> bool {
        matches!(self.limit, Limit::RateAndWindow | Limit::RateAndScaledWindow) && !self.rate.is_line()
    }

    #[inline]
    fn measured(&self, now: Time, path: PathId, one_way_ps: i64, cx: &mut PolicyCx<'_>) {
        self.paths(cx).measured(now, path, one_way_ps);
    }
}

impl Policy for Laps {
    crate::ignores!(on_copy_sent, window, path_beyond_window);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        let Some(made_for) = self.config.take() else { return };
        let (config, env) = *made_for;
        let id = cx.shared.join(|host: &LapsHost| *host.config() == config, || LapsHost::new(config));
        self.joined = Some((id, cx.shared.get(id).join(now, member.peer, &env)));
    }

    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        if let Some((store, pair)) = self.joined.take() {
            cx.shared.leave(store, |host, peers| host.leave(pair, peers));
        }
    }

    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        if now < self.next_send && self.is_paced() {
            return Grant::At(self.next_send);
        }
        let pair = self.paths(cx);
        let window = self.window_bytes(pair.threshold());
        // With nothing in flight a packet always fits: a window must slow a sender down, never stop it.
        if want.inflight_packets > 0 && want.inflight_bytes + u64::from(want.wire_bytes) > window {
            return Grant::Blocked;
        }
        if !self.probed
            && let Some(path) = pair.silent(now, self.probe_draw)
        {
            return Grant::Control(path);
        }
        Grant::Send(pair.at(self.draw, want.egress))
    }

    fn make_control(&mut self, now: Time, path: PathId, _: Range<u64>, cx: &mut PolicyCx<'_>) -> Outgoing {
        self.paths(cx).probed(now, path);
        self.probe_draw = cx.rng.unit_f64();
        self.probed = self.law.probing != Probing::All;
        Outgoing { control: Control::Probe { sent_at: now }, treatment: self.law.probes }
    }

    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.paths(cx).sent(now, sent.path);
        self.draw = cx.rng.unit_f64();
        self.probed = false;
        if self.is_paced() {
            self.next_send = now.saturating_add(self.rate.rate().time_for(u64::from(sent.wire_bytes)));
        }
        Memo::default()
    }

    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            FeedbackKind::Ack { timed: true, .. } | FeedbackKind::PathSample => {
                self.measured(now, feedback.path, feedback.one_way_ps, cx);
                if self.rate.may_act(now)
                    && let Some(delays) = self.paths(cx).delays()
                {
                    self.rate.on_ack(now, &delays);
                    if self.limit == Limit::DelayWindow {
                        self.share += (delays.share(self.window_threshold) - self.share) * SHARE_GAIN;
                    }
                    self.paths(cx).update_alpha_unit(&delays);
                }
            }
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } => self.paths(cx).lost(now, feedback.path),
            FeedbackKind::Timeout => {
                let paths = self.paths(cx);
                paths.lost(now, feedback.path);
                paths.timed_out(feedback.path);
            }
            FeedbackKind::Ack { timed: false, .. }
            | FeedbackKind::Cnp
            | FeedbackKind::EdgeRtt
            | FeedbackKind::Duplicate { .. }
            | FeedbackKind::Late
            | FeedbackKind::NoticeFlow(_) => {}
        }
    }

    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        if let Control::ProbeReply { .. } = feedback.control {
            self.measured(now, feedback.path, feedback.one_way_ps, cx);
        }
    }

    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.paths(cx).on_paths(now, paths);
    }
    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.rate.rate())
    }
}

#[cfg(test)]
mod tests;
