//! Packets as values: [`Segment`] is parsed once, and its accessors cannot fail.

use pathweave_units::{PathId, QpNum, Time, TrimmedAt};

use crate::control::Control;
use crate::credit::CreditNumber;

/// Smallest payload of a full packet, in bytes.
pub const MIN_MTU_PAYLOAD: u16 = 256;
/// Largest payload of a full packet, in bytes. Two such packets with headers and protection fill one segmented send,
/// which holds as much as one IP packet. Only loopback and IP over InfiniBand have links that take more than jumbo
/// frames.
pub const MAX_MTU_PAYLOAD: u16 = 32_576;

/// One packet between two queue pairs. Fixed size, no payload: payload bytes stay in the application's buffers, and
/// `Data` names the position of the payload in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Segment {
    /// Queue pair at the receiver.
    pub dst_qp: QpNum,
    /// Queue pair at the sender. Answers go to it.
    pub src_qp: QpNum,
    /// Path that the sender of this packet has chosen. An answer echoes the path of the packet that it answers.
    pub path: PathId,
    /// Total number of quanta that the sender wants granted, on data packets under receiver-granted credit. A trimmed
    /// packet keeps it.
    pub pull_target: Option<CreditNumber>,
    /// Kind of the packet, with its fields.
    pub body: Body,
}

/// The kinds of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Body {
    /// Part of a message, or a READ request. A READ request carries no payload, but takes a PSN and is delivered
    /// reliably.
    Data(Data),
    /// Part of a message between datagram queue pairs, whose answers use a side channel.
    Rd(RdData),
    /// Cumulative and selective acknowledgement.
    Ack(Ack),
    /// Reports that a packet was refused or is missing.
    Nack(Nack),
    /// Congestion notification (RoCEv2 annex A17.9.3).
    Cnp,
    /// Lists packets that have not arrived.
    Missing(Missing),
    /// A control packet of a scheme.
    Control(Control),
}

/// Part of a message. Carries enough to be placed on arrival, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Data {
    /// Packet sequence number, extended to 64 bits. The wire carries the low 24 bits.
    pub psn: u64,
    /// Message sequence number within the queue pair's direction, from 0.
    pub msn: u32,
    /// Offset of the payload in the message, in bytes. A message has at most 2^32 bytes.
    pub offset: u32,
    /// Payload bytes in this packet.
    pub len: u16,
    /// Operation of the message.
    pub op: Operation,
    /// True on the last packet of its message.
    pub last: bool,
    /// True on a retransmission. Used for accounting only; receivers treat both kinds alike.
    pub retransmit: bool,
    /// True if the sender waits for an acknowledgement before it sends more. False on the last packet of a message,
    /// which always requests one.
    pub ack_request: bool,
    /// WRITE: remote key. READ request: remote key at the responder.
    pub rkey: u64,
    /// WRITE: remote address of the message's first byte. READ request: remote address to read from.
    /// READ response: the MSN of the request it answers.
    pub remote_addr: u64,
    /// Last packet of a SEND or WRITE with immediate: the immediate. Other packets of a WRITE, with or without
    /// immediate: length of the message minus 1 ([`Data::message_bytes`]). READ request: length minus 1, because a
    /// READ has up to 2^32 bytes. A READ of 0 bytes has `offset` 1 and 0 here; every other READ request has `offset`
    /// 0.
    pub imm: u32,
    /// SEND, and the last packet of a WRITE with immediate: index of the receive that the message consumes, counted
    /// from 0 within the queue pair's direction. With it a SEND that overtakes others finds its buffer. Otherwise 0.
    pub receive_index: u32,
    /// Time at which the packet left the NIC, by the sender's clock.
    pub sent_at: Time,
}

impl Data {
    /// Beginning of the first message of a queue pair, a SEND, without payload. Other packets differ in some fields.
    pub const EMPTY: Self = Data {
        psn: 0,
        msn: 0,
        offset: 0,
        len: 0,
        op: Operation::Send,
        last: false,
        retransmit: false,
        ack_request: false,
        rkey: 0,
        remote_addr: 0,
        imm: 0,
        receive_index: 0,
        sent_at: Time::ZERO,
    };

    /// Bytes of the WRITE to which the packet belongs. The last packet ends where the message ends; earlier ones have
    /// the length in `imm`.
    #[inline]
    pub const fn message_bytes(&self) -> u64 {
        if self.last { self.offset as u64 + self.len as u64 } else { self.imm as u64 + 1 }
    }
}

/// Part of a message between datagram queue pairs (ERD), with its position in the message. PSNs count the packets of
/// one pair (source queue pair, destination queue pair).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct RdData {
    /// Packet sequence number, extended to 64 bits. The wire carries the low 24 bits.
    pub psn: u64,
    /// Message to which the packet belongs: counted from 0 within the pair of queue pairs, modulo 2^16.
    pub msg_id: u16,
    /// True if the message has more than one packet.
    pub multi: bool,
    /// Offset of the payload in the message, in bytes; 0 unless `multi`.
    pub offset: u32,
    /// Payload bytes in this packet, 1 or more.
    pub len: u16,
    /// True on a retransmission. Used for accounting only; receivers treat both kinds alike.
    pub retransmit: bool,
}

/// Operation that a message performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Operation {
    /// Two-sided: consumes a receive at the peer.
    Send,
    /// Two-sided with a 32-bit immediate.
    SendImm,
    /// One-sided write to remote memory.
    Write,
    /// One-sided write that also consumes a receive and delivers an immediate.
    WriteImm,
    /// Asks the peer to send the contents of its memory.
    ReadRequest,
    /// Contents of memory that a READ request asked for.
    ReadResponse,
}

