//! Packets that others have overtaken, and probes for them.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use super::Sender;
use crate::recovery::transmissions::Stuck;
use crate::send::flight::Flight;

/// Largest number of packets declared late with each acknowledgement or firing of the timer. Arrivals thus clock the
/// retransmissions. If paused switches hold a whole window on some paths, the first arrivals raise patience before
/// the rest is retransmitted in vain.
const AT_ONCE: u32 = 2;

/// Losses of a packet after which it may count as stuck. A channel that loses nine packets of ten loses one as often
/// once in 800 times.
const STUCK_LOSSES: u32 = 64;

/// Largest number of paths on which probes leave at a time.
const MOST_ASKED: usize = 8;

/// Time between two checks for late packets if nothing arrives.
pub(super) fn pause(patience: Duration) -> Duration {
    Duration::from_ps((patience.as_ps() / 16).max(1))
}

/// The oldest packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oldest {
    pub(super) sent_at: Time,
    pub(super) standing: OldestState,
}

/// Meaning of an answer for packets that left before its probe on the same path and are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// The packet is lost.
    Prove,
    /// The packet counts as overtaken.
    Overtake,
}

/// The state of a packet in flight, as the sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldestState {
    /// No packet that left after it has arrived.
    InTurn,
    /// A packet that left after it has arrived.
    Overtaken,
    /// Overtaken, and a probe was sent after it.
    Asked,
}

/// Times after which an overtaken packet is probed for and is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateRule {
    pub(super) patience: Duration,
    /// Equals `patience`, unless probes prove losses.
    pub(super) lost_after: Duration,
}

impl LateRule {
    /// Time until the packet is probed for, or, once that has happened, until it is lost.
    fn wait(&self, is_asked: bool) -> Duration {
        if is_asked { self.lost_after } else { self.patience }
    }
}

impl Sender {
    /// Declares a packet in flight lost.
    fn lose(&mut self, now: Time, psn: u64, flight: &mut Flight) {
        if psn == flight.una() {
            self.packets.order.lost_oldest(now, psn);
        }
        flight.lose(psn);
    }

    /// Time since the first of the successive losses of the oldest packet. `None` unless there were [`STUCK_LOSSES`].
    pub(super) fn stuck_for(&self, now: Time, flight: &Flight) -> Option<Duration> {
        let Stuck { psn, since, losses } = self.packets.order.stuck()?;
        (losses >= STUCK_LOSSES && psn == flight.una()).then(|| now.saturating_since(since))
    }

    fn is_overtaken(&self, tx: u32) -> bool {
        self.packets.arrived_tx.wrapping_sub(tx) as i32 > 0
    }

    /// The oldest packet in flight.
    pub(super) fn oldest(&mut self, flight: &Flight) -> Option<Oldest> {
        let sent_at = self.packets.oldest_in_flight(flight)?;
        let (_, tx) = self.packets.order.front()?;
        let standing = match self.is_overtaken(tx) {
            false => OldestState::InTurn,
            true if self.packets.order.is_asked(tx) => OldestState::Asked,
            true => OldestState::Overtaken,
        };
        Some(Oldest { sent_at, standing })
    }

    /// Returns true if the time since `sent_at` measures how long a packet took, although a later acknowledgement
    /// reported it: acknowledgements may be delayed or lost. If patience has ended since then, the measurement would
    /// only repeat patience, which would grow with each lost acknowledgement.
    pub(super) fn is_telling(&self, sent_at: Time) -> bool {
        !self.packets.order.was_impatient_since(sent_at)
    }

    /// Records a timeout.
    pub(super) fn timed_out(&mut self, now: Time) {
        self.packets.order.silent(now);
    }

    /// Returns true if a timeout has counted since `sent_at`.
    pub(super) fn has_timed_out_since(&self, sent_at: Time) -> bool {
        self.packets.order.was_silent_since(sent_at)
    }

