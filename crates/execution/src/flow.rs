//! What is known of a message that was posted.

use pathweave_results::{FlowRecord, FlowStatus};
use pathweave_transport::Status;
use pathweave_units::Time;

use crate::tally::Tally;

/// A message's record and what is left of it.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) record: FlowRecord,
    /// Parts (queue pairs) not yet delivered.
    pub(crate) parts_to_deliver: u16,
    /// Parts whose sender does not know yet how they ended.
    pub(crate) parts_to_complete: u16,
    /// Parts whose last packet has not left its sender.
    pub(crate) parts_to_send: u16,
    /// The run does not wait for it any more.
    pub(crate) over: bool,
}

impl Flow {
    pub(crate) fn posted(record: FlowRecord, parts: u16) -> Self {
        Flow { record, parts_to_deliver: parts, parts_to_complete: parts, parts_to_send: parts, over: false }
    }

    /// Takes the counters of its connection. What has grown since they were taken last counts for this flow: of messages
    /// under way together, each event is one flow's, and sums over flows are right.
    pub(crate) fn settle(&mut self, now: &Tally, taken: &Tally) {
        // The counters of a real connection are gone with it.
        let grown = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        let ((sender, receiver), (src, dst)) =
            ((&now.sender, &now.receiver), (&taken.sender, &taken.receiver));
        let record = &mut self.record;
        record.sent_packets = grown(sender.sent, src.sent);
        record.retransmitted_packets = grown(sender.retransmitted, src.retransmitted);
        record.timeouts = grown(sender.timeouts, src.timeouts);
        record.cnp_packets = grown(sender.cnps, src.cnps);
        record.copied_packets = grown(sender.copied, src.copied);
        record.notice_packets = grown(sender.notices, src.notices);
        record.extra_wire_bytes = sender.extra_wire_bytes.saturating_sub(src.extra_wire_bytes);
        record.ooo_packets = grown(receiver.out_of_order, dst.out_of_order);
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
        self.parts_to_complete -= 1;
        match status {
            Status::Success
                if self.parts_to_complete == 0 && self.record.status != FlowStatus::RetriesExceeded =>
            {
                self.record.acked_ps = Some(now.as_ps());
            }
            Status::Success => {}
            Status::RetryExceeded | Status::Flushed => self.fail(FlowStatus::RetriesExceeded),
            _ => self.fail(FlowStatus::Refused),
        }
        self.parts_to_complete == 0
    }

    fn fail(&mut self, status: FlowStatus) {
        // All bytes may have arrived although the sender gave up waiting to hear of it.
        if self.record.finish_ps.is_none() {
            self.record.status = status;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{ReceiverTally, SenderTally};

    fn flow(parts: u16) -> Flow {
        Flow::posted(FlowRecord::default(), parts)
    }

    #[test]
    fn a_flow_ends_with_its_last_part() {
        let mut flow = flow(2);
        assert!(!flow.part_delivered(Time::from_us(1)));
        assert!(!flow.part_completed(Time::from_us(2), Status::Success));
        assert!(flow.part_delivered(Time::from_us(3)));
        assert_eq!(flow.parts_to_complete, 1);
        assert!(flow.part_completed(Time::from_us(4), Status::Success));
        let record = flow.record;
        assert_eq!((record.finish_ps, record.acked_ps), (Some(3_000_000), Some(4_000_000)));
        assert_eq!(record.status, FlowStatus::Finished);
    }

    #[test]
    fn messages_under_way_together_count_each_event_once() {
        let tally = |sent, retransmitted| Tally {
            sender: SenderTally { sent, retransmitted, ..SenderTally::default() },
            receiver: ReceiverTally { out_of_order_max: 7, ..ReceiverTally::default() },
        };
        let at = [tally(10, 0), tally(25, 3), tally(32, 3)];
        let counts = at.windows(2).map(|pair| {
            let mut flow = flow(1);
            flow.settle(&pair[1], &pair[0]);
            (flow.record.sent_packets, flow.record.retransmitted_packets, flow.record.ooo_degree_max)
        });
        assert_eq!(counts.collect::<Vec<_>>(), [(15, 3, 7), (7, 0, 7)]);
    }

    #[test]
    fn who_gives_up_has_failed_unless_all_arrived() {
        let mut lost = flow(1);
        assert!(lost.part_completed(Time::from_us(9), Status::RetryExceeded));
        assert_eq!((lost.record.status, lost.record.acked_ps), (FlowStatus::RetriesExceeded, None));
        let mut arrived = flow(1);
        assert!(arrived.part_delivered(Time::from_us(1)));
        arrived.part_completed(Time::from_us(9), Status::Flushed);
        assert_eq!(arrived.record.status, FlowStatus::Finished);
    }
}
