//! Looks in vain: how long an application that polls keeps its core.

use pathweave_datapath::Turned;

use super::core::Core;
use crate::object::{Next, crowd};

/// About as long as an answer takes.
const LOOKS_AT_DEVICE: u64 = 64;

/// Looks in vain before a nap, where others want the core.
const LOOKS_BEFORE_A_NAP: u64 = 4;
/// Looks at shared memory.
const YIELDS_BEFORE_A_NAP: u64 = 64;

impl Core {
    /// Looks in a row after which an application that finds nothing leaves its core to others.
    pub(super) fn looks(&self, turned: Turned) -> u64 {
        match turned {
            Turned::Here => self.neighbours.looks().max(LOOKS_AT_DEVICE),
            // It waits for another thread.
            Turned::Elsewhere => self.neighbours.looks(),
        }
    }

    /// The best that an application can do that has found nothing so often in a row. Ranks that share memory answer within the time of a few
    /// looks, and are rung for by a detour: it naps later.
    pub(super) fn next(&self, vain: u64, turned: Turned) -> Next {
        let looks = self.looks(turned);
        let nap = if self.neighbours.is_any() { looks + YIELDS_BEFORE_A_NAP } else { LOOKS_BEFORE_A_NAP };
        match vain >= nap && crowd::is_crowded() {
            true => Next::Nap,
            false if vain >= looks => Next::Yield,
            false => Next::Look,
        }
    }

    /// True if the application, which has looked so often, is to look at the device, too: where memory is shared that costs more
    /// than all the rest, and is done the less often the longer nothing has happened there.
    pub(super) fn looks_at_device(&mut self, looks: u64) -> bool {
        !self.neighbours.is_any() || self.visits.is_due(looks, self.unanswered > 0)
    }
}
