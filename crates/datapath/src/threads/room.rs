//! Bounded number of outstanding requests.

use super::sync::{AtomicU32, Ordering};

/// Flag that is set once nothing can be taken any more.
const CLOSED: u32 = 1 << 31;

/// Counter of free slots. Posting takes a slot; the application returns it when it takes the completion. The queues
/// between application and loop are thus bounded. Once the counter is closed and all slots are back, nothing more
/// will appear in the queues.
#[derive(Debug)]
pub(crate) struct Room {
    /// Free slots and the closed flag in one word, so that a slot is taken either before the close or not at all.
    left: AtomicU32,
    most: u32,
}

/// Reason why no slot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// None is free until one is returned.
    Now,
    /// The counter is closed.
    Ever,
}

impl Room {
    /// `most`: number of slots, less than 2^31.
    pub(crate) fn new(most: u32) -> Self {
        debug_assert!(most < CLOSED, "a room of {most}");
        Room { left: AtomicU32::new(most), most }
    }
    /// Takes a slot.
    #[inline]
    pub(crate) fn take(&self) -> Result<(), NoRoom> {
        let less = |left: u32| if left & CLOSED == 0 { left.checked_sub(1) } else { None };
        match self.left.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(0) => Err(NoRoom::Now),
            Err(_) => Err(NoRoom::Ever),
        }
    }
    /// Returns a slot. Returns true if it was the last one after the close.
    #[inline]
    pub(crate) fn give_back(&self) -> bool {
        self.left.fetch_add(1, Ordering::AcqRel) + 1 == self.most | CLOSED
    }
    /// Closes the counter: no slot can be taken any more.
    pub(crate) fn close(&self) {
        self.left.fetch_or(CLOSED, Ordering::AcqRel);
    }
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
    /// Returns true if all slots are back.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.load(Ordering::Acquire) & !CLOSED == self.most
    }
}
