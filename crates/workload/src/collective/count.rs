//! Size of a collective's graph, counted before the graph is made.

use super::{Medium, Plan, Sizes, Transfer};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::graph::MAX_MESSAGE_SIZE;

/// A [`Medium`] that only counts.
struct Tally {
    sizes: Sizes<'static>,
    counts: Counts,
    /// Number of transfers. A large transfer counts once, whatever its number of pieces.
    transfers: u64,
}

impl Medium for Tally {
    type Sent = ();

    fn send(&mut self, transfer: Transfer, after: &[()]) -> Result<(), WorkloadError> {
        let pieces = self.sizes.bytes(transfer.blocks).div_ceil(MAX_MESSAGE_SIZE.get()).max(1);
        let before = after.len() as u64 + u64::from(transfer.own);
        self.counts.messages += pieces;
        // Each piece waits for the predecessors of the transfer, and for the previous piece.
        self.counts.dependencies += pieces * before + (pieces - 1);
        self.transfers += 1;
        Ok(())
    }
}

impl Plan {
    /// Returns the tasks and dependencies that [`Plan::run`] puts on the graph if every rank's input waits
    /// for a task. The second value is the number of dependencies of later tasks that wait, for each rank,
    /// for all its transfers. The plan must have been checked.
    pub(crate) fn count(&self) -> Result<(Counts, u64), WorkloadError> {
        let mut tally = Tally { sizes: self.sizes(), counts: Counts::default(), transfers: 0 };
        self.run(&mut tally)?;
        Ok((tally.counts, 2 * tally.transfers))
    }
}
