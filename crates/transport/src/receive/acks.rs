//! Timing and contents of acknowledgements.

use alloc::boxed::Box;

use pathweave_policy::AckPolicy;
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::{Ack, NoticePermission};

use crate::recovery::Receiver;

/// Number of PSNs that the bitmap of an acknowledgement covers.
const REACH: u64 = 64;

/// Arrivals since the last acknowledgement.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct AckState {
    every_packets: u16,
    packets: u16,
    marked: u16,
    /// Permission for notices that acknowledgements carry.
    pub(crate) notices: NoticePermission,
    /// Distance from the lowest PSN that must be reported to the PSN of `held`; less than [`REACH`].
    span: u8,
    max_delay: Duration,
    /// Time at which the delayed acknowledgement must leave, or [`Time::MAX`] if there is none.
    due: Time,
    /// Trigger of the delayed acknowledgement: of the packets recorded, the one with the highest PSN, from which the
    /// bitmap looks back.
    held: Trigger,
    /// State if bytes count instead of packets.
    by_bytes: Option<Box<ByBytes>>,
}

/// State of acknowledgement by bytes.
#[derive(Debug)]
struct ByBytes {
    every_bytes: u64,
    /// New bytes since the last acknowledgement.
    bytes: u64,
    /// True until the first acknowledgement is sent.
    is_first: bool,
    /// True if a packet ahead of the present gap has requested an acknowledgement.
    asked_ahead: bool,
}

/// Properties of a new packet that decide when it is acknowledged, if bytes count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) wire_bytes: u32,
    pub(crate) marked: bool,
    /// True if the sender requests an acknowledgement, or the packet ends its message or is a retransmission.
    pub(crate) asks: bool,
    /// True if packets are held ahead of a gap after this one was accepted.
    pub(crate) has_gap: bool,
}

