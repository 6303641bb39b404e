//! Recovery by time: selective repeat that finds losses by how long packets take, as RACK and its tail loss probe do
//! (RFC 8985), and that learns this time from the packets that arrive.
//!
//! *Patience* is how long a packet may say nothing. It is a quarter more than the longest time that any of late took, at
//! least; more while few have been measured, since three idle round trips are then all that is known. A packet counts as
//! lost if it left before one that has arrived and longer ago than that. What merely waits in a queue that grows is not
//! overtaken, and what arrives late is measured itself: each false alarm raises patience above what caused it, so false
//! alarms are few however long a pause is.
//!
//! Where nothing tells (the last packets of a message, a queue that has grown), a *probe* follows the oldest packet after
//! patience, then another one after twice that, and so on. It waits in the queues that data waits in, so the answer is as
//! late as the data is: then it has overtaken nothing, and patience grows by what it measured. A second one takes the path that
//! the next packet would take, or one that was good: if that is answered and the first is not, the path is dead or slower than
//! any was of late.
//!
//! Only if all of them say nothing for the configured time does that count as a *timeout*, of which each further one takes
//! longer, as configured. The oldest packet is sent again then. Where the policy lets no packet leave while so many are in
//! flight, more of them count as lost: four, then sixteen, and so on.
//!
//! A path may answer probes and lose all that is long, such as one with a short MTU. The oldest packet is *stuck* then: it is lost
//! each time, for as long as all timeouts together, and the sender gives up.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Time};

use super::selective_repeat::{Sender, Stuck};
use crate::send::flight::{Flight, Slot};

/// Packets that count as late with each acknowledgement, or each time the timer fires. So what is sent again is clocked by
/// what arrives. Where pauses of switches hold a whole window on some paths, what arrives of its first packets makes
/// patience longer before the rest is sent again for nothing.
const AT_ONCE: u32 = 2;

/// Losses of a packet after which it may count as stuck. A channel that loses nine packets of ten loses one so often once in 800 times.
const STUCK_LOSSES: u32 = 64;

/// Paths on which probes leave at a time.
const MOST_ASKED: usize = 8;

/// Time between two looks at what is late, where nothing arrives.
pub(crate) fn pause(patience: Duration) -> Duration {
    Duration::from_ps((patience.as_ps() / 16).max(1))
}

/// The oldest packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oldest {
    pub(crate) sent_at: Time,
    pub(crate) standing: Standing,
}

/// The meaning of an answer for what left before its probe on its path and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The packet is lost.
    Prove,
    /// Something has overtaken the packet.
    Overtake,
}

/// The state of a packet in flight, as the sender knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing that left after it has arrived.
    InTurn,
    /// Something has.
    Overtaken,
    /// And a probe was sent after it.
    Asked,
}

/// The times at which an overtaken packet is asked for and is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) patience: Duration,
    /// The same, unless probes prove losses.
    pub(crate) lost_after: Duration,
}

impl Rule {
    /// Time until it is asked for, or lost.
    fn wait(&self, is_asked: bool) -> Duration {
        if is_asked { self.lost_after } else { self.patience }
    }
}

impl Sender {
    /// A packet in flight is lost.
    fn lose(&mut self, now: Time, psn: u64, flight: &mut Flight) {
        if psn == flight.una() {
            self.order.lost_oldest(now, psn);
        }
        flight.lose(psn);
    }

