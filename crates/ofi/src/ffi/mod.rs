//! The C side: every `unsafe` line of the crate is below here. Functions of the tables turn pointers into values, call what
//! is safe, and turn the answer back.
#![allow(unsafe_code, reason = "takes pointers from C and gives pointers to C")]

pub(crate) mod address;
pub(crate) mod cntr;
pub(crate) mod cq;
pub(crate) mod domain;
pub(crate) mod endpoint;
pub(crate) mod eq;
pub(crate) mod fabric;
pub(crate) mod handle;
pub(crate) mod handles;
pub(crate) mod info;
pub(crate) mod interfaces;
pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod mr;
mod nic;
pub(crate) mod provider;
mod text;
mod unsupported;
pub(crate) mod vector;

use std::time::Duration;

use crate::guard;

/// Cores of this host, also those that this process may not use: the ranks that it waits for may.
pub(crate) fn cores() -> usize {
    // SAFETY: asks the C library for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// Time that this thread has had a core.
pub(crate) fn core_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for a time. Every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Asks to be called in the child of each fork.
pub(crate) fn watch_forks() {
    extern "C" fn child() {
        guard::forked();
    }
    // SAFETY: the function lives as long as the library, which is never unloaded (link argument nodelete). Where it cannot
    // be registered for want of memory, forks go unnoticed, as they do for the C library itself.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(child)) };
}
