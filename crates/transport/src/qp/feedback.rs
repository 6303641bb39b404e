//! Processing of the peer's answers to packets sent: ACK, NACK, CNP.

use alloc::vec::Vec;

use pathweave_policy::{Feedback, FeedbackKind, Memo, Policy, PolicyCx};
use pathweave_units::{Duration, PathId, Time, TrimmedAt};
use pathweave_wire::{Ack, Missing, MissingCause, Nack, NackReason};

use super::{Health, Qp};
use crate::common::EndpointShared;
use crate::events::Status;
use crate::recovery::contract::{Stamps, Trigger};
use crate::send::flight::Slot;
use crate::timers::TimerKind;

/// Arrivals that an ACK or a NACK reports.
struct Arrived {
    cumulative: u64,
    psn: u64,
    sack: u64,
    /// PSN of the packet that triggered the answer.
    trigger: u64,
    /// Stamps of the trigger, for an ACK.
    stamps: Option<Stamps>,
    /// Number of marked packets. A single one is the trigger; several are counted back from the newest packet.
    marked: u32,
}

impl<P: Policy> Qp<P> {
    /// Processes an acknowledgement.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Ack, path: PathId, common: &mut EndpointShared) {
        if ack.psn >= self.send.flight.next() || ack.cumulative > self.send.flight.next() {
            self.counters.rare().malformed += 1;
            return;
        }
        self.counters.acks_received += 1;
        let stamps = Stamps { sent_at: ack.echo_sent_at, received_at: ack.received_at, path };
        let trigger = ack.trigger();
        let expected = self.send.recovery.expects(&self.send.flight, trigger, ack.echo_sent_at);
        let arrived = Arrived {
            cumulative: ack.cumulative,
            psn: ack.psn,
            sack: ack.sack,
            trigger,
            stamps: Some(stamps),
            marked: u32::from(ack.marked),
        };
        let measured = self.arrived(now, &arrived, common);
        if ack.notices != self.answers.notices() {
            self.answers.note(ack.notices);
            let kind = FeedbackKind::NoticeFlow(ack.notices);
            self.feedback_on_path(now, kind, path, Duration::ZERO, 0, common);
        }
        let trigger = Trigger { psn: trigger, stamps, marked: ack.marked > 0, expected, measured };
        let (recovery, cx) = self.recovery(now, common);
        if let Some(kind) = recovery.on_trigger(cx, trigger) {
            self.feedback_on_path(now, kind, path, stamps.rtt(now), stamps.one_way_ps(), common);
        }
        let (recovery, cx) = self.recovery(now, common);
        let next = recovery.on_ack(cx, path);
        self.checked(now, next, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Processes arrivals: feedback to the policy, progress of the stream, completions. Returns true if the policy
    /// got a measurement.
    #[inline]
    fn arrived(&mut self, now: Time, arrived: &Arrived, common: &mut EndpointShared) -> bool {
        let mut timed = false;
        let una = self.send.flight.una();
        let cumulative = arrived.cumulative.max(una);
        // A single marked packet is the trigger, because a mark makes an acknowledgement leave at once if bytes
        // count. Several marked packets are taken to be the newest ones of this acknowledgement. That is exact if all
        // packets or none were marked, or if each packet is acknowledged separately.
        let mut unmarked = match arrived.marked {
            0 | 1 => u32::MAX,
            marked => self.count_news(arrived, cumulative).saturating_sub(marked),
        };
        if cumulative > una {
            let mut from = una;
            while let Some(psn) = self.send.flight.first_missing(from, cumulative) {
                timed |= self.one_arrived(now, psn, arrived, &mut unmarked, common);
                from = psn + 1;
            }
            self.send.flight.advance(cumulative);
        }
        let mut news = self.send.flight.news(arrived.psn, arrived.sack);
        while news != 0 {
            // The highest bit belongs to the lowest PSN.
            let back = 63 - news.leading_zeros();
            news &= !(1 << back);
            let psn = arrived.psn - u64::from(back);
            timed |= self.one_arrived(now, psn, arrived, &mut unmarked, common);
        }
        self.send.flight.advance_over_acked();
        if self.send.flight.una() > una {
            self.send.progressed(now);
            self.complete_sends(common);
            if self.send.answers_out > 0 {
                self.retire_answers(common);
            }
        }
        timed
    }

    /// Number of packets in flight that the answer newly acknowledges.
    #[cold]
    fn count_news(&self, arrived: &Arrived, cumulative: u64) -> u32 {
        let flight = &self.send.flight;
        let below = (flight.una()..cumulative).filter(|&psn| flight.can_lose(psn)).count() as u32;
        let mut news = flight.news(arrived.psn, arrived.sack);
        let mut above = 0;
        while news != 0 {
            let psn = arrived.psn - u64::from(news.trailing_zeros());
            above += u32::from(psn >= cumulative && flight.can_lose(psn));
            news &= news - 1;
        }
        below + above
    }

    #[inline]
    fn one_arrived(
        &mut self,
        now: Time,
        psn: u64,
        arrived: &Arrived,
        unmarked: &mut u32,
        common: &mut EndpointShared,
    ) -> bool {
        let Some(slot) = self.send.flight.ack(psn) else { return false };
        // Only the very transmission that is echoed gives a measurement. A stamp later than the slot's was written on
        // the path, by a switch that measures from there on. It is valid as well.
        let stamps = arrived
            .stamps
            .filter(|stamps| psn == arrived.trigger && stamps.path == slot.path)
            .filter(|stamps| stamps.sent_at >= slot.sent_at && stamps.sent_at <= now);
        if stamps.is_some() {
            self.send.flight.latest_echoed(psn);
        }
        let (recovery, cx) = self.recovery(now, common);
        recovery.on_acked(cx, &slot, stamps.is_some());
        let marked = if arrived.marked == 1 { psn == arrived.trigger } else { *unmarked == 0 };
        *unmarked = unmarked.saturating_sub(1);
        let kind = FeedbackKind::Ack { timed: stamps.is_some(), marked };
        self.feedback(now, kind, psn, &slot, stamps, common);
        stamps.is_some()
    }

    #[inline]
    fn feedback(
        &mut self,
        now: Time,
        kind: FeedbackKind,
        psn: u64,
        slot: &Slot,
        stamps: Option<Stamps>,
        common: &mut EndpointShared,
    ) {
        let (rtt, one_way_ps) = match stamps {
            Some(stamps) => (stamps.rtt(now), stamps.one_way_ps()),
            None => (Duration::ZERO, 0),
        };
        let feedback = Feedback {
            kind,
            path: slot.path,
            psn,
            memo: slot.memo,
            wire_bytes: u32::from(slot.wire_bytes),
            rtt,
            one_way_ps,
            inflight_packets: self.send.flight.full_packets(common.mtu_payload(self.num)),
            backlogged: self.send.backlogged(),
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_feedback(now, &feedback, &mut cx);
    }

    /// Passes feedback to the policy that does not refer to a slot: notifications, and measurements of a path.
    pub(super) fn feedback_on_path(
        &mut self,
        now: Time,
        kind: FeedbackKind,
        path: PathId,
        rtt: Duration,
        one_way_ps: i64,
        common: &mut EndpointShared,
    ) {
        let feedback = Feedback {
            kind,
            path,
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 0,
            rtt,
            one_way_ps,
            inflight_packets: self.send.flight.full_packets(common.mtu_payload(self.num)),
            backlogged: self.send.backlogged(),
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_feedback(now, &feedback, &mut cx);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Reports the packets in `common.lost` to the policy.
    #[inline]
    pub(super) fn report_losses_to_policy(
        &mut self,
        now: Time,
        kind: FeedbackKind,
        common: &mut EndpointShared,
    ) {
        if common.lost.is_empty() {
            return;
        }
        if kind == FeedbackKind::Lost {
            self.counters.rare().lost += common.lost.len() as u64;
        }
        let mut lost = core::mem::take(&mut common.lost);
        for psn in lost.drain(..) {
            let slot = *self.send.flight.slot(psn);
            // A path that does not even answer a probe has a worse problem than a lost packet.
            let is_silent = self.send.recovery.is_silent(&slot);
            let kind = if is_silent { FeedbackKind::Timeout } else { kind };
            if self.has_credit() {
                self.take_back(slot.wire_bytes, common);
            }
            self.feedback(now, kind, psn, &slot, None, common);
        }
        // Keeps the allocation.
        common.lost = lost;
    }

    /// Processes a NACK: a packet was refused, or one is missing.
    pub(crate) fn on_nack(&mut self, now: Time, nack: &Nack, path: PathId, common: &mut EndpointShared) {
        let next = self.send.flight.next();
        if nack.psn >= next || nack.expected > next {
            self.counters.rare().malformed += 1;
            return;
        }
        self.counters.rare().nacks_received += 1;
        // A trim acknowledges nothing, so that it does not open any window. The next acknowledgement reports other
        // arrivals. But go-back-N must know the PSN to go back to.
        let is_trim = matches!(nack.reason, NackReason::Trimmed(_));
        if !(is_trim && self.send.recovery.is_selective()) {
            let arrived = Arrived {
                cumulative: nack.expected,
                psn: nack.psn,
                sack: nack.sack,
                trigger: nack.psn,
                stamps: None,
                marked: 0,
            };
            let _measured = self.arrived(now, &arrived, common);
        }
        let culprit = match nack.reason {
            // The packet has arrived in the meantime, by another copy.
            _ if !self.send.flight.contains(nack.psn) => None,
            NackReason::Sequence | NackReason::BeyondWindow => {
                self.recover(now, nack, common);
                None
            }
            NackReason::ReceiverNotReady => {
                self.recover(now, nack, common);
                self.back_off(now, common)
            }
            NackReason::Trimmed(at) => {
                self.on_own_trimmed(now, nack, at, path, common);
                None
            }
            NackReason::RemoteAccess => Some(Status::RemoteAccess),
            NackReason::InvalidRequest => Some(Status::RemoteInvalidRequest),
        };
        if let Some(status) = culprit {
            let culprit = self.send.message_index_of(nack.psn);
            self.fail(status, culprit, common);
        }
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Handles the trim of a packet of this end, which is lost for certain. The NACK names the path of its
    /// transmission, which identifies it in most cases. A packet that is already lost needs no action.
    #[cold]
    fn on_own_trimmed(
        &mut self,
        now: Time,
        nack: &Nack,
        at: TrimmedAt,
        path: PathId,
        common: &mut EndpointShared,
    ) {
        if !self.send.flight.can_lose(nack.psn) || self.send.flight.slot(nack.psn).path != path {
            return;
        }
        self.counters.rare().trimmed += 1;
        self.send.recovery.on_nack(nack, &mut self.send.flight, &mut common.lost);
        if let Some(place) = common.lost.iter().position(|&psn| psn == nack.psn) {
            common.lost.remove(place);
            self.counters.rare().lost += 1;
            let slot = *self.send.flight.slot(nack.psn);
            let kind = FeedbackKind::Trimmed { at, marked: nack.marked };
            let stamps = Stamps { sent_at: slot.sent_at, received_at: slot.sent_at, path };
            self.feedback(now, kind, nack.psn, &slot, Some(stamps), common);
        }
        // Other packets that go-back-N declares lost with it.
        self.report_losses_to_policy(now, FeedbackKind::Lost, common);
    }

    fn recover(&mut self, now: Time, nack: &Nack, common: &mut EndpointShared) {
        self.send.recovery.on_nack(nack, &mut self.send.flight, &mut common.lost);
        self.report_losses_to_policy(now, FeedbackKind::Lost, common);
    }

    /// Backs off because the peer has no receive posted, or returns the error of giving up.
    fn back_off(&mut self, now: Time, common: &mut EndpointShared) -> Option<Status> {
        if self.health == Health::BackingOff {
            return None;
        }
        let backoffs = self.send.rnr_backoffs;
        if self.rnr.retry_limit.is_some_and(|limit| u32::from(backoffs) >= limit || backoffs == u8::MAX) {
            return Some(Status::RnrRetryExceeded);
        }
        self.send.rnr_backoffs = backoffs.saturating_add(1);
        self.health = Health::BackingOff;
        self.backoff_until = now.saturating_add(self.rnr.delay).max(super::next_instant(now));
        common.timers.arm(&mut self.armed, self.num, TimerKind::RnrBackoff, self.backoff_until);
        None
    }

    /// Processes a congestion notification.
    pub(crate) fn on_cnp(&mut self, now: Time, path: PathId, common: &mut EndpointShared) {
        self.counters.rare().cnp_packets += 1;
        self.feedback_on_path(now, FeedbackKind::Cnp, path, Duration::ZERO, 0, common);
    }

    /// Processes a list of packets that the receiver misses.
    #[cold]
    pub(crate) fn on_missing(&mut self, now: Time, missing: &Missing, common: &mut EndpointShared) {
        let Missing { first, missing, cause } = *missing;
        if first >= self.send.flight.next() {
            self.counters.rare().malformed += 1;
            return;
        }
        let flight = &self.send.flight;
        let named = (0..64).filter(|bit| missing >> bit & 1 == 1).map(|bit| first.saturating_add(bit));
        let psns: Vec<u64> = named.filter(|&psn| flight.can_lose(psn)).collect();
        match cause {
            MissingCause::Lost => {
                self.send.recovery.on_missing(&psns, &mut self.send.flight, &mut common.lost);
                self.report_losses_to_policy(now, FeedbackKind::Lost, common);
            }
            MissingCause::Late => {
                for psn in psns {
                    let slot = *self.send.flight.slot(psn);
                    self.feedback(now, FeedbackKind::Late, psn, &slot, None, common);
                }
            }
        }
        self.arm_policy(now, common);
        self.wake(common);
    }
}
