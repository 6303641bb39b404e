//! The invariants of the contract, asserted at every call.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use pathweave_units::{PathId, Time};

use crate::{
    ControlFeedback, Feedback, FeedbackKind, Grant, Memo, Outgoing, PathState, PathView, Policy, PolicyCx,
    PolicyEnv, QueuePairId, SendRequest, Sent,
};

/// A policy that panics when it, or its caller, breaks the contract.
#[derive(Clone, Debug)]
pub struct Checked<P> {
    /// The policy itself.
    pub policy: P,
    /// Prefix of every failure message: seed and step, so that the failure can be replayed.
    pub context: String,
    now: Time,
    up: Vec<bool>,
    granted: Option<PathId>,
}

impl<P: Policy> Checked<P> {
    /// Wraps a policy fresh from its factory.
    pub fn new(policy: P, env: &PolicyEnv) -> Self {
        Checked {
            policy,
            context: String::new(),
            now: Time::ZERO,
            up: alloc::vec![true; usize::from(env.paths)],
            granted: None,
        }
    }
    fn at(&mut self, now: Time) {
        assert!(now >= self.now, "{}: time runs backwards, from {} to {now}", self.context, self.now);
        self.now = now;
    }
    fn check_timer(&self, now: Time) {
        if let Some(timer) = self.policy.next_timer() {
            assert!(
                timer > now,
                "{}: the timer at {timer} has fired and is still set at {now}",
                self.context
            );
        }
    }
    fn is_up(&self, path: PathId) -> bool {
        !self.up.contains(&true) || self.up.get(path.index()).copied().unwrap_or(false)
    }
}

impl<P: Policy> Policy for Checked<P> {
    crate::forwards!({ policy } on_close, next_timer, rate, window, path_beyond_window);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        self.at(now);
        self.policy.on_open(now, member, cx);
    }
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        self.at(now);
        let grant = self.policy.poll_send(now, want, cx);
        self.granted = None;
        match grant {
            Grant::Send(path) | Grant::Control(path) | Grant::Copy { path, .. } => {
                assert!(self.is_up(path), "{}: {path:?} is granted but down", self.context);
                self.granted = Some(path);
            }
            Grant::At(when) => assert!(when > now, "{}: told at {now} to wait until {when}", self.context),
            Grant::Blocked => assert!(
                want.inflight_packets > 0 || self.policy.next_timer().is_some(),
                "{}: blocked for ever: nothing in flight and no timer",
                self.context
            ),
        }
        grant
    }
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.at(now);
        let granted = self.granted.take();
        assert_eq!(granted, Some(sent.path), "{}: a packet left without a grant", self.context);
        self.policy.on_sent(now, sent, cx)
    }
    fn make_control(
        &mut self,
        now: Time,
        path: PathId,
        in_flight: Range<u64>,
        cx: &mut PolicyCx<'_>,
    ) -> Outgoing {
        self.at(now);
        let granted = self.granted.take();
        assert_eq!(granted, Some(path), "{}: a control packet left without a grant", self.context);
        self.policy.make_control(now, path, in_flight, cx)
    }
    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>) {
        self.at(now);
        let granted = self.granted.take();
        assert_eq!(granted, Some(path), "{}: a copy left without a grant", self.context);
        self.policy.on_copy_sent(now, psn, path, wire_bytes, cx);
    }
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.at(now);
        let measured = matches!(
            feedback.kind,
            FeedbackKind::Ack { timed: true, .. }
                | FeedbackKind::Duplicate { .. }
                | FeedbackKind::Trimmed { .. }
                | FeedbackKind::PathSample
                | FeedbackKind::EdgeRtt
        );
        assert!(
            measured || feedback.rtt.as_ps() == 0,
            "{}: a round-trip time without a measurement",
            self.context
        );
        self.granted = None;
        self.policy.on_feedback(now, feedback, cx);
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        self.at(now);
        self.granted = None;
        self.policy.on_control(now, feedback, cx);
    }
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.at(now);
        let count = paths.iter().map(|path| path.id.index() + 1).max().expect("a queue pair has a path");
        self.up = alloc::vec![false; count];
        for path in paths {
            self.up[path.id.index()] = path.state == PathState::Up;
        }
        self.granted = None;
        self.policy.on_paths(now, paths, cx);
    }
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.at(now);
        self.granted = None;
        self.policy.on_timer(now, cx);
        self.check_timer(now);
    }
}
