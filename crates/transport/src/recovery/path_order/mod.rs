//! Loss recovery by the order of packets on each path (LAPS, algorithm 3). The outstanding packets of a queue pair are
//! in rings of the endpoint ([`rings`]), which find its losses; its own timer finds none.

pub(crate) mod rings;

use pathweave_policy::{FeedbackKind, PathRto, Policy, RingScope};
use pathweave_units::{Duration, PathId, QpNum, Time};

use super::contract::{Cx, Departed, LossRecovery, Setup, Trigger, Verdict};
use crate::common::EndpointShared;
use crate::send::echoes::Echo;
use crate::send::flight::Flight;
use rings::{Heard, SilenceRule, Suspect, Transmission};

/// Fields of [`Recovery::PathOrder`](pathweave_policy::Recovery::PathOrder).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) scope: RingScope,
    pub(crate) rto: PathRto,
    pub(crate) rto_min: Duration,
    pub(crate) rto_slack: Duration,
}

#[derive(Debug)]
pub(crate) struct Sender {
    /// Index of the group of rings of the queue pair.
    group: u32,
    /// Latest time at which the timer of a path found packets lost.
    timed_out_at: Time,
}

impl Sender {
    /// Counts a timeout of a path's timer for packets of this queue pair. Many paths may fail together, so it counts
    /// at most once per timeout interval. Returns false if the retry limit is exceeded.
    fn count_timeout<P>(cx: &mut Cx<'_, P>) -> bool {
        if cx.now < cx.clock.base.saturating_add(*cx.clock.timeout) {
            return true;
        }
        *cx.clock.base = cx.now;
        cx.clock.count(|timeouts| timeouts)
    }
}

impl LossRecovery for Sender {
    type Config = Config;

    fn open(config: Config, setup: &Setup, common: &mut EndpointShared) -> Self {
        let Config { scope, rto, rto_min, rto_slack } = config;
        let longest = setup.max_timeout.max(rto_min);
        let rule = SilenceRule { rto, min: rto_min, slack: rto_slack, longest };
        let group = common.make_rings().join(scope, setup.peer, rule);
        Sender { group, timed_out_at: Time::MAX }
    }
    fn close(&mut self, common: &mut EndpointShared) {
        let peers = common.shared.peers();
        if let Some(rings) = common.rings_mut() {
            rings.leave(self.group, peers);
        }
    }
    fn on_sent<P: Policy>(&mut self, cx: &mut Cx<'_, P>, sent: Departed) -> Option<Time> {
        if let Some(rings) = cx.common.rings_mut() {
            let of = Transmission { sent_at: cx.now, psn: sent.psn, qp: cx.num };
            rings.sent(self.group, sent.path, of);
            cx.common.arm_rings();
        }
        None
    }
    fn expects(&self, flight: &Flight, psn: u64, sent_at: Time) -> bool {
        flight.is_outstanding(psn, sent_at)
    }
    /// Passes the trigger to the rings. The policy gets a sample of the path if the acknowledgement is the first echo
    /// of its departure but has given no measurement: a switch on the path has rewritten the stamp, or an earlier
    /// acknowledgement has reported the packet, or this one echoes an earlier transmission.
    fn on_trigger<P: Policy>(&mut self, cx: &mut Cx<'_, P>, trigger: Trigger) -> Option<FeedbackKind> {
        let Trigger { psn, stamps, expected, measured, .. } = trigger;
        if stamps.sent_at > cx.now {
            return None;
        }
        let of = Transmission { sent_at: stamps.sent_at, psn, qp: cx.num };
        let heard = Heard { of, rtt: stamps.rtt(cx.now), one_way_ps: stamps.one_way_ps() };
        let echo = if expected || measured {
            Echo::First
        } else {
            cx.flight.echoed(psn, stamps.sent_at, stamps.path)
        };
        let rings = cx.common.rings_mut();
        let echo = rings.map_or(echo, |rings| rings.heard(cx.now, self.group, stamps.path, &heard, echo));
        (!expected && echo == Echo::First).then_some(FeedbackKind::PathSample)
    }
    fn on_path_down(&mut self, path: PathId, common: &mut EndpointShared) {
        if let Some(rings) = common.rings_mut() {
            rings.failed(self.group, path);
        }
    }
    /// Declares the packets suspect, also those of other queue pairs with the same rings.
    fn abandon<P: Policy>(&mut self, cx: &mut Cx<'_, P>, dead: &[PathId]) -> Verdict {
        dead.iter().for_each(|path| self.on_path_down(*path, cx.common));
        Verdict::Wait
    }
    /// Declares the transmission lost. The timer of a path reports its packets one by one at the same time, so that
    /// only the first of them counts a timeout.
    fn on_suspect<P: Policy>(&mut self, cx: &mut Cx<'_, P>, suspect: &Suspect) -> Verdict {
        let Suspect { of, kind } = *suspect;
        let is_counted = kind != FeedbackKind::Timeout || self.timed_out_at == cx.now;
        if !is_counted {
            self.timed_out_at = cx.now;
            if !Self::count_timeout(cx) {
                return Verdict::GiveUp(of.psn);
            }
        }
        cx.flight.lose(of.psn);
        cx.common.lost.push(of.psn);
        if is_counted { Verdict::Lost(kind) } else { Verdict::Timeout(of.psn) }
    }
    fn assert_covered(&self, num: QpNum, flight: &Flight, common: &EndpointShared, _is_armed: bool) {
        let Some(rings) = common.rings() else { return };
        for (psn, slot) in flight.in_flight() {
            let of = Transmission { sent_at: slot.sent_at, psn, qp: num };
            assert!(rings.is_watched(self.group, slot.path, &of), "{of:?} on {:?} is in no ring", slot.path);
        }
    }
}
