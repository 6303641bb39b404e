//! The semantic value of a packet: parsed once, after which no accessor can fail.

use pathweave_units::{PathId, QpNum, Time, TrimmedAt};

use crate::control::Control;
use crate::credit::CreditNumber;

/// Smallest payload of a full packet, in bytes.
pub const MIN_MTU_PAYLOAD: u16 = 256;
/// Largest payload of a full packet, in bytes. Two such packets with headers and protection fill one segmented send, which holds
/// as much as one IP packet. Only loopback and IP over InfiniBand have links that take more than jumbo frames.
pub const MAX_MTU_PAYLOAD: u16 = 32_576;

/// One packet between two queue pairs. Fixed size, no payload: payload bytes stay where the
/// application has them, and `Data` says where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Segment {
    /// Queue pair at the receiver.
    pub dst_qp: QpNum,
    /// Queue pair at the sender, for answers.
    pub src_qp: QpNum,
    /// Path chosen by the sender of this packet. Answers echo the path of the packet they answer.
    pub path: PathId,
    /// Data, where receivers grant credit: how many quanta its sender wants granted in all. A packet that is trimmed keeps it.
    pub pull_target: Option<CreditNumber>,
    /// What the packet is.
    pub body: Body,
}

/// The kinds of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Body {
    /// Part of a message, or a READ request (which carries no payload but takes a PSN and is delivered reliably).
    Data(Data),
    /// Part of a message between datagram queue pairs, which answer on a side channel.
    Rd(RdData),
    /// Cumulative and selective acknowledgement.
    Ack(Ack),
    /// A packet was refused or found missing.
    Nack(Nack),
    /// Congestion notification (RoCEv2 annex A17.9.3).
    Cnp,
    /// Names packets that have not arrived.
    Missing(Missing),
    /// A control packet of a scheme.
    Control(Control),
}

/// Part of a message. Carries enough to be placed on arrival, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Data {
    /// Packet sequence number, extended: the 24 bits on the wire are its low end.
    pub psn: u64,
    /// Message sequence number within the queue pair's direction, from 0.
    pub msn: u32,
    /// Offset of the payload in the message, in bytes. A message has at most 2^32 bytes.
    pub offset: u32,
    /// Payload bytes in this packet.
    pub len: u16,
    /// What the message does.
    pub op: Operation,
    /// Last packet of its message.
    pub last: bool,
    /// Retransmission; told for accounting, receivers treat both alike.
    pub retransmit: bool,
    /// The sender waits for an acknowledgement before it sends more. Of the last packet of a message that goes without saying,
    /// and this is false.
    pub ack_request: bool,
    /// WRITE: remote key. READ request: remote key at the responder.
    pub rkey: u64,
    /// WRITE: remote address of the message's first byte. READ request: remote address to read from.
    /// READ response: the MSN of the request it answers.
    pub remote_addr: u64,
    /// Last packet of a SEND or WRITE with immediate: the immediate. Other packets of a WRITE, with or without: length of
    /// the message minus 1 ([`Data::message_bytes`]). READ request: length minus 1, for a READ has up to 2^32 bytes; a READ
    /// of 0 bytes has `offset` 1 (and 0 here), every other READ request has `offset` 0.
    pub imm: u32,
    /// SEND, and the last packet of a WRITE with immediate: which receive the message consumes, counted from 0 within the
    /// queue pair's direction, so that a SEND that overtakes others finds its buffer. Zero otherwise.
    pub receive_index: u32,
    /// When the packet left the NIC, by the sender's clock.
    pub sent_at: Time,
}

impl Data {
    /// Bytes of the WRITE this is a packet of. The last packet says it by its own end, those before it in `imm`.
    #[inline]
    pub const fn message_bytes(&self) -> u64 {
        if self.last { self.offset as u64 + self.len as u64 } else { self.imm as u64 + 1 }
    }
}

