//! Recovery by path order, seen from a queue pair: what it has outstanding is in rings of the endpoint.

use pathweave_policy::{FeedbackKind, PathState, PathView, Policy, Recovery};
use pathweave_units::{PathId, Time};
use pathweave_wire::Ack;

use super::feedback::Stamps;
use super::{Health, Qp};
use crate::common::Common;
use crate::events::Status;
use crate::recovery::path_order::{Heard, Patience, Suspect, Transmission};
use crate::send::echoes::Echo;

/// The source from which the policy knows of an acknowledgement's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// This acknowledgement was the first to tell, and echoes the latest transmission.
    Now,
    /// The same holds, but a switch on the way has written the stamp.
    Restamped,
    /// Another acknowledgement has told before, or this one echoes an earlier transmission.
    Before,
}

impl<P: Policy> Qp<P> {
    /// Finds the rings of a new queue pair.
    pub(super) fn join_rings(&mut self, recovery: Recovery, common: &mut Common) {
        let longest = self.send.rto_config().max_timeout;
        if let (Recovery::PathOrder { scope, rto, rto_min, rto_slack, .. }, Some(sender)) =
            (recovery, self.send.recovery.path_order())
        {
            let rings = common.make_rings();
            let rule = Patience { rto, min: rto_min, slack: rto_slack, longest: longest.max(rto_min) };
            sender.group = rings.join(scope, self.peer, rule);
        }
    }

    pub(super) fn leave_rings(&mut self, common: &mut Common) {
        let peers = common.shared.peers();
        if let (Some(sender), Some(rings)) = (self.send.recovery.path_order(), common.rings_mut()) {
            rings.leave(sender.group, peers);
        }
    }

    pub(super) fn enter_ring(&mut self, now: Time, group: u32, path: PathId, psn: u64, common: &mut Common) {
        if let Some(rings) = common.rings_mut() {
            rings.sent(group, path, Transmission { sent_at: now, psn, qp: self.num });
            common.arm_rings();
        }
    }

    /// The acknowledgement of a packet has been taken in, which came back by `path`.
    pub(super) fn heard_on_path(
        &mut self,
        now: Time,
        group: u32,
        path: PathId,
        ack: &Ack,
        known: Known,
        common: &mut Common,
    ) {
        let stamps = Stamps { sent_at: ack.echo_sent_at, received_at: ack.received_at, path };
        if stamps.sent_at > now {
            return;
        }
        let of = Transmission { sent_at: stamps.sent_at, psn: ack.trigger(), qp: self.num };
        let heard = Heard { of, rtt: stamps.rtt(now), one_way_ps: stamps.one_way_ps() };
        let echo = match known {
            Known::Now | Known::Restamped => Echo::First,
            Known::Before => self.send.flight.echoed(of.psn, of.sent_at, path),
        };
        let echo = common.rings_mut().map_or(echo, |rings| rings.heard(now, group, path, &heard, echo));
        if known != Known::Now && echo == Echo::First {
            self.feedback_on_path(now, FeedbackKind::Echo, path, heard.rtt, heard.one_way_ps, common);
        }
    }

    /// Paths that are down lose what is on them.
    pub(super) fn fail_paths(&mut self, paths: &[PathView], common: &mut Common) {
        if let (Some(group), Some(rings)) = (self.send.recovery.rings(), common.rings_mut()) {
            let down = paths.iter().filter(|path| path.state == PathState::Down);
            down.for_each(|path| rings.failed(group, path.id));
        }
    }

    /// These paths are dead: what is on them is lost.
    pub(crate) fn abandon(&mut self, now: Time, dead: &[PathId], common: &mut Common) {
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
        self.tell_lost(now, FeedbackKind::Lost, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// A transmission of this queue pair is lost, unless it has been heard of or was sent again since.
    pub(crate) fn on_suspect(&mut self, now: Time, suspect: &Suspect, common: &mut Common) {
        let Suspect { of, kind } = *suspect;
        if !self.send.flight.is_outstanding(of.psn, of.sent_at) || self.health == Health::Failed {
            return;
        }
        if kind == FeedbackKind::Timeout && !self.count_timeout(now, of.psn, common) {
            let culprit = self.send.culprit(self.send.flight.una());
            return self.fail(Status::RetryExceeded, culprit, common);
        }
        self.send.flight.lose(of.psn);
        common.lost.push(of.psn);
        self.tell_lost(now, kind, common);
        self.arm_policy(now, common);
        self.wake(common);
    }

    /// A path's timer has fired; what it takes with it comes one by one, at one instant. False if the queue pair has
    /// tried often enough.
    fn count_timeout(&mut self, now: Time, psn: u64, common: &mut Common) -> bool {
        let Some(sender) = self.send.recovery.path_order() else { return true };
        if sender.timed_out_at == now {
            return true;
        }
        sender.timed_out_at = now;
        self.note_timeout(now, Some(psn), common);
        self.send.path_timed_out(now)
    }
}
