//! Timers of a queue pair.

use alloc::vec::Vec;

use pathweave_policy::{FeedbackKind, Grant, Policy, PolicyCx, SendRequest};
use pathweave_units::{Duration, PathId, Time};
use pathweave_wire::{Body, Control, ControlKind, Operation};

use super::{Health, Qp, next_instant};
use crate::common::EndpointShared;
use crate::events::{Event, SentPacket, Status};
use crate::scheduler::SchedState;
use crate::send::TimerReason;
use crate::send::patience::{BlockedBy, Verdict};
use crate::timers::TimerKind;

impl<P: Policy> Qp<P> {
    /// Handles the heap's entry for `kind`, which was set to `at`. The entry may be stale or early.
    pub(crate) fn on_timer(&mut self, now: Time, at: Time, kind: TimerKind, common: &mut EndpointShared) {
        if !self.armed.take(at, kind) || self.health == Health::Failed {
            return;
        }
        match kind {
            TimerKind::Retransmit => self.on_retransmit_timer(now, common),
            TimerKind::DelayedAck => {
                match self.receive.acks.due() {
                    Some(due) if due > now => common.timers.arm(&mut self.armed, self.num, kind, due),
                    Some(_) => {
                        let ack = self.receive.acks.take_held(&self.receive.recovery);
                        self.send_ack(ack, common);
                    }
                    None => {}
                }
                if self.receive.reorder.is_some() {
                    self.on_reorder_timer(now, common);
                }
            }
            TimerKind::Pacing if self.turn == SchedState::Paced => {
                if self.paced_until > now {
                    common.timers.arm(&mut self.armed, self.num, kind, self.paced_until);
                } else {
                    self.turn = SchedState::Off;
                    self.wake(common);
                }
            }
            TimerKind::Pacing => {}
            TimerKind::Policy => {
                if self.policy.next_timer().is_some_and(|at| at <= now) {
                    let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
                    self.policy.on_timer(now, &mut cx);
                    self.wake(common);
                }
                self.arm_policy(now, common);
            }
            TimerKind::RnrBackoff if self.health == Health::BackingOff => {
                if self.backoff_until > now {
                    common.timers.arm(&mut self.armed, self.num, kind, self.backoff_until);
                } else {
                    self.health = Health::Well;
                    self.wake(common);
                }
            }
            // Timers of the endpoint.
            TimerKind::RnrBackoff | TimerKind::PathOrder | TimerKind::Credit => {}
        }
    }

    fn on_retransmit_timer(&mut self, now: Time, common: &mut EndpointShared) {
        match self.send.deadline() {
            None => return,
            Some((deadline, _)) if deadline > now => {}
            Some((_, TimerReason::Probe)) => self.probe(now, common),
            Some((_, TimerReason::Ack)) if self.send.is_timed() => self.on_patience_expired(now, common),
            Some((_, TimerReason::Ack)) => self.on_timeout(now, common),
            Some((_, TimerReason::Answer)) => {
                self.note_timeout(now, None, common);
                let read = self
                    .send
                    .messages()
                    .position(|message| message.op == Operation::ReadRequest && !message.answered);
                self.fail(Status::RetryExceeded, read, common);
            }
        }
        if let Some((deadline, _)) = self.send.deadline() {
            common.timers.arm(
                &mut self.armed,
                self.num,
                TimerKind::Retransmit,
                deadline.max(next_instant(now)),
            );
        }
    }

    /// Counts and reports a timeout whose oldest packet is `oldest`. `None`: a READ waits for its response.
    pub(super) fn note_timeout(&mut self, now: Time, oldest: Option<u64>, common: &mut EndpointShared) {
        self.counters.rare().timeouts += 1;
        if common.reports_losses {
            let psn = oldest.unwrap_or(self.send.flight.una());
            let msn = oldest.map(|psn| self.send.message_of(psn).1);
            let path = oldest.map(|psn| self.send.flight.slot(psn).path);
            common
                .events
                .push_back(Event::TimedOut { packet: SentPacket { qp: self.num, psn, msn, path }, at: now });
        }
    }

