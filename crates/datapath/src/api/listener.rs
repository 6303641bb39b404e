//! Acceptance of connections.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::inner::Inner;
use crate::error::WaitError;
use crate::shared::Command;

/// Accepts connections from peers, until it is dropped. Without one they are refused.
pub struct Listener {
    pub(super) inner: Arc<Inner>,
}

impl Listener {
    /// Waits for the next connection that a peer has opened, and returns it.
    ///
    /// # Errors
    /// [`WaitError`] if none has come within `timeout`, or if the device is closed.
    pub fn accept(&self, timeout: Duration) -> Result<Connection, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        let found = self.inner.wait(deadline, || self.inner.shared.handed.pop());
        match found {
            Ok(Some(shared)) => Ok(Connection::new(self.inner.clone(), shared)),
            Ok(None) => Err(WaitError::Timeout(timeout)),
            Err(reason) => Err(WaitError::DeviceClosed(reason)),
        }
    }

    /// Returns the next connection that a peer has opened, if there is one, without driving the loop.
    pub fn take(&self) -> Option<Connection> {
        let shared = self.inner.shared.handed.pop()?;
        Some(Connection::new(self.inner.clone(), shared))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.inner.ask(Command::Listen(None));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("local_addr", &self.inner.local).finish_non_exhaustive()
    }
}
