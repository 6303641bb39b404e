//! Endpoints whose operations end at a queue or a counter.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::{Progress, lock};

/// Endpoints that feed a queue or a counter. The first one is found without a lock, because most queues have
/// no other. The others have a lock of their own, because their results take the lock of the queue or
/// counter.
#[derive(Default)]
pub(crate) struct Feeders {
    first: OnceLock<Weak<dyn Progress>>,
    others: Mutex<Vec<Weak<dyn Progress>>>,
    count: AtomicUsize,
}

impl Feeders {
    /// Adds an endpoint, if it is not present yet.
    pub(crate) fn add(&self, maker: Weak<dyn Progress>) {
        if self.first.get_or_init(|| maker.clone()).ptr_eq(&maker) {
            return;
        }
        let mut others = lock(&self.others);
        others.retain(|maker| maker.strong_count() > 0);
        if !others.iter().any(|known| known.ptr_eq(&maker)) {
            others.push(maker);
        }
        self.count.store(others.len(), Ordering::Release);
    }

    /// Returns the endpoint, if there is exactly one.
    pub(crate) fn only(&self) -> Option<Arc<dyn Progress>> {
        let (mut found, mut count) = (None, 0);
        self.each(|maker| {
            found = Some(maker);
            count += 1;
        });
        found.filter(|_| count == 1)
    }

    /// Calls `work` with each endpoint that still exists, without holding the lock.
    pub(crate) fn each(&self, mut work: impl FnMut(Arc<dyn Progress>)) {
        if let Some(maker) = self.first.get().and_then(Weak::upgrade) {
            work(maker);
        }
        let mut at = 0;
        while at < self.count.load(Ordering::Acquire) {
            let maker = lock(&self.others).get(at).and_then(Weak::upgrade);
            if let Some(maker) = maker {
                work(maker);
            }
            at += 1;
        }
    }
}
