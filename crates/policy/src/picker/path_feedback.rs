//! Classification of feedback on a path, as used by the pickers of Ultra Ethernet.

use pathweave_units::TrimmedAt;

use crate::{Feedback, FeedbackKind};

/// Class of feedback on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathFeedback {
    /// The packet arrived unmarked, or it was trimmed at the last hop, which all paths share.
    Good,
    /// The packet was marked.
    Marked,
    /// The packet was trimmed before the last hop, or lost.
    Dropped,
    /// The packet timed out.
    TimedOut,
}

impl PathFeedback {
    /// Classifies feedback; `None` if it does not concern a path. An acknowledgement counts for the packet that
    /// triggered it and no other, even if another acknowledgement reported that packet before.
    #[inline]
    pub(super) fn of(feedback: &Feedback) -> Option<Self> {
        Some(match feedback.kind {
            FeedbackKind::Ack { timed: true, marked: false }
            | FeedbackKind::Duplicate { marked: false }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: false } => PathFeedback::Good,
            FeedbackKind::Ack { timed: true, marked: true }
            | FeedbackKind::Duplicate { marked: true }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: true } => PathFeedback::Marked,
            FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, .. } | FeedbackKind::Lost => {
                PathFeedback::Dropped
            }
            FeedbackKind::Timeout => PathFeedback::TimedOut,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::ACK;
    use pathweave_units::{Duration, PathId};

    /// uet-htsim: each ACK is GOOD or ECN for the path of the packet that triggered it, whatever else it
    /// acknowledges. A NACK is one of the last hop or a refusal.
    #[test]
    fn each_acknowledgement_is_heard_once() {
        let of = |kind| {
            PathFeedback::of(&Feedback {
                kind,
                path: PathId(3),
                wire_bytes: 4_150,
                rtt: Duration::ZERO,
                ..ACK
            })
        };
        for (marked, news) in [(false, PathFeedback::Good), (true, PathFeedback::Marked)] {
            let trimmed = |at| FeedbackKind::Trimmed { at, marked };
            assert_eq!(of(FeedbackKind::Ack { timed: true, marked }), Some(news));
            // The packet that triggered it was reported before.
            assert_eq!(of(FeedbackKind::Duplicate { marked }), Some(news));
            // A packet reported by the acknowledgement of another one, too.
            assert_eq!(of(FeedbackKind::Ack { timed: false, marked }), None);
            assert_eq!(of(trimmed(TrimmedAt::LastHop)), Some(news));
            assert_eq!(of(trimmed(TrimmedAt::OnTheWay)), Some(PathFeedback::Dropped));
        }
        assert_eq!(of(FeedbackKind::Timeout), Some(PathFeedback::TimedOut));
        assert_eq!(of(FeedbackKind::Cnp), None);
    }
}
