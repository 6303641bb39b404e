//! Recovery by time: selective repeat that finds losses by the time that packets take, as RACK and its tail loss
//! probe do (RFC 8985), and that learns this time from the packets that arrive.
//!
//! *Patience* is the time that a packet may stay unacknowledged. It is at least a quarter more than the longest
//! recent time of any packet. While few packets have been measured it is more, because three idle round trips are
//! then all that is known. A packet counts as lost if it left before one that has arrived, and longer ago than
//! patience. A packet that merely waits in a growing queue is not overtaken. A late arrival is measured too: each
//! false alarm raises patience above its cause, so false alarms are few however long a pause is.
//!
//! If nothing arrives that proves a loss (the last packets of a message, a queue that has grown), a *probe* follows
//! the oldest packet after patience, another one after twice that, and so on. The probe waits in the same queues as
//! data, so its answer is as late as the data. Then it has overtaken nothing, and patience grows by its measurement.
//! A second probe takes the path of the next packet, or one that worked recently. If that one is answered and the
//! first is not, the first path is dead or slower than any recent one.
//!
//! Only if none of them is answered for the configured time does that count as a *timeout*. Each further timeout
//! takes longer, as configured. The oldest packet is then retransmitted. If the policy lets no packet leave because
//! too many are in flight, more of them count as lost: four, then sixteen, and so on.
//!
//! A path may answer probes and lose all long packets, for example if its MTU is too small. The oldest packet is then
//! *stuck*: it is lost each time, for as long as all timeouts together, and the sender gives up.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use super::selective_repeat::{Sender, Stuck};
use crate::send::flight::{Flight, Slot};

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
pub(crate) fn pause(patience: Duration) -> Duration {
    Duration::from_ps((patience.as_ps() / 16).max(1))
}

/// The oldest packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oldest {
    pub(crate) sent_at: Time,
    pub(crate) standing: OldestState,
}

/// Meaning of an answer for packets that left before its probe on the same path and are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The packet is lost.
    Prove,
    /// The packet counts as overtaken.
    Overtake,
}

/// The state of a packet in flight, as the sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldestState {
    /// No packet that left after it has arrived.
    InTurn,
    /// A packet that left after it has arrived.
    Overtaken,
    /// Overtaken, and a probe was sent after it.
    Asked,
}

