//! Selective repeat: the receiver accepts packets in any order within a window and reports which have arrived. The
//! sender retransmits only the missing ones.
//!
//! A packet counts as lost once one *sent* `reorder_packets` later has been acknowledged. Transmissions are counted,
//! not PSNs. Otherwise the acknowledgements of packets sent before a retransmission would declare it lost (the idea
//! behind RACK, RFC 8985, with a count instead of a clock).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZero;

use pathweave_units::{PathId, Time};
use pathweave_wire::{Nack, NackReason};

use super::arrival::{Arrival, arrived_in_order};
use crate::bits::BitRing;
use crate::send::flight::{Flight, Slot};
use crate::warm::Prefetch;

/// Number of transmissions by which a later packet must follow to prove one lost, and a flag: time proves it too
/// ([`super::timed`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proof(NonZero<u32>);

impl Proof {
    /// No packet proves a loss, however much later: beyond the distance that transmission numbers can express.
    const NEVER: u32 = (1 << 31) - 1;
    /// Largest distance that transmission numbers can express.
    const MOST: u32 = 1 << 30;
    /// Flag: time proves a loss.
    const TIME: u32 = 1 << 31;

    /// Creates the rule. 0 packets: no packet proves a loss.
    fn new(reorder_packets: u32, time: u32) -> Self {
        let packets = NonZero::new(reorder_packets.min(Self::MOST));
        let packets = packets.unwrap_or(const { NonZero::new(Self::NEVER).unwrap() });
        Proof(packets | time)
    }
    fn packets(self) -> i32 {
        (self.0.get() & Self::NEVER) as i32
    }
    fn is_timed(self) -> bool {
        self.0.get() & Self::TIME != 0
    }
    fn is_never(self) -> bool {
        self.0.get() == Self::NEVER
    }
}

#[derive(Debug)]
pub(crate) struct Sender {
    pub(super) order: SendOrder,
    proof: Proof,
    /// Latest transmission that is known to have arrived.
    pub(super) arrived_tx: u32,
}

/// PSNs in the order of their transmissions, as runs of consecutive ones: without losses a single run. Entries stay
/// until they are popped, even if their packet has been acknowledged.
#[derive(Debug, Default)]
pub(super) struct SendOrder {
    /// First run: its PSN, the number of that transmission, and its length. The length is 0 only if there is no run
    /// at all.
    psn: u64,
    tx: u32,
    len: u32,
    /// Allocated when a packet is first sent out of order, or lost at the end of patience.
    rest: Option<Box<LossState>>,
}

/// State that only queue pairs with losses need, kept apart from fields that every packet touches.
#[derive(Debug, Default)]
struct LossState {
    /// PSN and packets of the runs behind the first.
    runs: VecDeque<(u64, u32)>,
    /// Latest time at which packets counted as lost because patience ended.
    impatient_at: Time,
    /// Latest time at which a timeout counted.
    silent_at: Time,
    /// Unanswered probes of recovery by time.
    probes: Vec<Probe>,
    /// Latest transmission after which a probe was sent because it was late.
    asked_tx: Option<u32>,
    /// Latest packet that was lost while it was the oldest unacknowledged one.
    stuck: Option<Stuck>,
}

/// A packet that was lost while it was the oldest unacknowledged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) psn: u64,
    /// Time of the first loss.
    pub(super) since: Time,
    pub(super) losses: u32,
}

/// An unanswered probe of recovery by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    sent_at: Time,
    path: PathId,
    /// Number of the next transmission.
    pub(super) next_tx: u32,
}

/// Largest number of probes that are remembered: more than fit between a microsecond and a second if intervals
/// double.
const MOST_PROBES: usize = 32;

