//! Sending packets.

use pathweave_policy::{Announce, Egress, Grant, Policy, PolicyCx, SendRequest, Sent};
use pathweave_units::{HostId, PathId, Time};
use pathweave_wire::{Body, RdData, Segment};

use super::config::PeerId;
use super::queues::Next;
use super::send::{Flow, TxFlow};
use super::{RdCounters, RdEvent, RdPlacement, RdQp, SideMessage};
use crate::contract::Transport;
use crate::events::Status;
use crate::transmit::{Class, FreePorts, PayloadRef, Transmit};
use crate::work::Buffer;

/// Next packet to send.
struct Candidate {
    next: Next,
    flow: u32,
    msg: u64,
    /// Index of the packet in its message.
    index: u32,
    data: RdData,
    payload: PayloadRef,
}

/// Request to the policy for a packet. The bytes in flight are unknown.
fn want_of(data: &RdData, msg: u64, wire_bytes: u32, egress: Egress) -> SendRequest {
    SendRequest {
        psn: data.psn,
        payload_bytes: u32::from(data.len),
        wire_bytes,
        msn: msg as u32,
        retransmit: data.retransmit,
        inflight_packets: 0,
        inflight_bytes: 0,
        egress,
    }
}

impl TxFlow {
    /// Returns the message and the index of its next packet, unless it is done, given up, or must wait.
    fn found(&mut self, next: Next) -> Option<(u64, u32)> {
        let (msg, message) = match next {
            Next::Retry { psn, .. } => self.of_psn(psn)?,
            Next::Fresh { msg, .. } => (msg, self.message(msg)?),
        };
        let (index, left) = match next {
            Next::Retry { psn, .. } => ((psn - message.first_psn) as u32, message.sent),
            Next::Fresh { .. } => (message.sent, message.packets),
        };
        // A packet that will be sent again in order need not be retransmitted as well.
        let is_due = index < left;
        if self.may_send(msg) {
            return is_due.then_some((msg, index));
        }
        if let Next::Fresh { .. } = next {
            self.message(msg)?.queued = false;
        }
        None
    }
}

impl<P: Policy> Transport for RdQp<P> {
    type Event = RdEvent;
    type Placement = RdPlacement;
    type Counters = RdCounters;

    #[inline]
    fn on_packet(&mut self, now: Time, from: HostId, segment: &Segment, ce: bool) -> Option<RdPlacement> {
        let offer = self.judge(now, from, segment, ce)?;
        Some(self.take(now, offer))
    }

    fn on_side(&mut self, now: Time, from: HostId, message: &SideMessage) {
        self.hear(now, from, message);
    }

    /// Scans, if that is due.
    fn on_timer(&mut self, now: Time) {
        self.advance(now);
        if now >= self.next_scan {
            self.scan(now);
        }
    }

    #[inline]
    fn poll_timer(&self) -> Option<Time> {
        // Work that could be done now waits for a NIC port, not for a time.
        let later = |at: Time| if at > self.now { at } else { Time::MAX };
        let pacing = later(self.paced_until).min(later(self.queues.opens_at()));
        Some(self.next_scan.min(pacing)).filter(|&at| at < Time::MAX)
    }

    #[inline]
    fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    #[inline]
    fn poll_event(&mut self) -> Option<RdEvent> {
        self.events.pop_front()
    }

    #[inline]
    fn poll_side(&mut self) -> Option<(HostId, SideMessage)> {
        self.side.pop_front()
    }

    #[inline]
    fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Sends congestion notifications, probes and answers to probes.
    fn send_control(&mut self, send: impl FnOnce(Transmit)) -> bool {
        let Some(&(to, segment)) = self.control.first() else { return false };
        self.control.drop_first();
        send(Transmit {
            to,
            port: self.ports.to(to).port_of(segment.path),
            class: Class::Control,
            ecn_capable: false,
            wire_bytes: self.config.framing.wire_bytes(&segment),
            segment,
            payload: None,
        });
        true
    }

    #[inline]
    fn has_ready_data(&self) -> bool {
        self.queues.is_ready(self.now)
    }

    /// The payload names the work request's id in place of a buffer.
    fn send_data(&mut self, now: Time, gate: FreePorts, send: impl FnOnce(Transmit)) -> bool {
        self.advance(now);
        self.next_data(now, gate).is_some_and(|packet| {
            send(packet);
            true
        })
    }

    /// Flows with missing packets count one each.
    fn items_in_progress(&self) -> u64 {
        let flows = self.flows.iter();
        flows.map(|flow| flow.tx.unfinished().count() as u64 + u64::from(flow.rx.is_open())).sum()
    }

    fn counters(&self) -> RdCounters {
        self.counters
    }
}

impl<P: Policy> RdQp<P> {
    /// Appends a control packet.
    pub(super) fn queue_control(&mut self, to: PeerId, path: PathId, body: Body) {
        let segment = Segment { dst_qp: to.qp, src_qp: self.config.num, path, pull_target: None, body };
        self.control.push(to.host, segment);
    }

