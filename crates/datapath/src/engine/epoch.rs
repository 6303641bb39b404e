//! Time begins anew. It is counted in picoseconds since the device was opened, in 64 bits, which last 213 days; a device
//! lasts longer.
//!
//! Everything that holds an instant belongs to a connection, a handshake or the loop, so without connections time can
//! begin again at zero and nobody notices. A device that has not been without one for long enough closes those it has,
//! with a reason that says why; peers connect again.

use pathweave_units::{Duration, Time};

use super::Core;
use super::line::Line;
use super::setup::Setup;
use crate::clock::Clock;
use crate::shared::Command;
use crate::state::CloseReason;

const DAY: Duration = Duration::from_ms(86_400_000);
/// From then on time begins anew as soon as there is no connection.
pub(crate) const MAY_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 10);
/// And from then on it must: well before the end of 64 bits, so that no timer is set to an instant beyond.
pub(crate) const MUST_BEGIN_ANEW: Time = Time::from_ps(DAY.as_ps() * 200);

impl Core {
    /// Lets time begin anew if it can, and sees to it that it can if it must.
    #[cold]
    pub(super) fn renew(&mut self) {
        if self.connections.len() == 0 && self.setup.is_unused() {
            self.begin_anew();
        } else if self.now >= MUST_BEGIN_ANEW && !self.renewing {
            log::warn!("{}: time begins anew after 200 days, so its connections are closed", self.local);
            self.renewing = true;
            self.close_all(CloseReason::ClockRenewed);
            self.shared.signal.notify();
        }
    }

    /// Whether a command has to wait until time has begun anew: what it asks for would not last.
    pub(super) fn defers(&mut self, command: Command) -> Option<Command> {
        if self.renewing && matches!(command, Command::Connect { .. }) {
            self.deferred.push(command);
            return None;
        }
        Some(command)
    }

    fn begin_anew(&mut self) {
        // Without random numbers for its cookies there is no setup; another turn may have them.
        let Ok(setup) = Setup::new(&self.config) else { return };
        self.setup.hand_over(setup);
        self.clock = Clock::start();
        self.now = self.clock.now();
        self.endpoint.begin_anew();
        self.line = Line::of_device(&self.config);
        self.waits_for_line = None;
        self.held_since = None;
        self.acks.clear();
        self.answers.clear();
        self.surveys.clear();
        self.next_upkeep = Time::ZERO;
        self.idle_since = self.now;
        self.anticipation = super::anticipation_of(&self.config);
        self.renewing = false;
        for command in std::mem::take(&mut self.deferred) {
            self.shared.commands.push(command);
        }
        log::info!("{}: time has begun anew", self.local);
    }
}

#[cfg(test)]
#[path = "epoch_test.rs"]
mod tests;
