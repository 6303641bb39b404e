//! The endpoints whose operations end at a queue or a counter.

use std::sync::{Arc, Mutex, Weak};

use super::{Progress, lock};

/// Under a lock of their own: what they make comes to the queue or the counter, which has its lock.
#[derive(Default)]
pub(crate) struct Makers(Mutex<Vec<Weak<dyn Progress>>>);

impl Makers {
    /// An endpoint more, if it is not yet there.
    pub(crate) fn add(&self, maker: Weak<dyn Progress>) {
        let mut makers = lock(&self.0);
        makers.retain(|maker| maker.strong_count() > 0);
        if !makers.iter().any(|known| known.ptr_eq(&maker)) {
            makers.push(maker);
        }
    }

    /// The endpoint, if there is one and no other.
    pub(crate) fn only(&self) -> Option<Arc<dyn Progress>> {
        match &lock(&self.0)[..] {
            [maker] => maker.upgrade(),
            _ => None,
        }
    }

    /// Calls `work` with each endpoint that is still there; not under the lock.
    pub(crate) fn each(&self, mut work: impl FnMut(&dyn Progress)) {
        let (mut at, mut count) = (0, 1);
        while at < count {
            let makers = lock(&self.0);
            count = makers.len();
            let maker = makers.get(at).and_then(Weak::upgrade);
            drop(makers);
            if let Some(maker) = maker {
                work(&*maker);
            }
            at += 1;
        }
    }
}