impl SendOrder {
    /// PSN and number of the oldest transmission.
    #[inline]
    pub(super) fn front(&self) -> Option<(u64, u32)> {
        (self.len > 0).then_some((self.psn, self.tx))
    }
    /// Number of the next transmission.
    pub(super) fn end_tx(&self) -> u32 {
        let rest = self.rest.iter().flat_map(|rest| rest.runs.iter()).map(|&(_, len)| len);
        self.tx.wrapping_add(self.len).wrapping_add(rest.sum())
    }
    #[inline]
    fn push(&mut self, psn: u64, tx: u32) {
        if self.len == 0 {
            (self.psn, self.tx, self.len) = (psn, tx, 1);
            return;
        }
        debug_assert_eq!(self.end_tx(), tx);
        let (first, len) = match self.rest.as_mut().and_then(|rest| rest.runs.back_mut()) {
            Some((first, len)) => (*first, len),
            None => (self.psn, &mut self.len),
        };
        if first + u64::from(*len) == psn {
            *len += 1;
        } else {
            self.rest.get_or_insert_default().runs.push_back((psn, 1));
        }
    }
    #[inline]
    pub(super) fn pop(&mut self) {
        self.psn += 1;
        self.tx = self.tx.wrapping_add(1);
        self.len -= 1;
        if self.len == 0
            && let Some((psn, len)) = self.rest.as_mut().and_then(|rest| rest.runs.pop_front())
        {
            (self.psn, self.len) = (psn, len);
        }
    }
    /// Records that patience has ended for some packets.
    pub(super) fn impatient(&mut self, now: Time) {
        self.rest.get_or_insert_default().impatient_at = now;
    }
    /// Records the loss of the oldest unacknowledged packet.
    pub(super) fn lost_oldest(&mut self, now: Time, psn: u64) {
        let stuck = &mut self.rest.get_or_insert_default().stuck;
        *stuck = match *stuck {
            Some(Stuck { psn: before, since, losses }) if before == psn => {
                Some(Stuck { psn, since, losses: losses.saturating_add(1) })
            }
            _ => Some(Stuck { psn, since: now, losses: 1 }),
        };
    }
    /// Latest packet that was lost while it was the oldest unacknowledged one.
    pub(super) fn stuck(&self) -> Option<Stuck> {
        self.rest.as_ref()?.stuck
    }
    /// Records a timeout.
    pub(super) fn silent(&mut self, now: Time) {
        self.rest.get_or_insert_default().silent_at = now;
    }
    /// Returns true if a timeout has counted since `then`.
    pub(super) fn was_silent_since(&self, then: Time) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.silent_at > then)
    }
    /// Records a probe that leaves on this path, behind all packets sent so far.
    pub(super) fn probe(&mut self, sent_at: Time, path: PathId) {
        let next_tx = self.end_tx();
        let probes = &mut self.rest.get_or_insert_default().probes;
        if probes.len() == MOST_PROBES {
            probes.remove(0);
        }
        probes.push(Probe { sent_at, path, next_tx });
    }
    /// Removes and returns the probe that left at `sent_at` on this path, if there is one.
    pub(super) fn take_probe(&mut self, sent_at: Time, path: PathId) -> Option<Probe> {
        let probes = &mut self.rest.as_mut()?.probes;
        let index = probes.iter().position(|probe| (probe.sent_at, probe.path) == (sent_at, path))?;
        Some(probes.remove(index))
    }
    /// Returns true if a probe that followed this transmission on its path is unanswered.
    pub(super) fn is_silent(&self, tx: u32, path: PathId) -> bool {
        let behind = |probe: &Probe| probe.path == path && probe.next_tx.wrapping_sub(tx) as i32 > 0;
        self.rest.as_ref().is_some_and(|rest| rest.probes.iter().any(behind))
    }
    /// Records that late packets up to this transmission have been probed for.
    pub(super) fn asked(&mut self, tx: u32) {
        self.rest.get_or_insert_default().asked_tx = Some(tx);
    }
    /// Returns true if late packets up to this transmission have been probed for.
    pub(super) fn is_asked(&self, tx: u32) -> bool {
        let asked_tx = self.rest.as_ref().and_then(|rest| rest.asked_tx);
        asked_tx.is_some_and(|asked_tx| asked_tx.wrapping_sub(tx) as i32 >= 0)
    }
    /// Returns true if patience has ended since `then`.
    pub(super) fn was_impatient_since(&self, then: Time) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.impatient_at > then)
    }
}

