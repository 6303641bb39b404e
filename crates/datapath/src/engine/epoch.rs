//! Time begins anew, before the 64 bits in which it is counted end.
//!
//! Everything that holds an instant belongs to a connection, a handshake or the loop, so without connections time can
//! begin again at zero unnoticed. A device that has not been without one for long enough closes those it has,
//! with a reason that says why; peers connect again.

use std::sync::Arc;

use super::Core;
use super::setup::Setup;
use crate::error::ConnectError;
use crate::event_loop::MUST_BEGIN_ANEW;
use crate::shared::{Command, ConnectionShared};
use crate::state::CloseReason;
use crate::stream::refuse;

/// Time that is to begin anew.
#[derive(Default)]
pub(super) struct Renewal {
    /// As soon as the connections are gone.
    due: bool,
    /// What waits for that.
    deferred: Vec<Command>,
}

impl Core {
    /// Lets time begin anew if it can, and sees to it that it can if it must.
    #[cold]
    pub(super) fn renew(&mut self) {
        if self.connections.len() == 0 && self.setup.is_unused() {
            self.begin_anew();
        } else if self.io.now >= MUST_BEGIN_ANEW && !self.renewal.due {
            log::warn!("{}: time begins anew after 200 days, so its connections are closed", self.io.local);
            self.renewal.due = true;
            self.close_all(CloseReason::ClockRenewed);
            self.shared.tell();
        }
    }

    /// Whether a command has to wait until time has begun anew: what it asks for would not last.
    pub(super) fn defers(&mut self, command: Command) -> Option<Command> {
        if self.renewal.due && matches!(command, Command::Connect(_)) {
            self.renewal.deferred.push(command);
            return None;
        }
        Some(command)
    }

    /// A connection whose opening waits for that is no longer wanted.
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
        // Without random numbers for its cookies there is no setup; another turn may have them.
        let Ok(setup) = Setup::new(&self.config) else { return };
        self.setup.hand_over(setup);
        self.io.begin_anew(&self.config);
        self.endpoint.begin_anew();
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
