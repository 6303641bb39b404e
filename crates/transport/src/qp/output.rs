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
use crate::transmit::{Class, FreePorts, Transmit};

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
    data: Data,
    path: PathId,
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
        let Some((candidate, data, want)) = self.next_packet(now, egress, common) else {
            return Outcome::Nothing;
        };
        if egress.free() == 0 {
            return Outcome::Ports(egress.ports().working());
        }
        if self.has_credit() && !self.may_spend(now, common) {
            return Outcome::Nothing;
        }
        let SendRequest { wire_bytes, inflight_packets, .. } = want;
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
            _ => Outcome::Send(Granted { candidate, data, path, wire_bytes, inflight_packets }),
        }
    }

    /// Returns the packet that would leave next, and the request for the policy.
    #[inline(always)]
    fn next_packet(
        &mut self,
        now: Time,
        egress: Egress,
        common: &EndpointShared,
    ) -> Option<(Candidate, Data, SendRequest)> {
        let candidate = self.send.candidate()?;
        let mtu_payload = common.mtu_payload(self.num);
        let message = self.send.message(&candidate);
        let data = message.packet(candidate.psn, candidate.msn, mtu_payload, candidate.retransmit, now);
        let want = SendRequest {
            psn: data.psn,
            payload_bytes: u32::from(data.len),
            wire_bytes: common.sizes.of_data(common.config.framing, &data) + self.pull_target_bytes(common),
            msn: data.msn,
            retransmit: data.retransmit,
            inflight_packets: self.send.flight.full_packets(mtu_payload),
            inflight_bytes: self.send.flight.inflight_bytes(),
            egress,
        };
        Some((candidate, data, want))
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

    /// Commits a granted packet, which leaves now.
    #[inline(always)]
    pub(crate) fn commit(&mut self, now: Time, granted: &Granted, common: &mut EndpointShared) -> Transmit {
        let &Granted { candidate, mut data, path, wire_bytes, inflight_packets } = granted;
        let sent = Sent {
            path,
            psn: data.psn,
            msn: data.msn,
            payload_bytes: u32::from(data.len),
            wire_bytes,
            retransmit: data.retransmit,
            inflight_packets: inflight_packets + 1,
        };
        let payload = self.send.message(&candidate).payload(&data);
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        let memo = self.policy.on_sent(now, &sent, &mut cx);
        let tx = self.send.flight.sent(data.psn, now, path, wire_bytes, memo);
        self.send.committed(&candidate);
        let pull_target = if self.has_credit() { self.spend(now, wire_bytes, path, common) } else { None };
        if self.answers.are_asked_for() && !data.last {
            data.ack_request = data.retransmit || !self.could_send_more(now, common);
        }
        self.counters.sent_packets += 1;
        self.counters.payload_bytes_sent += u64::from(data.len);
        if data.retransmit {
            self.note_retransmitted(now, &data, path, common);
        }
        let (recovery, cx) = self.recovery(now, common);
        if let Some(at) = recovery.on_sent(cx, Departed { psn: data.psn, tx, path }) {
            common.timers.arm(&mut self.armed, self.num, TimerKind::Retransmit, at);
        }
        self.arm_policy(now, common);
        self.wake(common);
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
                pull_target,
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
        let Some((_, _, want)) = self.next_packet(now, self.all_free(common), common) else { return false };
        if self.has_credit() && !self.can_spend(common) {
            return false;
        }
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.poll_send(now, &want, &mut cx) != Grant::Blocked
    }

    #[cold]
    fn note_retransmitted(&mut self, now: Time, data: &Data, path: PathId, common: &mut EndpointShared) {
        self.counters.rare().retransmitted_packets += 1;
        if common.reports_losses {
            let packet = SentPacket { qp: self.num, psn: data.psn, msn: Some(data.msn), path: Some(path) };
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
}
