//! What is known of each message while it is under way.

use pathweave_datapath::{Connection, Counters, Status};
use pathweave_results::{FlowRecord, FlowStatus};
use pathweave_units::Time;

use super::ends::Stream;

/// A message's record and what is left of it.
pub(super) struct Flow {
    pub(super) record: FlowRecord,
    /// Parts (queue pairs) that have not arrived.
    to_deliver: u16,
    /// Parts of which the sender has not heard.
    to_ack: u16,
}

/// The counters that are reported for each flow, summed over a stream's connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    out_of_order: u64,
    out_of_order_max: u64,
    cnps: u64,
    copied: u64,
    notices: u64,
    extra_wire_bytes: u64,
}

impl Tally {
    /// `notice_wire_bytes`: those of a notice.
    pub(super) fn of(stream: &Stream, notice_wire_bytes: u64) -> Tally {
        let counters = |connection: &Connection| {
            connection.stats().map(|stats| (stats.counters, stats.order)).unwrap_or_default()
        };
        let mut tally = Tally::default();
        for (counters, order) in stream.senders.iter().map(counters) {
            let Counters { data_sent, retransmitted, timeouts, cnps_received, .. } = counters;
            tally.sent += data_sent;
            tally.retransmitted += retransmitted;
            tally.timeouts += timeouts;
            tally.cnps += cnps_received;
            tally.copied += order.copies_sent;
            tally.notices += order.notices_sent;
            tally.extra_wire_bytes += order.copied_wire_bytes + order.notices_sent * notice_wire_bytes;
        }
        for (counters, _) in stream.receivers.iter().map(counters) {
            tally.out_of_order += counters.out_of_order_packets();
            tally.out_of_order_max = tally.out_of_order_max.max(counters.out_of_order_max);
        }
        tally
    }
}

impl Flow {
    pub(super) fn posted(record: FlowRecord, parts: u16) -> Flow {
        Flow { record, to_deliver: parts, to_ack: parts }
    }

    /// One part has arrived. True if it was the last.
    pub(super) fn delivered(&mut self, now: Time) -> bool {
        self.to_deliver = self.to_deliver.saturating_sub(1);
        if self.to_deliver == 0 && self.record.finish_ps.is_none() {
            self.record.finish_ps = Some(now.as_ps());
            if self.record.status == FlowStatus::Unfinished {
                self.record.status = FlowStatus::Finished;
            }
            return true;
        }
        false
    }

    /// The sender has heard how one part ended. True if it was the last.
    pub(super) fn acknowledged(&mut self, now: Time, status: Status) -> bool {
        self.to_ack = self.to_ack.saturating_sub(1);
        match status {
            Status::Success if self.to_ack == 0 && self.record.status != FlowStatus::RetriesExceeded => {
                self.record.acked_ps = Some(now.as_ps());
            }
            Status::Success => {}
            Status::RetryExceeded | Status::Flushed => self.fail(FlowStatus::RetriesExceeded),
            _ => self.fail(FlowStatus::Refused),
        }
        self.to_ack == 0
    }

    pub(super) fn is_open(&self) -> bool {
        self.to_ack > 0
    }

    /// Takes the counters of its stream. What has grown since they were taken last counts for this flow, as in the
    /// simulator: of messages under way together, each event is one flow's, and sums over flows are right.
    pub(super) fn settle(&mut self, now: &Tally, taken: &Tally) {
        // A connection that is gone has no counters.
        let grown = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        self.record.sent_packets = grown(now.sent, taken.sent);
        self.record.retransmitted_packets = grown(now.retransmitted, taken.retransmitted);
        self.record.timeouts = grown(now.timeouts, taken.timeouts);
        self.record.ooo_packets = grown(now.out_of_order, taken.out_of_order);
        self.record.ooo_degree_max = u32::try_from(now.out_of_order_max).unwrap_or(u32::MAX);
        self.record.cnp_packets = grown(now.cnps, taken.cnps);
        self.record.copied_packets = grown(now.copied, taken.copied);
        self.record.notice_packets = grown(now.notices, taken.notices);
        self.record.extra_wire_bytes = now.extra_wire_bytes.saturating_sub(taken.extra_wire_bytes);
    }

    fn fail(&mut self, status: FlowStatus) {
        if self.record.finish_ps.is_none() {
            self.record.status = status;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(parts: u16) -> Flow {
        Flow::posted(FlowRecord::default(), parts)
    }

    #[test]
    fn a_flow_ends_with_its_last_part() {
        let mut flow = flow(2);
        assert!(!flow.delivered(Time::from_us(1)));
        assert!(!flow.acknowledged(Time::from_us(2), Status::Success));
        assert!(flow.delivered(Time::from_us(3)));
        assert!(flow.is_open());
        assert!(flow.acknowledged(Time::from_us(4), Status::Success));
        let record = flow.record;
        assert_eq!((record.finish_ps, record.acked_ps), (Some(3_000_000), Some(4_000_000)));
        assert_eq!(record.status, FlowStatus::Finished);
    }

    #[test]
    fn messages_under_way_together_count_each_event_once() {
        let tally =
            |sent, retransmitted| Tally { sent, retransmitted, out_of_order_max: 7, ..Tally::default() };
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
        assert!(lost.acknowledged(Time::from_us(9), Status::RetryExceeded));
        assert_eq!((lost.record.status, lost.record.acked_ps), (FlowStatus::RetriesExceeded, None));
        let mut arrived = flow(1);
        assert!(arrived.delivered(Time::from_us(1)));
        arrived.acknowledged(Time::from_us(9), Status::Flushed);
        assert_eq!(arrived.record.status, FlowStatus::Finished);
    }
}
