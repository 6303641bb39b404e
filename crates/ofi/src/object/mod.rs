//! Objects of libfabric as safe types, called by the tables of [`crate::ffi`].

pub(crate) mod contention;
pub(crate) mod counter;
pub(crate) mod domain;
pub(crate) mod events;
mod makers;
pub(crate) mod queue;
pub(crate) mod uses;
pub(crate) mod vector;
pub(crate) mod wait;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_datapath::Device;

use queue::Entry;

/// Hash map with a fast hash function, for lookups on every message.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// An endpoint that makes progress for a queue or a counter.
pub(crate) trait Progress: Send + Sync {
    /// Makes progress without blocking, for a caller that polls the queue at this address, if its queue is
    /// empty. Instead of queueing the first entry for that queue, it may return it.
    fn progress(&self, queue: Option<usize>) -> (Next, Option<Entry>);
    /// Makes progress before the caller sleeps. Another thread handles everything that arrives later.
    fn rest(&self);
    /// Returns the device at which a caller should sleep, if the caller has to drive it. Another thread
    /// handles everything that arrives elsewhere.
    fn sleep_device(&self) -> Option<Device>;
}

/// Best next step of a caller that has found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// Poll again at once. The result may arrive without any other thread of this process.
    Look,
    /// Yield the core first.
    Yield,
    /// Sleep for a short time until data arrives. Other threads want the core, and the awaited one may be
    /// among them.
    Nap,
}

/// Takes a lock even after a panic. An endpoint with a bug fails by itself, and others continue.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
