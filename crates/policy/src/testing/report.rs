//! What a scenario gave, in integers.

use alloc::vec::Vec;

use pathweave_units::{Rate, Time};

/// What a run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One for each sender.
    pub senders: Vec<SenderReport>,
    /// Events processed.
    pub events: u64,
}

/// What one sender did.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SenderReport {
    /// Packets sent on each path, retransmissions included.
    pub sent: Vec<u64>,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Control packets sent that are never marked: probes.
    pub probes: u64,
    /// Copies sent.
    pub copies: u64,
    /// Control packets sent that are marked as data is: notices.
    pub notices: u64,
    /// Acknowledgements that reported a mark.
    pub marked: u64,
    /// Congestion notifications received.
    pub cnps: u64,
    /// When the last packet was acknowledged; `None` if the run ended before.
    pub done_at: Option<Time>,
    /// The policy's rate over time, where it has one.
    pub rates: Vec<(Time, Rate)>,
}

impl Report {
    /// When the last sender was done. Panics if one was not.
    pub fn done_at(&self) -> Time {
        let done = |sender: &SenderReport| sender.done_at.expect("a sender did not finish");
        self.senders.iter().map(done).max().expect("a scenario has senders")
    }
}