impl Sender {
    pub(super) fn new(reorder_packets: u32) -> Self {
        // The number before the first one: nothing has arrived.
        Sender { order: SendOrder::default(), proof: Proof::new(reorder_packets, 0), arrived_tx: u32::MAX }
    }
    /// Creates the sender of recovery by time.
    pub(super) fn timed(reorder_packets: u32) -> Self {
        Sender { proof: Proof::new(reorder_packets, Proof::TIME), ..Sender::new(0) }
    }
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.proof.is_timed()
    }
    /// Returns true if a packet has arrived that left enough later than this transmission.
    #[inline]
    pub(super) fn proves_lost(&self, tx: u32) -> bool {
        self.arrived_tx.wrapping_sub(tx) as i32 >= self.proof.packets()
    }

    /// Returns true if the arrival of a later packet proves a loss, because there is one path.
    pub(super) fn proves_by_order(&self) -> bool {
        (self.proof.packets() as u32) < Proof::NEVER
    }

    #[inline]
    pub(super) fn on_sent(&mut self, psn: u64, tx: u32) {
        self.order.push(psn, tx);
    }

    #[inline]
    pub(super) fn on_acked(&mut self, slot: &Slot, certain: bool) {
        if certain && slot.tx.wrapping_sub(self.arrived_tx) as i32 > 0 {
            self.arrived_tx = slot.tx;
        }
    }

    #[inline]
    pub(super) fn detect(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) -> bool {
        // Only the timer uses the order in this case.
        if self.proof.is_never() {
            return false;
        }
        while let Some((psn, tx)) = self.order.front() {
            if flight.is_in_flight(psn, tx) {
                if !self.proves_lost(tx) {
                    break;
                }
                flight.lose(psn);
                lost.push(psn);
            }
            self.order.pop();
        }
        !lost.is_empty()
    }

    pub(super) fn on_nack(&mut self, nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
        super::refused::lose_refused(nack, flight, lost);
    }

    /// Declares packets lost of which a later transmission has arrived. The others may still be in flight.
    pub(super) fn on_missing(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>) {
        for &psn in psns {
            if self.arrived_tx.wrapping_sub(flight.slot(psn).tx) as i32 > 0 {
                flight.lose(psn);
                lost.push(psn);
            }
        }
    }

    pub(crate) fn on_timeout(&mut self, before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        while let Some((psn, tx)) = self.order.front() {
            if flight.is_in_flight(psn, tx) {
                if flight.slot(psn).sent_at > before {
                    break;
                }
                flight.lose(psn);
                lost.push(psn);
            }
            self.order.pop();
        }
    }

    pub(super) fn oldest_in_flight(&mut self, flight: &Flight) -> Option<Time> {
        while let Some((psn, tx)) = self.order.front() {
            if flight.is_in_flight(psn, tx) {
                return Some(flight.slot(psn).sent_at);
            }
            self.order.pop();
        }
        None
    }
}

#[derive(Debug)]
pub(crate) struct Receiver {
    expected: u64,
    /// Number of packets from `expected` on that can be accepted.
    window: u32,
    /// Number of packets behind a gap that prove it a loss to the sender.
    proof: u32,
    /// Number of packets held ahead of the gap at `expected`, which is the number of set bits of `ahead`.
    held: u64,
    /// Bitmap of the arrived packets in `expected..expected + window`, which gets its capacity at the first gap.
    ahead: BitRing,
}

