//! Wake-up of a sleeping thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

/// Handle that wakes the thread that waits in a [`Backend`](super::Backend). Clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Creates a waker without a waiting thread.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the present sleep, or the next one if there is none.
    pub fn wake(&self) {
        // A full counter (2^64 - 2 unread calls) wakes as well, so the error is ignored.
        let _: Result<usize, Errno> = write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Returns the descriptor to wait for: readable once [`Waker::wake`] was called.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Clears all calls so far.
    pub fn clear(&self) {
        let mut count = [0; 8];
        let _: Result<usize, Errno> = read(&*self.0, &mut count);
    }
}
