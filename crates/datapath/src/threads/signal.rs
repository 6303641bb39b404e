//! Condition on which threads wait.

use std::time::{Duration, Instant};

use super::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError, fence};

fn locked(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes waiting threads when a condition may have changed.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    waiting: AtomicUsize,
    mutex: Mutex<()>,
    happened: Condvar,
}

impl Signal {
    /// Wakes all waiting threads, so that they check their conditions.
    #[inline]
    pub(crate) fn notify(&self) {
        // Either this thread sees the waiter, or the waiter sees the change: it checks once more after it has
        // announced itself.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let _guard = locked(&self.mutex);
            self.happened.notify_all();
        }
    }

    /// Sleeps until `ready` returns a value; returns `None` at the deadline.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let mut guard = locked(&self.mutex);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let result = loop {
            if let Some(value) = ready() {
                break Some(value);
            }
            guard = match deadline {
                None => self.happened.wait(guard).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        break None;
                    }
                    self.happened.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }
}