impl Receiver {
    pub(super) fn new(window: u32, proof: u32) -> Self {
        Receiver { expected: 0, window, proof, held: 0, ahead: BitRing::new() }
    }
    /// Number of packets from the next expected one on that are accepted.
    pub(super) fn window(&self) -> u64 {
        u64::from(self.window)
    }
    pub(super) fn proof_packets(&self) -> u64 {
        u64::from(self.proof)
    }
    #[inline]
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }
    /// Prefetches the state of a packet.
    #[inline]
    pub(super) fn warm(&self, psn: u64, cache: &mut impl Prefetch) {
        self.ahead.warm(psn, cache);
    }
    /// The first PSN of `from..to` that has not arrived; `from` is not below `expected`.
    pub(super) fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let end = to.min(self.expected + self.window());
        if self.held == 0 || from >= end {
            return Some(from);
        }
        let psn = from + self.ahead.run_of_ones(from, end - from);
        (psn < to).then_some(psn)
    }
    pub(super) fn held(&self) -> u64 {
        self.held
    }
    #[inline]
    pub(super) fn has_gap(&self) -> bool {
        self.held > 0
    }

    #[inline]
    pub(super) fn judge(&mut self, psn: u64) -> Arrival {
        match psn.checked_sub(self.expected) {
            Some(0) => Arrival::InOrder,
            None => Arrival::Duplicate,
            Some(distance) if distance >= self.window() => {
                Arrival::Refused { reason: NackReason::BeyondWindow, tell: true }
            }
            Some(_) if self.held > 0 && self.ahead.get(psn) => Arrival::Duplicate,
            Some(_) => Arrival::Ahead,
        }
    }

    #[inline]
    pub(super) fn accept(&mut self, psn: u64) {
        if psn != self.expected {
            if self.held == 0 {
                self.ahead.make_room_for(self.window());
            }
            self.ahead.set(psn);
            self.held += 1;
        } else if self.held == 0 {
            self.expected += 1;
        } else {
            let run = self.ahead.run_of_ones(psn + 1, self.held);
            self.ahead.clear_range(psn + 1, psn + 1 + run);
            self.held -= run;
            self.expected = psn + 1 + run;
        }
    }

    #[inline]
    pub(super) fn sack(&self, psn: u64) -> u64 {
        let in_order = arrived_in_order(psn, self.expected);
        match psn.checked_sub(self.expected) {
            Some(ahead) if self.held > 0 && ahead < self.window() => {
                let reach = if ahead >= 63 { u64::MAX } else { (1 << (ahead + 1)) - 1 };
                in_order | self.ahead.down_from(psn) & reach
            }
            _ => in_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Memo;
    use pathweave_units::PathId;

    /// Sends `psn` at `tx` microseconds.
    fn send(sender: &mut Sender, flight: &mut Flight, psn: u64) {
        let at = Time::from_us(u64::from(sender.order.end_tx()));
        let tx = flight.sent(psn, at, PathId(0), 100, Memo(0));
        sender.on_sent(psn, tx);
    }
    fn ack(sender: &mut Sender, flight: &mut Flight, psn: u64, certain: bool) -> Vec<u64> {
        let slot = flight.ack(psn).expect("in flight");
        sender.on_acked(&slot, certain);
        let mut lost = Vec::new();
        sender.detect(flight, &mut lost);
        lost
    }

    #[test]
    fn runs_keep_the_order_of_transmissions() {
        let mut order = SendOrder::default();
        let psns = [0, 1, 2, 1, 3, 4, 0];
        (7..).zip(psns).for_each(|(tx, psn)| order.push(psn, tx));
        assert_eq!((order.len, order.rest.as_ref().map(|rest| rest.runs.len())), (3, Some(3)));
        for (tx, psn) in (7..).zip(psns) {
            assert_eq!(order.front(), Some((psn, tx)));
            order.pop();
        }
        assert_eq!(order.front(), None);
        order.push(9, 20);
        assert_eq!(order.front(), Some((9, 20)));
    }

    #[test]
    fn three_later_transmissions_prove_a_loss() {
        let (mut sender, mut flight) = (Sender::new(3), Flight::new(1 << 20));
        (0..5).for_each(|psn| send(&mut sender, &mut flight, psn));
        assert!(ack(&mut sender, &mut flight, 1, true).is_empty());
        assert!(ack(&mut sender, &mut flight, 2, true).is_empty());
        assert_eq!(ack(&mut sender, &mut flight, 3, true), [0]);
        // Retransmitted as transmission 5: acknowledgements of earlier ones prove nothing.
        assert_eq!(flight.first_to_resend(), Some(0));
        send(&mut sender, &mut flight, 0);
        assert!(ack(&mut sender, &mut flight, 4, true).is_empty());
        (5..8).for_each(|psn| send(&mut sender, &mut flight, psn));
        assert!(ack(&mut sender, &mut flight, 6, true).is_empty());
        assert_eq!(ack(&mut sender, &mut flight, 7, true), [0]);
    }

    #[test]
    fn an_acknowledgement_of_the_original_says_nothing_of_the_retransmission() {
        let (mut sender, mut flight) = (Sender::new(1), Flight::new(1 << 20));
        (0..3).for_each(|psn| send(&mut sender, &mut flight, psn));
        assert_eq!(ack(&mut sender, &mut flight, 2, true), [0, 1]);
        for psn in [0, 1] {
            assert_eq!(flight.first_to_resend(), Some(psn));
            send(&mut sender, &mut flight, psn);
        }
        // PSN 1 left last, but this acknowledges its first transmission: the second one of PSN 0 may still be in
        // flight.
        assert!(ack(&mut sender, &mut flight, 1, false).is_empty());
    }

    #[test]
    fn without_a_bound_only_the_timer_finds_losses() {
        let (mut sender, mut flight) = (Sender::new(0), Flight::new(1 << 20));
        (0..100).for_each(|psn| send(&mut sender, &mut flight, psn));
        assert!((1..100).all(|psn| ack(&mut sender, &mut flight, psn, true).is_empty()));
        assert_eq!(sender.oldest_in_flight(&flight), Some(Time::ZERO));
        let mut lost = Vec::new();
        sender.on_timeout(Time::from_us(50), &mut flight, &mut lost);
        assert_eq!(lost, [0]);
        assert_eq!(sender.oldest_in_flight(&flight), None);
    }

    #[test]
    fn the_receiver_takes_a_window_in_any_order() {
        let mut receiver = Receiver::new(4, 0);
        assert_eq!(receiver.judge(4), Arrival::Refused { reason: NackReason::BeyondWindow, tell: true });
        for psn in [3, 1] {
            assert_eq!(receiver.judge(psn), Arrival::Ahead);
            receiver.accept(psn);
        }
        assert_eq!(receiver.judge(3), Arrival::Duplicate);
        assert_eq!((receiver.expected(), receiver.sack(3)), (0, 0b0101));
        receiver.accept(0);
        assert_eq!((receiver.expected(), receiver.sack(3), receiver.has_gap()), (2, 0b1101, true));
        receiver.accept(2);
        assert_eq!((receiver.expected(), receiver.sack(3), receiver.has_gap()), (4, 0b1111, false));
    }
}
