//! State of a posted message at its sender and at its receiver.

use pathweave_records::{FlowRecord, FlowStatus};
use pathweave_transport::Status;
use pathweave_units::Time;

use crate::tally::{MessageCounters, ReceiverCounters, SenderCounters, grown};

/// State of a message at its sender, beyond its description in the workload.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Sending {
    pub(crate) start_ps: u64,
    /// Time at which the sender knew that the whole message had arrived; [`Time::MAX`] until then.
    pub(crate) acked: Time,
    pub(crate) ideal_fct_ps: u64,
    pub(crate) ideal_acked_ps: Option<u64>,
    pub(crate) counters: MessageCounters,
    pub(crate) dropped_packets: u32,
    /// Packets sent again, where the driver reports each ([`Execution::sent_again`](crate::Execution::sent_again)).
    pub(crate) sent_again: u32,
    status: FlowStatus,
    /// Number of parts (queue pairs) that have not completed at the sender.
    pub(crate) parts_to_complete: u16,
}

/// State of a message at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Receiving {
    /// Time at which the last byte arrived; [`Time::MAX`] until then.
    finish: Time,
    ooo_packets: u32,
    ooo_degree_max: u32,
    lost_packets: u32,
    /// Number of parts that have been announced and not been delivered.
    pub(crate) parts_to_deliver: u16,
    /// True once the run no longer waits for the message, although its sender does not know how it ended.
    pub(crate) given_up: bool,
}

impl Sending {
    /// Creates the state of a message that is posted now, from its record.
    pub(crate) fn new(record: &FlowRecord, parts: u16) -> Self {
        Sending {
            start_ps: record.start_ps,
            acked: Time::MAX,
            ideal_fct_ps: record.ideal_fct_ps,
            ideal_acked_ps: record.ideal_acked_ps,
            counters: MessageCounters::default(),
            dropped_packets: 0,
            sent_again: 0,
            status: record.status,
            parts_to_complete: parts,
        }
    }

    /// Attributes to this flow the growth of the connection's counters from `taken` to `now`. Of several messages in
    /// flight together, each event counts for exactly one flow, so that sums over flows are correct.
    pub(crate) fn attribute_counters(&mut self, now: &SenderCounters, taken: &SenderCounters) {
        self.counters = now.since(taken);
    }

    /// Returns the time at which the sender knew that the whole message had arrived.
    pub(crate) fn acked(&self) -> Option<Time> {
        Some(self.acked).filter(|&acked| acked < Time::MAX)
    }

    /// Adds the sender's state to a record made from the workload.
    pub(crate) fn fill_record(&self, record: &mut FlowRecord) {
        record.start_ps = self.start_ps;
        record.acked_ps = self.acked().map(Time::as_ps);
        record.ideal_fct_ps = self.ideal_fct_ps;
        record.ideal_acked_ps = self.ideal_acked_ps;
        self.counters.fill_record(record);
        record.dropped_packets = self.dropped_packets;
        record.status = self.status;
    }

    /// Records the completion of one part. Returns true if it was the last.
    pub(crate) fn part_completed(&mut self, now: Time, status: Status) -> bool {
        self.parts_to_complete -= 1;
        match status {
            Status::Success if self.parts_to_complete == 0 && self.status != FlowStatus::RetriesExceeded => {
                self.acked = now;
            }
            Status::Success => {}
            Status::RetryExceeded | Status::Flushed => self.status = FlowStatus::RetriesExceeded,
            _ => self.status = FlowStatus::Refused,
        }
        self.parts_to_complete == 0
    }
}

impl Receiving {
    pub(crate) const UNKNOWN: Receiving = Receiving {
        finish: Time::MAX,
        ooo_packets: 0,
        ooo_degree_max: 0,
        lost_packets: 0,
        parts_to_deliver: 0,
        given_up: false,
    };

    /// Records the delivery of one part. Returns true if it was the last.
    pub(crate) fn part_delivered(&mut self, now: Time) -> bool {
        self.parts_to_deliver -= 1;
        if self.parts_to_deliver == 0 {
            self.finish = now;
        }
        self.parts_to_deliver == 0
    }

    /// Returns the time at which the last byte arrived.
    pub(crate) fn finished(&self) -> Option<Time> {
        Some(self.finish).filter(|&finish| finish < Time::MAX)
    }

