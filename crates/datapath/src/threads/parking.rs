//! A loop that sleeps when there is nothing to do, and those who give it something to do.

use super::sync::{AtomicBool, Ordering, fence};

/// Whether the loop sleeps, or is about to: then a thread that adds a command must wake it.
#[derive(Debug)]
pub(crate) struct Parking {
    parked: AtomicBool,
}

impl Parking {
    pub(crate) fn new() -> Self {
        Parking { parked: AtomicBool::new(false) }
    }

    /// Whether the loop must be woken for what has just been put where it looks.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        // Either this sees the loop parked, or the loop, which looks once more after announcing it, sees the command.
        fence(Ordering::SeqCst);
        self.parked.load(Ordering::Relaxed)
    }

    /// The loop wants to sleep: false if it must not, because there is something to do after all.
    pub(crate) fn park(&self, is_idle: impl FnOnce() -> bool) -> bool {
        self.parked.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let idle = is_idle();
        if !idle {
            self.unpark();
        }
        idle
    }

    /// The loop is awake.
    pub(crate) fn unpark(&self) {
        self.parked.store(false, Ordering::Relaxed);
    }
}
