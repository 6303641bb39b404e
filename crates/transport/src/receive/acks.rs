//! When to acknowledge, and with what.

use pathweave_policy::AckPolicy;
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::{Ack, Notices};

use crate::recovery::Receiver;

/// What has arrived since the last acknowledgement.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct AckState {
    every_packets: u16,
    packets: u16,
    marked: u16,
    /// What acknowledgements say of notices.
    pub(crate) notices: Notices,
    max_delay: Duration,
    /// When the acknowledgement held back must leave.
    pub(crate) due: Option<Time>,
    /// What it answers.
    held: Trigger,
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
        AckState {
            every_packets: policy.every_packets,
            packets: 0,
            marked: 0,
            notices: Notices::Welcome,
            max_delay: policy.max_delay,
            due: None,
            held: Trigger { psn: 0, path: PathId(0), sent_at: Time::ZERO, received_at: Time::ZERO },
        }
    }

    /// Takes note of a packet that was accepted or had been before. True if it must be acknowledged at once:
    /// `urgent` (ends a message, out of order, a duplicate), or enough have come. If not, it must be
    /// [held](AckState::hold).
    #[inline]
    pub(crate) fn note(&mut self, ce: bool, urgent: bool) -> bool {
        self.packets = self.packets.saturating_add(1);
        self.marked = self.marked.saturating_add(u16::from(ce));
        urgent || self.packets >= self.every_packets
    }

    /// Holds back the acknowledgement; says until when at the latest.
    pub(crate) fn hold(&mut self, trigger: Trigger) -> Time {
        self.held = trigger;
        *self.due.get_or_insert(trigger.received_at.saturating_add(self.max_delay))
    }

    /// The acknowledgement of all that was noted, `trigger` last of all, and its path. Starts over.
    #[inline]
    pub(crate) fn take(&mut self, trigger: Trigger, receiver: &Receiver) -> (Ack, PathId) {
        let ack = Ack {
            cumulative: receiver.expected(),
            psn: trigger.psn,
            sack: receiver.sack(trigger.psn),
            echo_sent_at: trigger.sent_at,
            received_at: trigger.received_at,
            packets: self.packets,
            marked: self.marked,
            notices: self.notices,
        };
        if self.packets > 1 {
            // Those before this one were held.
            self.due = None;
        }
        (self.packets, self.marked) = (0, 0);
        (ack, trigger.path)
    }

    /// The same for the acknowledgement held back.
    pub(crate) fn take_held(&mut self, receiver: &Receiver) -> (Ack, PathId) {
        let ack = self.take(self.held, receiver);
        self.due = None;
        ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Arrival;
    use pathweave_policy::Recovery;

    #[test]
    fn one_acknowledgement_for_several_packets() {
        let mut receiver = Receiver::new(Recovery::GoBackN);
        let mut acks = AckState::new(AckPolicy { every_packets: 3, max_delay: Duration::from_us(5) });
        let trigger = |psn| Trigger {
            psn,
            path: PathId(4),
            sent_at: Time::from_ns(psn),
            received_at: Time::from_us(psn),
        };
        for psn in 0..3 {
            assert_eq!(receiver.judge(psn), Arrival::InOrder);
            receiver.accept(psn);
            assert_eq!(acks.note(psn == 1, false), psn == 2);
            if psn < 2 {
                assert_eq!(acks.hold(trigger(psn)), Time::from_us(5));
            }
        }
        let (ack, path) = acks.take(trigger(2), &receiver);
        assert_eq!((ack.cumulative, ack.psn, ack.sack, ack.packets, ack.marked), (3, 2, 0b111, 3, 1));
        assert_eq!(
            (ack.echo_sent_at, ack.received_at, path),
            (Time::from_ns(2), Time::from_us(2), PathId(4))
        );
        assert_eq!(acks.due, None);
    }

    #[test]
    fn the_acknowledgement_held_back_answers_the_latest_packet() {
        let mut acks = AckState::new(AckPolicy { every_packets: 9, max_delay: Duration::from_us(5) });
        for psn in 0..2 {
            acks.note(false, false);
            let at = Time::from_us(psn);
            acks.hold(Trigger { psn, path: PathId(psn as u16), sent_at: at, received_at: at });
        }
        let (ack, path) = acks.take_held(&Receiver::new(Recovery::GoBackN));
        assert_eq!((ack.psn, ack.packets, path, acks.due), (1, 2, PathId(1), None));
    }
}
