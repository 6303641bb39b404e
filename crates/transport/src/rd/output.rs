//! Sending packets.

use pathweave_policy::{Announce, Grant, Policy, PolicyCx, RetryOrder, Sent, Want};
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, RdData, Segment};

use super::send::Flow;
use super::{RdEvent, RdQp};
use crate::events::Status;
use crate::transmit::{Class, Gate, PayloadRef, Transmit};
use crate::work::Buffer;

/// The packet that is next.
struct Candidate {
    flow: u32,
    msg: u64,
    /// Number of the packet in its message.
    index: u32,
    data: RdData,
    payload: PayloadRef,
}

impl<P: Policy> RdQp<P> {
    /// Whether there are packets to send once a NIC port is free.
    #[inline]
    pub fn has_ready_data(&self) -> bool {
        !self.queues.is_empty()
    }

    /// The next packet to send now, by a NIC port that `gate` says is free. Its payload is named by the work request's
    /// id in place of a buffer.
    pub fn poll_transmit(&mut self, now: Time, gate: Gate) -> Option<Transmit> {
        self.advance(now);
        if self.paced_until > now {
            return None;
        }
        let candidate = self.candidate()?;
        let Candidate { data, payload, .. } = &candidate;
        let mut segment = Segment {
            dst_qp: self.flows[candidate.flow as usize].peer.qp,
            src_qp: self.config.num,
            path: PathId(0),
            body: Body::Rd(*data),
        };
        let wire_bytes = self.config.framing.wire_bytes(&segment);
        let want = Want {
            psn: data.psn,
            payload_bytes: u32::from(data.len),
            wire_bytes,
            msn: candidate.msg as u32,
            retransmit: data.retransmit,
            inflight_packets: 0,
            inflight_bytes: 0,
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        let path = match self.config.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) => path,
            Grant::At(when) => {
                self.paced_until = when;
                return None;
            }
            // Connections have those; what a datagram queue pair waits for is feedback.
            Grant::Probe(_) | Grant::Copy { .. } | Grant::Notice(_) | Grant::Blocked => return None,
        };
        let port = (path.0 % u16::from(self.config.nic_ports)) as u8;
        if !gate.allows(port) {
            return None;
        }
        segment.path = path;
        let sent = Sent {
            path,
            psn: want.psn,
            msn: want.msn,
            payload_bytes: want.payload_bytes,
            wire_bytes,
            retransmit: want.retransmit,
            inflight_packets: 0,
        };
        self.config.policy.on_sent(now, &sent, &mut cx);
        let to = self.flows[candidate.flow as usize].peer.host;
        let payload = Some(*payload);
        self.commit(&candidate);
        // Nobody answers a mark.
        Some(Transmit { to, port, class: Class::Data, ecn_capable: false, wire_bytes, segment, payload })
    }

    /// Which packet is next: a retransmission, or the next one of the message whose turn it is.
    fn candidate(&mut self) -> Option<Candidate> {
        while let Some(&(flow, psn)) = self.queues.retries.front() {
            if self.flows[flow as usize].tx.of_psn(psn).is_some() {
                break;
            }
            // Done since it was asked for.
            self.queues.pop_retry();
        }
        let retry = match self.config.behaviour.retries {
            RetryOrder::First => true,
            RetryOrder::Half => !self.queues.was_retry || self.queues.fresh.is_empty(),
            RetryOrder::Last => self.queues.fresh.is_empty(),
        };
        if retry && let Some(&(flow, psn)) = self.queues.retries.front() {
            let (msg, message) = self.flows[flow as usize].tx.of_psn(psn)?;
            let index = (psn - message.first_psn) as u32;
            return self.packet(flow, msg, index, true);
        }
        while let Some(&(flow, msg)) = self.queues.fresh.front() {
            if let Some(message) = self.flows[flow as usize].tx.message(msg) {
                let index = message.sent;
                return self.packet(flow, msg, index, false);
            }
            // Given up since it was posted.
            self.queues.fresh.pop_front();
        }
        None
    }

    fn packet(&mut self, flow: u32, msg: u64, index: u32, retransmit: bool) -> Option<Candidate> {
        let message = self.flows[flow as usize].tx.message(msg)?;
        let part = message.part(index, self.config.capacity());
        let data = RdData {
            psn: message.first_psn + u64::from(index),
            msg_id: msg as u16,
            multi: part.multi,
            // Below 2^32, as messages end there.
            offset: part.offset as u32,
            len: part.len,
            retransmit,
        };
        let payload = PayloadRef { buffer: Buffer(message.wr_id), offset: part.offset, len: part.len };
        Some(Candidate { flow, msg, index, data, payload })
    }

    /// The packet leaves.
    fn commit(&mut self, candidate: &Candidate) {
        let &Candidate { flow, msg, index, data, .. } = candidate;
        let message = self.flows[flow as usize].tx.message(msg).expect("it has a packet to send");
        self.counters.data_sent += 1;
        self.queues.was_retry = data.retransmit;
        if data.retransmit {
            message.retransmitted += 1;
            self.counters.retransmitted += 1;
            self.queues.pop_retry();
            return;
        }
        message.sent += 1;
        let (first, last) = (index == 0, message.sent == message.packets);
        if last {
            self.queues.fresh.pop_front();
        }
        if first && self.config.behaviour.announce == Announce::FirstPacket {
            self.announce(flow, msg, false);
        }
        if last && !self.repairs() {
            self.finish(flow, data.psn - u64::from(index), Status::Success);
        }
    }

    /// A message of this end is over. False if it is not outstanding.
    pub(super) fn finish(&mut self, flow: u32, first_psn: u64, status: Status) -> bool {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some((_, message)) = tx.finish(first_psn) else { return false };
        self.events.push_back(RdEvent::Completion {
            wr_id: message.wr_id,
            to: *peer,
            status,
            sent_packets: message.sent + message.retransmitted,
            retransmitted: message.retransmitted,
        });
        true
    }
}
