//! Counters that are attributed to single flows. Each end of a connection keeps its own.

use pathweave_transport::{Counters, OrderCounters};

/// Counters of a sender, summed over the queue pairs of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    pub(crate) cnps: u64,
    pub(crate) copied: u64,
    pub(crate) notices: u64,
    pub(crate) extra_wire_bytes: u64,
}

/// Counters of a receiver, summed over the queue pairs of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    pub(crate) out_of_order: u64,
    /// Largest reordering degree so far.
    pub(crate) out_of_order_max: u64,
}

impl SenderCounters {
    /// Adds the counters of one queue pair.
    pub fn add(&mut self, counters: &Counters, order: &OrderCounters) {
        self.sent += counters.data_sent;
        self.retransmitted += counters.retransmitted;
        self.timeouts += counters.timeouts;
        self.cnps += counters.cnps_received;
        self.copied += order.copies_sent;
        self.notices += order.notices_sent;
        self.extra_wire_bytes += order.extra_wire_bytes;
    }
}

impl ReceiverCounters {
    /// Adds the counters of one queue pair.
    pub fn add(&mut self, counters: &Counters) {
        self.out_of_order += counters.out_of_order_packets();
        self.out_of_order_max = self.out_of_order_max.max(counters.out_of_order_max);
    }
}
