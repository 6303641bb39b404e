//! Recovery by time: selective repeat that finds losses by how long packets take, as RACK and its tail loss probe do
//! (RFC 8985), and that learns this time from the packets that arrive.
//!
//! *Patience* is how long a packet may say nothing. It is a quarter more than the longest time that any of late took, at
//! least; more while few have been measured, since three idle round trips are then all that is known. A packet counts as
//! lost if it left before one that has arrived and longer ago than that. What merely waits in a queue that grows is not
//! overtaken, and what arrives late is measured itself: each false alarm raises patience above what caused it, so false
//! alarms are few however long a pause is.
//!
//! Where nothing tells (the last packets of a message, a dead path), the oldest packet is sent again after patience, then
//! after twice that, and so on: one packet each time. What arrives of these overtakes the rest, which is lost then at once.
//! Only where the policy lets no packet leave while so many are in flight do more of them count as lost: four, then sixteen,
//! and so on.

use alloc::vec::Vec;

use pathweave_units::{Duration, Time};

use super::selective_repeat::Sender;
use crate::send::flight::Flight;

/// Packets that count as late with each acknowledgement, or each time the timer fires. So what is sent again is clocked by
/// what arrives. Where pauses of switches hold a whole window on some paths, what arrives of its first packets makes
/// patience longer before the rest is sent again for nothing.
const AT_ONCE: u32 = 2;

/// Time between two looks at what is late, where nothing arrives.
pub(crate) fn pause(patience: Duration) -> Duration {
    Duration::from_ps((patience.as_ps() / 16).max(1))
}

/// The oldest packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oldest {
    pub(crate) sent_at: Time,
    /// A packet that left after it has arrived.
    pub(crate) overtaken: bool,
}

impl Sender {
    fn is_overtaken(&self, tx: u32) -> bool {
        self.arrived_tx.wrapping_sub(tx) as i32 > 0
    }

    /// The oldest packet in flight.
    pub(crate) fn oldest(&mut self, flight: &Flight) -> Option<Oldest> {
        let sent_at = self.oldest_in_flight(flight)?;
        let (_, tx) = self.order.front()?;
        Some(Oldest { sent_at, overtaken: self.is_overtaken(tx) })
    }

    /// Whether the time since then, at which a packet left, says how long packets take, though another one told of it:
    /// acknowledgements may be held back or lost. Where patience has ended since, patience itself is all that would be
    /// measured, and it would grow with each acknowledgement that is lost.
    pub(crate) fn is_telling(&self, sent_at: Time) -> bool {
        !self.order.was_impatient_since(sent_at)
    }

    /// What was overtaken and left more than `patience` ago is lost; of many, [`AT_ONCE`]. When to look again, if nothing
    /// arrives: at the next packet overtaken that has not been away for so long, or after [`pause`].
    pub(crate) fn find_late(
        &mut self,
        now: Time,
        patience: Duration,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) -> Option<Time> {
        let mut late = 0;
        while let Some((psn, tx)) = self.order.front() {
            if flight.is_in_flight(psn, tx) {
                if !self.is_overtaken(tx) {
                    return None;
                }
                let due = flight.slot(psn).sent_at.saturating_add(patience);
                if !self.proves_lost(tx) {
                    if due > now {
                        return Some(due);
                    }
                    if late == AT_ONCE {
                        return Some(now.saturating_add(pause(patience)));
                    }
                    late += 1;
                }
                flight.lose(psn);
                lost.push(psn);
                self.order.impatient(now);
            }
            self.order.pop();
        }
        None
    }

    /// The oldest packet in flight counts as lost, whatever is known of it.
    pub(crate) fn lose_oldest(&mut self, now: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        self.order.impatient(now);
        if self.oldest_in_flight(flight).is_some()
            && let Some((psn, _)) = self.order.front()
        {
            self.order.pop();
            flight.lose(psn);
            lost.push(psn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_policy::Memo;
    use pathweave_units::PathId;

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
        let patience = US * 25;
        let just_before = Time::from_ns(24_900);
        let due = sender.find_late(just_before, patience, &mut flight, &mut lost);
        assert_eq!((due, lost.len()), (Some(Time::from_us(25)), 0));
        assert_eq!(sender.oldest(&flight), Some(Oldest { sent_at: Time::ZERO, overtaken: true }));
        assert_eq!(sender.find_late(Time::from_us(25), patience, &mut flight, &mut lost), None);
        assert_eq!(lost, [0]);
        // PSN 2 has been away for longer, in the end; but nothing has overtaken it.
        lost.clear();
        assert_eq!(sender.find_late(Time::from_us(90), patience, &mut flight, &mut lost), None);
        assert_eq!(sender.oldest(&flight), Some(Oldest { sent_at: Time::from_us(2), overtaken: false }));
        assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn later_packets_prove_it_too_where_paths_keep_order() {
        let (mut sender, mut flight, mut lost) = (Sender::timed(2), Flight::new(64), Vec::new());
        (0..4).for_each(|psn| sent(&mut sender, &mut flight, psn, Time::from_us(psn)));
        acked(&mut sender, &mut flight, 1);
        sender.find_late(Time::from_us(5), US * 25, &mut flight, &mut lost);
        assert!(lost.is_empty(), "{lost:?}");
        acked(&mut sender, &mut flight, 2);
        sender.find_late(Time::from_us(5), US * 25, &mut flight, &mut lost);
        assert_eq!(lost, [0]);
    }
}
