//! What a packet's fate says of its path, as the pickers of Ultra Ethernet see it.

use pathweave_units::TrimmedAt;

use crate::{Feedback, FeedbackKind};

/// What is heard of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathNews {
    /// The packet came through unmarked; or it was trimmed at the last hop, which all paths lead to.
    Good,
    /// It was marked.
    Marked,
    /// There was no room for it, or it was lost.
    Refused,
    /// Nothing was heard of it.
    Silent,
}

impl PathNews {
    /// `None`: it says nothing. An acknowledgement speaks of the packet that it answers and of no other, also where another one
    /// told before that it has arrived.
    #[inline]
    pub(super) fn of(feedback: &Feedback) -> Option<Self> {
        Some(match feedback.kind {
            FeedbackKind::Ack { timed: true, marked: false }
            | FeedbackKind::Heard { marked: false }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: false } => PathNews::Good,
            FeedbackKind::Ack { timed: true, marked: true }
            | FeedbackKind::Heard { marked: true }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: true } => PathNews::Marked,
            FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, .. } | FeedbackKind::Lost => PathNews::Refused,
            FeedbackKind::Timeout => PathNews::Silent,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memo;
    use pathweave_units::{Duration, PathId};

    /// uet-htsim: each ACK is GOOD or ECN for the path of the packet that caused it, whatever else it tells; a NACK is that of
    /// the last hop or a refusal.
    #[test]
    fn each_acknowledgement_is_heard_once() {
        let of = |kind| {
            PathNews::of(&Feedback {
                kind,
                path: PathId(3),
                psn: 0,
                memo: Memo::default(),
                wire_bytes: 4_150,
                rtt: Duration::ZERO,
                one_way_ps: 0,
                inflight_packets: 1,
                backlogged: true,
            })
        };
        for (marked, news) in [(false, PathNews::Good), (true, PathNews::Marked)] {
            let trimmed = |at| FeedbackKind::Trimmed { at, marked };
            assert_eq!(of(FeedbackKind::Ack { timed: true, marked }), Some(news));
            // The packet that caused it was told of before.
            assert_eq!(of(FeedbackKind::Heard { marked }), Some(news));
            // One that another's acknowledgement tells of, too.
            assert_eq!(of(FeedbackKind::Ack { timed: false, marked }), None);
            assert_eq!(of(trimmed(TrimmedAt::LastHop)), Some(news));
            assert_eq!(of(trimmed(TrimmedAt::OnTheWay)), Some(PathNews::Refused));
        }
        assert_eq!(of(FeedbackKind::Timeout), Some(PathNews::Silent));
        assert_eq!(of(FeedbackKind::Cnp), None);
    }
}
