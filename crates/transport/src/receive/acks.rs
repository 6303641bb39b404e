//! When to acknowledge, and with what.

use pathweave_policy::AckPolicy;
use pathweave_units::{PathId, Time};
use pathweave_wire::{Ack, Data};

use crate::recovery::Receiver;

/// What has arrived since the last acknowledgement.
#[derive(Debug)]
pub(crate) struct AckState {
    policy: AckPolicy,
    packets: u16,
    marked: u16,
    latest: Trigger,
    /// When the acknowledgement held back must leave.
    pub(crate) due: Option<Time>,
}

/// The packet an acknowledgement answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trigger {
    pub(crate) psn: u64,
    pub(crate) path: PathId,
    pub(crate) sent_at: Time,
    pub(crate) received_at: Time,
}

impl AckState {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        let latest = Trigger { psn: 0, path: PathId(0), sent_at: Time::ZERO, received_at: Time::ZERO };
        AckState { policy, packets: 0, marked: 0, latest, due: None }
    }

    /// Takes note of a packet that was accepted or had been before. True if it must be acknowledged at once:
    /// `urgent` (ends a message, out of order, a duplicate), or enough have come.
    #[inline]
    pub(crate) fn note(&mut self, now: Time, data: &Data, path: PathId, ce: bool, urgent: bool) -> bool {
        self.packets = self.packets.saturating_add(1);
        self.marked = self.marked.saturating_add(u16::from(ce));
        self.latest = Trigger { psn: data.psn, path, sent_at: data.sent_at, received_at: now };
        if urgent || self.packets >= self.policy.every_packets {
            return true;
        }
        if self.due.is_none() {
            self.due = Some(now.saturating_add(self.policy.max_delay));
        }
        false
    }

    /// The acknowledgement of all that was noted, and the path of the packet it answers. Starts over.
    #[inline]
    pub(crate) fn take(&mut self, receiver: &Receiver) -> (Ack, PathId) {
        let Trigger { psn, path, sent_at, received_at } = self.latest;
        let ack = Ack {
            cumulative: receiver.expected(),
            psn,
            sack: receiver.sack(psn),
            echo_sent_at: sent_at,
            received_at,
            packets: self.packets,
            marked: self.marked,
        };
        (self.packets, self.marked, self.due) = (0, 0, None);
        (ack, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Arrival;
    use pathweave_policy::Recovery;
    use pathweave_units::Duration;
    use pathweave_wire::Operation;

    fn data(psn: u64) -> Data {
        Data {
            psn,
            msn: 0,
            offset: 0,
            len: 0,
            op: Operation::Send,
            last: false,
            retransmit: false,
            rkey: 0,
            remote_addr: 0,
            imm: 0,
            receive_index: 0,
            sent_at: Time::from_ns(psn),
        }
    }

    #[test]
    fn one_acknowledgement_for_several_packets() {
        let mut receiver = Receiver::new(Recovery::GoBackN);
        let mut acks = AckState::new(AckPolicy { every_packets: 3, max_delay: Duration::from_us(5) });
        for (psn, enough) in [(0, false), (1, false), (2, true)] {
            assert_eq!(receiver.judge(psn), Arrival::InOrder);
            receiver.accept(psn);
            assert_eq!(acks.note(Time::from_us(psn), &data(psn), PathId(4), psn == 1, false), enough);
            assert_eq!(acks.due, Some(Time::from_us(5)));
        }
        let (ack, path) = acks.take(&receiver);
        assert_eq!((ack.cumulative, ack.psn, ack.sack, ack.packets, ack.marked), (3, 2, 0b111, 3, 1));
        assert_eq!(
            (ack.echo_sent_at, ack.received_at, path),
            (Time::from_ns(2), Time::from_us(2), PathId(4))
        );
        assert_eq!(acks.due, None);
    }
}
