//! Weave: paths whose packets returned in time are reused, the window follows the low round-trip times, and losses
//! are detected by time ([`Recovery::Timed`](crate::Recovery::Timed)). The scheme is pathweave's own; `docs/weave.md`
//! explains it.
//!
//! - A path is reused once if its packet returned *in time*: not late by the flow's own measure of noise. Every other
//!   packet takes a random path ([`thread`]; the ring is that of REPS), unless random paths lose packets: then most take
//!   a path that worked once more. ECN marks are ignored: with queues as long as
//!   the target allows, they indicate links of low rate, not congested ones.
//! - The window follows the *low* round-trip times, not their mean. Random collisions delay some of the sprayed
//!   packets. A queue at the last hop delays all of them, and only such a queue requires a lower rate ([`window`]).
//! - On real hosts, whose paths are few and of any rates, each path has a window of its own instead ([`lanes`]).
//! - A loss changes the path and takes one packet from the window. The window follows delay, and a failed link is not
//!   congestion. The retransmission takes the path that returned last, so a false alarm costs little, and late packets
//!   are waited for only briefly ([`LateWait`](crate::LateWait)).

mod config;
mod lanes;
mod noise;
#[cfg(test)]
mod tests;
mod thread;
mod window;

use alloc::boxed::Box;

use pathweave_units::{Rate, Rng, Time};

use crate::{Feedback, FeedbackKind, Grant, Memo, PathView, Policy, PolicyCx, PolicyEnv, SendRequest, Sent};
pub use config::{PathChoice, WeaveConfig};
use lanes::PathWindows;
use noise::{Arrival, Noise};
use thread::{Loss, RecycledPaths, Standing};
use window::Window;

/// Policy of one direction of one queue pair.
#[derive(Clone, Debug)]
pub struct Weave {
    window: Window,
    noise: Noise,
    thread: RecycledPaths,
    /// Packets acknowledged since the last one with a measured round-trip time.
    untimed: u16,
    last_loss: Loss,
    /// State of [`PathChoice::WindowEach`]. If present, the fields above are unused.
    lanes: Option<Box<PathWindows>>,
}

impl Weave {
    fn new(config: &WeaveConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let window = Window::new(config, env);
        let lanes = (config.choice == PathChoice::WindowEach)
            .then(|| Box::new(PathWindows::new(env.paths, &window, rng)));
        Weave {
            window,
            lanes,
            noise: Noise::new(env),
            thread: RecycledPaths::new(env.paths, rng),
            untimed: 0,
            last_loss: Loss::Silent,
        }
    }

    /// Returns the window, in packets.
    pub fn window_packets(&self) -> f32 {
        self.lanes.as_ref().map_or(self.window.packets, |lanes| lanes.window_packets())
    }

    #[inline]
    fn on_ack(&mut self, now: Time, feedback: &Feedback, timed: bool, rng: &mut Rng) {
        let mut arrival = Arrival::Usual;
        if timed {
            let rtt = (feedback.rtt.as_ps() as f32).max(1.0);
            arrival = self.noise.judge(rtt);
            let answered = 1.0 + f32::from(self.untimed);
            self.window.on_rtt(now, rtt, answered, feedback.backlogged, rng);
            self.untimed = 0;
        } else {
            self.untimed = self.untimed.saturating_add(1);
        }
        if !feedback.backlogged {
            self.thread.recall_scout();
        }
        self.thread.came_back(feedback.path, Standing::of(feedback.memo), arrival);
    }

    fn on_loss(&mut self, feedback: &Feedback, rng: &mut Rng) {
        let loss = match feedback.kind {
            FeedbackKind::Trimmed { .. } => Loss::Trimmed,
            _ => Loss::Silent,
        };
        self.last_loss = loss;
        self.thread.on_loss(feedback.path, Standing::of(feedback.memo), loss, rng);
        self.window.on_loss();
    }
}

impl Policy for Weave {
    crate::ignores!(on_open, on_close, make_control, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Grant {
        if let Some(lanes) = &self.lanes {
            return lanes.next(now, want.inflight_packets, want.egress).map_or(Grant::Blocked, Grant::Send);
        }
        // With nothing in flight a packet always fits, because the window is at least one packet.
        if self.window.fits(want.inflight_packets) {
            Grant::Send(match want.retransmit {
                false => self.thread.next(want.egress),
                true => self.thread.next_again(want.egress, self.last_loss),
            })
        } else {
            Grant::Blocked
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        let Some(lanes) = &mut self.lanes else { return self.thread.sent(sent.path, cx.rng).memo() };
        lanes.sent(now, sent.path);
        Memo::default()
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        if let Some(lanes) = &mut self.lanes {
            match feedback.kind {
                FeedbackKind::Ack { timed, .. } => {
                    let rtt = timed.then(|| (feedback.rtt.as_ps() as f32).max(1.0));
                    lanes.answered(now, feedback.path, rtt, feedback.backlogged);
                }
                FeedbackKind::Lost | FeedbackKind::Trimmed { .. } | FeedbackKind::Timeout => {
                    lanes.lost(feedback.path);
                }
                _ => {}
            }
            return;
        }
        match feedback.kind {
            FeedbackKind::Ack { timed, .. } => self.on_ack(now, feedback, timed, cx.rng),
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } | FeedbackKind::Timeout => {
                self.on_loss(feedback, cx.rng);
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
        if let Some(lanes) = &mut self.lanes {
            lanes.on_paths(paths);
        }
        self.window.on_paths(paths);
        self.thread.on_paths(paths, cx.rng);
    }
    fn on_timer(&mut self, _now: Time, _cx: &mut PolicyCx<'_>) {}
    fn next_timer(&self) -> Option<Time> {
        None
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.window.rate(self.window_packets()))
    }
}
