//! Weave: paths that came back well are used again, the window follows the low round-trip times, and losses are found by
//! time ([`Recovery::Timed`](crate::Recovery::Timed)). pathweave's own; `docs/weave.md` tells why it is so.
//!
//! - A path that came back *well*, not late by the flow's own measure of noise, is used again, once; every other packet takes
//!   a random one ([`thread`]; the ring is that of REPS). Marks say nothing here: where queues are as long as delay allows
//!   them, they tell which links are thin, not which are crowded.
//! - The window follows the *low* round-trip times, not their mean: what chance does to sprayed packets reaches some of
//!   them, while a queue at the last hop, which alone asks for less rate, reaches all ([`window`]).
//! - On hosts, whose paths are few and of any rates, each path has a window of its own instead ([`lanes`]).
//! - A loss moves paths; of the window it takes no more than the packet that is lost: that follows delay, and a broken link
//!   is no congestion.

mod config;
mod lanes;
mod noise;
#[cfg(test)]
mod tests;
mod thread;
mod window;

use alloc::boxed::Box;

use pathweave_units::{Rate, Rng, Time};

use crate::{Feedback, FeedbackKind, Grant, Memo, PathView, Policy, PolicyCx, PolicyEnv, Sent, Want};
pub use config::{PathChoice, WeaveConfig};
use lanes::Lanes;
use noise::Noise;
use thread::Thread;
use window::Window;

/// One direction of one queue pair.
#[derive(Clone, Debug)]
pub struct Weave {
    window: Window,
    noise: Noise,
    thread: Thread,
    /// Packets acknowledged since the last that was timed.
    untimed: u16,
    /// Of [`PathChoice::WindowEach`]; then nothing of the above is asked.
    lanes: Option<Box<Lanes>>,
}

impl Weave {
    fn new(config: &WeaveConfig, env: &PolicyEnv, rng: &mut Rng) -> Self {
        let window = Window::new(config, env);
        let lanes =
            (config.choice == PathChoice::WindowEach).then(|| Box::new(Lanes::new(env.paths, &window, rng)));
        Weave { window, lanes, noise: Noise::new(env), thread: Thread::new(env.paths, rng), untimed: 0 }
    }

    /// The window, in packets.
    pub fn window_packets(&self) -> f32 {
        self.lanes.as_ref().map_or(self.window.packets, |lanes| lanes.window_packets())
    }

    #[inline]
    fn on_ack(&mut self, now: Time, feedback: &Feedback, timed: bool, rng: &mut Rng) {
        let mut late = false;
        if timed {
            let rtt = (feedback.rtt.as_ps() as f32).max(1.0);
            late = self.noise.is_late(rtt);
            let answered = 1.0 + f32::from(self.untimed);
            self.window.on_rtt(now, rtt, answered, feedback.backlogged, rng);
            self.untimed = 0;
        } else {
            self.untimed = self.untimed.saturating_add(1);
        }
        if !late {
            self.thread.came_back_well(feedback.path);
        }
    }
}

impl Policy for Weave {
    crate::ignores!(on_open, on_close, compose, on_copy_sent, on_control, window, path_beyond_window);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &Want, _cx: &mut PolicyCx<'_>) -> Grant {
        if let Some(lanes) = &self.lanes {
            return lanes.next(now, want.inflight_packets, want.egress).map_or(Grant::Blocked, Grant::Send);
        }
        // With nothing in flight one always fits: the window is at least a packet.
        if self.window.fits(want.inflight_packets) {
            Grant::Send(self.thread.next(want.egress))
        } else {
            Grant::Blocked
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        match &mut self.lanes {
            Some(lanes) => lanes.sent(now, sent.path),
            None => self.thread.sent(sent.path, cx.rng),
        }
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
                self.thread.on_loss(feedback.path, cx.rng);
                self.window.on_loss();
            }
            FeedbackKind::Cnp
            | FeedbackKind::Midway
            | FeedbackKind::Echo
            | FeedbackKind::Heard { .. }
            | FeedbackKind::Late
            | FeedbackKind::Notices(_) => {}
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