    fn next_data(&mut self, now: Time, gate: FreePorts) -> Option<Transmit> {
        if self.paced_until > now {
            return None;
        }
        let candidate = self.candidate(now)?;
        let Candidate { data, payload, .. } = &candidate;
        let mut segment = Segment {
            dst_qp: self.flows[candidate.flow as usize].peer.qp,
            src_qp: self.config.num,
            path: PathId(0),
            pull_target: None,
            body: Body::Rd(*data),
        };
        let wire_bytes = self.config.framing.wire_bytes(&segment);
        let egress =
            Egress::new(self.ports.to(self.flows[candidate.flow as usize].peer.host), gate.data_ports);
        if egress.free() == 0 {
            return None;
        }
        let want = want_of(data, candidate.msg, wire_bytes, egress);
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        let path = match self.config.policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) => path,
            Grant::At(when) => {
                self.paced_until = when;
                return None;
            }
            // Only connections use the first two. A datagram queue pair that is blocked waits for feedback.
            Grant::Control(_) | Grant::Copy { .. } | Grant::Blocked => return None,
        };
        if !egress.is_free(path) {
            return None;
        }
        let port = egress.ports().port_of(path);
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
        let Flow { peer, pace, .. } = &mut self.flows[candidate.flow as usize];
        if let Some(pace) = pace {
            pace.on_sent(now, &sent, &mut cx);
        }
        // Without rate control, nothing reacts to a mark.
        let ecn_capable = pace.is_some();
        let to = peer.host;
        let payload = Some(*payload);
        self.commit(&candidate);
        Some(Transmit { to, port, class: Class::Data, ecn_capable, wire_bytes, segment, payload })
    }

    /// Returns the next packet of those that may leave now.
    fn candidate(&mut self, now: Time) -> Option<Candidate> {
        loop {
            let next = self.queues.next(now, self.config.behaviour.retries)?;
            let Some((msg, index)) = self.flows[next.flow() as usize].tx.found(next) else {
                // Since it was queued, the message was completed or given up, or must wait.
                self.queues.take(next);
                continue;
            };
            let candidate = self.packet(next, msg, index)?;
            let Flow { peer, pace: Some(pace), .. } = &mut self.flows[next.flow() as usize] else {
                return Some(candidate);
            };
            let egress = Egress::new(self.ports.to(peer.host), u64::MAX);
            let want = want_of(&candidate.data, msg, 0, egress);
            let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
            match pace.opens_at(now, &want, &mut cx) {
                None => return Some(candidate),
                Some(until) => self.queues.wait(until),
            }
        }
    }

    fn packet(&mut self, next: Next, msg: u64, index: u32) -> Option<Candidate> {
        let flow = next.flow();
        let message = self.flows[flow as usize].tx.message(msg)?;
        let part = message.part(index, self.config.capacity());
        let data = RdData {
            psn: message.first_psn + u64::from(index),
            msg_id: msg as u16,
            multi: part.multi,
            // Fits 32 bits, because messages end at 2^32 bytes.
            offset: part.offset as u32,
            len: part.len,
            retransmit: matches!(next, Next::Retry { .. }) || index < message.reached,
        };
        let payload = PayloadRef { buffer: Buffer(message.wr_id), offset: part.offset, len: part.len };
        Some(Candidate { next, flow, msg, index, data, payload })
    }

    /// Records that the packet leaves.
    fn commit(&mut self, candidate: &Candidate) {
        let &Candidate { next, flow, msg, index, data, .. } = candidate;
        let message = self.flows[flow as usize].tx.message(msg).expect("it has a packet to send");
        self.counters.data_sent += 1;
        if data.retransmit {
            message.retransmitted += 1;
            self.counters.retransmitted += 1;
        }
        if matches!(next, Next::Retry { .. }) {
            return self.queues.left(next, true);
        }
        message.sent += 1;
        message.reached = message.reached.max(message.sent);
        let (first, last) = (index == 0 && !message.announced, message.sent == message.packets);
        message.queued = !last;
        self.queues.left(next, last);
        if first && self.config.behaviour.announce == Announce::FirstPacket {
            self.announce(flow, msg, false);
        }
        if last {
            self.say_sent(flow, msg);
        }
        if last && !self.repairs() {
            self.finish(flow, data.psn - u64::from(index), Status::Success);
        }
    }

    /// Completes a message of this end. Returns false if it is not outstanding.
    pub(super) fn finish(&mut self, flow: u32, first_psn: u64, status: Status) -> bool {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some((_, message)) = tx.finish(first_psn) else { return false };
        self.events.push_back(RdEvent::Completion {
            wr_id: message.wr_id,
            to: *peer,
            status,
            sent_packets: message.sent_packets(),
            retransmitted: message.retransmitted,
        });
        true
    }
}
