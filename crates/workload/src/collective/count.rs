//! What a collective takes, counted before it is made.

use super::{Medium, Plan, Sizes, Transfer};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::graph::MAX_MESSAGE_SIZE;

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
        let pieces = self.sizes.bytes(transfer.blocks).div_ceil(MAX_MESSAGE_SIZE.get()).max(1);
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
