//! Sleep of an idle loop, and its wake-up by threads that queue commands.

use super::sync::{AtomicBool, Ordering, fence};

/// True while the loop sleeps or is about to. A thread that adds a command must then wake it.
#[derive(Debug)]
pub(crate) struct Parking {
    parked: AtomicBool,
}

impl Parking {
    pub(crate) fn new() -> Self {
        Parking { parked: AtomicBool::new(false) }
    }

    /// Returns true if the loop must be woken for a command that has just been queued.
    #[inline]
    pub(crate) fn must_wake(&self) -> bool {
        // Either this thread sees the loop parked, or the loop sees the command: it checks once more after it has set
        // the flag.
        fence(Ordering::SeqCst);
        self.parked.load(Ordering::Relaxed)
    }

    /// Announces that the loop is about to sleep. Returns false if it must not, because there is work after all.
    pub(crate) fn park(&self, is_idle: impl FnOnce() -> bool) -> bool {
        self.parked.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let idle = is_idle();
        if !idle {
            self.unpark();
        }
        idle
    }

    /// Announces that the loop is awake.
    pub(crate) fn unpark(&self) {
        self.parked.store(false, Ordering::Relaxed);
    }
}
