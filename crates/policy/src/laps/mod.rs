//! LAPS (IEEE ToN 2026): every packet is sprayed over explicit paths of unequal length by a softmax over their one-way
//! delays; a window of two threshold delays limits a flow, and where switches drop a rate that falls only when even the
//! fastest path is congested.
//!
//! - `table`: what a host knows of its paths, shared by its queue pairs.
//! - `spray`: the softmax, and `circuit`: the same in integers; `weights`: either. `rate`: algorithm 2. `calibration`: delays by clocks that differ.
//!
//! Loss recovery is the transport's: by the order of packets on each path in the variants of the paper
//! ([`Recovery::PathOrder`](crate::Recovery::PathOrder)), by time in the default ([`Recovery::Timed`](crate::Recovery::Timed)).
//!
//! What is printed in algorithms 1 to 3 has gaps and contradictions. There are three variants: the default (repaired),
//! [`LapsConfig::published`] and [`LapsConfig::code_2025`]; what they choose alike or a study varies is a field of
//! [`LapsConfig`], the rest is in `law`. What the default does otherwise than the paper:
//!
//! - *The unit of alpha* ([`AlphaUnit::Noise`]) is the shortest delay, but at least T and forty times what two delays in a
//!   row of one path differ by, an average over all paths with a weight of 1/64 for the newest.
//! - *Probes.* Of a path that gets half of an equal share or more, data tells. So a silent path is probed in two cases: it
//!   gets less, and nothing was heard of it for two of its delays; or data went there and nothing came back for four of
//!   them, which is two round trips. One path is probed before a data packet, and its delay counts as double until it
//!   answers. Without the second case a path that loses everything would keep its share until a timer fires: on the policy
//!   bench one dead path of four takes 353 packets and 1,000 packets 676 us; with it 57 packets and 147 us.
//! - *Limits.* A window alone where switches pause, rate and window where they drop (`limit`); decreases end at the share
//!   of the line that the delay tells (`decrease`).
//!
//! - *Losses.* On a link that dies nothing overtakes what is lost, so only a path's timer finds it, which must outlast every
//!   pause of a switch. Time learned from all paths finds it sooner, and not later where single packets are dropped. A path
//!   that loses a packet and brings nothing back counts as probed in vain.
//!
//! Where every path is down the packet goes by any (the paper's draw is undefined then): what is known may be stale, and
//! the retry limit of the endpoint ends what is truly dead.

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
    ControlFeedback, Feedback, FeedbackKind, Grant, Member, Memo, Outgoing, PathView, Policy, PolicyCx,
    PolicyEnv, Sent, Want,
};
use law::{Law, Probing};
use rate::RateControl;
use table::Pair;

pub use config::{AlphaUnit, Arithmetic, LapsConfig, LapsVariant, Limit, Margin, RateCut, WindowOf};
pub use table::{LapsHost, TableSizes};

/// A flow's state: its rate. What is known of paths is the host's.
#[derive(Clone, Debug)]
pub struct Laps {
    /// The host's tables and the entry of the peer in them, while the queue pair is open.
    joined: Option<(StoreId<LapsHost>, PeerIndex)>,
    law: &'static Law,
    limit: Limit,
    /// The window is two of these at least.
    window_threshold: Duration,
    /// The data packet to be sent next has had its probe.
    probed: bool,
    /// Where in the sum of weights the next packet falls, and which of the silent paths gets the next probe: drawn ahead,
    /// so that asking changes nothing.
    draw: f64,
    probe_draw: f64,
    rate: RateControl,
    /// No packet leaves before.
    next_send: Time,
    line_rate: Rate,
    mtu_wire_bytes: u32,
    /// For the store, until it is joined.
    config: Option<Box<(LapsConfig, PolicyEnv)>>,
}

impl LapsConfig {
    /// The policy of one direction of one queue pair.
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
            next_send: Time::ZERO,
            line_rate: env.line_rate,
            mtu_wire_bytes: env.mtu_wire_bytes,
            config: Some(Box::new((*config, *env))),
        }
    }

    #[inline]
    fn paths<'a>(&self, cx: &'a mut PolicyCx<'_>) -> &'a mut Pair {
        let (store, pair) = self.joined.expect("on_open comes before any other call");
        cx.shared.get(store).pair(pair)
    }

    /// Bytes that may be in flight: two threshold delays of the line, and a packet.
    #[inline]
    fn window_bytes(&self, threshold: Duration) -> u64 {
        let rate = if self.limit == Limit::RateAndScaledWindow { self.rate.rate() } else { self.line_rate };
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
    fn on_open(&mut self, now: Time, member: &Member, cx: &mut PolicyCx<'_>) {
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
    fn poll_send(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> Grant {
        if now < self.next_send && self.is_paced() {
            return Grant::At(self.next_send);
        }
        let pair = self.paths(cx);
        let window = self.window_bytes(pair.threshold());
        // With nothing in flight one always fits: a window must slow a sender down, never stop it.
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

    fn compose(&mut self, now: Time, path: PathId, _: Range<u64>, cx: &mut PolicyCx<'_>) -> Outgoing {
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
            FeedbackKind::Ack { timed: true, .. } | FeedbackKind::Echo => {
                self.measured(now, feedback.path, feedback.one_way_ps, cx);
                if self.rate.may_act(now)
                    && let Some(delays) = self.paths(cx).delays()
                {
                    self.rate.on_ack(now, &delays);
                    self.paths(cx).soften(&delays);
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
            | FeedbackKind::Midway
            | FeedbackKind::Heard { .. }
            | FeedbackKind::Late
            | FeedbackKind::Notices(_) => {}
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
