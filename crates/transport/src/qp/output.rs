//! Sending a packet.

use pathweave_policy::{Egress, Grant, Policy, PolicyCx, SendRequest, Sent};
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Data, Segment};

use super::{Health, Qp, next_instant};
use crate::common::EndpointShared;
use crate::events::{Event, SentPacket};
use crate::recovery::contract::Departed;
use crate::scheduler::SchedState;
use crate::send::Candidate;
use crate::send::echoes::Departure;
use crate::timers::TimerKind;
use crate::transmit::{Class, FreePorts, PayloadRef, Transmit};

/// Action of a queue pair whose turn it is.
pub(crate) enum Outcome {
    /// Sends this packet.
    Send(Granted),
    /// Sends a control packet of its policy on this path.
    Control(PathId),
    /// Sends a copy of a packet on this path.
    Copy(u64, PathId),
    /// Waits for one of these NIC ports, a bit set.
    Ports(u64),
    /// Does nothing: it has been queued elsewhere or will be woken.
    Nothing,
}

/// A packet that may leave now.
pub(crate) struct Granted {
    candidate: Candidate,
    path: PathId,
    payload_bytes: u32,
    wire_bytes: u32,
    inflight_packets: u32,
}

impl<P: Policy> Qp<P> {
    /// Decides the action of this queue pair at its turn: if it has a packet, the policy may grant it.
    #[inline(always)]
    pub(crate) fn grant(&mut self, now: Time, gate: FreePorts, common: &mut EndpointShared) -> Outcome {
        self.turn = SchedState::Off;
        if !self.connected || self.health == Health::BackingOff {
            return Outcome::Nothing;
        }
        let egress = Egress::new(common.ports_to(self.peer), gate.data_ports);
        let Some((candidate, want)) = self.next_packet(egress, common) else {
            return Outcome::Nothing;
        };
        if egress.free() == 0 {
            return Outcome::Ports(egress.ports().working());
        }
        if self.has_credit() && !self.may_spend(now, common) {
            return Outcome::Nothing;
        }
        let SendRequest { payload_bytes, wire_bytes, inflight_packets, .. } = want;
        let insists = want.retransmit && self.send.recovery.exceeds_window();
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        let grant = if insists {
            Grant::Send(self.policy.path_beyond_window(now, &want, &mut cx))
        } else {
            self.policy.poll_send(now, &want, &mut cx)
        };
        let (Grant::Send(path) | Grant::Control(path) | Grant::Copy { path, .. }) = grant else {
            self.wait(now, grant, common);
            return Outcome::Nothing;
        };
        if !egress.is_free(path) {
            return Outcome::Ports(1 << egress.ports().port_of(path));
        }
        match grant {
            Grant::Control(_) => Outcome::Control(path),
            Grant::Copy { psn, .. } => Outcome::Copy(psn, path),
            _ => Outcome::Send(Granted { candidate, path, payload_bytes, wire_bytes, inflight_packets }),
        }
    }

    /// Returns the packet that would leave next, and the request for the policy. The packet itself is built when it
    /// leaves.
    #[inline(always)]
    fn next_packet(&mut self, egress: Egress, common: &EndpointShared) -> Option<(Candidate, SendRequest)> {
        let candidate = self.send.candidate()?;
        let Candidate { psn, msn, retransmit, .. } = candidate;
        let mtu_payload = common.mtu_payload(self.num);
        let message = self.send.message(&candidate);
        let wire_bytes = common.sizes.of_packet(common.config.framing, message, psn, mtu_payload);
        let want = SendRequest {
            psn,
            payload_bytes: u32::from(message.payload_bytes(psn, mtu_payload)),
            wire_bytes: wire_bytes + self.pull_target_bytes(common),
            msn,
            retransmit,
            inflight_packets: self.send.flight.full_packets(mtu_payload),
            inflight_bytes: self.send.flight.inflight_bytes(),
            egress,
        };
        Some((candidate, want))
    }

    /// Egress with all NIC ports that lead to the peer and are up, as if they were free.
    #[inline(always)]
    pub(super) fn all_free(&self, common: &EndpointShared) -> Egress {
        Egress::new(common.ports_to(self.peer), u64::MAX)
    }

    /// Applies a grant for a later time, or the lack of one.
    #[cold]
    fn wait(&mut self, now: Time, grant: Grant, common: &mut EndpointShared) {
        if let Grant::At(at) = grant {
            self.turn = SchedState::Paced;
            self.paced_until = at.max(next_instant(now));
            common.timers.arm(&mut self.armed, self.num, TimerKind::Pacing, self.paced_until);
        } else {
            self.arm_policy(now, common);
        }
    }

