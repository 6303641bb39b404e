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
    before: Tally,
}

/// The counters that are reported for each flow, summed over a stream's connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    out_of_order: u64,
    out_of_order_max: u64,
}

impl Tally {
    pub(super) fn of(stream: &Stream) -> Tally {
        let counters =
            |connection: &Connection| connection.stats().map(|stats| stats.counters).unwrap_or_default();
        let mut tally = Tally::default();
        for Counters { data_sent, retransmitted, timeouts, .. } in stream.senders.iter().map(counters) {
            tally.sent += data_sent;
            tally.retransmitted += retransmitted;
            tally.timeouts += timeouts;
        }
        for counters in stream.receivers.iter().map(counters) {
            tally.out_of_order += counters.out_of_order_packets();
            tally.out_of_order_max = tally.out_of_order_max.max(counters.out_of_order_max);
        }
        tally
    }
}

impl Flow {
    pub(super) fn posted(record: FlowRecord, parts: u16, before: Tally) -> Flow {
        Flow { record, to_deliver: parts, to_ack: parts, before }
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

    /// Takes what the counters have grown by since the message was posted. Messages that share connections at the same
    /// time share what happens to them.
    pub(super) fn settle(&mut self, now: &Tally) {
        let grown = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        self.record.sent_packets = grown(now.sent, self.before.sent);
        self.record.retransmitted_packets = grown(now.retransmitted, self.before.retransmitted);
        self.record.timeouts = grown(now.timeouts, self.before.timeouts);
        self.record.ooo_packets = grown(now.out_of_order, self.before.out_of_order);
        self.record.ooo_degree_max = u32::try_from(now.out_of_order_max).unwrap_or(u32::MAX);
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
        Flow::posted(FlowRecord::default(), parts, Tally { sent: 10, ..Tally::default() })
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
        flow.settle(&Tally { sent: 15, out_of_order_max: 7, ..Tally::default() });
        assert_eq!((flow.record.sent_packets, flow.record.ooo_degree_max), (5, 7));
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