    /// Attributes the growth of the connection's counters to this flow. The first `taken` packets out of order count
    /// for other flows.
    pub(crate) fn settle(&mut self, now: &ReceiverCounters, taken: u64) {
        let clamped = |count| u32::try_from(count).unwrap_or(u32::MAX);
        self.ooo_packets = clamped(grown(now.ooo_packets, taken));
        self.ooo_degree_max = clamped(now.ooo_degree_max);
    }

    /// Counts a packet out of order, for connections that do not count them.
    pub(crate) fn note_out_of_order(&mut self) {
        self.ooo_packets += 1;
    }

    /// Counts a packet that was lost at the receiver.
    pub(crate) fn note_lost(&mut self) {
        self.lost_packets += 1;
    }

    /// Adds the receiver's state to a record that has the sender's. A message that has arrived whole has finished,
    /// unless its sender gave up waiting for the acknowledgement: its application has an error.
    pub(crate) fn complete(&self, record: &mut FlowRecord) {
        record.ooo_packets = self.ooo_packets;
        record.ooo_degree_max = self.ooo_degree_max;
        record.dropped_packets += self.lost_packets;
        if self.finish < Time::MAX {
            record.finish_ps = Some(self.finish.as_ps());
            if record.status == FlowStatus::Unfinished {
                record.status = FlowStatus::Finished;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(parts: u16) -> (Sending, Receiving) {
        let receiving = Receiving { parts_to_deliver: parts, ..Receiving::UNKNOWN };
        (Sending::new(&FlowRecord::default(), parts), receiving)
    }

    fn record((sending, receiving): (Sending, Receiving)) -> FlowRecord {
        let mut record = FlowRecord::default();
        sending.fill_record(&mut record);
        receiving.complete(&mut record);
        record
    }

    #[test]
    fn a_flow_ends_with_its_last_part() {
        let mut flow = flow(2);
        assert!(!flow.1.part_delivered(Time::from_us(1)));
        assert!(!flow.0.part_completed(Time::from_us(2), Status::Success));
        assert!(flow.1.part_delivered(Time::from_us(3)));
        assert_eq!(flow.0.parts_to_complete, 1);
        assert!(flow.0.part_completed(Time::from_us(4), Status::Success));
        let record = record(flow);
        assert_eq!((record.finish_ps, record.acked_ps), (Some(3_000_000), Some(4_000_000)));
        assert_eq!(record.status, FlowStatus::Finished);
    }

    #[test]
    fn messages_under_way_together_count_each_event_once() {
        let sent = |sent_packets, retransmitted_packets| SenderCounters {
            sent_packets,
            retransmitted_packets,
            ..SenderCounters::default()
        };
        let received = |ooo_packets| ReceiverCounters { ooo_packets, ooo_degree_max: 7 };
        let at = [(sent(10, 0), received(1)), (sent(25, 3), received(1)), (sent(32, 3), received(5))];
        let counts = at.windows(2).map(|pair| {
            let mut flow = flow(1);
            flow.0.attribute_counters(&pair[1].0, &pair[0].0);
            flow.1.settle(&pair[1].1, pair[0].1.ooo_packets);
            let record = record(flow);
            let sent = (record.sent_packets, record.retransmitted_packets);
            (sent, (record.ooo_packets, record.ooo_degree_max))
        });
        assert_eq!(counts.collect::<Vec<_>>(), [((15, 3), (0, 7)), ((7, 0), (4, 7))]);
    }

    #[test]
    fn a_sender_that_gives_up_has_failed_though_all_arrived() {
        let mut lost = flow(1);
        assert!(lost.0.part_completed(Time::from_us(9), Status::RetryExceeded));
        let lost = record(lost);
        assert_eq!((lost.status, lost.acked_ps), (FlowStatus::RetriesExceeded, None));
        let mut arrived = flow(1);
        assert!(arrived.1.part_delivered(Time::from_us(1)));
        arrived.0.part_completed(Time::from_us(9), Status::Flushed);
        let arrived = record(arrived);
        assert_eq!((arrived.status, arrived.finish_ps), (FlowStatus::RetriesExceeded, Some(1_000_000)));
    }
}
