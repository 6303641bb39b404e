//! The objects of libfabric as safe types: what the tables of [`crate::ffi`] call.

pub(crate) mod counter;
pub(crate) mod crowd;
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

/// For what is looked up with every message.
pub(crate) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What a queue or a counter waits for can be made by running this: an endpoint.
pub(crate) trait Progress: Send + Sync {
    /// Does what can be done at once, for who looks into the queue at this address, if it has one that is empty. The first entry
    /// that it would find there afterwards may come back instead.
    fn progress(&self, queue: Option<usize>) -> (Next, Option<Entry>);
    /// The same, before the caller goes to sleep: whatever comes from now on is seen by somebody else.
    fn rest(&self);
    /// Where a caller sleeps best: at what its peers' packets come to, if it is the caller's to look after them. Whatever comes
    /// otherwise is seen by somebody else.
    fn bed(&self) -> Option<Device>;
}

/// What a caller who has found nothing does best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// Looks again at once: what it waits for may come without any other thread of this process.
    Look,
    /// Leaves the core to others first.
    Yield,
    /// Sleeps for a short time until something arrives: others want the core, and the one that it waits for may be among them.
    Nap,
}

/// A lock that a panic has not spoilt: an endpoint on which a bug struck fails by itself, and others go on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
