//! Congestion control of one destination.

use pathweave_policy::cc::{CongestionControl, Dcqcn, Permit};
use pathweave_policy::{
    CnpMode, CnpPolicy, DestinationControl, Feedback, FeedbackKind, Memo, PolicyCx, Sent, Want,
};
use pathweave_units::{Duration, PathId, Rate, Time};

/// How fast a destination is sent to, and when it was last told of marks. All paths together: its size does not hang on
/// their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    reaction: Dcqcn,
    /// When the peer was notified last.
    notified_at: Option<Time>,
}

impl Pace {
    pub(super) fn new(control: &DestinationControl) -> Self {
        Pace { reaction: control.fresh, notified_at: None }
    }

    /// When a packet may leave, if not now.
    #[inline]
    pub(super) fn opens_at(&mut self, now: Time, want: &Want, cx: &mut PolicyCx<'_>) -> Option<Time> {
        match self.reaction.permit(now, want, cx) {
            Permit::Now => None,
            Permit::At(when) => Some(when),
            // It has no window: nothing is acknowledged.
            Permit::Blocked => Some(Time::MAX),
        }
    }

    /// How fast the destination is sent to.
    pub(super) fn rate(&self, now: Time) -> Option<Rate> {
        self.reaction.rate(now)
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) {
        self.reaction.on_sent(now, sent, cx);
    }

    /// The destination has told of a mark.
    pub(super) fn on_cnp(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.reaction.on_feedback(now, feedback, cx);
    }

    /// A marked packet has come from there. True if the peer is to be told now.
    pub(super) fn notifies(&mut self, now: Time, cnp: CnpPolicy) -> bool {
        let due = self.notified_at.is_none_or(|last| now - last >= cnp.interval);
        let notifies = cnp.mode != CnpMode::Off && due;
        if notifies {
            self.notified_at = Some(now);
        }
        notifies
    }
}

/// That a destination has told of a mark.
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
