//! What a collective takes, counted before it is made.

use super::{Medium, Plan, Sizes, Transfer};
use crate::error::WorkloadError;
use crate::graph::MAX_MESSAGE_SIZE;

/// Parts of a graph, or of a piece of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: u64,
    pub(crate) computations: u64,
    pub(crate) dependencies: u64,
}

impl Counts {
    /// So many times as much.
    pub(crate) fn times(self, n: u64) -> Self {
        Counts {
            messages: self.messages.saturating_mul(n),
            computations: self.computations.saturating_mul(n),
            dependencies: self.dependencies.saturating_mul(n),
        }
    }
    pub(crate) fn add(&mut self, other: Counts) {
        self.messages = self.messages.saturating_add(other.messages);
        self.computations = self.computations.saturating_add(other.computations);
        self.dependencies = self.dependencies.saturating_add(other.dependencies);
    }
    /// Messages and computations together.
    pub(crate) fn tasks(&self) -> u64 {
        self.messages.saturating_add(self.computations)
    }
}

/// A medium that only counts.
struct Tally {
    sizes: Sizes<'static>,
    counts: Counts,
    /// The pieces of a large one count once.
    transfers: u64,
}

impl Medium for Tally {
    type Sent = ();

    fn send(&mut self, transfer: Transfer, after: &[()]) -> Result<(), WorkloadError> {
        let pieces = self.sizes.of(transfer.blocks).div_ceil(MAX_MESSAGE_SIZE.get()).max(1);
        let before = after.len() as u64 + u64::from(transfer.own);
        self.counts.messages += pieces;
        // Each piece waits for what is before the transfer, and for the piece before.
        self.counts.dependencies += pieces * before + (pieces - 1);
        self.transfers += 1;
        Ok(())
    }
}

impl Plan {
    /// What [`Plan::run`] puts on the graph where every rank's input waits for a task, and how many transfers tasks behind it
    /// wait for, one for each rank that waits for all it sends and receives. The plan must have been checked.
    pub(crate) fn count(&self) -> Result<(Counts, u64), WorkloadError> {
        let mut tally = Tally { sizes: self.sizes(), counts: Counts::default(), transfers: 0 };
        self.run(&mut tally)?;
        Ok((tally.counts, 2 * tally.transfers))
    }
}
