//! Signal masks: signals are handled in the application's threads only.
#![allow(unsafe_code, reason = "masks of signals are the system's")]

use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Runs `work` with all signals blocked for this thread and for the threads that it starts meanwhile. Signal handlers
/// of the application never run in those threads. A signal sent to the process is delivered to another thread, or
/// after `work`.
pub fn blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both point to memory for a mask. The first is filled before it is read, the second if there was no
    // error.
    let changed = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    // Restores the mask even if the work panics.
    let _guard = changed.then(|| Restore(before));
    work()
}

/// Restores the previous mask when dropped.
struct Restore(MaybeUninit<libc::sigset_t>);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: constructed only if the call has filled the mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), null_mut()) };
    }
}
