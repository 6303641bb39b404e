//! MRC, Multipath Reliable Connection (OCP specification 1.0; arXiv 2605.04333 and 2606.18170), **as understood**
//! from second-hand descriptions: path selection. The window is that of NSCC, the timer that of
//! [`Recovery::Timeouts`](crate::Recovery::Timeouts).
//!
//! A connection has a set of entropy values (EVs), each of which determines a path, spread over the planes of the
//! network. Packets take them in turn. Each EV is in a state:
//!
//! | State | Enters | Leaves |
//! |---|---|---|
//! | good | at the start | |
//! | skip | a mark, or a trim before the last hop | at its turn, skipped; one per packet |
//! | assumed bad | a packet is lost without a trim; another EV replaces it | several probes in a row succeed |
//! | denied | the network reports its link down | the network reports its link up |
//!
//! Unpublished values are parameters here, with our defaults: the number of probes, their interval, and the minimum
//! number of EVs in use. A mark counts as one before the last hop, because hosts do not see where a packet was
//! marked. Not implemented are MRC's higher traffic class for retransmissions, and its timers of single packets.

mod evs;

use alloc::boxed::Box;
use core::ops::Range;

use pathweave_units::{PathId, Rng, Time, TrimmedAt};
use pathweave_wire::Control;

use crate::cc::{CongestionControl, Nscc, NsccConfig, Permit};
use crate::error::{check, within};
use crate::fluid::{AsFluid, Fluid, HasControlModel, Spread};
use crate::{
    Adapt, ConfigError, ControlClass, ControlFeedback, FabricEnv, Feedback, FeedbackKind, Grant, Memo,
    Outgoing, PathView, Policy, PolicyCx, PolicyEnv, SendRequest, Sent,
};
use evs::Evs;

/// Parameters of [`Mrc`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct MrcConfig {
    /// Congestion window (NSCC).
    pub nscc: NsccConfig,
    /// Number of EVs in use for each NIC port. Default 128 (MRC has 128 to 256). The other paths of the queue pair
    /// are backups.
    pub active_evs: u16,
    /// Number of planes of the network, at least the number of NIC ports that lead to the peer. Default 1. The plane
    /// of an EV is its number modulo this.
    pub planes: u16,
    /// Minimum number of EVs in use while paths are up. Default 8 (ours): one for each of eight planes.
    pub floor_evs: u16,
    /// Number of replies to probes in a row that make an EV good again. Default 3 (ours).
    pub good_probes: u8,
    /// Interval between probes of an EV, in idle round-trip times. Default 8 (ours): long enough for a queued probe
    /// to return.
    pub probe_rtts: f64,
}

impl Default for MrcConfig {
    fn default() -> Self {
        MrcConfig {
            nscc: NsccConfig::default(),
            active_evs: 128,
            planes: 1,
            floor_evs: 8,
            good_probes: 3,
            probe_rtts: 8.0,
        }
    }
}

impl AsFluid for MrcConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::Balanced), control: self.nscc.control() }
    }
}

impl Adapt for MrcConfig {
    crate::forwards!({ nscc } base_path, marks, host_delay, adapt_to_host);
    /// Uses one plane per NIC port, each with the configured number of EVs.
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.nscc.adapt_to_fabric(fabric);
        self.planes = self.planes.max(fabric.nic_ports);
        self.active_evs = self.active_evs.saturating_mul(fabric.nic_ports);
    }
}

impl MrcConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.nscc.validate().map_err(|error| error.within("nscc"))?;
        within("active_evs", self.active_evs, 1.., "")?;
        within("planes", self.planes, 1.., "")?;
        let floor = self.floor_evs > 0 && self.floor_evs <= self.active_evs;
        check(floor, "floor_evs", self.floor_evs, "1 to active_evs")?;
        within("good_probes", self.good_probes, 1..=255, "")?;
        within("probe_rtts", self.probe_rtts, 0.1..=1e3, "idle round-trip times")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Mrc {
        Mrc { nscc: Nscc::new(&self.nscc, env), evs: Box::new(Evs::new(self, env.paths, env.base_rtt, rng)) }
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct Mrc {
    nscc: Nscc,
    evs: Box<Evs>,
}

impl Policy for Mrc {
    crate::forwards!({ nscc } on_open, on_close, rate, window);
    crate::ignores!(on_copy_sent, on_timer);
    #[inline]
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        if let Some(path) = self.evs.to_probe(now) {
            return Grant::Control(path);
        }
        match self.nscc.permit(now, want, cx) {
            Permit::Now => Grant::Send(self.evs.next(want.egress)),
            Permit::At(when) => Grant::At(when),
            Permit::Blocked => Grant::Blocked,
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.evs.sent(sent.path);
        Memo::of_halves(self.nscc.on_sent(now, sent, cx), 0)
    }
    fn make_control(&mut self, now: Time, path: PathId, _: Range<u64>, _: &mut PolicyCx<'_>) -> Outgoing {
        self.evs.probed(now, path);
        Outgoing { control: Control::Probe { sent_at: now }, treatment: ControlClass::AsUnmarkedData }
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.nscc.on_feedback(now, feedback, cx);
        match feedback.kind {
            FeedbackKind::Ack { timed: true, marked: true }
            | FeedbackKind::Duplicate { marked: true }
            | FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, .. } => self.evs.congested(feedback.path),
            FeedbackKind::Lost | FeedbackKind::Timeout => self.evs.lost(now, feedback.path),
            _ => {}
        }
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, _: &mut PolicyCx<'_>) {
        if let Control::ProbeReply { sent_at, .. } = feedback.control
            && sent_at <= now
        {
            self.evs.answered(feedback.path, sent_at);
        }
    }
    fn on_paths(&mut self, _: Time, paths: &[PathView], _: &mut PolicyCx<'_>) {
        self.evs.on_paths(paths);
    }
    fn path_beyond_window(&mut self, _: Time, want: &SendRequest, _: &mut PolicyCx<'_>) -> PathId {
        self.evs.next(want.egress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scenario, random_operations};

    #[test]
    fn errors_name_the_field() {
        let usual = MrcConfig::default;
        let wrong = |config: MrcConfig| config.validate().expect_err("must be refused").field;
        assert_eq!(wrong(MrcConfig { active_evs: 0, ..usual() }), "active_evs");
        assert_eq!(wrong(MrcConfig { planes: 0, ..usual() }), "planes");
        assert_eq!(wrong(MrcConfig { floor_evs: 129, ..usual() }), "floor_evs");
        assert_eq!(wrong(MrcConfig { good_probes: 0, ..usual() }), "good_probes");
        assert_eq!(wrong(MrcConfig { probe_rtts: 0.0, ..usual() }), "probe_rtts");
        let nscc = NsccConfig { decrease: 0.0, ..NsccConfig::default() };
        assert_eq!(wrong(MrcConfig { nscc, ..usual() }), "nscc.decrease");
        assert_eq!(usual().validate(), Ok(()));
    }

    #[test]
    fn random_operations_break_no_invariant() {
        let env = Scenario::steady().env;
        for seed in 0..60 {
            let (active_evs, floor_evs) = [(128, 8), (2, 1), (3, 3)][seed as usize % 3];
            let config = MrcConfig { active_evs, floor_evs, planes: 2, ..MrcConfig::default() };
            random_operations(seed, 2_000, &env, |env, rng| config.build(env, rng));
        }
    }
}
