//! Synchronization of threads, separate from the data that they exchange. `tests/threads.rs` can thus explore all
//! interleavings, with the primitives of loom in place of the standard library's.

mod parking;
mod room;
mod signal;

/// Synchronization primitives.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
}

pub(crate) use parking::Parking;
pub(crate) use room::{NoRoom, Room};
pub(crate) use signal::Signal;
