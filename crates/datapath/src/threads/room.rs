//! How much may yet be posted.

use super::sync::{AtomicU32, Ordering};

/// Set once nothing may be taken any more.
const CLOSED: u32 = 1 << 31;

/// How much may yet be posted; what is posted takes from it, and what the application has taken out of the completion
/// queue gives back. So the queues between application and loop have a bound, and when it is closed and whole again nothing
/// more will be in them.
#[derive(Debug)]
pub(crate) struct Room {
    /// How much is left, and whether it is closed: in one word, so that what is taken is taken before the end or not at all.
    left: AtomicU32,
    most: u32,
}

/// Why nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// There is none until something is given back.
    Now,
    /// There will be none.
    Ever,
}

impl Room {
    /// `most`: less than 2^31.
    pub(crate) fn new(most: u32) -> Self {
        debug_assert!(most < CLOSED, "a room of {most}");
        Room { left: AtomicU32::new(most), most }
    }
    /// Takes one.
    #[inline]
    pub(crate) fn take(&self) -> Result<(), NoRoom> {
        let less = |left: u32| if left & CLOSED == 0 { left.checked_sub(1) } else { None };
        match self.left.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(0) => Err(NoRoom::Now),
            Err(_) => Err(NoRoom::Ever),
        }
    }
    /// Gives one back. Returns whether it was the last, after the end.
    #[inline]
    pub(crate) fn give_back(&self) -> bool {
        self.left.fetch_add(1, Ordering::AcqRel) + 1 == self.most | CLOSED
    }
    /// Nothing may be taken any more.
    pub(crate) fn close(&self) {
        self.left.fetch_or(CLOSED, Ordering::AcqRel);
    }
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
    /// Whether nothing is posted of which the application has not taken the completion.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.load(Ordering::Acquire) & !CLOSED == self.most
    }
}
