//! Actions of a queue pair under SLEEK ([`crate::recovery`]): losses from acknowledgements and probes, and sending of
//! probes.

use pathweave_policy::{FeedbackKind, Policy, PolicyCx};
use pathweave_units::{PathId, Time};
use pathweave_wire::Control;

use super::Qp;
use crate::common::EndpointShared;

impl<P: Policy> Qp<P> {
    /// Evaluates an acknowledgement that was processed. Returns true if it proves losses.
    #[inline]
    pub(super) fn heard_by_sleek(&mut self, now: Time, path: PathId, common: &mut EndpointShared) -> bool {
        if self.send.recovery.sleek().is_none() {
            return false;
        }
        self.sleek_hears(now, path, common)
    }

    fn sleek_hears(&mut self, now: Time, path: PathId, common: &mut EndpointShared) -> bool {
        let (waits, mtu) = (self.send.has_new(), common.mtu_payload(self.num));
        let Some(window) = self.policy.window() else { return false };
        if let Some(sleek) = self.send.recovery.sleek() {
            sleek.heard(now, path, waits, &window, mtu, &mut self.send.flight, &mut common.lost);
        }
        self.arm_probe(common);
        !common.lost.is_empty()
    }

    /// Arms the retransmission timer, which also triggers probes.
    fn arm_probe(&mut self, common: &mut EndpointShared) {
        if let Some((at, _)) = self.send.deadline() {
            common.timers.arm(&mut self.armed, self.num, crate::timers::TimerKind::Retransmit, at);
        }
    }

    /// Time at which a probe is to follow a packet that leaves now.
    #[inline]
    pub(super) fn probe_after_sending(&mut self, now: Time) -> Time {
        if self.send.recovery.sleek().is_none() {
            return Time::MAX;
        }
        let waits = self.send.has_new();
        let Some(window) = self.policy.window() else { return Time::MAX };
        self.send.recovery.sleek().map_or(Time::MAX, |sleek| sleek.left(now, waits, &window))
    }

    /// Sends a probe.
    pub(super) fn probe(&mut self, now: Time, common: &mut EndpointShared) {
        let Some(window) = self.policy.window() else { return };
        let Some(sleek) = self.send.recovery.sleek() else { return };
        let path = match sleek.probes(now, &window, &self.send.flight) {
            Some(path) => path,
            None => {
                let want = self.want_of_probe(common);
                let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
                self.policy.path_beyond_window(now, &want, &mut cx)
            }
        };
        self.send_probe(now, path, common);
    }

    /// Returns true if this answers the latest probe of loss recovery, and processes it then.
    pub(super) fn answers_own_probe(
        &mut self,
        now: Time,
        control: &Control,
        common: &mut EndpointShared,
    ) -> bool {
        let Control::ProbeReply { sent_at, .. } = *control else { return false };
        let mtu = common.mtu_payload(self.num);
        let Some(window) = self.policy.window() else { return false };
        let Some(sleek) = self.send.recovery.sleek() else { return false };
        let is_own = sleek.answered(now, sent_at, &window, mtu, &mut self.send.flight, &mut common.lost);
        if is_own {
            self.report_losses_to_policy(now, FeedbackKind::Lost, common);
            self.arm_policy(now, common);
            self.wake(common);
        }
        is_own
    }

    /// Sends a delayed acknowledgement before the answer to a probe of loss recovery, which asks for all that is
    /// known. With recovery by time it takes the probe's path, so that it does not arrive behind the answer.
    pub(super) fn tell_held_to_prober(
        &mut self,
        control: &Control,
        path: PathId,
        common: &mut EndpointShared,
    ) {
        let is_timed = self.send.is_timed();
        let asks = is_timed || self.send.recovery.sleek().is_some();
        if asks && matches!(control, Control::Probe { .. }) && self.receive.acks.due().is_some() {
            let (ack, own) = self.receive.acks.take_held(&self.receive.recovery);
            self.send_ack((ack, if is_timed { path } else { own }), common);
        }
    }
}
