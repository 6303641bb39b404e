//! How much may yet be posted.

use super::sync::{AtomicU32, Ordering};

/// How much may yet be posted; what is posted takes from it, and what the application has taken out of the completion
/// queue gives back. So the queues between application and loop have a bound.
#[derive(Debug)]
pub(crate) struct Room {
    left: AtomicU32,
    most: u32,
}

impl Room {
    pub(crate) fn new(most: u32) -> Self {
        Room { left: AtomicU32::new(most), most }
    }
    #[inline]
    pub(crate) fn take(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        // In one order with `is_whole`, and with what else decides whether something may be posted.
        self.left.fetch_update(Ordering::SeqCst, Ordering::Relaxed, less).is_ok()
    }
    #[inline]
    pub(crate) fn give_back(&self) {
        self.left.fetch_add(1, Ordering::AcqRel);
    }
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
    /// Whether nothing is posted of which the application has not taken the completion.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.load(Ordering::SeqCst) == self.most
    }
}
