//! Guard at every entry from C: a panic never unwinds into NCCL, and the child of a fork does nothing. Messages for
//! users.
#![allow(unsafe_code, reason = "calls the log function of NCCL")]

use std::ffi::{CString, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use pathweave_door::Process;

use crate::abi::{Code, Fault, LOG_INFO, LOG_INIT_NET, LOG_WARN, Logger, SUCCESS};

/// Result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

/// Process that made the first call.
static PROCESS: OnceLock<Process> = OnceLock::new();
static LOGGER: RwLock<Option<Logger>> = RwLock::new(None);

/// Runs the body of an entry. In the child of a fork, the sockets and threads behind all objects do not exist, and locks
/// may be held for ever, so nothing runs there.
#[inline]
pub(crate) fn entry(body: impl FnOnce() -> Outcome) -> Code {
    if !PROCESS.get_or_init(Process::this).is_this() {
        return Fault::System as Code;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(fault)) => fault as Code,
        Err(_) => {
            warn("a bug struck in a call; it fails with an internal error");
            Fault::Internal as Code
        }
    }
}

/// Locks a mutex. A panic under the lock ends the call that held it; the next one goes on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the function that writes NCCL's log.
pub(crate) fn log_with(logger: Option<Logger>) {
    if logger.is_some() {
        *LOGGER.write().unwrap_or_else(PoisonError::into_inner) = logger;
    }
}

/// Writes a line that users have to see.
#[cold]
pub(crate) fn warn(message: impl Display) {
    log(LOG_WARN, &message.to_string());
}

/// Writes a line for users who look for it.
#[cold]
pub(crate) fn info(message: impl Display) {
    log(LOG_INFO, &message.to_string());
}

fn log(level: c_int, message: &str) {
    let logger = *LOGGER.read().unwrap_or_else(PoisonError::into_inner);
    let text = CString::new(format!("NET/pathweave : {message}"));
    if let Some((logger, text)) = logger.zip(text.ok()) {
        // SAFETY: the function is NCCL's, which stays loaded; the format takes one string, which lives until it returns.
        unsafe {
            logger(level, LOG_INIT_NET, c"pathweave".as_ptr(), 0, c"%s".as_ptr(), text.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code = entry(|| panic!("of a test"));
        std::panic::set_hook(hook);
        assert_eq!((code, entry(|| Ok(())), entry(|| Err(Fault::Remote))), (3, 0, 6));
    }
}
