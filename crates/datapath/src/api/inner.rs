//! What a device, its connections, its listener and its memory hold together.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::domain::Numbers;
use super::driver::Driver;
use crate::shared::{Answer, Command, Shared};

/// What the handles of a device share: it closes with the last of them.
pub(crate) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) driver: Driver,
    pub(super) local: SocketAddr,
    pub(super) scheme: String,
    pub(super) listening: AtomicBool,
    pub(super) domains: Arc<Numbers>,
}

impl Inner {
    /// Hands a command to the loop.
    #[inline]
    pub(super) fn ask(&self, command: Command) {
        if let Command::Listen(None) = command {
            self.listening.store(false, Ordering::Release);
        }
        self.driver.ask(&self.shared, command);
    }

    /// Hands over a command from which nothing follows before something arrives.
    #[inline]
    pub(super) fn ask_for_later(&self, command: Command) {
        self.shared.ask(command);
    }

    /// Hands a command to the loop and waits for its answer.
    pub(super) fn answer<T>(&self, command: Command, answer: &Answer<T>) -> Result<T, String> {
        self.driver.answer(&self.shared, command, answer)
    }

    /// Waits until `ready` gives something; `Ok(None)` at the deadline, and the reason if the loop has ended.
    pub(super) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.driver.wait(&self.shared, deadline, ready)
    }

    /// Turns the loop once, if no thread does.
    #[inline]
    pub(super) fn nudge(&self) {
        self.driver.nudge(&self.shared);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.ask(Command::Stop);
        self.driver.stop(&self.shared);
    }
}
