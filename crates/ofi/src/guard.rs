//! What stands at every entry from C: nothing unwinds into the application, and a child of a fork does nothing.

use std::ffi::c_int;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::errno::{FI_EIO, FI_EOTHER};
use crate::log::{Level, say};

/// Why a call fails: a positive number of `rdma/fi_errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// The answer of a call that is refused. The reason is said in one line at FI_LOG_LEVEL=warn: some applications take no notice of the number,
/// and wait for ever.
#[cold]
pub(crate) fn refused(errno: i32, what: impl Display) -> Errno {
    say(Level::Warn, format_args!("a call is refused with error {errno}: {what}"));
    Errno(errno)
}

/// What a call comes to.
pub(crate) type Answer<T = ()> = Result<T, Errno>;

/// How many forks lie between this process and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// The process in which something was opened. Its sockets and threads are not those of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// This one.
    pub(crate) fn this() -> Self {
        WATCH.call_once(crate::ffi::watch_forks);
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Fails in a child.
    #[inline]
    pub(crate) fn check(self) -> Answer {
        if self.is_this() { Ok(()) } else { Err(Errno(FI_EIO)) }
    }

    /// Whether this is still the same process.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        GENERATION.load(Ordering::Relaxed) == self.0
    }
}

/// Called in the child of each fork.
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The body of an entry: a number that is not negative, or an error.
#[inline]
pub(crate) fn count(body: impl FnOnce() -> Answer<isize>) -> isize {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(count)) => count,
        Ok(Err(error)) => -(error.0 as isize),
        Err(_) => struck(),
    }
}

/// The body of an entry that has nothing to say but whether it worked.
#[inline]
pub(crate) fn status(body: impl FnOnce() -> Answer) -> c_int {
    count(|| body().map(|()| 0)) as c_int
}

#[cold]
fn struck() -> isize {
    say(Level::Warn, format_args!("a bug struck in a call; it fails with FI_EOTHER"));
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