/// An acknowledgement of one data packet or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Ack {
    /// Every PSN below this one has arrived.
    pub cumulative: u64,
    /// PSN of bit 0 of `sack`: that of the data packet that triggered this acknowledgement, or of a higher one that
    /// has not been reported yet.
    pub psn: u64,
    /// Distance from `psn` back to the packet that triggered this acknowledgement, 0 to [`Ack::MAX_BACK`].
    pub back: u8,
    /// Bit i: PSN `psn - i` has arrived (bit 0 is always set).
    pub sack: u64,
    /// `sent_at` of the triggering packet, echoed.
    pub echo_sent_at: Time,
    /// Time at which the triggering packet arrived, by the receiver's clock.
    pub received_at: Time,
    /// Number of data packets that arrived since the previous acknowledgement, the triggering one included.
    pub packets: u16,
    /// Number of those packets that carried Congestion Experienced.
    pub marked: u16,
    /// Permission for the sender to announce changes of path by notices.
    pub notices: NoticePermission,
}

impl Ack {
    /// Acknowledgement of nothing. Others differ in some fields.
    pub const EMPTY: Self = Ack {
        cumulative: 0,
        psn: 0,
        back: 0,
        sack: 0,
        echo_sent_at: Time::ZERO,
        received_at: Time::ZERO,
        packets: 0,
        marked: 0,
        notices: NoticePermission::Welcome,
    };

    /// Largest value of [`Ack::back`]: the triggering packet lies within the bitmap.
    pub const MAX_BACK: u8 = 63;

    /// PSN of the data packet that triggered this acknowledgement. Its stamps and path are those of that packet.
    #[inline]
    pub const fn trigger(&self) -> u64 {
        self.psn.saturating_sub(self.back as u64)
    }
}

/// Permission to send notices, which the receiver gives or withholds. After a notice it holds packets that arrive
/// ahead of the announced late ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum NoticePermission {
    /// The sender may send notices.
    #[default]
    Welcome,
    /// The sender must not send notices now: the receiver holds too many packets already.
    Paused,
}

/// List of packets that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Missing {
    /// First PSN that is missing.
    pub first: u64,
    /// Bit i: `first + i` is missing (bit 0 is always set).
    pub missing: u64,
    /// Reason why they are missing, in the receiver's judgement.
    pub cause: MissingCause,
}

/// Reason why packets have not arrived, in the receiver's judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum MissingCause {
    /// Lost: the sender must retransmit them.
    Lost,
    /// Late, as a notice announced. The sender decides if a copy on the new path is worth its bytes.
    Late,
}

/// A negative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Nack {
    /// First missing PSN: every lower one has arrived.
    pub expected: u64,
    /// PSN of the packet that caused this answer.
    pub psn: u64,
    /// Bit i: PSN `psn - i` has arrived.
    pub sack: u64,
    /// Reason of the refusal.
    pub reason: NackReason,
    /// True if a packet that a switch trimmed carried Congestion Experienced. False for other reasons.
    pub marked: bool,
}

/// Reason why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum NackReason {
    /// The packet arrived ahead of a gap.
    Sequence,
    /// The packet lies beyond the receiver's bitmap and was dropped.
    BeyondWindow,
    /// No receive was posted: the sender tries again later (RNR).
    ReceiverNotReady,
    /// The key or the bounds of the remote memory are wrong. The queue pair enters the error state.
    RemoteAccess,
    /// The operation cannot be carried out (malformed, or too long for the receive). The queue pair enters the error
    /// state.
    InvalidRequest,
    /// Only the header arrived: a switch had no room for the payload.
    Trimmed(TrimmedAt),
}

impl Segment {
    /// Creates a packet to `dst_qp` from `src_qp`, without a target of credit.
    pub const fn new(dst_qp: QpNum, src_qp: QpNum, path: PathId, body: Body) -> Self {
        Segment { dst_qp, src_qp, path, pull_target: None, body }
    }
    /// Returns the segment that [`Datagram::segment`](crate::Datagram::segment) gives back after
    /// [`emit`](crate::emit).
    ///
    /// Stamps keep their picoseconds, and PSNs all 64 bits (given a near one). Cleared are the pull target of packets
    /// other than data, the fields of [`Data`] that its operation does not define, and the immediate and the receive
    /// index on packets other than the last.
    #[must_use]
    pub fn normalized(mut self) -> Segment {
        if !matches!(self.body, Body::Data(_)) {
            self.pull_target = None;
        }
        if let Body::Nack(nack) = &mut self.body {
            nack.marked &= matches!(nack.reason, NackReason::Trimmed(_));
        }
        if let Body::Data(data) = &mut self.body {
            data.ack_request &= !data.last && data.op != Operation::ReadRequest;
            let (sends, writes) = match data.op {
                Operation::Send | Operation::SendImm => (true, false),
                Operation::WriteImm => (true, true),
                Operation::Write => (false, true),
                Operation::ReadRequest | Operation::ReadResponse => (false, false),
            };
            if !writes && data.op != Operation::ReadRequest {
                data.rkey = 0;
                if data.op != Operation::ReadResponse {
                    data.remote_addr = 0;
                }
            }
            if !sends || writes && !data.last {
                data.receive_index = 0;
            }
            match data.op {
                Operation::ReadRequest => data.last = true,
                Operation::SendImm | Operation::WriteImm if data.last => {}
                // `imm` holds the length of the message here.
                Operation::Write | Operation::WriteImm if !data.last => {}
                _ => data.imm = 0,
            }
        }
        self
    }
}

// The simulator stores segments by value: at most one cache line and 8 bytes.
const _: () = assert!(size_of::<Segment>() <= 72);
