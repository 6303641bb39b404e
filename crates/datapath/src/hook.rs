//! The application's hook, which the loop calls when there are events.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// The application's hook.
pub(crate) struct Hook {
    look: Box<dyn Fn() + Send + Sync>,
    /// Thread that is running the hook.
    caller: Mutex<Option<ThreadId>>,
}

impl Hook {
    pub(crate) fn new(look: impl Fn() + Send + Sync + 'static) -> Self {
        Hook { look: Box::new(look), caller: Mutex::new(None) }
    }

    /// Calls the hook.
    ///
    /// # Errors
    /// The hook's panic. The state of the loop is intact, so the loop continues.
    pub(crate) fn call(&self) -> Result<(), Box<dyn Any + Send>> {
        *self.caller() = Some(thread::current().id());
        let result = catch_unwind(AssertUnwindSafe(|| (self.look)()));
        *self.caller() = None;
        result
    }

    /// Returns true if the calling thread runs within the hook.
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
