//! Reset of the device's clock before its 64 bits overflow.
//!
//! Everything that holds an instant belongs to a connection, a handshake or the loop. Without connections the clock
//! can therefore restart at zero unnoticed. A device that has had connections without interruption for too long
//! closes them with a specific reason; peers connect again.

use std::sync::Arc;

use super::Core;
use super::setup::Setup;
use crate::error::ConnectError;
use crate::event_loop::MUST_BEGIN_ANEW;
use crate::shared::{Command, ConnectionShared};
use crate::state::CloseReason;
use crate::stream::refuse;

/// State of a pending clock reset.
#[derive(Default)]
pub(super) struct Renewal {
    /// True if the reset is to happen as soon as all connections have ended.
    due: bool,
    /// Commands that wait for the reset.
    deferred: Vec<Command>,
}

impl Core {
    /// Resets the clock if nothing prevents it. Closes all connections first if the reset can no longer be postponed.
    #[cold]
    pub(super) fn renew(&mut self) {
        if self.connections.len() == 0 && self.setup.is_unused() {
            self.begin_anew();
        } else if self.io.now >= MUST_BEGIN_ANEW && !self.renewal.due {
            log::warn!("{}: time begins anew after 200 days, so its connections are closed", self.io.local);
            self.renewal.due = true;
            self.close_all(CloseReason::ClockRenewed);
            self.shared.notify();
        }
    }

    /// Returns the command if it can be carried out now. Keeps it until the clock reset if its effect would not
    /// survive the reset.
    pub(super) fn defers(&mut self, command: Command) -> Option<Command> {
        if self.renewal.due && matches!(command, Command::Connect(_)) {
            self.renewal.deferred.push(command);
            return None;
        }
        Some(command)
    }

    /// Gives up a connection whose opening waits for the clock reset.
    pub(super) fn give_up_deferred(&mut self, connection: &Arc<ConnectionShared>) {
        for command in &self.renewal.deferred {
            if let Command::Connect(dial) = command
                && Arc::ptr_eq(&dial.connection, connection)
            {
                refuse(connection, dial.stream.as_deref(), ConnectError::GivenUp);
            }
        }
    }

    fn begin_anew(&mut self) {
        // Setup needs random numbers for its cookies. If there are none, a later turn tries again.
        let Ok(setup) = Setup::new(&self.config) else { return };
        self.setup.hand_over(setup);
        self.io.begin_anew(&self.config);
        self.endpoint.reset_clock();
        self.acks.clear();
        self.answers.clear();
        self.surveys.clear();
        self.unproven.clear();
        for command in std::mem::take(&mut self.renewal).deferred {
            self.shared.commands.push(command);
        }
        log::info!("{}: time has begun anew", self.io.local);
    }
}

#[cfg(test)]
#[path = "epoch_test.rs"]
mod tests;
