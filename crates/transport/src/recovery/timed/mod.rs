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

mod late;
pub(crate) mod timing;

use alloc::vec::Vec;
use core::iter;

use pathweave_policy::{FeedbackKind, Policy};
use pathweave_units::{Duration, PathId, Time};

use super::clock::{Clock, ClockValues};
use super::contract::{
    BlockedBy, Cx, LossRecovery, NextCheck, NextPath, Probes, Setup, Trigger, Verdict, first_echo,
};
use super::receiver::Receiver;
use super::transmissions::Transmissions;
use crate::common::EndpointShared;
use crate::send::flight::{Flight, Slot};
use late::{Answers, LateRule, OldestState, pause};
use timing::Timing;

/// Factor by which the number of packets declared lost grows with each silence, while the policy holds back
/// retransmissions.
const DEAD_A_STEP: u32 = 4;

/// Number of probes with each silence on paths other than that of the oldest packet, besides one on that of the next
/// packet.
const OTHERS: usize = 2;

/// Patiences that the longest silence lasts at least. Two probes fit: after one patience, and after two more.
const LEAST_PATIENCES: u64 = 3;

// In this order, so that the first byte has room for the tag of `recovery::Sender`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sender {
    packets: Transmissions,
    /// Recent time that packets take.
    timing: Timing,
}

impl ClockValues<'_> {
    /// Time without any arrival, not even answers to probes, that counts as a timeout: the configured one, but not
    /// before the second probe would leave.
    fn longest_silence(&self, patience: Duration) -> Duration {
        self.rto.timeout.max(patience * LEAST_PATIENCES)
    }

    /// Number of ends of patience, each after twice the time, until the longest silence is over.
    fn silences_to_a_timeout(&self, patience: Duration) -> u32 {
        let patiences = self.longest_silence(patience).as_ps().div_ceil(patience.as_ps().max(1));
        patiences.saturating_add(1).checked_next_power_of_two().map_or(u64::BITS, u64::trailing_zeros)
    }

    /// Number of successive timeouts that the ends of patience since the last arrival amount to.
    fn timeouts_after_silences(&self, patience: Duration) -> u32 {
        (u32::from(self.timeouts) + 1).saturating_sub(self.silences_to_a_timeout(patience))
    }

    /// Time to the next end of patience after some without an arrival.
    #[cold]
    fn wait_on(self, patience: Duration) -> Duration {
        match self.timeouts_after_silences(patience) {
            0 => {
                let (patience_ps, over) = (patience.as_ps(), (1u64 << self.timeouts.min(63)) - 1);
                let waited = Duration::from_ps(patience_ps.saturating_mul(over));
                let doubled = Duration::from_ps(patience_ps.saturating_mul(over + 1));
                doubled.min(self.longest_silence(patience).saturating_sub(waited))
            }
            timeouts => self.rto.after(timeouts).max(self.longest_silence(patience)),
        }
    }
}

impl Sender {
    fn new(reorder_packets: u32, idle_wait: Duration) -> Self {
        Sender { packets: Transmissions::new(reorder_packets), timing: Timing::new(idle_wait) }
    }

    /// Time that a packet may stay unacknowledged.
    #[inline]
    fn patience(&self, clock: ClockValues<'_>) -> Duration {
        self.timing.patience(clock.slack, clock.timeout)
    }

    /// Times after which overtaken packets are probed for and lost.
    #[inline]
    fn rule(&self, clock: ClockValues<'_>) -> LateRule {
        let patience = self.patience(clock);
        LateRule { patience, lost_after: clock.slack.lost_after(patience) }
    }

    /// Records the time that a packet took, as measured now. Then the peer is alive: only the lost packets were silent,
    /// or it paused. Doubled times are not needed any more, the less as patience has grown by the measurement.
    #[inline]
    fn measured(&mut self, now: Time, took: Duration, in_flight: u32, clock: &mut Clock<'_>) {
        if took <= clock.rto.max_timeout {
            self.timing.measure(took, in_flight);
        } else {
            self.measured_long(now, took, in_flight, clock.values());
        }
        if *clock.timeouts > 0 {
            *clock.timeouts = 0;
            *clock.base = now;
        }
    }

