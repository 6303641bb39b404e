//! Messages of this end: posted requests, and responses to READs.

use pathweave_units::Time;
use pathweave_wire::{Data, Operation};

use crate::events::Opcode;
use crate::transmit::PayloadRef;
use crate::work::{Buffer, Op, WorkRequest};

/// A message of this end. Its packets are created when they leave, so a message of 4 GiB takes as much memory as an
/// empty one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Message {
    /// PSN of the first packet.
    pub(crate) start_psn: u64,
    /// PSN behind the last packet.
    pub(crate) end_psn: u64,
    /// Bytes of the message; for a READ request, the requested bytes.
    pub(crate) len: u64,
    pub(crate) buffer: Buffer,
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u64,
    pub(crate) imm: u32,
    pub(crate) receive_index: u32,
    pub(crate) op: Operation,
    /// True once all bytes requested by a READ have arrived.
    pub(crate) answered: bool,
    pub(crate) start: Start,
    /// The application's identifier of the request. A READ response has none; for it, the offset of its first byte in
    /// `buffer`.
    wr_id_or_begin: u64,
}

/// Condition under which a request joins the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// In order, unless its access to the peer's memory has to wait.
    InTurn,
    /// After all requests before it are complete: a fence.
    AfterAll,
}

// `SendStream` has a copy of one among the fields that every packet touches.
const _: () = assert!(size_of::<Message>() == 72);

impl Message {
    /// Placeholder for no message.
    pub(crate) const NONE: Message = Message {
        start_psn: 0,
        end_psn: 0,
        len: 0,
        buffer: Buffer(0),
        remote_addr: 0,
        rkey: 0,
        imm: 0,
        receive_index: 0,
        op: Operation::Send,
        answered: false,
        start: Start::InTurn,
        wr_id_or_begin: 0,
    };
}

impl Message {
    /// Creates the message of a work request, without PSNs.
    pub(crate) fn from_request(request: &WorkRequest) -> Self {
        let (op, rkey, remote_addr, imm) = match request.op {
            Op::Send => (Operation::Send, 0, 0, 0),
            Op::SendImm { imm } => (Operation::SendImm, 0, 0, imm),
            Op::Write { rkey, remote_addr } => (Operation::Write, rkey, remote_addr, 0),
            Op::WriteImm { rkey, remote_addr, imm } => (Operation::WriteImm, rkey, remote_addr, imm),
            Op::Read { rkey, remote_addr } => {
                (Operation::ReadRequest, rkey, remote_addr, request.len.saturating_sub(1) as u32)
            }
        };
        Message {
            wr_id_or_begin: request.wr_id,
            len: request.len,
            buffer: request.local,
            remote_addr,
            rkey,
            imm,
            op,
            ..Message::NONE
        }
    }

    /// Creates the response to a READ request, without PSNs: `len` bytes from offset `begin` in `buffer`.
    pub(crate) fn read_response(request: &Data, len: u64, buffer: Buffer, begin: u64) -> Self {
        Message {
            len,
            buffer,
            wr_id_or_begin: begin,
            remote_addr: u64::from(request.msn),
            op: Operation::ReadResponse,
            ..Message::NONE
        }
    }

    /// The application's identifier of the request. Meaningless for a READ response.
    pub(crate) fn wr_id(&self) -> u64 {
        self.wr_id_or_begin
    }

    /// Returns true if the message consumes a receive of the peer.
    pub(crate) fn consumes_receive(&self) -> bool {
        matches!(self.op, Operation::Send | Operation::SendImm | Operation::WriteImm)
    }

    /// Number of packets of the message, at least one.
    pub(crate) fn packets(&self, mtu_payload: u16) -> u64 {
        match self.op {
            Operation::ReadRequest => 1,
            _ => self.len.div_ceil(u64::from(mtu_payload)).max(1),
        }
    }

    /// Kind of completion, or `None` for a READ response, which the application has not posted.
    pub(crate) fn opcode(&self) -> Option<Opcode> {
        match self.op {
            Operation::Send | Operation::SendImm => Some(Opcode::Send),
            Operation::Write | Operation::WriteImm => Some(Opcode::Write),
            Operation::ReadRequest => Some(Opcode::Read),
            Operation::ReadResponse => None,
        }
    }

