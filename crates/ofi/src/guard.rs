//! Guard at every entry from C: a panic never unwinds into the application, and the child of a fork does
//! nothing.

use std::ffi::c_int;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::errno::{FI_EIO, FI_EOTHER};
use crate::log::{Level, log};

pub(crate) use pathweave_door::Process;

/// Error of a call: a positive number of `rdma/fi_errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// Returns the error of a rejected call. Logs the reason at FI_LOG_LEVEL=warn, because some applications
/// ignore the error number and wait forever.
#[cold]
pub(crate) fn refused(errno: i32, what: impl Display) -> Errno {
    log(Level::Warn, format_args!("a call is refused with error {errno}: {what}"));
    Errno(errno)
}

/// Result of a call.
pub(crate) type FiResult<T = ()> = Result<T, Errno>;

/// Returns FI_EIO in a child process of the one in which an object was opened.
#[inline]
pub(crate) fn check(process: Process) -> FiResult {
    if process.is_this() { Ok(()) } else { Err(Errno(FI_EIO)) }
}

/// Runs the body of an entry that returns a non-negative number. Converts errors and panics to negative
/// numbers.
#[inline]
pub(crate) fn count(body: impl FnOnce() -> FiResult<isize>) -> isize {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(count)) => count,
        Ok(Err(error)) => -(error.0 as isize),
        Err(_) => on_panic(),
    }
}

/// Runs the body of an entry that only succeeds or fails.
#[inline]
pub(crate) fn status(body: impl FnOnce() -> FiResult) -> c_int {
    count(|| body().map(|()| 0)) as c_int
}

#[cold]
fn on_panic() -> isize {
    log(Level::Warn, format_args!("a bug struck in a call; it fails with FI_EOTHER"));
    -(FI_EOTHER as isize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let (outer, inner) = (count(|| panic!("of a test")), status(|| panic!("of a test")));
        std::panic::set_hook(hook);
        assert_eq!((outer, inner), (-256, -256));
        assert_eq!(count(|| Ok(7)), 7);
        assert_eq!(status(|| Err(Errno(FI_EIO))), -5);
    }
}
