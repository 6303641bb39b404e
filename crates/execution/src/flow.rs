//! What is known of a message that was posted: at its sender, and at its receiver.

use pathweave_results::{FlowRecord, FlowStatus};
use pathweave_transport::Status;
use pathweave_units::Time;

use crate::tally::{ReceiverTally, SenderTally};

/// What the sender knows, in the record that it becomes.
#[derive(Clone, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Sending {
    pub(crate) record: FlowRecord,
    /// Parts (queue pairs) of which the sender does not know yet how they ended.
    pub(crate) parts_to_complete: u16,
}

/// What the receiver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Receiving {
    /// When it had the last byte; [`Time::MAX`] until then.
    finish: Time,
    out_of_order_packets: u32,
    out_of_order_max: u32,
    lost_packets: u32,
    /// Parts that have been announced and not been delivered.
    pub(crate) parts_to_deliver: u16,
    /// The run does not wait for the message any more, although its sender was not told how it ended.
    pub(crate) given_up: bool,
}

impl Sending {
    pub(crate) fn new(record: FlowRecord, parts: u16) -> Self {
        Sending { record, parts_to_complete: parts }
    }

    /// Takes the counters of its connection. What has grown since they were taken last counts for this flow: of messages
    /// under way together, each event is one flow's, and sums over flows are right.
    pub(crate) fn settle(&mut self, now: &SenderTally, taken: &SenderTally) {
        let record = &mut self.record;
        record.sent_packets = grown(now.sent, taken.sent);
        record.retransmitted_packets = grown(now.retransmitted, taken.retransmitted);
        record.timeouts = grown(now.timeouts, taken.timeouts);
        record.cnp_packets = grown(now.cnps, taken.cnps);
        record.copied_packets = grown(now.copied, taken.copied);
        record.notice_packets = grown(now.notices, taken.notices);
        record.extra_wire_bytes = now.extra_wire_bytes.saturating_sub(taken.extra_wire_bytes);
    }

    /// The sender learnt how one part ended. True if it was the last.
    pub(crate) fn part_completed(&mut self, now: Time, status: Status) -> bool {
        self.parts_to_complete -= 1;
        let record = &mut self.record;
        match status {
            Status::Success
                if self.parts_to_complete == 0 && record.status != FlowStatus::RetriesExceeded =>
            {
                record.acked_ps = Some(now.as_ps());
            }
            Status::Success => {}
            Status::RetryExceeded | Status::Flushed => record.status = FlowStatus::RetriesExceeded,
            _ => record.status = FlowStatus::Refused,
        }
        self.parts_to_complete == 0
    }
}

impl Receiving {
    pub(crate) const UNKNOWN: Receiving = Receiving {
        finish: Time::MAX,
        out_of_order_packets: 0,
        out_of_order_max: 0,
        lost_packets: 0,
        parts_to_deliver: 0,
        given_up: false,
    };

    /// One part has arrived whole. True if it was the last.
    pub(crate) fn part_delivered(&mut self, now: Time) -> bool {
        self.parts_to_deliver -= 1;
        if self.parts_to_deliver == 0 {
            self.finish = now;
        }
        self.parts_to_deliver == 0
    }

    /// When it had the last byte.
    pub(crate) fn finished(&self) -> Option<Time> {
        Some(self.finish).filter(|&finish| finish < Time::MAX)
    }

    /// Takes the counters of its connection, `taken` of which count for others.
    pub(crate) fn settle(&mut self, now: &ReceiverTally, taken: u64) {
        self.out_of_order_packets = grown(now.out_of_order, taken);
        self.out_of_order_max = u32::try_from(now.out_of_order_max).unwrap_or(u32::MAX);
    }

    /// A packet came out of order, where packets and not connections are counted.
    pub(crate) fn note_out_of_order(&mut self) {
        self.out_of_order_packets += 1;
    }

    /// A packet was lost at the receiver.
    pub(crate) fn note_lost(&mut self) {
        self.lost_packets += 1;
    }

    /// Puts what the receiver knows beside what the sender does. What has arrived whole has finished, even if its sender
    /// gave up waiting to hear of it.
    pub(crate) fn complete(&self, record: &mut FlowRecord) {
        record.ooo_packets = self.out_of_order_packets;
        record.ooo_degree_max = self.out_of_order_max;
        record.dropped_packets += self.lost_packets;
        if self.finish < Time::MAX {
            record.finish_ps = Some(self.finish.as_ps());
            record.status = FlowStatus::Finished;
        }
    }
}

/// The counters of a real connection are gone with it: then nothing has grown.
fn grown(now: u64, before: u64) -> u32 {
    u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(parts: u16) -> (Sending, Receiving) {
        let receiving = Receiving { parts_to_deliver: parts, ..Receiving::UNKNOWN };
        (Sending::new(FlowRecord::default(), parts), receiving)
    }

    fn record((sending, receiving): (Sending, Receiving)) -> FlowRecord {
        let mut record = sending.record;
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
        let sent = |sent, retransmitted| SenderTally { sent, retransmitted, ..SenderTally::default() };
        let received = |out_of_order| ReceiverTally { out_of_order, out_of_order_max: 7 };
        let at = [(sent(10, 0), received(1)), (sent(25, 3), received(1)), (sent(32, 3), received(5))];
        let counts = at.windows(2).map(|pair| {
            let mut flow = flow(1);
            flow.0.settle(&pair[1].0, &pair[0].0);
            flow.1.settle(&pair[1].1, pair[0].1.out_of_order);
            let record = record(flow);
            let sent = (record.sent_packets, record.retransmitted_packets);
            (sent, (record.ooo_packets, record.ooo_degree_max))
        });
        assert_eq!(counts.collect::<Vec<_>>(), [((15, 3), (0, 7)), ((7, 0), (4, 7))]);
    }

    #[test]
    fn a_sender_that_gives_up_has_failed_unless_all_arrived() {
        let mut lost = flow(1);
        assert!(lost.0.part_completed(Time::from_us(9), Status::RetryExceeded));
        let lost = record(lost);
        assert_eq!((lost.status, lost.acked_ps), (FlowStatus::RetriesExceeded, None));
        let mut arrived = flow(1);
        assert!(arrived.1.part_delivered(Time::from_us(1)));
        arrived.0.part_completed(Time::from_us(9), Status::Flushed);
        assert_eq!(record(arrived).status, FlowStatus::Finished);
    }
}