    /// Commits a granted packet, which leaves now: passes it to `send`, so that it is built in its final place.
    #[inline(always)]
    pub(crate) fn commit(
        &mut self,
        now: Time,
        granted: &Granted,
        common: &mut EndpointShared,
        send: impl FnOnce(Transmit),
    ) {
        let &Granted { candidate, path, payload_bytes, wire_bytes, inflight_packets } = granted;
        let Candidate { psn, msn, retransmit, .. } = candidate;
        let is_last = self.send.message(&candidate).is_last(psn);
        let sent = Sent {
            path,
            psn,
            msn,
            payload_bytes,
            wire_bytes,
            retransmit,
            inflight_packets: inflight_packets + 1,
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        let memo = self.policy.on_sent(now, &sent, &mut cx);
        let tx = self.send.flight.sent(psn, now, path, wire_bytes, memo);
        let pull_target = if self.has_credit() { self.spend(now, wire_bytes, path, common) } else { None };
        let ack_request =
            self.answers.are_asked_for() && !is_last && (retransmit || !self.could_send_more(now, common));
        self.counters.sent_packets += 1;
        self.counters.payload_bytes_sent += u64::from(payload_bytes);
        if retransmit {
            self.note_retransmitted(now, &sent, common);
        }
        let (recovery, cx) = self.recovery(now, common);
        if let Some(at) = recovery.on_sent(cx, Departed { psn, tx, path }) {
            common.timers.arm(&mut self.armed, self.num, TimerKind::Retransmit, at);
        }
        self.arm_policy(now, common);
        self.wake(common);
        // The packet is built last, where nothing has to keep it.
        let message = self.send.message(&candidate);
        let mut data = message.packet(psn, msn, common.mtu_payload(self.num), retransmit, now);
        data.ack_request = ack_request;
        let payload = message.payload(&data);
        let mut packet = self.leaves_by(path, wire_bytes, data, payload, common);
        packet.segment.pull_target = pull_target;
        self.send.committed(&candidate);
        send(packet);
    }

    /// Returns a data packet as it leaves on this path.
    #[inline(always)]
    fn leaves_by(
        &self,
        path: PathId,
        wire_bytes: u32,
        data: Data,
        payload: Option<PayloadRef>,
        common: &EndpointShared,
    ) -> Transmit {
        Transmit {
            to: self.peer,
            port: common.ports_to(self.peer).port_of(path),
            class: Class::Data,
            ecn_capable: true,
            wire_bytes,
            segment: Segment {
                dst_qp: self.remote,
                src_qp: self.num,
                path,
                pull_target: None,
                body: Body::Data(data),
            },
            payload,
        }
    }

    /// Bytes of the pull target that data packets of this queue pair carry.
    #[inline(always)]
    pub(super) fn pull_target_bytes(&self, common: &EndpointShared) -> u32 {
        if self.has_credit() { common.config.framing.pull_target_bytes() } else { 0 }
    }

    /// Returns true if another packet could leave, now or later, before anything arrives from the peer.
    fn could_send_more(&mut self, now: Time, common: &mut EndpointShared) -> bool {
        let Some((_, want)) = self.next_packet(self.all_free(common), common) else { return false };
        if self.has_credit() && !self.can_spend(common) {
            return false;
        }
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.poll_send(now, &want, &mut cx) != Grant::Blocked
    }

    #[cold]
    fn note_retransmitted(&mut self, now: Time, sent: &Sent, common: &mut EndpointShared) {
        self.counters.rare().retransmitted_packets += 1;
        if common.reports_losses {
            let packet =
                SentPacket { qp: self.num, psn: sent.psn, msn: Some(sent.msn), path: Some(sent.path) };
            common.events.push_back(Event::Retransmitted { packet, at: now });
        }
    }

    /// Sends a copy of a packet. The packet itself stays in flight; whichever arrives first counts.
    #[cold]
    pub(crate) fn copy(
        &mut self,
        now: Time,
        psn: u64,
        path: PathId,
        common: &mut EndpointShared,
    ) -> Transmit {
        let (message, msn) = self.send.message_of(psn);
        let data = message.packet(psn, msn, common.mtu_payload(self.num), true, now);
        let payload = message.payload(&data);
        let wire_bytes = common.sizes.of_data(common.config.framing, &data);
        let counts = self.counters.rare();
        counts.copied_packets += 1;
        counts.extra_wire_bytes += u64::from(wire_bytes);
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_copy_sent(now, psn, path, wire_bytes, &mut cx);
        self.send.flight.also_left(Departure::Packet(psn), now);
        self.arm_policy(now, common);
        self.wake(common);
        self.leaves_by(path, wire_bytes, data, payload, common)
    }
}
