//! Congestion notifications of a queue pair that answers a mark by leaving the path.

use crate::cc::AnyCc;

/// What notifications of the path in use have done, until it is known whether that path is kept.
///
/// A notification comes just before the acknowledgement of the same packet, which has the queue pair leave the path, ask
/// for another, or stay. It slows the queue pair down at once, for the queue may be one that no path avoids. Once the path
/// is left, what was said of it is no longer true of what is sent, and is taken back.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// The congestion control as it was before the first of them.
    before: Option<AnyCc>,
    /// The path has been left since.
    left: bool,
}

impl Marks {
    /// A notification has come of the path in use.
    pub(super) fn notified(&mut self, cc: &AnyCc) {
        self.before.get_or_insert_with(|| cc.clone());
    }
    /// The path in use has been left.
    pub(super) fn left(&mut self) {
        self.left = true;
    }
    /// An acknowledgement has been dealt with; `asks`: another path has been asked for and has not answered. Hands out the
    /// congestion control to go on with where it is another one.
    #[inline]
    pub(super) fn settle(&mut self, asks: bool) -> Option<AnyCc> {
        let left = core::mem::take(&mut self.left);
        if self.before.is_none() || (asks && !left) {
            return None;
        }
        self.before.take().filter(|_| left)
    }
}
