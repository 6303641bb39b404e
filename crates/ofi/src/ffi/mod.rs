//! The C side: all `unsafe` code of the crate is in this module. Functions of the tables convert pointers to
//! values, call safe code, and convert the result back.
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
pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod mr;
mod nic;
pub(crate) mod provider;
mod text;
mod unsupported;
pub(crate) mod vector;

use std::time::Duration;

/// Returns the number of cores of this host. Cores that this process may not use count as well, because the
/// ranks it waits for may use them.
pub(crate) fn cores() -> usize {
    // SAFETY: sysconf only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// Returns the CPU time of this thread.
pub(crate) fn core_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, and every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