    /// Time for which the oldest packet has been lost each time it was sent; `None` unless that was often.
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
            false => Standing::InTurn,
            true if self.order.is_asked(tx) => Standing::Asked,
            true => Standing::Overtaken,
        };
        Some(Oldest { sent_at, standing })
    }

    /// Whether the time since then, at which a packet left, says how long packets take, though another one told of it:
    /// acknowledgements may be held back or lost. Where patience has ended since, patience itself is all that would be
    /// measured, and it would grow with each acknowledgement that is lost.
    pub(crate) fn is_telling(&self, sent_at: Time) -> bool {
        !self.order.was_impatient_since(sent_at)
    }

    /// A timeout counts.
    pub(crate) fn timed_out(&mut self, now: Time) {
        self.order.silent(now);
    }

    /// True if a timeout has counted since then.
    pub(crate) fn has_timed_out_since(&self, sent_at: Time) -> bool {
        self.order.was_silent_since(sent_at)
    }

    /// What was overtaken and has been away for too long is lost; of many, [`AT_ONCE`]. When to look again, if nothing
    /// arrives: at the next packet overtaken that is to be asked for or lost, or after [`pause`].
    pub(crate) fn find_late(
        &mut self,
        now: Time,
        rule: Rule,
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

    /// Probes may leave on another path than the packet they follow: not where order proves losses.
    pub(crate) fn may_ask_on_others(&self) -> bool {
        !self.proves_by_order()
    }

    /// The path of the oldest packet in flight.
    pub(crate) fn oldest_path(&mut self, flight: &Flight) -> Option<PathId> {
        self.oldest_in_flight(flight)?;
        Some(flight.slot(self.order.front()?.0).path)
    }

    /// The paths of packets that were overtaken, left at least `patience` ago and were not asked for, into `paths`; of many,
    /// [`MOST_ASKED`]. They are asked for now.
    pub(crate) fn ask(&mut self, now: Time, patience: Duration, flight: &Flight, paths: &mut Vec<PathId>) {
        let mut late: Vec<(u32, PathId)> = flight
            .in_flight()
            .filter(|(_, slot)| self.is_overtaken(slot.tx) && !self.order.is_asked(slot.tx))
            .filter(|(_, slot)| slot.sent_at.saturating_add(patience) <= now)
            .map(|(_, slot)| (slot.tx, slot.path))
            .collect();
        // Those that left first.
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

    /// A probe leaves now on this path, behind all that has left.
    pub(crate) fn probe(&mut self, now: Time, path: PathId) {
        self.order.probe(now, path);
    }

    /// All that has left has been asked for, as nothing was heard of any.
    pub(crate) fn asked_for_all(&mut self) {
        self.order.asked(self.order.end_tx().wrapping_sub(1));
    }

    /// Takes in an answer to a probe; false if it is none. What left before the probe has been overtaken; where answers prove it, what left on its
    /// path is lost.
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

    /// The path of a packet is silent: it was followed by a probe that has not been answered.
    pub(crate) fn is_silent(&self, slot: &Slot) -> bool {
        self.order.is_silent(slot.tx, slot.path)
    }

    /// The oldest packet in flight counts as lost, whatever is known of it.
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
    fn what_was_overtaken_is_lost_when_patience_ends() {
        let (mut sender, mut flight, mut lost) = (Sender::timed(0), Flight::new(64), Vec::new());
        (0..3).for_each(|psn| sent(&mut sender, &mut flight, psn, Time::from_us(psn)));
        acked(&mut sender, &mut flight, 1);
        let rule = Rule { patience: US * 25, lost_after: US * 25 };
        let just_before = Time::from_ns(24_900);
        let due = sender.find_late(just_before, rule, &mut flight, &mut lost);
        assert_eq!((due, lost.len()), (Some(Time::from_us(25)), 0));
        assert_eq!(
            sender.oldest(&flight),
            Some(Oldest { sent_at: Time::ZERO, standing: Standing::Overtaken })
        );
        assert_eq!(sender.find_late(Time::from_us(25), rule, &mut flight, &mut lost), None);
        assert_eq!(lost, [0]);
        // PSN 2 has been away for longer, in the end; but nothing has overtaken it.
        lost.clear();
        assert_eq!(sender.find_late(Time::from_us(90), rule, &mut flight, &mut lost), None);
        assert_eq!(
            sender.oldest(&flight),
            Some(Oldest { sent_at: Time::from_us(2), standing: Standing::InTurn })
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
            Rule { patience: US * 25, lost_after: US * 25 },
            &mut flight,
            &mut lost,
        );
        assert!(lost.is_empty(), "{lost:?}");
        acked(&mut sender, &mut flight, 2);
        sender.find_late(
            Time::from_us(5),
            Rule { patience: US * 25, lost_after: US * 25 },
            &mut flight,
            &mut lost,
        );
        assert_eq!(lost, [0]);
    }

    /// Of packets 0 and 2 on path 0 and 1 on path 1 that are late, a probe on path 0 proves what left before it there.
    #[test]
    fn an_answer_proves_what_left_before_its_probe_on_its_path() {
        let (mut sender, mut flight, mut lost) = (Sender::timed(0), Flight::new(64), Vec::new());
        for (psn, path) in [(0, 0), (1, 1), (2, 0), (3, 2)] {
            let tx = flight.sent(psn, Time::from_us(psn), PathId(path), 100, Memo(0));
            sender.on_sent(psn, tx);
        }
        acked(&mut sender, &mut flight, 3);
        let rule = Rule { patience: US * 25, lost_after: US * 50 };
        let look = sender.find_late(Time::from_us(24), rule, &mut flight, &mut lost);
        assert_eq!((look, lost.len()), (Some(Time::from_us(25)), 0));
        let mut paths = Vec::new();
        sender.ask(Time::from_us(26), rule.patience, &flight, &mut paths);
        assert_eq!(paths, [PathId(0), PathId(1)]);
        assert_eq!(sender.oldest(&flight).map(|oldest| oldest.standing), Some(Standing::Asked));
        assert!(sender.is_silent(flight.slot(0)) && !sender.is_silent(flight.slot(3)));
        // PSN 2 was not late yet, but its path is asked.
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
        // Path 1 says nothing: twice patience.
        lost.clear();
        let look = sender.find_late(Time::from_us(45), rule, &mut flight, &mut lost);
        assert_eq!(look, Some(Time::from_us(51)));
        sender.find_late(Time::from_us(51), rule, &mut flight, &mut lost);
        assert_eq!(lost, [1]);
    }
}