    fn on_timeout(&mut self, now: Time, common: &mut EndpointShared) {
        if self.send.is_recovering_first(now) {
            return;
        }
        self.note_timeout(now, Some(self.send.flight.una()), common);
        // One timer stands for all packets in flight. Packets that left soon after the oldest would otherwise time
        // out one by one, each after a longer time. So every packet that left half a timeout ago or earlier is
        // declared lost with it.
        let grace = Duration::from_ps(self.send.rto_config().timeout.as_ps() / 2);
        let before = Time::from_ps(now.as_ps().saturating_sub(grace.as_ps()));
        if !self.send.timed_out(now, before, &mut common.lost) {
            let culprit = self.send.message_index_of(self.send.flight.una());
            self.fail(Status::RetryExceeded, culprit, common);
            return;
        }
        self.report_losses_to_policy(now, FeedbackKind::Timeout, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Sends a probe after the oldest packet, and some on other paths (recovery by time).
    #[cold]
    fn probe_oldest(&mut self, now: Time, common: &mut EndpointShared) {
        let Some(own) = self.send.oldest_path() else { return };
        let mut paths = Vec::new();
        if self.send.recovery.timed().is_some_and(|timed| timed.may_ask_on_others()) {
            self.send.other_paths(own, &mut paths);
            if let Some(next) = self.path_of_next(now, common)
                && next != own
                && !paths.contains(&next)
            {
                paths.push(next);
            }
        }
        for path in core::iter::once(own).chain(paths) {
            if let Some(timed) = self.send.recovery.timed() {
                timed.probe(now, path);
                timed.asked_for_all();
            }
            self.send_probe(now, path, common);
        }
    }

    /// Sends a probe after each late packet (recovery by time).
    #[cold]
    fn ask_for_late(&mut self, now: Time, common: &mut EndpointShared) {
        let mut paths = Vec::new();
        self.send.ask(now, &mut paths);
        paths.iter().for_each(|&path| self.send_probe(now, path, common));
    }

    pub(super) fn send_probe(&mut self, now: Time, path: PathId, common: &mut EndpointShared) {
        self.order.get_or_insert_default().controls_sent[ControlKind::Probe] += 1;
        self.control(path, Body::Control(Control::Probe { sent_at: now }), common);
    }

    /// Request to the policy for a packet without bytes, in place of the first unacknowledged one. All ports count as
    /// free.
    pub(super) fn want_of_probe(&self, common: &EndpointShared) -> SendRequest {
        let psn = self.send.flight.una();
        SendRequest {
            psn,
            payload_bytes: 0,
            wire_bytes: 0,
            msn: self.send.message_of(psn).1,
            retransmit: true,
            inflight_packets: self.send.flight.full_packets(common.mtu_payload(self.num)),
            inflight_bytes: self.send.flight.inflight_bytes(),
            egress: self.all_free(common),
        }
    }

    /// Path that a packet would take that left now, if one may leave.
    fn path_of_next(&mut self, now: Time, common: &mut EndpointShared) -> Option<PathId> {
        let want = self.want_of_probe(common);
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        match self.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) => Some(path),
            _ => None,
        }
    }

    /// Returns true if this answers a probe of recovery by time, and processes it then.
    pub(super) fn answers_question(
        &mut self,
        now: Time,
        control: &Control,
        path: PathId,
        common: &mut EndpointShared,
    ) -> bool {
        let Control::ProbeReply { sent_at, .. } = *control else { return false };
        let is_own = sent_at <= now && self.send.probe_answered(now, (sent_at, path), &mut common.lost);
        if is_own {
            self.report_losses_to_policy(now, FeedbackKind::Lost, common);
            self.detect_late(now, common);
            self.arm_policy(now, common);
            self.wake(common);
        }
        is_own
    }

    /// Handles the end of patience (recovery by time).
    fn on_patience_expired(&mut self, now: Time, common: &mut EndpointShared) {
        let una = self.send.flight.una();
        let held = match (self.health, self.turn) {
            (Health::BackingOff, _) => BlockedBy::Peer,
            (_, SchedState::Off) => BlockedBy::Policy,
            // A packet that a queue or the pacer holds leaves without help.
            _ => BlockedBy::Nothing,
        };
        match self.send.lose_patience(now, held, &mut common.lost) {
            Verdict::Pause => return,
            Verdict::Ask => return self.ask_for_late(now, common),
            Verdict::Probe => return self.probe_oldest(now, common),
            Verdict::Overtaken => self.report_losses_to_policy(now, FeedbackKind::Lost, common),
            Verdict::Silence => {
                self.note_timeout(now, Some(una), common);
                self.report_losses_to_policy(now, FeedbackKind::Timeout, common);
            }
            Verdict::GiveUp => {
                self.note_timeout(now, Some(una), common);
                let culprit = self.send.message_index_of(una);
                self.fail(Status::RetryExceeded, culprit, common);
                return;
            }
        }
        self.arm_policy(now, common);
        self.wake(common);
    }
}
