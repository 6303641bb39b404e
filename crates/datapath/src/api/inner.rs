//! State that a device shares with its connections, its listener and its registrations.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pathweave_transport::Keys;

use super::domain::Numbers;
use super::driver::Driver;
use crate::error::OpenError;
use crate::shared::{Answer, Command, ConnectionShared, Listening, Shared, Side};

/// State shared by all handles of a device, which closes with the last of them.
pub(crate) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) driver: Driver,
    pub(super) local: SocketAddr,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) paths: u16,
    pub(super) scheme: String,
    pub(super) listening: AtomicBool,
    pub(super) domains: Arc<Numbers>,
    /// Allocator of the keys of regions.
    pub(super) keys: Arc<Mutex<Keys>>,
    /// Largest number of outstanding requests of a connection; the same for receives.
    pub(super) queue_depth: u32,
}

impl Inner {
    /// Passes a command to the loop.
    #[inline]
    pub(super) fn ask(&self, command: Command) {
        if let Command::Listen(None) = command {
            self.listening.store(false, Ordering::Release);
        }
        self.driver.ask(&self.shared, command);
    }

    /// Queues a command without driving the loop, since its effect is not needed before the next arrival.
    #[inline]
    pub(super) fn ask_for_later(&self, command: Command) {
        self.shared.ask(command);
    }

    /// Passes a command to the loop and waits for its answer.
    pub(super) fn answer<T>(&self, command: Command, answer: &Answer<T>) -> Result<T, String> {
        self.driver.answer(&self.shared, command, answer)
    }

    /// Accepts connections from peers.
    ///
    /// # Errors
    /// [`OpenError::System`] if there is a listener already, or the domain is another device's.
    pub(super) fn listen(&self, listening: Listening) -> Result<(), OpenError> {
        let refused = |why| OpenError::System { address: self.local, source: std::io::Error::other(why) };
        if listening.domain.as_ref().is_some_and(|domain| !self.domains.know(domain)) {
            return Err(refused("the protection domain is not one of this device's"));
        }
        if self.listening.swap(true, Ordering::AcqRel) {
            return Err(refused("the device has a listener already"));
        }
        self.ask(Command::Listen(Some(listening)));
        Ok(())
    }

    /// Records that the application has taken a completion of a connection.
    #[inline]
    pub(super) fn taken(&self, connection: &ConnectionShared, side: Side) {
        if connection.taken(side) {
            // Other threads that wait for one learn that there will be none.
            self.ask_for_later(Command::Look);
        }
    }

    /// Waits until `ready` returns a value. Returns `Ok(None)` at the deadline, and the reason if the loop has ended.
    pub(super) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.driver.wait(&self.shared, deadline, ready)
    }

    /// Drives the loop once, if no thread does.
    #[inline]
    pub(super) fn nudge(&self) {
        self.driver.drive_once(&self.shared);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.ask(Command::Stop);
        self.driver.stop(&self.shared);
    }
}
