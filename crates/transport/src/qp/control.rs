//! Control packets of schemes: a policy creates them and receives those that arrive. The table of [`Control`] defines
//! them; this file depends on no particular one.

use core::ops::Range;

use pathweave_policy::{ControlClass, ControlFeedback, Outgoing, Policy, PolicyCx};
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Control, Measurement, MissingCause, Segment};

use super::Qp;
use crate::common::EndpointShared;
use crate::send::echoes::{Departure, Echo};
use crate::transmit::{Class, Transmit};

impl<P: Policy> Qp<P> {
    /// Sends the control packet that the policy was granted.
    #[cold]
    pub(crate) fn compose(&mut self, now: Time, path: PathId, common: &mut EndpointShared) -> Transmit {
        let in_flight = self.send.flight.una()..self.send.flight.next();
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        let Outgoing { control, treatment } = self.policy.make_control(now, path, in_flight, &mut cx);
        let segment = Segment {
            dst_qp: self.remote,
            src_qp: self.num,
            path,
            pull_target: None,
            body: Body::Control(control),
        };
        let wire_bytes = common.config.framing.wire_bytes(&segment);
        self.order.get_or_insert_default().controls_sent[control.kind()] += 1;
        if let Some(sent_at) = control.echoed_stamp() {
            self.send.flight.also_left(Departure::Question(path), sent_at);
        }
        let (class, ecn_capable) = match treatment {
            ControlClass::AsData => {
                let counts = self.counters.rare();
                counts.notice_packets += 1;
                counts.extra_wire_bytes += u64::from(wire_bytes);
                (Class::Data, true)
            }
            ControlClass::AsUnmarkedData => (Class::Data, false),
            ControlClass::AsAcknowledgement => (Class::Control, false),
        };
        self.arm_policy(now, common);
        self.wake(common);
        let port = common.ports_to(self.peer).port_of(path);
        Transmit { to: self.peer, port, class, ecn_capable, wire_bytes, segment, payload: None }
    }

    /// Returns true if this queue pair has sent the question that the packet answers. Answers of switches refer to
    /// data.
    fn has_asked(&self, control: &Control) -> bool {
        match control.answered_kind() {
            Some(kind) => self.order.as_ref().is_some_and(|counts| counts.controls_sent[kind] > 0),
            None => self.send.flight.next() > 0,
        }
    }

    /// Returns true if the question was answered before, that is, the network has duplicated the question or the
    /// answer.
    fn is_answered_again(&mut self, control: &Control, path: PathId) -> bool {
        let (Some(_), Measurement::Path { sent_at, .. }) = (control.answered_kind(), control.measures())
        else {
            return false;
        };
        self.send.flight.also_echoed(Departure::Question(path), sent_at) == Echo::Again
    }

    /// Processes a control packet. Kept out of the code for data and acknowledgements, which must stay short.
    #[cold]
    pub(crate) fn on_control(
        &mut self,
        now: Time,
        control: &Control,
        path: PathId,
        ce: bool,
        common: &mut EndpointShared,
    ) {
        // An honest sender has nothing in flight beyond the window.
        let horizon = self.receive.recovery.horizon();
        let late =
            control.announces_late().map(|late| *late.start()..horizon.min(late.end().saturating_add(1)));
        if late.as_ref().is_some_and(Range::is_empty) {
            self.counters.rare().malformed += 1;
            return;
        }
        if let Some(answer) = control.answer(now, ce) {
            self.tell_held_to_prober(control, path, common);
            self.control(path, Body::Control(answer), common);
            if let Some(late) = late
                && let Some(reorder) = &mut self.receive.reorder
            {
                if let Some(range) = reorder.on_notice(now, late, ce, &self.receive.recovery) {
                    self.report(range, MissingCause::Late, path, common);
                }
                self.arm_reorder(common);
            }
            return;
        }
        let Some(told) = ControlFeedback::new(now, *control, path).filter(|_| self.has_asked(control)) else {
            self.counters.rare().malformed += 1;
            return;
        };
        if self.answers_probe(now, control, path, common) || self.is_answered_again(control, path) {
            return;
        }
        let inflight_packets = self.send.flight.full_packets(common.mtu_payload(self.num));
        let told = ControlFeedback { inflight_packets, backlogged: self.send.backlogged(), ..told };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_control(now, &told, &mut cx);
        self.arm_policy(now, common);
        self.wake(common);
    }
}
