//! Identity of the process, which tells a forked child from its parent.
#![allow(unsafe_code, reason = "registers a function with the C library")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// The process in which an object was opened. Its sockets and threads do not exist in a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the current process. Forks are noticed from the first call on.
    pub fn this() -> Self {
        WATCH.call_once(watch_forks);
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns true if this is still the same process.
    #[inline]
    pub fn is_this(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.0
    }
}

/// Registers a function that runs in the child of each fork.
fn watch_forks() {
    extern "C" fn child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function lives as long as the library, which is never unloaded (link argument nodelete). If
    // registration fails for lack of memory, forks go unnoticed, as they do for the C library itself.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
}
