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
    /// `None`: it says nothing. An acknowledgement speaks of the packet that it answers and of no other.
    #[inline]
    pub(super) fn of(feedback: &Feedback) -> Option<Self> {
        Some(match feedback.kind {
            FeedbackKind::Ack { timed: true, marked: false }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: false } => PathNews::Good,
            FeedbackKind::Ack { timed: true, marked: true }
            | FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: true } => PathNews::Marked,
            FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, .. } | FeedbackKind::Lost => PathNews::Refused,
            FeedbackKind::Timeout => PathNews::Silent,
            _ => return None,
        })
    }
}
