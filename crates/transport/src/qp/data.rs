//! Processing of data packets that arrive.

use pathweave_policy::{MOST_WINDOW_PACKETS, Policy};
use pathweave_units::{PathId, Time, TrimmedAt};
use pathweave_wire::{Ack, Body, Data, NackReason, Operation};

use super::{Health, Qp};
use crate::common::EndpointShared;
use crate::config::ReceiveMode;
use crate::events::{Completion, Event, Opcode, Status};
use crate::memory::AccessIdentity;
use crate::receive::acks::{New, Trigger};
use crate::receive::content::{Objection, examine};
use crate::recovery::{Arrival, TrimmedHeader};
use crate::send::message::{Message, read_len};
use crate::timers::TimerKind;
use crate::transmit::Placement;

/// Urgency of an acknowledgement: it may wait for others or not.
#[derive(Clone, Copy)]
enum AckUrgency {
    AtOnce,
    /// Decided by [`ReceiveStream::cannot_wait`](crate::receive::ReceiveStream::cannot_wait). `expected` is its value
    /// before the packet.
    AsItTells {
        expected: u64,
    },
}

impl<P: Policy> Qp<P> {
    /// Processes a data packet of the peer.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Time,
        data: &Data,
        path: PathId,
        ce: bool,
        common: &mut EndpointShared,
    ) -> Option<Placement> {
        self.counters.data_received += 1;
        let expected = self.receive.recovery.expected();
        if !self.is_near(now, data) {
            return None;
        }
        let arrival = self.receive.recovery.judge(now, data.psn);
        if !self.screen(now, data, path, (arrival, ce), common) {
            return None;
        }
        let mtu_payload = common.mtu_payload(self.num);
        if !self.receive.fits(data, mtu_payload) {
            self.reject(data, path, Objection::Malformed, common);
            return None;
        }
        let placement =
            match examine(data, mtu_payload, &self.receive, &self.send, self.asker(), &mut common.memory) {
                Ok(placement) => placement,
                Err(objection) => {
                    self.reject(data, path, objection, common);
                    return None;
                }
            };

        self.receive.recovery.accept(data.psn);
        self.counters.payload_bytes_received += u64::from(data.len);
        if data.psn >= self.receive.highest {
            self.receive.highest = data.psn + 1;
        } else if !data.retransmit {
            self.counters.note_out_of_order(self.receive.highest - 1 - data.psn);
        }
        if data.op == Operation::ReadRequest {
            self.receive.reads_in += 1;
        }
        let in_order = data.psn == expected;
        if in_order {
            self.receive.took_in_order(data);
        } else {
            self.receive.took_ahead(data, mtu_payload);
        }
        self.acknowledge(now, data, path, ce, AckUrgency::AsItTells { expected }, common);
        if let Some(header) = self.receive.recovery.next_header(now, data.sent_at) {
            self.nack_of_header(&header, common);
        }
        if in_order {
            if data.last {
                self.deliver(data, common);
            }
            if self.receive.recovery.expected() > expected + 1 {
                self.gap_closed(common);
                while self.health != Health::Failed
                    && let Some(end) = self.receive.passed_end()
                {
                    self.deliver(&end, common);
                }
            }
            self.wake(common);
        } else if self.heeds_gaps() {
            self.arrived_ahead(now, data.psn, path, common);
        }
        placement
    }

    /// Processes the header of a data packet whose payload a switch has trimmed.
    pub(crate) fn on_trimmed(
        &mut self,
        now: Time,
        data: &Data,
        path: PathId,
        ce: bool,
        at: TrimmedAt,
        common: &mut EndpointShared,
    ) {
        self.counters.rare().trimmed_received += 1;
        if !self.is_near(now, data) {
            return;
        }
        let header = TrimmedHeader { psn: data.psn, path, at, marked: ce, sent_at: data.sent_at };
        let arrival = self.receive.recovery.judge_header(&header);
        if self.screen(now, data, path, (arrival, ce), common) {
            self.receive.recovery.misses(now, data.psn);
            self.nack_of_header(&header, common);
        }
    }

    fn nack_of_header(&mut self, header: &TrimmedHeader, common: &mut EndpointShared) {
        let TrimmedHeader { psn, path, at, marked, .. } = *header;
        self.nack_of(psn, path, NackReason::Trimmed(at), marked, common);
    }

    /// Returns true if the PSN is one that an honest sender may send. Records that the peer is alive.
    #[inline(always)]
    fn is_near(&mut self, now: Time, data: &Data) -> bool {
        if data.psn > self.receive.recovery.expected() + u64::from(MOST_WINDOW_PACKETS) * 2 {
            self.counters.rare().malformed += 1;
            return false;
        }
        if self.send.reads_out() > 0 {
            // Even a refused packet shows that the peer is alive, and the READ response may follow.
            self.send.last_heard = now;
        }
        true
    }

    /// Returns true if loss recovery would accept the packet, whole or trimmed. Otherwise it is answered, unless that has to
    /// wait or has been done.
    #[inline(always)]
    fn screen(
        &mut self,
        now: Time,
        data: &Data,
        path: PathId,
        (arrival, ce): (Arrival, bool),
        common: &mut EndpointShared,
    ) -> bool {
        if ce {
            self.counters.marked_received += 1;
            // A receiver that reports gaps expects copies, whose marks must not reduce the rate.
            if arrival != Arrival::Duplicate || self.receive.reorder.is_none() {
                self.notify_congestion(now, path, common);
            }
        }
        match arrival {
            Arrival::InOrder | Arrival::Ahead => true,
            Arrival::Duplicate => {
                self.counters.rare().duplicates += 1;
                self.acknowledge_again(now, data, path, ce, common);
                false
            }
            Arrival::Refused { reason, tell } => {
                match reason {
                    NackReason::Sequence => self.counters.rare().sequence_drops += 1,
                    _ => self.counters.rare().beyond_window_drops += 1,
                }
                if tell {
                    self.nack(data.psn, path, reason, common);
                    if self.receive.cnp.notifies_of_gaps() {
                        self.notify_congestion(now, path, common);
                    }
                }
                false
            }
        }
    }

    /// Acknowledges a packet that has arrived before. The first acknowledgement may have been lost.
    #[cold]
    fn acknowledge_again(
        &mut self,
        now: Time,
        data: &Data,
        path: PathId,
        ce: bool,
        common: &mut EndpointShared,
    ) {
        self.acknowledge(now, data, path, ce, AckUrgency::AtOnce, common);
    }

    /// Sends or delays an acknowledgement.
    #[inline(always)]
    fn acknowledge(
        &mut self,
        now: Time,
        data: &Data,
        path: PathId,
        ce: bool,
        haste: AckUrgency,
        common: &mut EndpointShared,
    ) {
        let trigger = Trigger { psn: data.psn, path, sent_at: data.sent_at, received_at: now };
        if !self.receive.acks.can_tell(data.psn, &self.receive.recovery) {
            let ack = self.receive.acks.take_held(&self.receive.recovery);
            self.send_ack(ack, common);
        }
        let enough = self.receive.acks.note(ce);
        let at_once = enough
            || match haste {
                AckUrgency::AtOnce => true,
                AckUrgency::AsItTells { .. } if self.receive.acks.counts_bytes() => {
                    let new = New {
                        wire_bytes: common.sizes.of_data(common.config.framing, data)
                            + self.pull_target_bytes(common),
                        marked: ce,
                        asks: data.ack_request || data.last || data.retransmit,
                        has_gap: self.receive.recovery.has_gap(),
                    };
                    self.receive.acks.note_new(new)
                }
                AckUrgency::AsItTells { expected } => data.last || self.receive.cannot_wait(data, expected),
            };
        if at_once {
            let ack = self.receive.acks.take(trigger, &self.receive.recovery);
            self.send_ack(ack, common);
        } else {
            let due = self.receive.acks.hold(trigger);
            common.timers.arm(&mut self.armed, self.num, TimerKind::DelayedAck, due);
        }
    }

    #[inline]
    pub(super) fn send_ack(&mut self, (ack, path): (Ack, PathId), common: &mut EndpointShared) {
        self.counters.acks_sent += 1;
        self.control(path, Body::Ack(ack), common);
    }

    /// Sends a CNP as DCQCN's notification point: at most one per interval.
    pub(super) fn notify_congestion(&mut self, now: Time, path: PathId, common: &mut EndpointShared) {
        let Some(interval) = self.receive.cnp.interval() else { return };
        if now >= self.receive.next_cnp {
            self.receive.next_cnp = now.saturating_add(interval);
            self.counters.rare().cnps_sent += 1;
            self.control(path, Body::Cnp, common);
        }
    }

    /// Handles a packet that loss recovery would accept but that is not acceptable. A permanent error fails the queue
    /// pair, but only once everything before the packet has arrived, so that earlier messages complete. Until then
    /// the packet counts as lost.
    #[cold]
    fn reject(&mut self, data: &Data, path: PathId, objection: Objection, common: &mut EndpointShared) {
        let (reason, status) = match objection {
            Objection::Malformed => {
                self.counters.rare().malformed += 1;
                return;
            }
            Objection::NotReady => {
                self.counters.rare().rnr_drops += 1;
                self.nack(data.psn, path, NackReason::ReceiverNotReady, common);
                return;
            }
            Objection::Access => (NackReason::RemoteAccess, Status::LocalOperation),
            Objection::Length => (NackReason::InvalidRequest, Status::LocalLength),
        };
        let guesses = objection == Objection::Access && self.receive.promise().refused.note(data.rkey);
        if guesses || data.psn == self.receive.recovery.expected() {
            self.nack(data.psn, path, reason, common);
            self.fail(status, None, common);
        }
    }

    /// Delivers a message. All packets of it and of those before it have arrived; `end` is its last packet.
    #[inline]
    fn deliver(&mut self, end: &Data, common: &mut EndpointShared) {
        if self.health == Health::Failed {
            return;
        }
        let bytes = match end.op {
            Operation::ReadRequest => 0,
            _ => u64::from(end.offset) + u64::from(end.len),
        };
        let sound = end.msn == self.receive.next_msn
            && match end.op {
                Operation::Send => self.consume_receive(end, Opcode::Recv, bytes, None, common),
                Operation::SendImm => self.consume_receive(end, Opcode::Recv, bytes, Some(end.imm), common),
                Operation::Write => true,
                Operation::WriteImm => {
                    self.consume_receive(end, Opcode::RecvWriteImm, bytes, Some(end.imm), common)
                }
                Operation::ReadRequest => self.answer(end, common),
                Operation::ReadResponse => self.take_answer(end, bytes, common),
            };
        if !sound {
            // Each packet was valid, but the message as a whole is not.
            self.counters.rare().malformed += 1;
            self.nack(end.psn, PathId(0), NackReason::InvalidRequest, common);
            self.fail(Status::LocalOperation, None, common);
            return;
        }
        common.events.push_back(Event::Delivered { qp: self.num, msn: end.msn, op: end.op, bytes });
        if !self.receive.next_message(end) {
            // Packets of the next message have arrived that do not match it.
            self.counters.rare().malformed += 1;
            self.nack(end.psn.wrapping_add(1), PathId(0), NackReason::InvalidRequest, common);
            self.fail(Status::LocalOperation, None, common);
        }
    }

    #[inline]
    fn consume_receive(
        &mut self,
        end: &Data,
        opcode: Opcode,
        bytes: u64,
        imm: Option<u32>,
        common: &mut EndpointShared,
    ) -> bool {
        if self.receive.mode == ReceiveMode::Discard {
            return true;
        }
        if end.receive_index != self.receive.receives_done {
            return false;
        }
        let Some(request) = self.receive.promised().and_then(|promised| promised.receives.pop_front()) else {
            return false;
        };
        self.receive.receives_done = self.receive.receives_done.wrapping_add(1);
        common.events.push_back(Event::Completion(Completion {
            wr_id: request.wr_id,
            qp: self.num,
            status: Status::Success,
            opcode,
            byte_len: bytes,
            imm,
        }));
        true
    }

    /// Identity under which the peer accesses memory.
    #[inline]
    fn asker(&self) -> AccessIdentity {
        AccessIdentity::new(self.receive.domain, self.num)
    }

    /// Adds the response to a READ request to this end's stream, when the request is next in order.
    fn answer(&mut self, request: &Data, common: &mut EndpointShared) -> bool {
        let Some(len) = read_len(request) else { return false };
        // The region was checked when the request arrived, but may have been closed while it waited for earlier
        // packets.
        let Some((buffer, offset)) =
            common.memory.check_read(self.asker(), request.rkey, request.remote_addr, len)
        else {
            return false;
        };
        common.memory.retain(request.rkey);
        let response = Message::read_response(request, len, buffer, offset);
        let end_psn = self.send.push(response, common.mtu_payload(self.num));
        self.receive.promise().answers.push_back((end_psn, request.rkey));
        self.wake(common);
        true
    }

    /// Completes a READ of this end whose response is complete.
    fn take_answer(&mut self, end: &Data, bytes: u64, common: &mut EndpointShared) -> bool {
        match self.send.read(end.remote_addr) {
            Some(read) if read.len == bytes => {}
            _ => return false,
        }
        self.send.answered(end.remote_addr);
        self.complete_sends(common);
        true
    }

    /// Releases the memory of READ responses that have been acknowledged.
    pub(super) fn retire_answers(&mut self, common: &mut EndpointShared) {
        let Some(promised) = self.receive.promised.as_deref_mut() else { return };
        while let Some(&(end_psn, rkey)) = promised.answers.front() {
            if end_psn > self.send.flight.una() {
                break;
            }
            promised.answers.pop_front();
            self.receive.reads_in -= 1;
            self.send.answers_out -= 1;
            common.memory.release(rkey);
        }
    }
}