    /// Records a packet that took longer than any timeout. If a timeout has counted while the packet was in flight,
    /// it measures the length of an interruption, not the time that packets take. If patience followed it, later
    /// losses would be found late. The first such packet still counts, with at most the longest silence, so that a
    /// path that has become that long is learned in the end.
    #[cold]
    fn measured_long(&mut self, now: Time, took: Duration, in_flight: u32, clock: ClockValues<'_>) {
        let left = Time::from_ps(now.as_ps().saturating_sub(took.as_ps()));
        let counts = match (self.has_timed_out_since(left), clock.timeouts) {
            (false, _) => took,
            (true, 0) => return,
            (true, _) => took.min(clock.longest_silence(self.patience(clock)).max(clock.rto.max_timeout)),
        };
        self.timing.measure(counts, in_flight);
    }

    /// Probes after the oldest packet: one on its path, and some on others. Those are up to [`OTHERS`] paths that
    /// worked recently, or else the first path, and that of the next packet. Each silence gives others, because those
    /// tried before may have died.
    #[cold]
    fn probes_after_oldest(&mut self, flight: &Flight, silences: u16) -> Probes {
        let Some(own) = self.oldest_path(flight) else { return Probes::default() };
        self.asked_for_all();
        if !self.may_ask_on_others() {
            return Probes { paths: Vec::from([own]), next: NextPath::Unprobed };
        }
        let tried = OTHERS * usize::from(silences.saturating_sub(1));
        let acked = flight.acked_paths().filter(|&path| path != own);
        let mut paths: Vec<PathId> = iter::once(own).chain(acked.skip(tried).take(OTHERS)).collect();
        if paths.len() == 1 && own != PathId(0) {
            paths.push(PathId(0));
        }
        paths.dedup();
        Probes { paths, next: NextPath::IfGranted }
    }

    /// Declares packets lost at the given timeout in a row without any arrival.
    fn lose_silent(
        &mut self,
        now: Time,
        timeouts: u32,
        blocked: BlockedBy,
        flight: &mut Flight,
        lost: &mut Vec<u64>,
    ) {
        let dead = if flight.lost_packets() == 0 {
            // One, one, two, two, three packets. With single packets, a channel that loses half of its packets would
            // double the time up to ten thousand round trips.
            timeouts.div_ceil(2)
        } else if blocked == BlockedBy::Policy {
            // A window full of dead packets would block all others for ever. But the silence may be that of a paused
            // fabric. One, four, sixteen: a pause of a few patiences then costs few copies, and a window of a hundred
            // dead packets takes four steps.
            DEAD_A_STEP.saturating_pow(timeouts - 1).min(flight.inflight_packets())
        } else {
            0
        };
        (0..dead).for_each(|_| self.lose_oldest(now, flight, lost));
    }
}

impl LossRecovery for Sender {
    type Config = u32;

