//! What the loop calls when something has happened.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// What the loop calls when something has happened.
pub(crate) struct Hook {
    look: Box<dyn Fn() + Send + Sync>,
    /// The thread that is within it.
    caller: Mutex<Option<ThreadId>>,
}

impl Hook {
    pub(crate) fn new(look: impl Fn() + Send + Sync + 'static) -> Self {
        Hook { look: Box::new(look), caller: Mutex::new(None) }
    }

    /// Calls it.
    ///
    /// # Errors
    /// Its panic: nothing of the loop's was at work, so it goes on.
    pub(crate) fn call(&self) -> Result<(), Box<dyn Any + Send>> {
        *self.caller() = Some(thread::current().id());
        let result = catch_unwind(AssertUnwindSafe(|| (self.look)()));
        *self.caller() = None;
        result
    }

    /// Whether the calling thread is within it.
    pub(crate) fn is_caller_within(&self) -> bool {
        *self.caller() == Some(thread::current().id())
    }

    fn caller(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
