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
//! Only where the policy lets no packet leave while so many are in flight do all of them count as lost.

use alloc::vec::Vec;

use pathweave_units::{Duration, Time};

use super::selective_repeat::Sender;
use crate::send::flight::Flight;

/// Idle round trips that a packet may say nothing before any has been measured.
const UNMEASURED: u32 = 3;
/// Packets over which the longest time of late is forgotten, as a power of two: eight windows, so that a path taken once in
/// a few round trips is remembered; and no fewer than so many, since a window of one packet sees what others do to it.
const WINDOWS_BITS: u32 = 3;
const LEAST_BITS: u32 = 6;

/// How long packets take, in units of 256 ps: up to a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The longest of late; 0 before the first.
    high: u32,
    /// What is added to it while few were measured; before the first, all there is.
    doubt: u32,
}

const UNIT_BITS: u32 = 8;

/// Packets that count as late with each acknowledgement, or each time the timer fires. So what is sent again is clocked by
/// what arrives. Where pauses of switches hold a whole window on some paths, what arrives of its first packets makes
/// patience longer before the rest is sent again for nothing.
const AT_ONCE: u32 = 2;

/// Time between two looks at what is late, where nothing arrives.
pub(crate) fn pause(patience: Duration) -> Duration {
    Duration::from_ps((patience.as_ps() / 16).max(1))
}

/// How late a host may be, as a power of two of these units; 0 for punctual ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(u8);

impl Slack {
    pub(crate) fn new(host_delay: Duration) -> Self {
        Slack(units(host_delay).checked_ilog2().map_or(0, |bits| bits as u8))
    }
    fn units(self) -> u32 {
        if self.0 == 0 { 0 } else { 1 << self.0 }
    }
}

fn units(span: Duration) -> u32 {
    u32::try_from(span.as_ps() >> UNIT_BITS).unwrap_or(u32::MAX)
}

impl Timing {
    /// `idle`: time of a full packet there and its acknowledgement back, zero if not known.
    pub(crate) fn new(idle: Duration) -> Self {
        let doubt = if idle == Duration::ZERO { u32::MAX } else { units(idle).saturating_mul(UNMEASURED) };
        Timing { high: 0, doubt }
    }

    /// A packet took so long, while so many were in flight.
    #[inline]
    pub(crate) fn measure(&mut self, took: Duration, in_flight: u32) {
        let took = units(took).max(1);
        if self.high == 0 {
            // As a smoothed round trip and four deviations of half of it (RFC 6298) would have it; but one that is short
            // does not end patience at once.
            let rest = if self.doubt == u32::MAX { 0 } else { self.doubt.saturating_sub(took) };
            (self.high, self.doubt) = (took, rest.max(took.saturating_mul(UNMEASURED - 1)));
            return;
        }
        self.doubt -= self.doubt.div_ceil(4);
        if took >= self.high {
            self.high = took;
        } else {
            let window_bits = u32::BITS - in_flight.leading_zeros();
            let bits = (window_bits + WINDOWS_BITS).clamp(LEAST_BITS, u32::BITS - 1);
            self.high -= (self.high - took) >> bits;
        }
    }

    /// How long a packet may say nothing. `most` bounds what is guessed, not what was measured: packets that wait longer in
    /// a deep queue are not lost.
    #[inline]
    pub(crate) fn patience(&self, slack: Slack, most: Duration) -> Duration {
        let after_high = |more: u32| Duration::from_ps((u64::from(self.high) + u64::from(more)) << UNIT_BITS);
        let measured = after_high(if self.high == 0 { 0 } else { (self.high / 4).max(slack.units()) });
        after_high(self.doubt).min(most).max(measured)
    }
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
            }
            self.order.pop();
        }
        None
    }

    /// The oldest packet in flight counts as lost, whatever is known of it.
    pub(crate) fn lose_oldest(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) {
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

    fn us(timing: &Timing) -> f64 {
        timing.patience(Slack::new(Duration::ZERO), US * 1_000).as_ps() as f64 / 1e6
    }

    /// Within the resolution of 256 ps.
    fn close(timing: &Timing, wanted: f64) -> bool {
        (us(timing) - wanted).abs() < 0.002
    }

    #[test]
    fn patience_by_hand() {
        let mut timing = Timing::new(US * 10);
        assert!(close(&timing, 30.0));
        // 10 and four deviations of 5; the deviation of a second one of 10 is 3.75.
        timing.measure(US * 10, 1);
        assert!(close(&timing, 30.0), "{}", us(&timing));
        timing.measure(US * 10, 1);
        assert!(close(&timing, 25.0), "{}", us(&timing));
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        assert!(close(&timing, 12.5), "{}", us(&timing));
        // One of 40 is remembered at once, and with the next a 64th of what it was too long is forgotten.
        timing.measure(US * 40, 1);
        assert!(close(&timing, 50.0), "{}", us(&timing));
        timing.measure(US * 10, 1);
        assert!(close(&timing, 1.25 * (40.0 - 30.0 / 64.0)), "{}", us(&timing));
        // With 1,000 in flight, an 8,192nd.
        timing.measure(US * 40, 1_000);
        timing.measure(US * 10, 1_000);
        assert!(close(&timing, 1.25 * (40.0 - 30.0 / 8_192.0)), "{}", us(&timing));
    }

    #[test]
    fn a_round_trip_beyond_counting_is_the_longest_there_is() {
        let mut timing = Timing::new(Duration::ZERO);
        let punctual = Slack::new(Duration::ZERO);
        assert_eq!(timing.patience(punctual, US * 500), US * 500, "the configured timeout bounds a guess");
        timing.measure(Duration::from_ms(60_000), u32::MAX);
        timing.measure(US, u32::MAX);
        assert!(timing.patience(punctual, US * 500) > Duration::from_ms(1_000), "and no measurement");
    }

    #[test]
    fn hosts_that_may_be_late_are_waited_for() {
        let mut timing = Timing::new(US * 10);
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        // A millisecond is 3,906,250 units, 2^21 = 2,097,152 of which are 537 us.
        let patience = timing.patience(Slack::new(US * 1_000), US * 4_000);
        assert_eq!(patience.as_ps() / 1_000_000, 10 + 536);
    }

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
