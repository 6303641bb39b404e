//! Recovery by path order in a queue pair, whose outstanding packets are in rings of the endpoint.

use pathweave_policy::{FeedbackKind, PathState, PathView, Policy, Recovery};
use pathweave_units::{PathId, Time};
use pathweave_wire::Ack;

use super::feedback::Stamps;
use super::{Health, Qp};
use crate::common::EndpointShared;
use crate::events::Status;
use crate::recovery::path_order::{Heard, SilenceRule, Suspect, Transmission};
use crate::send::echoes::Echo;

/// Source from which the policy knows of an acknowledgement's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EchoKnowledge {
    /// This acknowledgement is the first to report it, and echoes the latest transmission.
    Now,
    /// This acknowledgement is the first to report it, but a switch on the path has rewritten the stamp.
    Restamped,
    /// An earlier acknowledgement has reported it, or this one echoes an earlier transmission.
    Before,
}

impl<P: Policy> Qp<P> {
    /// Joins the rings for a new queue pair.
    pub(super) fn join_rings(&mut self, recovery: Recovery, common: &mut EndpointShared) {
        let longest = self.send.rto_config().max_timeout;
        if let (Recovery::PathOrder { scope, rto, rto_min, rto_slack, .. }, Some(sender)) =
            (recovery, self.send.recovery.path_order())
        {
            let rings = common.make_rings();
            let rule = SilenceRule { rto, min: rto_min, slack: rto_slack, longest: longest.max(rto_min) };
            sender.group = rings.join(scope, self.peer, rule);
        }
    }

    pub(super) fn leave_rings(&mut self, common: &mut EndpointShared) {
        let peers = common.shared.peers();
        if let (Some(sender), Some(rings)) = (self.send.recovery.path_order(), common.rings_mut()) {
            rings.leave(sender.group, peers);
        }
    }

    pub(super) fn enter_ring(
        &mut self,
        now: Time,
        group: u32,
        path: PathId,
        psn: u64,
        common: &mut EndpointShared,
    ) {
        if let Some(rings) = common.rings_mut() {
            rings.sent(group, path, Transmission { sent_at: now, psn, qp: self.num });
            common.arm_rings();
        }
    }

    /// Passes a processed acknowledgement to the rings. It came back by `path`.
    pub(super) fn on_path_ack(
        &mut self,
        now: Time,
        group: u32,
        path: PathId,
        ack: &Ack,
        known: EchoKnowledge,
        common: &mut EndpointShared,
    ) {
        let stamps = Stamps { sent_at: ack.echo_sent_at, received_at: ack.received_at, path };
        if stamps.sent_at > now {
            return;
        }
        let of = Transmission { sent_at: stamps.sent_at, psn: ack.trigger(), qp: self.num };
        let heard = Heard { of, rtt: stamps.rtt(now), one_way_ps: stamps.one_way_ps() };
        let echo = match known {
            EchoKnowledge::Now | EchoKnowledge::Restamped => Echo::First,
            EchoKnowledge::Before => self.send.flight.echoed(of.psn, of.sent_at, path),
        };
        let echo = common.rings_mut().map_or(echo, |rings| rings.heard(now, group, path, &heard, echo));
        if known != EchoKnowledge::Now && echo == Echo::First {
            self.feedback_on_path(now, FeedbackKind::PathSample, path, heard.rtt, heard.one_way_ps, common);
        }
    }

    /// Declares packets on paths that are down suspect.
    pub(super) fn fail_paths(&mut self, paths: &[PathView], common: &mut EndpointShared) {
        if let (Some(group), Some(rings)) = (self.send.recovery.rings(), common.rings_mut()) {
            let down = paths.iter().filter(|path| path.state == PathState::Down);
            down.for_each(|path| rings.failed(group, path.id));
        }
    }

    /// Declares packets on dead paths lost.
    pub(crate) fn abandon(&mut self, now: Time, dead: &[PathId], common: &mut EndpointShared) {
        if let (Some(group), Some(rings)) = (self.send.recovery.rings(), common.rings_mut()) {
            dead.iter().for_each(|path| rings.failed(group, *path));
            return;
        }
        if self.health == Health::Failed || !self.send.recovery.is_selective() {
            return;
        }
        let flight = &mut self.send.flight;
        for psn in flight.una()..flight.next() {
            if flight.can_lose(psn) && dead.contains(&flight.slot(psn).path) {
                flight.lose(psn);
                common.lost.push(psn);
            }
        }
        self.report_losses_to_policy(now, FeedbackKind::Lost, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Declares a transmission of this queue pair lost, unless it was acknowledged or retransmitted since.
    pub(crate) fn on_suspect(&mut self, now: Time, suspect: &Suspect, common: &mut EndpointShared) {
        let Suspect { of, kind } = *suspect;
        if !self.send.flight.is_outstanding(of.psn, of.sent_at) || self.health == Health::Failed {
            return;
        }
        if kind == FeedbackKind::Timeout && !self.count_timeout(now, of.psn, common) {
            let culprit = self.send.message_index_of(self.send.flight.una());
            return self.fail(Status::RetryExceeded, culprit, common);
        }
        self.send.flight.lose(of.psn);
        common.lost.push(of.psn);
        self.report_losses_to_policy(now, kind, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// Counts a timeout of a path's timer, which reports its packets one by one at the same time. Returns false if
    /// the retry limit is exceeded.
    fn count_timeout(&mut self, now: Time, psn: u64, common: &mut EndpointShared) -> bool {
        let Some(sender) = self.send.recovery.path_order() else { return true };
        if sender.timed_out_at == now {
            return true;
        }
        sender.timed_out_at = now;
        self.note_timeout(now, Some(psn), common);
        self.send.path_timed_out(now)
    }
}
