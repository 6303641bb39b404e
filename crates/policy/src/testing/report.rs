//! Results of a scenario, in integers.

use alloc::vec::Vec;

use pathweave_units::{Rate, Time};

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Results of the senders, one each.
    pub senders: Vec<SenderReport>,
    /// Number of events processed.
    pub events: u64,
}

/// Result of one sender.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SenderReport {
    /// Packets sent on each path, including retransmissions.
    pub sent: Vec<u64>,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Control packets sent that are never marked: probes.
    pub probes: u64,
    /// Copies sent.
    pub copies: u64,
    /// Control packets sent that are marked like data: notices.
    pub notices: u64,
    /// Acknowledgements that reported a mark.
    pub marked: u64,
    /// Congestion notifications received.
    pub cnps: u64,
    /// Time at which the last packet was acknowledged; `None` if the run ended before.
    pub done_at: Option<Time>,
    /// Rate of the policy over time, if it has one.
    pub rates: Vec<(Time, Rate)>,
}

impl Report {
    /// Returns the time at which the last sender finished. Panics if one did not.
    pub fn done_at(&self) -> Time {
        let done = |sender: &SenderReport| sender.done_at.expect("a sender did not finish");
        self.senders.iter().map(done).max().expect("a scenario has senders")
    }
}
