//! What is known of each message while it is under way.

use pathweave_results::{FlowRecord, FlowStatus};
use pathweave_transport::{Counters, OrderCounters, Status};
use pathweave_units::Time;

/// A message's record and what is left of it.
pub(crate) struct Flow {
    pub(crate) record: FlowRecord,
    /// Parts (queue pairs) not yet delivered.
    pub(crate) parts_to_deliver: u16,
    /// Parts whose sender does not know yet.
    pub(crate) parts_to_ack: u16,
    /// Parts whose last packet has not been sent yet.
    pub(crate) parts_to_send: u16,
    /// Its hosts are coupled until it has ended.
    pub(crate) may_end: bool,
    /// A raw datagram that arrived or was lost.
    pub(crate) over: bool,
}

/// The counters that are reported per flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    out_of_order: u64,
    pub(crate) out_of_order_max: u64,
    copied: u64,
    notices: u64,
    extra_wire_bytes: u64,
    cnps: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, counters: &Counters) {
        self.sent += counters.data_sent;
        self.retransmitted += counters.retransmitted;
        self.timeouts += counters.timeouts;
        self.out_of_order += counters.out_of_order_packets();
        self.out_of_order_max = self.out_of_order_max.max(counters.out_of_order_max);
        self.cnps += counters.cnps_received;
    }
    pub(crate) fn add_order(&mut self, counters: &OrderCounters, notice_wire_bytes: u64) {
        self.copied += counters.copies_sent;
        self.notices += counters.notices_sent;
        self.extra_wire_bytes += counters.copied_wire_bytes + counters.notices_sent * notice_wire_bytes;
    }
}

impl Flow {
    pub(crate) fn posted(record: FlowRecord, parts: u16) -> Self {
        Flow {
            record,
            parts_to_deliver: parts,
            parts_to_ack: parts,
            parts_to_send: parts,
            may_end: false,
            over: false,
        }
    }

    /// Takes the counters of its connection, at the sender and at the receiver. What has grown since they were taken
    /// last counts for this flow: of messages under way together, each event is one flow's, and sums over flows are right.
    pub(crate) fn settle(&mut self, now: &(Tally, Tally), taken: &(Tally, Tally)) {
        let grown = |now: u64, before: u64| u32::try_from(now - before).unwrap_or(u32::MAX);
        let ((sender, receiver), (src, dst)) = (now, taken);
        let record = &mut self.record;
        record.sent_packets = grown(sender.sent, src.sent);
        record.retransmitted_packets = grown(sender.retransmitted, src.retransmitted);
        record.timeouts = grown(sender.timeouts, src.timeouts);
        record.ooo_packets = grown(receiver.out_of_order, dst.out_of_order);
        record.copied_packets = grown(sender.copied, src.copied);
        record.notice_packets = grown(sender.notices, src.notices);
        record.extra_wire_bytes = sender.extra_wire_bytes - src.extra_wire_bytes;
        record.cnp_packets = grown(sender.cnps, src.cnps);
        record.ooo_degree_max = u32::try_from(receiver.out_of_order_max).unwrap_or(u32::MAX);
    }

    /// One part has arrived whole. True if it was the last.
    pub(crate) fn part_delivered(&mut self, now: Time) -> bool {
        self.parts_to_deliver -= 1;
        if self.parts_to_deliver == 0 {
            self.record.finish_ps = Some(now.as_ps());
            if self.record.status == FlowStatus::Unfinished {
                self.record.status = FlowStatus::Finished;
            }
        }
        self.parts_to_deliver == 0
    }

    /// The sender learnt how one part ended. True if it was the last.
    pub(crate) fn part_completed(&mut self, now: Time, status: Status) -> bool {
        self.parts_to_ack -= 1;
        match status {
            Status::Success
                if self.parts_to_ack == 0 && self.record.status != FlowStatus::RetriesExceeded =>
            {
                self.record.acked_ps = Some(now.as_ps());
            }
            Status::Success => {}
            Status::RetryExceeded | Status::Flushed => self.fail(FlowStatus::RetriesExceeded),
            _ => self.fail(FlowStatus::Refused),
        }
        self.parts_to_ack == 0
    }

    fn fail(&mut self, status: FlowStatus) {
        // All bytes may have arrived although the sender gave up waiting to hear of it.
        if self.record.finish_ps.is_none() {
            self.record.status = status;
        }
    }
}
