//! Order of the transmissions of a queue pair, for the kinds of loss recovery that need it.
//!
//! A packet may count as lost once one *sent* some packets later has been acknowledged. Transmissions are counted, not
//! PSNs. Otherwise the acknowledgements of packets sent before a retransmission would declare it lost (the idea behind
//! RACK, RFC 8985, with a count instead of a clock).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use pathweave_units::{PathId, Time};

use crate::send::flight::{Flight, Slot};

/// Number of transmissions by which a later packet must follow to prove one lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Proof {
    rule: ProofRule,
    /// Little-endian.
    packets: [u8; 3],
}

/// Rule by which later packets prove one lost.
// The values that this byte does not take hold the tag of `recovery::Sender`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofRule {
    /// No packet proves a loss, however much later.
    Never,
    Packets,
}

impl Proof {
    /// Largest number of transmissions: more than fit into a window.
    const MOST: u32 = (1 << 24) - 1;

    /// Creates the rule. 0 packets: no packet proves a loss.
    fn new(reorder_packets: u32) -> Self {
        let [a, b, c, _] = reorder_packets.min(Self::MOST).to_le_bytes();
        let rule = if reorder_packets == 0 { ProofRule::Never } else { ProofRule::Packets };
        Proof { rule, packets: [a, b, c] }
    }
    fn packets(self) -> i32 {
        let [a, b, c] = self.packets;
        match self.rule {
            ProofRule::Never => i32::MAX,
            ProofRule::Packets => i32::from_le_bytes([a, b, c, 0]),
        }
    }
}

/// Transmissions of a queue pair, and the latest that has arrived.
// In this order, so that the first byte has room for the tag of `recovery::Sender`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Transmissions {
    proof: Proof,
    /// Latest transmission that is known to have arrived.
    pub(super) arrived_tx: u32,
    pub(super) order: SendOrder,
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
    #[inline(always)]
    fn push(&mut self, psn: u64, tx: u32) {
        if self.rest.is_none() && self.len > 0 && self.psn + u64::from(self.len) == psn {
            debug_assert_eq!(self.end_tx(), tx);
            self.len += 1;
        } else {
            self.push_apart(psn, tx);
        }
    }
    /// Appends a transmission that may not continue the first run.
    fn push_apart(&mut self, psn: u64, tx: u32) {
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

impl Transmissions {
    /// Creates the state. `reorder_packets`: number of transmissions by which a later packet must follow to prove one
    /// lost; with 0, no packet does.
    pub(super) fn new(reorder_packets: u32) -> Self {
        // The number before the first one: nothing has arrived.
        Transmissions {
            proof: Proof::new(reorder_packets),
            arrived_tx: u32::MAX,
            order: SendOrder::default(),
        }
    }
    /// Returns true if a packet has arrived that left enough later than this transmission.
    #[inline]
    pub(super) fn proves_lost(&self, tx: u32) -> bool {
        self.arrived_tx.wrapping_sub(tx) as i32 >= self.proof.packets()
    }

    /// Returns true if the arrival of a later packet proves a loss, because there is one path.
    pub(super) fn proves_by_order(&self) -> bool {
        self.proof.rule == ProofRule::Packets
    }

    /// Records that transmission number `tx` carried `psn`.
    #[inline]
    pub(super) fn sent(&mut self, psn: u64, tx: u32) {
        self.order.push(psn, tx);
    }

    /// Records an acknowledged packet. `certain`: this very transmission has arrived, not an earlier one.
    #[inline]
    pub(super) fn acked(&mut self, slot: &Slot, certain: bool) {
        if certain && slot.tx.wrapping_sub(self.arrived_tx) as i32 > 0 {
            self.arrived_tx = slot.tx;
        }
    }

    /// Declares packets lost that later ones prove lost.
    #[inline(always)]
    pub(super) fn lose_proved(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) {
        // Otherwise only the timer uses the order.
        if self.proves_by_order() {
            self.lose_up_to_proved(flight, lost);
        }
    }
    fn lose_up_to_proved(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) {
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
    }

    /// Declares packets lost of which a later transmission has arrived. The others may still be in flight.
    pub(super) fn lose_overtaken(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>) {
        for &psn in psns {
            if self.arrived_tx.wrapping_sub(flight.slot(psn).tx) as i32 > 0 {
                flight.lose(psn);
                lost.push(psn);
            }
        }
    }

    /// Declares packets lost that left at `before` or earlier.
    pub(super) fn lose_before(&mut self, before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
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

    /// Departure of the oldest transmission in flight.
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

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Memo;

    /// Sends `psn` at `tx` microseconds.
    fn send(sent: &mut Transmissions, flight: &mut Flight, psn: u64) {
        let at = Time::from_us(u64::from(sent.order.end_tx()));
        let tx = flight.sent(psn, at, PathId(0), 100, Memo(0));
        sent.sent(psn, tx);
    }
    fn ack(sent: &mut Transmissions, flight: &mut Flight, psn: u64, certain: bool) -> Vec<u64> {
        let slot = flight.ack(psn).expect("in flight");
        sent.acked(&slot, certain);
        let mut lost = Vec::new();
        sent.lose_proved(flight, &mut lost);
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
        let (mut sent, mut flight) = (Transmissions::new(3), Flight::new(1 << 20));
        (0..5).for_each(|psn| send(&mut sent, &mut flight, psn));
        assert!(ack(&mut sent, &mut flight, 1, true).is_empty());
        assert!(ack(&mut sent, &mut flight, 2, true).is_empty());
        assert_eq!(ack(&mut sent, &mut flight, 3, true), [0]);
        // Retransmitted as transmission 5: acknowledgements of earlier ones prove nothing.
        assert_eq!(flight.first_to_resend(), Some(0));
        send(&mut sent, &mut flight, 0);
        assert!(ack(&mut sent, &mut flight, 4, true).is_empty());
        (5..8).for_each(|psn| send(&mut sent, &mut flight, psn));
        assert!(ack(&mut sent, &mut flight, 6, true).is_empty());
        assert_eq!(ack(&mut sent, &mut flight, 7, true), [0]);
    }

    #[test]
    fn an_acknowledgement_of_the_original_says_nothing_of_the_retransmission() {
        let (mut sent, mut flight) = (Transmissions::new(1), Flight::new(1 << 20));
        (0..3).for_each(|psn| send(&mut sent, &mut flight, psn));
        assert_eq!(ack(&mut sent, &mut flight, 2, true), [0, 1]);
        for psn in [0, 1] {
            assert_eq!(flight.first_to_resend(), Some(psn));
            send(&mut sent, &mut flight, psn);
        }
        // PSN 1 left last, but this acknowledges its first transmission: the second one of PSN 0 may still be in
        // flight.
        assert!(ack(&mut sent, &mut flight, 1, false).is_empty());
    }

    #[test]
    fn without_a_bound_only_the_timer_finds_losses() {
        let (mut sent, mut flight) = (Transmissions::new(0), Flight::new(1 << 20));
        (0..100).for_each(|psn| send(&mut sent, &mut flight, psn));
        assert!((1..100).all(|psn| ack(&mut sent, &mut flight, psn, true).is_empty()));
        assert_eq!(sent.oldest_in_flight(&flight), Some(Time::ZERO));
        let mut lost = Vec::new();
        sent.lose_before(Time::from_us(50), &mut flight, &mut lost);
        assert_eq!(lost, [0]);
        assert_eq!(sent.oldest_in_flight(&flight), None);
    }
}