    /// Declares overtaken packets lost that have been in flight for too long, at most [`AT_ONCE`]. Returns the time
    /// of the next check if nothing arrives: when the next overtaken packet is to be probed for or is lost, or after
    /// [`pause`].
    pub(super) fn find_late(
        &mut self,
        now: Time,
        rule: LateRule,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> Option<Time> {
        let mut late = 0;
        while let Some((psn, tx)) = self.packets.order.front() {
            if flight.is_in_flight(psn, tx) {
                if !self.is_overtaken(tx) {
                    return None;
                }
                let sent_at = flight.slot(psn).sent_at;
                if !self.packets.proves_lost(tx) {
                    if sent_at.saturating_add(rule.lost_after) > now {
                        let due = sent_at.saturating_add(rule.wait(self.packets.order.is_asked(tx)));
                        return Some(due.max(now.saturating_add(Duration::from_ps(1))));
                    }
                    if late == AT_ONCE {
                        return Some(now.saturating_add(pause(rule.patience)));
                    }
                    late += 1;
                }
                self.lose(now, psn, flight);
                lost.push(psn);
                self.packets.order.impatient(now);
            }
            self.packets.order.pop();
        }
        None
    }

    /// Returns true if probes may leave on another path than the packet that they follow: not if order proves losses.
    pub(super) fn may_ask_on_others(&self) -> bool {
        !self.packets.proves_by_order()
    }

    /// Path of the oldest packet in flight.
    pub(super) fn oldest_path(&mut self, flight: &Flight) -> Option<PathId> {
        self.packets.oldest_in_flight(flight)?;
        Some(flight.slot(self.packets.order.front()?.0).path)
    }

    /// Paths of overtaken packets that left at least `patience` ago and were not probed for; at most [`MOST_ASKED`].
    /// Records that these packets are probed for now.
    pub(super) fn ask(&mut self, now: Time, patience: Duration, flight: &Flight) -> Vec<PathId> {
        let mut late: Vec<(u32, PathId)> = flight
            .in_flight()
            .filter(|(_, slot)| self.is_overtaken(slot.tx) && !self.packets.order.is_asked(slot.tx))
            .filter(|(_, slot)| slot.sent_at.saturating_add(patience) <= now)
            .map(|(_, slot)| (slot.tx, slot.path))
            .collect();
        // Oldest first.
        late.sort_unstable_by_key(|(tx, _)| tx.wrapping_sub(self.packets.arrived_tx));
        let mut paths = Vec::new();
        for (tx, path) in late {
            if !paths.contains(&path) {
                if paths.len() == MOST_ASKED {
                    break;
                }
                paths.push(path);
            }
            self.packets.order.asked(tx);
        }
        paths
    }

    /// Records that all packets sent so far are probed for, because nothing was received about any.
    pub(super) fn asked_for_all(&mut self) {
        self.packets.order.asked(self.packets.order.end_tx().wrapping_sub(1));
    }

    /// Processes an answer to a probe. Returns false if it is not one. Packets sent before the probe count as
    /// overtaken. With [`Answers::Prove`], those on its path are lost.
    pub(super) fn answered(
        &mut self,
        now: Time,
        (sent_at, path): (Time, PathId),
        answers: Answers,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> bool {
        let Some(probe) = self.packets.order.take_probe(sent_at, path) else { return false };
        if probe.next_tx.wrapping_sub(self.packets.arrived_tx) as i32 > 0 {
            self.packets.arrived_tx = probe.next_tx;
        }
        if answers == Answers::Prove {
            let before = |tx: u32| probe.next_tx.wrapping_sub(tx) as i32 > 0;
            let on_path = flight.in_flight().filter(|(_, slot)| slot.path == path && before(slot.tx));
            let from = lost.len();
            lost.extend(on_path.map(|(psn, _)| psn));
            lost[from..].iter().for_each(|&psn| self.lose(now, psn, flight));
            if lost.len() > from {
                self.packets.order.impatient(now);
            }
        }
        true
    }

    /// Declares the oldest packet in flight lost, whatever is known of it.
    pub(super) fn lose_oldest(&mut self, now: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        self.packets.order.impatient(now);
        if self.packets.oldest_in_flight(flight).is_some()
            && let Some((psn, _)) = self.packets.order.front()
        {
            self.packets.order.pop();
            self.lose(now, psn, flight);
            lost.push(psn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::contract::LossRecovery;
    use pathweave_policy::Memo;

    const US: Duration = Duration::from_us(1);

    fn sender(reorder_packets: u32) -> Sender {
        Sender::new(reorder_packets, US * 10)
    }
    fn sent(sender: &mut Sender, flight: &mut Flight, psn: u64, at: Time) {
        let tx = flight.sent(psn, at, PathId(0), 100, Memo(0));
        sender.packets.sent(psn, tx);
    }
    fn acked(sender: &mut Sender, flight: &mut Flight, psn: u64) {
        let slot = flight.ack(psn).expect("in flight");
        sender.packets.acked(&slot, true);
    }

    #[test]
    fn overtaken_packets_are_lost_when_patience_ends() {
        let (mut sender, mut flight, mut lost) = (sender(0), Flight::new(64), Vec::new());
        (0..3).for_each(|psn| sent(&mut sender, &mut flight, psn, Time::from_us(psn)));
        acked(&mut sender, &mut flight, 1);
        let rule = LateRule { patience: US * 25, lost_after: US * 25 };
        let just_before = Time::from_ns(24_900);
        let due = sender.find_late(just_before, rule, &mut flight, &mut lost);
        assert_eq!((due, lost.len()), (Some(Time::from_us(25)), 0));
        assert_eq!(
            sender.oldest(&flight),
            Some(Oldest { sent_at: Time::ZERO, standing: OldestState::Overtaken })
        );
        assert_eq!(sender.find_late(Time::from_us(25), rule, &mut flight, &mut lost), None);
        assert_eq!(lost, [0]);
        // PSN 2 has been in flight for longer than patience in the end, but nothing has overtaken it.
        lost.clear();
        assert_eq!(sender.find_late(Time::from_us(90), rule, &mut flight, &mut lost), None);
        assert_eq!(
            sender.oldest(&flight),
            Some(Oldest { sent_at: Time::from_us(2), standing: OldestState::InTurn })
        );
        assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn later_packets_prove_it_too_where_paths_keep_order() {
        let (mut sender, mut flight, mut lost) = (sender(2), Flight::new(64), Vec::new());
        (0..4).for_each(|psn| sent(&mut sender, &mut flight, psn, Time::from_us(psn)));
        acked(&mut sender, &mut flight, 1);
        sender.find_late(
            Time::from_us(5),
            LateRule { patience: US * 25, lost_after: US * 25 },
            &mut flight,
            &mut lost,
        );
        assert!(lost.is_empty(), "{lost:?}");
        acked(&mut sender, &mut flight, 2);
        sender.find_late(
            Time::from_us(5),
            LateRule { patience: US * 25, lost_after: US * 25 },
            &mut flight,
            &mut lost,
        );
        assert_eq!(lost, [0]);
    }

    /// Packets 0 and 2 on path 0 and packet 1 on path 1 are late. A probe on path 0 proves the loss of those sent
    /// before it there.
    #[test]
    fn an_answer_proves_what_left_before_its_probe_on_its_path() {
        let (mut sender, mut flight, mut lost) = (sender(0), Flight::new(64), Vec::new());
        for (psn, path) in [(0, 0), (1, 1), (2, 0), (3, 2)] {
            let tx = flight.sent(psn, Time::from_us(psn), PathId(path), 100, Memo(0));
            sender.packets.sent(psn, tx);
        }
        acked(&mut sender, &mut flight, 3);
        let rule = LateRule { patience: US * 25, lost_after: US * 50 };
        let look = sender.find_late(Time::from_us(24), rule, &mut flight, &mut lost);
        assert_eq!((look, lost.len()), (Some(Time::from_us(25)), 0));
        let paths = sender.ask(Time::from_us(26), rule.patience, &flight);
        assert_eq!(paths, [PathId(0), PathId(1)]);
        paths.iter().for_each(|&path| sender.on_probe_sent(Time::from_us(26), path));
        assert_eq!(sender.oldest(&flight).map(|oldest| oldest.standing), Some(OldestState::Asked));
        assert!(sender.is_silent(flight.slot(0)) && !sender.is_silent(flight.slot(3)));
        // PSN 2 was not late yet, but its path was probed.
        sent(&mut sender, &mut flight, 4, Time::from_us(30));
        let probe = (Time::from_us(26), PathId(0));
        for proved in [[0, 2], [0, 2]] {
            sender.answered(Time::from_us(40), probe, Answers::Prove, &mut flight, &mut lost);
            assert_eq!(lost, proved, "answered twice, it says no more");
        }
        assert!(!sender.answered(
            Time::from_us(40),
            (Time::from_us(27), PathId(1)),
            Answers::Prove,
            &mut flight,
            &mut lost
        ));
        // Path 1 does not answer: twice patience decides.
        lost.clear();
        let look = sender.find_late(Time::from_us(45), rule, &mut flight, &mut lost);
        assert_eq!(look, Some(Time::from_us(51)));
        sender.find_late(Time::from_us(51), rule, &mut flight, &mut lost);
        assert_eq!(lost, [1]);
    }
}
