//! Congestion control of one destination.

use pathweave_policy::cc::{CongestionControl, Dcqcn, Permit};
use pathweave_policy::{
    CnpPolicy, DestinationControl, Feedback, FeedbackKind, Memo, PolicyCx, SendRequest, Sent,
};
use pathweave_units::{Duration, PathId, Rate, Time};

/// Sending rate of a destination, and the time of the latest notification to it. One rate for all paths together, so
/// that its size does not depend on their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    reaction: Dcqcn,
    /// Time of the latest notification to the peer.
    notified_at: Option<Time>,
}

impl Pace {
    pub(super) fn new(control: &DestinationControl) -> Self {
        Pace { reaction: control.fresh, notified_at: None }
    }

    /// Time at which a packet may leave, or `None` if it may leave now.
    #[inline]
    pub(super) fn opens_at(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Option<Time> {
        match self.reaction.permit(now, want, cx) {
            Permit::Now => None,
            Permit::At(when) => Some(when),
            // Cannot happen: DCQCN has no window, because nothing is acknowledged.
            Permit::Blocked => Some(Time::MAX),
        }
    }

    /// Sending rate to the destination.
    pub(super) fn rate(&self, now: Time) -> Option<Rate> {
        self.reaction.rate(now)
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) {
        self.reaction.on_sent(now, sent, cx);
    }

    /// Processes a notification from the destination.
    pub(super) fn on_cnp(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.reaction.on_feedback(now, feedback, cx);
    }

    /// Handles a marked packet from the peer. Returns true if the peer must be notified now.
    pub(super) fn notifies(&mut self, now: Time, cnp: CnpPolicy) -> bool {
        let Some(interval) = cnp.interval() else { return false };
        let notifies = self.notified_at.is_none_or(|last| now - last >= interval);
        if notifies {
            self.notified_at = Some(now);
        }
        notifies
    }
}

/// Feedback for a congestion notification.
pub(super) fn notification(path: PathId) -> Feedback {
    Feedback {
        kind: FeedbackKind::Cnp,
        path,
        psn: 0,
        memo: Memo::default(),
        wire_bytes: 0,
        rtt: Duration::ZERO,
        one_way_ps: 0,
        inflight_packets: 0,
        backlogged: true,
    }
}
