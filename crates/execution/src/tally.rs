//! The counters that count for each flow.

use pathweave_transport::{Counters, OrderCounters};

/// Counters of a connection's queue pairs, summed: what is reported for each flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub(crate) sender: SenderTally,
    pub(crate) receiver: ReceiverTally,
}

/// What senders count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderTally {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) cnps: u64,
    pub(crate) copied: u64,
    pub(crate) notices: u64,
    pub(crate) extra_wire_bytes: u64,
}

/// What receivers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiverTally {
    pub(crate) out_of_order: u64,
    /// The largest degree so far.
    pub(crate) out_of_order_max: u64,
}

impl Tally {
    /// Adds a queue pair of the sender.
    pub fn add_sender(&mut self, counters: &Counters, order: &OrderCounters) {
        let sender = &mut self.sender;
        sender.sent += counters.data_sent;
        sender.retransmitted += counters.retransmitted;
        sender.timeouts += counters.timeouts;
        sender.cnps += counters.cnps_received;
        sender.copied += order.copies_sent;
        sender.notices += order.notices_sent;
        sender.extra_wire_bytes += order.extra_wire_bytes;
    }

    /// Adds a queue pair of the receiver.
    pub fn add_receiver(&mut self, counters: &Counters) {
        self.receiver.out_of_order += counters.out_of_order_packets();
        self.receiver.out_of_order_max = self.receiver.out_of_order_max.max(counters.out_of_order_max);
    }
}
