//! What SLEEK ([`crate::recovery`]) has a queue pair do: what acknowledgements and probes prove is lost, and when a probe leaves.

use pathweave_policy::{FeedbackKind, Policy, PolicyCx};
use pathweave_units::{PathId, Time};
use pathweave_wire::Control;

use super::Qp;
use crate::common::Common;

impl<P: Policy> Qp<P> {
    /// An acknowledgement has been taken in. Whether packets are lost by it.
    #[inline]
    pub(super) fn heard_by_sleek(&mut self, now: Time, path: PathId, common: &mut Common) -> bool {
        if self.send.recovery.sleek().is_none() {
            return false;
        }
        self.sleek_hears(now, path, common)
    }

    fn sleek_hears(&mut self, now: Time, path: PathId, common: &mut Common) -> bool {
        let (waits, mtu) = (self.send.has_new(), common.mtu_payload(self.num));
        let Some(window) = self.policy.window() else { return false };
        if let Some(sleek) = self.send.recovery.sleek() {
            sleek.heard(now, path, waits, &window, mtu, &mut self.send.flight, &mut common.lost);
        }
        self.arm_probe(common);
        !common.lost.is_empty()
    }

    /// The retransmission timer is that of probes, too.
    fn arm_probe(&mut self, common: &mut Common) {
        if let Some((at, _)) = self.send.deadline() {
            common.timers.arm(&mut self.armed, self.num, crate::timers::TimerKind::Retransmit, at);
        }
    }

    /// When a probe is to follow a packet that leaves now.
    #[inline]
    pub(super) fn probe_after_sending(&mut self, now: Time) -> Time {
        if self.send.recovery.sleek().is_none() {
            return Time::MAX;
        }
        let waits = self.send.has_new();
        let Some(window) = self.policy.window() else { return Time::MAX };
        self.send.recovery.sleek().map_or(Time::MAX, |sleek| sleek.left(now, waits, &window))
    }

    /// A probe leaves.
    pub(super) fn probe(&mut self, now: Time, common: &mut Common) {
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

    /// Whether this answers the latest probe of loss recovery; if so it is taken in.
    pub(super) fn answers_own_probe(&mut self, now: Time, control: &Control, common: &mut Common) -> bool {
        let Control::ProbeReply { sent_at, .. } = *control else { return false };
        let mtu = common.mtu_payload(self.num);
        let Some(window) = self.policy.window() else { return false };
        let Some(sleek) = self.send.recovery.sleek() else { return false };
        let is_own = sleek.answered(now, sent_at, &window, mtu, &mut self.send.flight, &mut common.lost);
        if is_own {
            self.tell_lost(now, FeedbackKind::Lost, common);
            self.arm_policy(now, common);
            self.wake(common);
        }
        is_own
    }

    /// A probe of loss recovery asks for what is known: an acknowledgement that is held leaves before the answer. That of recovery
    /// by time takes the same path, so as not to arrive behind it.
    pub(super) fn tell_held_to_prober(&mut self, control: &Control, path: PathId, common: &mut Common) {
        let is_timed = self.send.is_timed();
        let asks = is_timed || self.send.recovery.sleek().is_some();
        if asks && matches!(control, Control::Probe { .. }) && self.receive.acks.due().is_some() {
            let (ack, own) = self.receive.acks.take_held(&self.receive.recovery);
            self.send_ack((ack, if is_timed { path } else { own }), common);
        }
    }
}
