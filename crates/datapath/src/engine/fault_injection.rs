//! Injected bugs for tests: after a packet with one of these payload sizes, the policy panics.

use pathweave_policy::{Feedback, FeedbackKind};
use pathweave_units::Time;

/// Panic in `poll_send` or `on_sent` of the packet itself.
pub(crate) const POLL: u32 = 1_301;
pub(crate) const SENT: u32 = 1_302;
/// Panic when the packet is acknowledged.
pub(crate) const FEEDBACK: u32 = 1_303;
/// Panic in a timer of the policy.
pub(crate) const TIMER: u32 = 1_304;
/// Panic when statistics are requested.
pub(crate) const RATE: u32 = 1_305;
/// Panic when the packet is acknowledged, and again in any later call for the queue pair.
pub(crate) const CLOSE: u32 = 1_306;

#[derive(Default)]
pub(crate) struct Bomb {
    set: u32,
}

impl Bomb {
    pub(crate) fn polled(&self, payload: u32) {
        assert!(payload != POLL, "a bug in poll_send");
    }
    pub(crate) fn sent(&mut self, payload: u32) {
        assert!(payload != SENT, "a bug in on_sent");
        if (FEEDBACK..=CLOSE).contains(&payload) {
            self.set = payload;
        }
    }
    pub(crate) fn heard(&self, feedback: &Feedback) {
        let acked = matches!(feedback.kind, FeedbackKind::Ack { .. });
        assert!(!(acked && [FEEDBACK, CLOSE].contains(&self.set)), "a bug in on_feedback");
    }
    pub(crate) fn timer(&self) -> Option<Time> {
        (self.set == TIMER).then_some(Time::ZERO)
    }
    pub(crate) fn fired(&self) {
        assert!(self.set != TIMER, "a bug in on_timer");
    }
    pub(crate) fn asked(&self) {
        assert!(self.set != RATE, "a bug in rate");
    }
    pub(crate) fn closed(&self) {
        assert!(self.set != CLOSE, "a policy is not called after it has panicked");
    }
}