/// Part of a message between datagram queue pairs (ERD): where it goes, and which message of this source it belongs to.
/// The PSN is one of the pair (source queue pair, destination queue pair).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct RdData {
    /// Packet sequence number, extended: the 24 bits on the wire are its low end.
    pub psn: u64,
    /// Message it belongs to, from 0 within the pair of queue pairs; wraps.
    pub msg_id: u16,
    /// The message has more than one packet. Otherwise this one is all of it.
    pub multi: bool,
    /// Offset of the payload in the message, in bytes; 0 unless `multi`.
    pub offset: u32,
    /// Payload bytes in this packet, 1 or more.
    pub len: u16,
    /// Retransmission; told for accounting, receivers treat both alike.
    pub retransmit: bool,
}

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Operation {
    /// Two-sided: consumes a receive at the other end.
    Send,
    /// Two-sided with a 32-bit immediate.
    SendImm,
    /// One-sided write to remote memory.
    Write,
    /// One-sided write that also consumes a receive and delivers an immediate.
    WriteImm,
    /// Asks the other end to send memory back.
    ReadRequest,
    /// The memory asked for.
    ReadResponse,
}

/// An acknowledgement. Sent for one data packet or for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Ack {
    /// Every PSN below this one has arrived.
    pub cumulative: u64,
    /// Where the bitmap looks back from: PSN of the data packet that triggered this acknowledgement, or of one further ahead
    /// that waited to be told.
    pub psn: u64,
    /// How far before `psn` the packet is that triggered this acknowledgement, 0 to [`Ack::MAX_BACK`].
    pub back: u8,
    /// Bit i: PSN `psn - i` has arrived (bit 0 is always set).
    pub sack: u64,
    /// `sent_at` of the triggering packet, echoed.
    pub echo_sent_at: Time,
    /// When the triggering packet arrived, by the receiver's clock.
    pub received_at: Time,
    /// Data packets that arrived since the last acknowledgement, this one included.
    pub packets: u16,
    /// How many of `packets` carried Congestion Experienced.
    pub marked: u16,
    /// Whether the sender may announce a change of path by a notice.
    pub notices: Notices,
}

impl Ack {
    /// The most that [`Ack::back`] can be: the packet is one of those of the bitmap.
    pub const MAX_BACK: u8 = 63;

    /// PSN of the data packet that triggered it, of which stamps and path are.
    #[inline]
    pub const fn trigger(&self) -> u64 {
        self.psn.saturating_sub(self.back as u64)
    }
}

/// Whether notices are welcome: the receiver holds what arrives ahead of packets announced to be late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Notices {
    /// They are.
    #[default]
    Welcome,
    /// Not now: too much is held already.
    Paused,
}

/// Names packets that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Missing {
    /// First PSN that is missing.
    pub first: u64,
    /// Bit i: `first + i` is missing (bit 0 is always set).
    pub missing: u64,
    /// What the receiver makes of it.
    pub cause: Cause,
}

/// What a receiver makes of packets that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum Cause {
    /// Lost: to be sent again.
    Lost,
    /// Late, as a notice announced: worth a copy on the new path if the sender thinks so.
    Late,
}

/// A negative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Nack {
    /// Every PSN below this one has arrived; it is the first missing one.
    pub expected: u64,
    /// PSN of the packet that caused the complaint.
    pub psn: u64,
    /// Bit i: PSN `psn - i` has arrived.
    pub sack: u64,
    /// Why.
    pub reason: NackReason,
    /// A packet that a switch has trimmed carried Congestion Experienced; false for other reasons.
    pub marked: bool,
}

/// Why a packet was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub enum NackReason {
    /// Arrived ahead of a gap.
    Sequence,
    /// Beyond the receiver's bitmap; dropped.
    BeyondWindow,
    /// No receive was posted; try again later (RNR).
    ReceiverNotReady,
    /// Key or bounds of the remote memory are wrong; the queue pair goes to error.
    RemoteAccess,
    /// The operation cannot be carried out (oversize for the receive, malformed); the queue pair goes to error.
    InvalidRequest,
    /// Only its header has arrived: a switch had no room for its payload.
    Trimmed(TrimmedAt),
}

impl Segment {
    /// The segment as a frame carries it: what [`Datagram::segment`](crate::Datagram::segment) gives back after
    /// [`emit`](crate::emit). Stamps survive to the picosecond and PSNs in full (given one that is near); cleared
    /// are the pull target of what is no data, the fields of [`Data`] that its operation does not define, and immediate and receive on packets that are not the
    /// last.
    #[must_use]
    pub fn as_carried(mut self) -> Segment {
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
                // The length of the message.
                Operation::Write | Operation::WriteImm if !data.last => {}
                _ => data.imm = 0,
            }
        }
        self
    }
}

// The simulator stores a segment in one cache line and a half at most.
const _: () = assert!(size_of::<Segment>() <= 72);
