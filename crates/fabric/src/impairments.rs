//! Links that lose or corrupt packets at random.

use crate::marking::{Dice, Purpose};
use crate::numbers::PortNumbers;
use crate::packet::{CORRUPT, Header, LOST, PFC, PortId};

/// Random loss and corruption on the link of a port.
#[derive(Clone, Copy, Debug)]
struct Impairment {
    port: PortId,
    loss: f64,
    corruption: f64,
}

/// All impaired links, and their random numbers.
pub(crate) struct Impairments {
    list: Vec<Impairment>,
    dice: Dice,
}

impl Impairments {
    pub(crate) fn new(seed: u64, numbers: &PortNumbers) -> Self {
        Impairments { list: Vec::new(), dice: Dice::new(seed, Purpose::Impair, numbers) }
    }

    /// Sets the probabilities of loss and corruption on the link of a port. Returns true if either is above 0.
    pub(crate) fn set(&mut self, port: PortId, loss: f64, corruption: f64) -> bool {
        self.list.retain(|i| i.port != port);
        let impaired = loss > 0.0 || corruption > 0.0;
        if impaired {
            self.list.push(Impairment { port, loss, corruption });
        }
        impaired
    }

    /// Returns the probabilities of loss and corruption on the link of a port.
    pub(crate) fn probabilities(&self, port: PortId) -> (f64, f64) {
        self.list.iter().find(|i| i.port == port).map_or((0.0, 0.0), |i| (i.loss, i.corruption))
    }

    /// Draws the fate of a packet that has crossed the impaired link of port `from`.
    #[cold]
    pub(crate) fn apply(&mut self, from: PortId, header: &mut Header) {
        if header.is(PFC) {
            // A real pause expires and is repeated while needed. A simulated pause frame is sent once, so it must
            // arrive.
            return;
        }
        let (loss, corruption) = self.probabilities(from);
        let draw = self.dice.roll(from);
        if draw < loss {
            header.set(LOST);
        } else if draw < loss + corruption {
            header.set(CORRUPT);
        }
    }
}