/// Packet that an acknowledgement answers.
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
            notices: NoticePermission::Welcome,
            span: 0,
            max_delay: policy.max_delay,
            due: Time::MAX,
            held: Trigger { psn: 0, path: PathId(0), sent_at: Time::ZERO, received_at: Time::ZERO },
            by_bytes: policy.every_bytes.map(|bytes| {
                Box::new(ByBytes { every_bytes: bytes.get(), bytes: 0, is_first: true, asked_ahead: false })
            }),
        }
    }

    /// Time at which the delayed acknowledgement must leave.
    pub(crate) fn due(&self) -> Option<Time> {
        (self.due != Time::MAX).then_some(self.due)
    }

    /// Drops the delayed acknowledgement.
    pub(crate) fn forget(&mut self) {
        self.due = Time::MAX;
    }

    /// Returns true if bytes count, so that new packets need [`AckState::note_new`].
    #[inline]
    pub(crate) fn counts_bytes(&self) -> bool {
        self.by_bytes.is_some()
    }

    /// Records a new packet if bytes count. Returns true if it must be acknowledged at once.
    pub(crate) fn note_new(&mut self, new: New) -> bool {
        let Some(by) = &mut self.by_bytes else { return false };
        by.bytes += u64::from(new.wire_bytes);
        let gap_closed = by.asked_ahead && !new.has_gap;
        by.asked_ahead = new.has_gap && (by.asked_ahead || new.asks);
        new.marked || new.asks || gap_closed || by.is_first || by.bytes >= by.every_bytes
    }

    /// Returns true if one acknowledgement can report this packet and all that are delayed: packets in order by its
    /// cumulative number, the others by the bitmap.
    #[inline]
    pub(crate) fn can_tell(&self, psn: u64, receiver: &Receiver) -> bool {
        if self.packets == 0 {
            return true;
        }
        let (expected, held) = (receiver.expected(), self.held.psn);
        if held < expected {
            return true;
        }
        if psn < expected {
            // An acknowledgement names it by its distance from the delayed one.
            return held - psn < REACH;
        }
        let lowest = psn.min(held.saturating_sub(u64::from(self.span)).max(expected));
        psn.max(held) - lowest < REACH
    }

    /// Records a packet that was accepted, now or before. Returns true if enough packets have arrived for an
    /// acknowledgement, if packets count. Otherwise, unless an acknowledgement is due at once for another reason, the
    /// caller must [hold](AckState::hold) it.
    #[inline]
    pub(crate) fn note(&mut self, ce: bool) -> bool {
        self.packets = self.packets.saturating_add(1);
        self.marked = self.marked.saturating_add(u16::from(ce));
        self.packets >= self.every_packets && self.by_bytes.is_none()
    }

    /// Delays the acknowledgement. Returns the latest time at which it must leave.
    pub(crate) fn hold(&mut self, trigger: Trigger) -> Time {
        let others = self.packets > 1;
        // Packets further back have arrived in order, or one acknowledgement could not report them.
        let reach = |distance: u64| distance.min(REACH - 1) as u8;
        if others && self.held.psn > trigger.psn {
            self.span = self.span.max(reach(self.held.psn - trigger.psn));
        } else {
            let span = u64::from(self.span) + trigger.psn.saturating_sub(self.held.psn);
            self.span = if others { reach(span) } else { 0 };
            self.held = trigger;
        }
        self.due = self.due.min(trigger.received_at.saturating_add(self.max_delay));
        self.due
    }

    /// Returns the acknowledgement of all recorded packets, with its path, and resets the state. `trigger` is the
    /// latest packet recorded, which the acknowledgement answers. Its bitmap looks back from the delayed packet if
    /// only that shows it.
    #[inline]
    pub(crate) fn take(&mut self, trigger: Trigger, receiver: &Receiver) -> (Ack, PathId) {
        let is_ahead =
            self.packets > 1 && self.held.psn > trigger.psn && self.held.psn >= receiver.expected();
        let psn = if is_ahead { self.held.psn } else { trigger.psn };
        debug_assert!(psn - trigger.psn < REACH, "what is further away is told before");
        let ack = Ack {
            cumulative: receiver.expected(),
            psn,
            back: (psn - trigger.psn) as u8,
            sack: receiver.sack(psn),
            echo_sent_at: trigger.sent_at,
            received_at: trigger.received_at,
            packets: self.packets,
            marked: self.marked,
            notices: self.notices,
        };
        if self.packets > 1 {
            // Earlier packets were delayed.
            self.due = Time::MAX;
        }
        (self.packets, self.marked) = (0, 0);
        if let Some(by) = &mut self.by_bytes {
            (by.bytes, by.is_first) = (0, false);
        }
        (ack, trigger.path)
    }

    /// Path of the delayed acknowledgement, if there is one.
    pub(crate) fn held_path(&self) -> Option<PathId> {
        self.due().map(|_| self.held.path)
    }

    /// Returns the delayed acknowledgement.
    pub(crate) fn take_held(&mut self, receiver: &Receiver) -> (Ack, PathId) {
        let ack = self.take(self.held, receiver);
        self.due = Time::MAX;
        ack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Arrival;
    use pathweave_policy::Recovery;
    use pathweave_units::Bytes;

    #[test]
    fn one_acknowledgement_for_several_packets() {
        let mut receiver = Receiver::new(Recovery::GoBackN);
        let mut acks = AckState::new(AckPolicy::by_packets(3, Duration::from_us(5)));
        let trigger = |psn| Trigger {
            psn,
            path: PathId(4),
            sent_at: Time::from_ns(psn),
            received_at: Time::from_us(psn),
        };
        for psn in 0..3 {
            assert_eq!(receiver.judge(Time::ZERO, psn), Arrival::InOrder);
            receiver.accept(psn);
            assert_eq!(acks.note(psn == 1), psn == 2);
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
        assert_eq!(acks.due(), None);
    }

    /// 16,384 bytes are reached by four packets of 4,150, which are 16,600. The first packet is acknowledged
    /// separately.
    #[test]
    fn by_bytes_every_fourth_packet_and_what_cannot_wait() {
        let policy = AckPolicy::by_bytes(Bytes::new(16_384), Duration::from_us(100));
        let mut receiver = Receiver::new(Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(100),
            sender_window_packets: None,
        });
        let mut acks = AckState::new(policy);
        let mut arrives = |psn: u64, marked: bool, asks: bool| {
            receiver.accept(psn);
            assert!(!acks.note(marked));
            let at = Time::from_us(psn);
            let trigger = Trigger { psn, path: PathId(0), sent_at: at, received_at: at };
            let new = New { wire_bytes: 4_150, marked, asks, has_gap: receiver.has_gap() };
            let at_once = acks.note_new(new);
            if at_once {
                acks.take(trigger, &receiver);
            } else {
                acks.hold(trigger);
            }
            at_once
        };
        assert_eq!([0, 1, 2, 3, 4].map(|psn| arrives(psn, false, false)), [true, false, false, false, true]);
        assert!(arrives(5, true, false) && arrives(6, false, true) && !arrives(7, false, false));
        // Packet 10 requests an acknowledgement ahead of 8 and 9: it is answered at once, and again when the gap
        // ends.
        assert!(arrives(10, false, true) && !arrives(8, false, false) && arrives(9, false, false));
        // No packet has requested one.
        assert!(!arrives(12, false, false) && !arrives(11, false, false));
    }

    /// The bitmap looks back from the acknowledged packet, so that must be the highest one out of order. Packets that
    /// would not fit into the bitmap are acknowledged before.
    #[test]
    fn an_acknowledgement_tells_of_every_packet_it_was_held_for() {
        let recovery = Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(1_000),
            sender_window_packets: None,
        };
        let mut receiver = Receiver::new(recovery);
        let mut acks = AckState::new(AckPolicy::by_packets(4, Duration::from_us(5)));
        let at = |psn| Trigger { psn, path: PathId(0), sent_at: Time::ZERO, received_at: Time::ZERO };
        for psn in [68, 70, 66] {
            receiver.accept(psn);
            assert!(acks.can_tell(psn, &receiver) && !acks.note(false));
            acks.hold(at(psn));
        }
        assert_eq!([6, 7, 129, 130].map(|psn| acks.can_tell(psn, &receiver)), [false, true, true, false]);
        let (ack, _) = acks.take_held(&receiver);
        assert_eq!((ack.psn, ack.sack, ack.packets), (70, 0b10101, 3));
        for (psn, enough) in [(80, false), (90, false), (79, false), (81, true)] {
            receiver.accept(psn);
            assert!(acks.can_tell(psn, &receiver));
            assert_eq!(acks.note(false), enough);
            if !enough {
                acks.hold(at(psn));
            }
        }
        let (ack, _) = acks.take(at(81), &receiver);
        assert_eq!((ack.psn, ack.trigger(), ack.sack & 0xfff), (90, 81, 0b1110_0000_0001));
        // Packets that have arrived in order meanwhile need no bitmap.
        receiver.accept(91);
        assert!(!acks.note(false));
        acks.hold(at(91));
        (0..66).filter(|&psn| psn != 66).for_each(|psn| receiver.accept(psn));
        // A trigger must lie within the reach of the bitmap: 91 - 63.
        assert_eq!(receiver.expected(), 67);
        assert_eq!([27, 28].map(|psn| acks.can_tell(psn, &receiver)), [false, true]);
    }

    /// Packet 12 is delayed, unmarked, when 11 arrives late and marked. Stamps, path and mark are those of 11, and
    /// the bitmap reports 12.
    #[test]
    fn the_packet_that_causes_an_acknowledgement_is_named_though_another_is_ahead() {
        let policy = AckPolicy::by_bytes(Bytes::new(16_384), Duration::from_us(100));
        let mut receiver = Receiver::new(Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(100),
            sender_window_packets: None,
        });
        let mut acks = AckState::new(policy);
        let mut arrives = |psn: u64, marked: bool| {
            receiver.accept(psn);
            assert!(!acks.note(marked));
            let trigger = Trigger {
                psn,
                path: PathId(psn as u16),
                sent_at: Time::from_ns(psn),
                received_at: Time::from_us(psn),
            };
            let new = New { wire_bytes: 4_150, marked, asks: false, has_gap: receiver.has_gap() };
            if acks.note_new(new) {
                Some(acks.take(trigger, &receiver))
            } else {
                acks.hold(trigger);
                None
            }
        };
        // The first packet is acknowledged separately.
        assert!(arrives(0, false).is_some() && arrives(12, false).is_none());
        let (ack, path) = arrives(11, true).expect("it was marked");
        // Packets 12 and 11, and 0 twelve back.
        assert_eq!((ack.cumulative, ack.psn, ack.back, ack.sack), (1, 12, 1, 0b1_0000_0000_0011));
        assert_eq!((ack.packets, ack.marked, ack.trigger(), path), (2, 1, 11, PathId(11)));
        assert_eq!((ack.echo_sent_at, ack.received_at), (Time::from_ns(11), Time::from_us(11)));
    }

    #[test]
    fn the_acknowledgement_held_back_answers_the_latest_packet() {
        let mut acks = AckState::new(AckPolicy::by_packets(9, Duration::from_us(5)));
        for psn in 0..2 {
            acks.note(false);
            let at = Time::from_us(psn);
            acks.hold(Trigger { psn, path: PathId(psn as u16), sent_at: at, received_at: at });
        }
        let (ack, path) = acks.take_held(&Receiver::new(Recovery::GoBackN));
        assert_eq!((ack.psn, ack.packets, path, acks.due()), (1, 2, PathId(1), None));
    }
}
