//! Where threads meet, apart from what they exchange, so that `tests/threads.rs` can try every order in which they may
//! (with the primitives of loom in place of the standard library's).

mod parking;
mod room;
mod signal;

/// What threads meet by.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
}

pub(crate) use parking::Parking;
pub(crate) use room::{NoRoom, Room};
pub(crate) use signal::Signal;