    fn open(reorder_packets: u32, setup: &Setup, _common: &mut EndpointShared) -> Self {
        Sender::new(reorder_packets, setup.idle_wait)
    }
    fn receiver(reorder_packets: u32, window_packets: u32) -> Receiver {
        Receiver::any_order(window_packets, reorder_packets)
    }
    #[inline]
    fn transmissions(&mut self) -> Option<&mut Transmissions> {
        Some(&mut self.packets)
    }
    fn is_silent(&self, slot: &Slot) -> bool {
        self.packets.order.is_silent(slot.tx, slot.path)
    }
    /// The path of the probe, so that the acknowledgement does not arrive behind the answer.
    fn path_of_held_ack(&self, probe: PathId, _own: PathId) -> Option<PathId> {
        Some(probe)
    }
    /// Time to the next end of patience, from the last arrival or the previous end of patience.
    #[inline]
    fn timeout(&self, clock: ClockValues<'_>) -> Duration {
        let patience = self.patience(clock);
        if clock.timeouts == 0 { patience } else { clock.wait_on(patience) }
    }
    #[inline]
    fn on_acked<P: Policy>(&mut self, cx: &mut Cx<'_, P>, slot: &Slot, echoed: bool) {
        self.packets.acked(slot, echoed || !slot.retransmitted);
        if echoed || !slot.retransmitted && self.is_telling(slot.sent_at) {
            let in_flight = cx.flight.inflight_packets();
            self.measured(cx.now, cx.now - slot.sent_at, in_flight, &mut cx.clock);
        }
    }
    #[inline]
    fn on_trigger<P: Policy>(&mut self, cx: &mut Cx<'_, P>, trigger: Trigger) -> Option<FeedbackKind> {
        if trigger.measured {
            return None;
        }
        let sample = first_echo(cx.now, cx.flight, trigger)?;
        let in_flight = cx.flight.inflight_packets();
        self.measured(cx.now, trigger.stamps.rtt(cx.now), in_flight, &mut cx.clock);
        Some(sample)
    }
    #[inline]
    fn detect<P: Policy>(&mut self, cx: &mut Cx<'_, P>) -> NextCheck {
        let rule = self.rule(cx.clock.values());
        let next = self.find_late(cx.now, rule, cx.flight, &mut cx.common.lost);
        next.map_or(NextCheck::AsArmed, NextCheck::At)
    }
    /// Time at which the oldest packet is lost, or must be probed for.
    fn deadline(&mut self, flight: &Flight, clock: &Clock<'_>) -> Option<Time> {
        let oldest = self.oldest(flight)?;
        let LateRule { patience, lost_after } = self.rule(clock.values());
        let wait = match oldest.standing {
            OldestState::InTurn => {
                let from = oldest.sent_at.max(*clock.base);
                return Some(from.saturating_add(self.timeout(clock.values())));
            }
            OldestState::Overtaken => patience,
            OldestState::Asked => lost_after,
        };
        Some((oldest.sent_at.saturating_add(wait)).max(clock.base.saturating_add(pause(patience))))
    }
    /// Handles an end of patience.
    fn on_timer<P: Policy>(&mut self, cx: &mut Cx<'_, P>, blocked: BlockedBy) -> Verdict {
        let una = cx.flight.una();
        let (now, lost) = (cx.now, &mut cx.common.lost);
        let stuck = self.stuck_for(now, cx.flight);
        if stuck.is_some_and(|long| long >= cx.clock.rto.give_up_after()) {
            return Verdict::GiveUp(una);
        }
        self.find_late(now, self.rule(cx.clock.values()), cx.flight, lost);
        *cx.clock.base = now;
        if !lost.is_empty() {
            return Verdict::Lost(FeedbackKind::Lost);
        }
        if blocked == BlockedBy::Peer {
            // The peer has asked for a pause, so silence proves nothing.
            return Verdict::Wait;
        }
        let patience = self.patience(cx.clock.values());
        if self.oldest(cx.flight).is_some_and(|oldest| oldest.standing == OldestState::Overtaken) {
            let paths = self.ask(now, patience, cx.flight);
            return Verdict::Probe(Probes { paths, next: NextPath::Unprobed });
        }
        // Counts planned waits, not the clock: a host that was not scheduled for a second has not waited for it.
        *cx.clock.timeouts = cx.clock.timeouts.saturating_add(1);
        let timeouts = cx.clock.values().timeouts_after_silences(patience);
        if timeouts == 0 {
            return Verdict::Probe(self.probes_after_oldest(cx.flight, *cx.clock.timeouts));
        }
        if timeouts > cx.clock.rto.retry_limit || *cx.clock.timeouts == u16::MAX {
            return Verdict::GiveUp(una);
        }
        self.timed_out(now);
        self.lose_silent(now, timeouts, blocked, cx.flight, lost);
        Verdict::Timeout(una)
    }
    fn on_probe_sent(&mut self, now: Time, path: PathId) {
        self.packets.order.probe(now, path);
    }
    fn on_probe_answered<P: Policy>(&mut self, cx: &mut Cx<'_, P>, sent_at: Time, path: PathId) -> bool {
        let answers = if cx.clock.slack.answers_prove() { Answers::Prove } else { Answers::Overtake };
        let lost = &mut cx.common.lost;
        let is_own = sent_at <= cx.now && self.answered(cx.now, (sent_at, path), answers, cx.flight, lost);
        if is_own {
            let in_flight = cx.flight.inflight_packets();
            self.measured(cx.now, cx.now - sent_at, in_flight, &mut cx.clock);
        }
        is_own
    }
}
