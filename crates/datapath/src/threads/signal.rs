//! Threads that wait until something has happened.

#[cfg(feature = "tokio")]
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError, fence};

fn locked(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells waiting threads that something has happened.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    waiting: AtomicUsize,
    mutex: Mutex<()>,
    happened: Condvar,
    /// Who hears of it besides.
    #[cfg(feature = "tokio")]
    hook: OnceLock<Hook>,
}

/// Called by the thread that notifies, mostly the loop; must return soon.
#[cfg(feature = "tokio")]
struct Hook(Box<dyn Fn() + Send + Sync>);

#[cfg(feature = "tokio")]
impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl Signal {
    /// Whatever threads wait for may have come true.
    #[inline]
    pub(crate) fn notify(&self) {
        // Either this sees the waiter, or the waiter, who looks once more after announcing itself, sees what happened.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let _guard = locked(&self.mutex);
            self.happened.notify_all();
        }
        #[cfg(feature = "tokio")]
        if let Some(hook) = self.hook.get() {
            hook.0();
        }
    }

    /// From now on `look` is called whenever something has happened. The first one counts.
    #[cfg(feature = "tokio")]
    pub(crate) fn hook(&self, look: Box<dyn Fn() + Send + Sync>) {
        let _ = self.hook.set(Hook(look));
    }

    /// Sleeps until `ready` gives something; `None` at the deadline.
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
