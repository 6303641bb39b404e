//! Loss recovery of a queue pair: carries out what the kind in use decides ([`crate::recovery`]).

use pathweave_policy::{FeedbackKind, Grant, PathState, PathView, Policy, PolicyCx, SendRequest};
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Control, ControlKind};

use super::{Health, Qp};
use crate::common::EndpointShared;
use crate::events::{Event, SentPacket, Status};
use crate::recovery::contract::{BlockedBy, Cx, NextCheck, NextPath, Probes, Verdict};
use crate::recovery::{Sender, Suspect};
use crate::scheduler::SchedState;
use crate::timers::TimerKind;

impl<P: Policy> Qp<P> {
    /// Returns loss recovery and its context.
    #[inline(always)]
    pub(super) fn recovery<'a>(
        &'a mut self,
        now: Time,
        common: &'a mut EndpointShared,
    ) -> (&'a mut Sender, Cx<'a, P>) {
        let Self { num, send, policy, .. } = self;
        let (recovery, flight, clock, end_psn) = send.split();
        (recovery, Cx { now, num: *num, flight, clock, end_psn, policy, common })
    }

    /// Arms the retransmission timer for the next check, and reports the losses that were found.
    #[inline(always)]
    pub(super) fn checked(&mut self, now: Time, next: NextCheck, common: &mut EndpointShared) {
        let at = match next {
            NextCheck::AsArmed => None,
            NextCheck::At(at) => Some(at),
            NextCheck::AtDeadline => self.send.deadline().map(|(at, _)| at),
        };
        if let Some(at) = at {
            common.timers.arm(&mut self.armed, self.num, TimerKind::Retransmit, at);
        }
        if !common.lost.is_empty() {
            self.report_losses_to_policy(now, FeedbackKind::Lost, common);
        }
    }

    /// Handles the end of the retransmission timer.
    pub(super) fn on_deadline(&mut self, now: Time, common: &mut EndpointShared) {
        let blocked = match (self.health, self.turn) {
            (Health::BackingOff, _) => BlockedBy::Peer,
            (_, SchedState::Off) => BlockedBy::Policy,
            // A packet that a queue or the pacer holds leaves without help.
            _ => BlockedBy::Nothing,
        };
        let (recovery, cx) = self.recovery(now, common);
        let verdict = recovery.on_timer(cx, blocked);
        self.carry_out(now, verdict, common);
    }

    /// Declares a transmission of this queue pair lost, unless it was acknowledged or retransmitted since.
    pub(crate) fn on_suspect(&mut self, now: Time, suspect: &Suspect, common: &mut EndpointShared) {
        if !self.send.flight.is_outstanding(suspect.of.psn, suspect.of.sent_at)
            || self.health == Health::Failed
        {
            return;
        }
        let (recovery, cx) = self.recovery(now, common);
        let verdict = recovery.on_suspect(cx, suspect);
        self.carry_out(now, verdict, common);
    }

    fn carry_out(&mut self, now: Time, verdict: Verdict, common: &mut EndpointShared) {
        match verdict {
            Verdict::Wait => return,
            Verdict::Probe(probes) => return self.send_probes(now, probes, common),
            Verdict::Lost(kind) => self.report_losses_to_policy(now, kind, common),
            Verdict::Timeout(psn) => {
                self.note_timeout(now, Some(psn), common);
                self.report_losses_to_policy(now, FeedbackKind::Timeout, common);
            }
            Verdict::GiveUp(psn) => {
                self.note_timeout(now, Some(psn), common);
                let culprit = self.send.message_index_of(self.send.flight.una());
                return self.fail(Status::RetryExceeded, culprit, common);
            }
        }
        self.arm_policy(now, common);
        self.wake(common);
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

    /// Declares packets on paths that are down lost, if loss recovery covers each path separately.
    pub(super) fn fail_paths(&mut self, paths: &[PathView], common: &mut EndpointShared) {
        for path in paths.iter().filter(|path| path.state == PathState::Down) {
            self.send.recovery.on_path_down(path.id, common);
        }
    }

    /// Declares packets on dead paths lost.
    pub(crate) fn abandon(&mut self, now: Time, dead: &[PathId], common: &mut EndpointShared) {
        let (recovery, cx) = self.recovery(now, common);
        let verdict = recovery.abandon(cx, dead);
        if self.health != Health::Failed {
            self.carry_out(now, verdict, common);
        }
    }

    /// Sends the probe that is due.
    pub(super) fn probe(&mut self, now: Time, common: &mut EndpointShared) {
        let (recovery, cx) = self.recovery(now, common);
        let probes = recovery.probe(cx);
        self.send_probes(now, probes, common);
    }

    #[cold]
    fn send_probes(&mut self, now: Time, probes: Probes, common: &mut EndpointShared) {
        let Probes { mut paths, next } = probes;
        if next != NextPath::Unprobed {
            let want = self.want_of_probe(common);
            let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
            if next == NextPath::BeyondWindow {
                paths.push(self.policy.path_beyond_window(now, &want, &mut cx));
            } else if let Grant::Send(path) = self.policy.poll_send(now, &want, &mut cx)
                && !paths.contains(&path)
            {
                paths.push(path);
            }
        }
        for path in paths {
            self.send.recovery.on_probe_sent(now, path);
            self.order.get_or_insert_default().controls_sent[ControlKind::Probe] += 1;
            self.control(path, Body::Control(Control::Probe { sent_at: now }), common);
        }
    }

    /// Request to the policy for a packet without bytes, in place of the first unacknowledged one. All ports count as
    /// free.
    fn want_of_probe(&self, common: &EndpointShared) -> SendRequest {
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

    /// Returns true if this answers a probe of loss recovery, and processes it then.
    pub(super) fn answers_probe(
        &mut self,
        now: Time,
        control: &Control,
        path: PathId,
        common: &mut EndpointShared,
    ) -> bool {
        let Control::ProbeReply { sent_at, .. } = *control else { return false };
        let (recovery, cx) = self.recovery(now, common);
        let is_own = recovery.on_probe_answered(cx, sent_at, path);
        if is_own {
            self.report_losses_to_policy(now, FeedbackKind::Lost, common);
            let (recovery, cx) = self.recovery(now, common);
            let next = recovery.detect(cx);
            self.checked(now, next, common);
            self.arm_policy(now, common);
            self.wake(common);
        }
        is_own
    }

    /// Sends a delayed acknowledgement before the answer to a probe of loss recovery.
    pub(super) fn tell_held_to_prober(
        &mut self,
        control: &Control,
        path: PathId,
        common: &mut EndpointShared,
    ) {
        let own = self.receive.acks.held_path();
        if let Some(own) = own.filter(|_| matches!(control, Control::Probe { .. }))
            && let Some(path) = self.send.recovery.path_of_held_ack(path, own)
        {
            let (ack, _) = self.receive.acks.take_held(&self.receive.recovery);
            self.send_ack((ack, path), common);
        }
    }
}