    /// Creates packet `psn` of the message, which leaves at `sent_at`.
    #[inline]
    pub(crate) fn packet(
        &self,
        psn: u64,
        msn: u32,
        mtu_payload: u16,
        retransmit: bool,
        sent_at: Time,
    ) -> Data {
        debug_assert!((self.start_psn..self.end_psn).contains(&psn));
        let last = self.is_last(psn);
        let (offset, len) = self.part(psn, mtu_payload);
        Data {
            psn,
            msn,
            // Fits 32 bits: a message has at most 2^32 bytes, and its last packet begins before its end.
            offset: offset as u32,
            len,
            op: self.op,
            last,
            retransmit,
            ack_request: false,
            rkey: self.rkey,
            remote_addr: self.remote_addr,
            imm: match self.op {
                // A WRITE of several packets has at least 1 byte.
                Operation::Write | Operation::WriteImm if !last => (self.len - 1) as u32,
                _ => self.imm,
            },
            receive_index: self.receive_index,
            sent_at,
        }
    }

    /// Offset of packet `psn` in the message, as the packet carries it, and its payload bytes.
    #[inline]
    fn part(&self, psn: u64, mtu_payload: u16) -> (u64, u16) {
        if self.op == Operation::ReadRequest {
            return (u64::from(self.len == 0), 0);
        }
        let offset = (psn - self.start_psn) * u64::from(mtu_payload);
        (offset, (self.len - offset).min(u64::from(mtu_payload)) as u16)
    }

    /// Payload bytes of packet `psn`.
    #[inline]
    pub(crate) fn payload_bytes(&self, psn: u64, mtu_payload: u16) -> u16 {
        self.part(psn, mtu_payload).1
    }

    /// Returns true if packet `psn` is the last one of the message.
    #[inline]
    pub(crate) fn is_last(&self, psn: u64) -> bool {
        psn + 1 == self.end_psn
    }

    /// Returns true if packet `psn` is neither the first nor the last one of the message.
    #[inline]
    pub(crate) fn is_middle(&self, psn: u64) -> bool {
        psn != self.start_psn && !self.is_last(psn)
    }

    /// Position of the payload of `data`, which is one of the message's packets.
    #[inline]
    pub(crate) fn payload(&self, data: &Data) -> Option<PayloadRef> {
        let begin = if self.op == Operation::ReadResponse { self.wr_id_or_begin } else { 0 };
        (data.len > 0).then(|| PayloadRef {
            buffer: self.buffer,
            offset: begin + u64::from(data.offset),
            len: data.len,
        })
    }
}

/// Number of bytes that a READ request asks for, or `None` if its fields are contradictory.
pub(crate) fn read_len(request: &Data) -> Option<u64> {
    match (request.offset, request.imm) {
        (0, imm) => Some(u64::from(imm) + 1),
        (1, 0) => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::MAX_MESSAGE_BYTES;

    fn message(op: Op, len: u64) -> Message {
        let mut message = Message::from_request(&WorkRequest { wr_id: 1, op, local: Buffer(9), len });
        message.start_psn = 100;
        message.end_psn = 100 + message.packets(4_096);
        message
    }

    #[test]
    fn packets_cover_the_message() {
        for (len, packets, last_len) in
            [(0, 1, 0), (1, 1, 1), (4_096, 1, 4_096), (4_097, 2, 1), (12_288, 3, 4_096)]
        {
            let message = message(Op::Send, len);
            assert_eq!(message.packets(4_096), packets);
            let last = message.packet(message.end_psn - 1, 0, 4_096, false, Time::ZERO);
            assert_eq!((last.last, u64::from(last.len)), (true, last_len), "{len} bytes");
        }
    }

    #[test]
    fn four_gibibytes_fit_the_offset() {
        let message = message(Op::Write { rkey: 0, remote_addr: 0 }, MAX_MESSAGE_BYTES);
        assert_eq!(message.packets(4_096), 1 << 20);
        let last = message.packet(message.end_psn - 1, 0, 4_096, false, Time::ZERO);
        assert_eq!((last.offset, last.len), (u32::MAX - 4_095, 4_096));
        // Every packet carries the length of the message.
        for packet in [message.packet(100, 0, 4_096, false, Time::ZERO), last] {
            assert_eq!(packet.message_bytes(), MAX_MESSAGE_BYTES);
        }
    }

    #[test]
    fn the_length_of_a_read_comes_across() {
        for len in [0, 1, 2, MAX_MESSAGE_BYTES] {
            let message = message(Op::Read { rkey: 0, remote_addr: 0 }, len);
            let request = message.packet(100, 0, 4_096, false, Time::ZERO);
            assert_eq!((request.len, request.last, read_len(&request)), (0, true, Some(len)));
        }
    }
}
