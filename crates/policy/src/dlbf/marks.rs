//! Congestion notifications of a queue pair that responds to a mark by leaving the path.

use crate::cc::AnyCc;

/// Congestion control saved before the notifications for the path in use, until the queue pair leaves or keeps that
/// path.
///
/// A notification arrives just before the acknowledgement of the same packet. On that acknowledgement the queue pair
/// leaves the path, probes another one, or stays. The notification reduces the rate at once, because no path may
/// avoid the queue. If the path is left, the notification no longer applies to the path in use, and its effect is
/// reverted.
#[derive(Clone, Debug, Default)]
pub(super) struct RevertibleCnps {
    /// State of congestion control before the first of these notifications.
    before: Option<AnyCc>,
    /// True if the path has been left since.
    left: bool,
}

impl RevertibleCnps {
    /// Saves the congestion control before a notification for the path in use takes effect.
    pub(super) fn notified(&mut self, cc: &AnyCc) {
        self.before.get_or_insert_with(|| cc.clone());
    }
    /// Records that the path in use has been left.
    pub(super) fn left(&mut self) {
        self.left = true;
    }
    /// Called after an acknowledgement has been processed. Returns the saved congestion control if it must be
    /// restored. `asks`: a probe of another path is outstanding.
    #[inline]
    pub(super) fn settle(&mut self, asks: bool) -> Option<AnyCc> {
        let left = core::mem::take(&mut self.left);
        if self.before.is_none() || (asks && !left) {
            return None;
        }
        self.before.take().filter(|_| left)
    }
}