/// Times after which an overtaken packet is probed for and is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateRule {
    pub(crate) patience: Duration,
    /// Equals `patience`, unless probes prove losses.
    pub(crate) lost_after: Duration,
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
            self.order.lost_oldest(now, psn);
        }
        flight.lose(psn);
    }

    /// Time since the first of the successive losses of the oldest packet. `None` unless there were [`STUCK_LOSSES`].
    pub(crate) fn stuck_for(&self, now: Time, flight: &Flight) -> Option<Duration> {
        let Stuck { psn, since, losses } = self.order.stuck()?;
        (losses >= STUCK_LOSSES && psn == flight.una()).then(|| now.saturating_since(since))
    }

    fn is_overtaken(&self, tx: u32) -> bool {
        self.arrived_tx.wrapping_sub(tx) as i32 > 0
    }

    /// The oldest packet in flight.
    pub(crate) fn oldest(&mut self, flight: &Flight) -> Option<Oldest> {
        let sent_at = self.oldest_in_flight(flight)?;
        let (_, tx) = self.order.front()?;
        let standing = match self.is_overtaken(tx) {
            false => OldestState::InTurn,
            true if self.order.is_asked(tx) => OldestState::Asked,
            true => OldestState::Overtaken,
        };
        Some(Oldest { sent_at, standing })
    }

    /// Returns true if the time since `sent_at` measures how long a packet took, although a later acknowledgement
    /// reported it: acknowledgements may be delayed or lost. If patience has ended since then, the measurement would
    /// only repeat patience, which would grow with each lost acknowledgement.
    pub(crate) fn is_telling(&self, sent_at: Time) -> bool {
        !self.order.was_impatient_since(sent_at)
    }

    /// Records a timeout.
    pub(crate) fn timed_out(&mut self, now: Time) {
        self.order.silent(now);
    }

    /// Returns true if a timeout has counted since `sent_at`.
    pub(crate) fn has_timed_out_since(&self, sent_at: Time) -> bool {
        self.order.was_silent_since(sent_at)
    }

    /// Declares overtaken packets lost that have been in flight for too long, at most [`AT_ONCE`]. Returns the time
    /// of the next check if nothing arrives: when the next overtaken packet is to be probed for or is lost, or after
    /// [`pause`].
    pub(crate) fn find_late(
        &mut self,
        now: Time,
        rule: LateRule,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> Option<Time> {
        let mut late = 0;
        while let Some((psn, tx)) = self.order.front() {
            if flight.is_in_flight(psn, tx) {
                if !self.is_overtaken(tx) {
                    return None;
                }
                let sent_at = flight.slot(psn).sent_at;
                if !self.proves_lost(tx) {
                    if sent_at.saturating_add(rule.lost_after) > now {
                        let due = sent_at.saturating_add(rule.wait(self.order.is_asked(tx)));
                        return Some(due.max(now.saturating_add(Duration::from_ps(1))));
                    }
                    if late == AT_ONCE {
                        return Some(now.saturating_add(pause(rule.patience)));
                    }
                    late += 1;
                }
                self.lose(now, psn, flight);
                lost.push(psn);
                self.order.impatient(now);
            }
            self.order.pop();
        }
        None
    }

    /// Returns true if probes may leave on another path than the packet that they follow: not if order proves losses.
    pub(crate) fn may_ask_on_others(&self) -> bool {
        !self.proves_by_order()
    }

    /// Path of the oldest packet in flight.
    pub(crate) fn oldest_path(&mut self, flight: &Flight) -> Option<PathId> {
        self.oldest_in_flight(flight)?;
        Some(flight.slot(self.order.front()?.0).path)
    }

    /// Collects the paths of overtaken packets that left at least `patience` ago and were not probed for; at most
    /// [`MOST_ASKED`]. Records that these packets are probed for now.
    pub(crate) fn ask(&mut self, now: Time, patience: Duration, flight: &Flight, paths: &mut Vec<PathId>) {
        let mut late: Vec<(u32, PathId)> = flight
            .in_flight()
            .filter(|(_, slot)| self.is_overtaken(slot.tx) && !self.order.is_asked(slot.tx))
            .filter(|(_, slot)| slot.sent_at.saturating_add(patience) <= now)
            .map(|(_, slot)| (slot.tx, slot.path))
            .collect();
        // Oldest first.
        late.sort_unstable_by_key(|(tx, _)| tx.wrapping_sub(self.arrived_tx));
        for (tx, path) in late {
            if !paths.contains(&path) {
                if paths.len() == MOST_ASKED {
                    break;
                }
                paths.push(path);
            }
            self.order.asked(tx);
        }
        paths.iter().for_each(|&path| self.probe(now, path));
    }

    /// Records a probe that leaves now on this path, behind all packets sent so far.
    pub(crate) fn probe(&mut self, now: Time, path: PathId) {
        self.order.probe(now, path);
    }

    /// Records that all packets sent so far are probed for, because nothing was received about any.
    pub(crate) fn asked_for_all(&mut self) {
        self.order.asked(self.order.end_tx().wrapping_sub(1));
    }

    /// Processes an answer to a probe. Returns false if it is not one. Packets sent before the probe count as
    /// overtaken. With [`Answers::Prove`], those on its path are lost.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        (sent_at, path): (Time, PathId),
        answers: Answers,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> bool {
        let Some(probe) = self.order.take_probe(sent_at, path) else { return false };
        if probe.next_tx.wrapping_sub(self.arrived_tx) as i32 > 0 {
            self.arrived_tx = probe.next_tx;
        }
        if answers == Answers::Prove {
            let before = |tx: u32| probe.next_tx.wrapping_sub(tx) as i32 > 0;
            let on_path = flight.in_flight().filter(|(_, slot)| slot.path == path && before(slot.tx));
            let from = lost.len();
            lost.extend(on_path.map(|(psn, _)| psn));
            lost[from..].iter().for_each(|&psn| self.lose(now, psn, flight));
            if lost.len() > from {
                self.order.impatient(now);
            }
        }
        true
    }

    /// Returns true if the packet was followed by a probe on its path that has not been answered.
    pub(crate) fn is_silent(&self, slot: &Slot) -> bool {
        self.order.is_silent(slot.tx, slot.path)
    }

    /// Declares the oldest packet in flight lost, whatever is known of it.
    pub(crate) fn lose_oldest(&mut self, now: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        self.order.impatient(now);
        if self.oldest_in_flight(flight).is_some()
            && let Some((psn, _)) = self.order.front()
        {
            self.order.pop();
            self.lose(now, psn, flight);
            lost.push(psn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Memo;

    const US: Duration = Duration::from_us(1);

    fn sent(sender: &mut Sender, flight: &mut Flight, psn: u64, at: Time) {
        let tx = flight.sent(psn, at, PathId(0), 100, Memo(0));
        sender.on_sent(psn, tx);
    }
    fn acked(sender: &mut Sender, flight: &mut Flight, psn: u64) {
        let slot = flight.ack(psn).expect("in flight");
        sender.on_acked(&slot, true);
    }

    #[test]
    fn overtaken_packets_are_lost_when_patience_ends() {
        let (mut sender, mut flight, mut lost) = (Sender::timed(0), Flight::new(64), Vec::new());
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
        let (mut sender, mut flight, mut lost) = (Sender::timed(2), Flight::new(64), Vec::new());
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
        let (mut sender, mut flight, mut lost) = (Sender::timed(0), Flight::new(64), Vec::new());
        for (psn, path) in [(0, 0), (1, 1), (2, 0), (3, 2)] {
            let tx = flight.sent(psn, Time::from_us(psn), PathId(path), 100, Memo(0));
            sender.on_sent(psn, tx);
        }
        acked(&mut sender, &mut flight, 3);
        let rule = LateRule { patience: US * 25, lost_after: US * 50 };
        let look = sender.find_late(Time::from_us(24), rule, &mut flight, &mut lost);
        assert_eq!((look, lost.len()), (Some(Time::from_us(25)), 0));
        let mut paths = Vec::new();
        sender.ask(Time::from_us(26), rule.patience, &flight, &mut paths);
        assert_eq!(paths, [PathId(0), PathId(1)]);
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
