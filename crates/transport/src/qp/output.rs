//! Sending a packet.

use pathweave_policy::{Grant, Policy, PolicyCx, Sent, Want};
use pathweave_units::Time;
use pathweave_wire::{Body, Segment};

use super::{Qp, next_instant};
use crate::common::Common;
use crate::scheduler::Turn;
use crate::timers::TimerKind;
use crate::transmit::{Class, Gate, Transmit};

/// What a queue pair whose turn it is does.
// One is made for each packet and taken apart at once.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Outcome {
    /// Sends this.
    Sent(Transmit),
    /// Waits for this NIC port.
    Port(u8),
    /// Nothing; it has been queued elsewhere or will be woken.
    Nothing,
}

impl<P: Policy> Qp<P> {
    /// It is this queue pair's turn: sends a packet if it has one and the policy grants it.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, gate: Gate, common: &mut Common) -> Outcome {
        self.turn = Turn::Off;
        if !self.connected || self.backing_off {
            return Outcome::Nothing;
        }
        let Some(candidate) = self.send.candidate() else { return Outcome::Nothing };
        let mtu_payload = common.config.mtu_payload;
        let message = self.send.message(&candidate);
        let data = message.packet(candidate.psn, candidate.msn, mtu_payload, candidate.retransmit, now);
        let payload = message.payload(&data);
        let mut segment = Segment {
            dst_qp: self.remote,
            src_qp: self.num,
            path: Default::default(),
            body: Body::Data(data),
        };
        let wire_bytes = common.config.framing.wire_bytes(&segment);
        let want = Want {
            psn: data.psn,
            payload_bytes: u32::from(data.len),
            wire_bytes,
            msn: data.msn,
            retransmit: data.retransmit,
            inflight_packets: self.send.flight.inflight_packets(),
            inflight_bytes: self.send.flight.inflight_bytes(),
        };
        let mut cx = PolicyCx { rng: &mut self.rng };
        let path = match self.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) => path,
            Grant::Blocked => {
                self.arm_policy(now, common);
                return Outcome::Nothing;
            }
            Grant::At(at) => {
                self.turn = Turn::Paced;
                self.paced_until = at.max(next_instant(now));
                common.timers.arm(&mut self.armed, self.num, TimerKind::Pacing, self.paced_until);
                return Outcome::Nothing;
            }
            Grant::Probe(path) => {
                let port = port_of(path.0, common);
                if !gate.allows(port) {
                    return Outcome::Port(port);
                }
                segment.path = path;
                segment.body = Body::Probe { sent_at: now };
                self.counters.probes_sent += 1;
                let wire_bytes = common.config.framing.wire_bytes(&segment);
                self.wake(common);
                return Outcome::Sent(Transmit {
                    to: self.peer,
                    port,
                    class: Class::Data,
                    ecn_capable: false,
                    wire_bytes,
                    segment,
                    payload: None,
                });
            }
        };
        let port = port_of(path.0, common);
        if !gate.allows(port) {
            return Outcome::Port(port);
        }

        let sent = Sent {
            path,
            psn: data.psn,
            msn: data.msn,
            payload_bytes: want.payload_bytes,
            wire_bytes,
            retransmit: data.retransmit,
            inflight_packets: want.inflight_packets + 1,
        };
        let memo = self.policy.on_sent(now, &sent, &mut cx);
        let tx = self.send.flight.sent(data.psn, now, path, wire_bytes, memo);
        self.send.recovery.on_sent(data.psn, tx);
        self.send.committed(&candidate);
        self.counters.data_sent += 1;
        self.counters.payload_bytes_sent += u64::from(data.len);
        if data.retransmit {
            self.counters.retransmitted += 1;
        }
        let deadline = now.saturating_add(self.send.timeout());
        common.timers.arm(&mut self.armed, self.num, TimerKind::Retransmit, deadline);
        self.arm_policy(now, common);
        self.wake(common);
        segment.path = path;
        Outcome::Sent(Transmit {
            to: self.peer,
            port,
            class: Class::Data,
            ecn_capable: true,
            wire_bytes,
            segment,
            payload,
        })
    }
}

/// The NIC port of a path.
#[inline]
pub(crate) fn port_of(path: u16, common: &Common) -> u8 {
    let ports = u16::from(common.config.nic_ports);
    if ports == 1 { 0 } else { (path % ports) as u8 }
}
