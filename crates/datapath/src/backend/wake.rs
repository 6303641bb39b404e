//! Ends another thread's sleep.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

/// Ends the sleep of the thread that waits in a [`Backend`](super::Backend). Clones wake the same.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker without a waiter yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the sleep, or the next one if there is none now.
    pub fn wake(&self) {
        // Full (2^64 - 2 unseen calls) is as good as written.
        let _: Result<usize, Errno> = write(&*self.0, &1u64.to_ne_bytes());
    }

    /// What to wait for: readable once [`Waker::wake`] was called.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Forgets calls so far.
    pub fn clear(&self) {
        let mut count = [0; 8];
        let _: Result<usize, Errno> = read(&*self.0, &mut count);
    }
}
