//! Signals are for the application's threads.
#![allow(unsafe_code, reason = "masks of signals are the system's")]

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Does something with every signal blocked for this thread, as it stays for threads that are started in it: no handler of the
/// application runs there. What is sent to the process meanwhile goes to another thread, or comes after this.
pub fn blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are places for a mask; the first is filled before it is read, the second when there was no error.
    let changed = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    // Also where the work panics.
    let _guard = changed.then(|| Restore(before));
    work()
}

/// The mask from before.
struct Restore(MaybeUninit<libc::sigset_t>);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: made only where the call has filled it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), null_mut()) };
    }
}
