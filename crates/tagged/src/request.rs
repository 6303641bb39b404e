//! Requests of an application to the engine.

use crate::atomic::{AtomicOp, AtomicType};
use crate::memory::{PeerId, Piece};

/// Message space of a message, and its tag. A receive in one space never matches a message of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A message without tag (FI_MSG).
    Message,
    /// A message with a tag (FI_TAGGED).
    Tagged(u64),
}

/// Messages that a receive matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOn {
    /// Any message without a tag.
    Message,
    /// Messages whose tag satisfies `(tag ^ theirs) & !ignore == 0`.
    Tagged {
        /// The tag.
        tag: u64,
        /// Bits of the tag that are ignored.
        ignore: u64,
    },
}

/// Report of an operation that succeeds. Errors are always reported as entries, and counters count every operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// An entry in its completion queue.
    Entry,
    /// No entry: counters only.
    Count,
}

/// Time for which the application keeps its buffer unchanged for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLifetime {
    /// Until the operation completes.
    UntilDone,
    /// Until the driver has taken the actions of this call (inject). A message that must wait is copied. At most
    /// [`MAX_INJECT`](crate::MAX_INJECT) bytes.
    ThisCall,
}

/// Event at which a message counts as completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneWhen {
    /// The other side's transport has the message (FI_TRANSMIT_COMPLETE).
    Transmitted,
    /// The other side's engine has matched and placed the message, or holds it (FI_DELIVERY_COMPLETE).
    Delivered,
}

/// Message to send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    /// Destination; [`PeerId::SELF`] is allowed.
    pub to: PeerId,
    /// Message space and tag.
    pub label: Label,
    /// Payload of the message.
    pub payload: Piece,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Time for which the payload stays unchanged.
    pub hold: BufferLifetime,
    /// Event that completes the message.
    pub done: DoneWhen,
    /// Report on success.
    pub report: Report,
    /// Value returned in the completion.
    pub context: u64,
}

/// Number of messages that a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveCount {
    /// One message.
    One,
    /// Consecutive messages until less than `least` bytes are free (FI_MULTI_RECV).
    Many {
        /// FI_OPT_MIN_MULTI_RECV, in bytes; at least 1.
        least: u64,
    },
}

/// Receive to post.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// Source of the messages; `None` matches any.
    pub from: Option<PeerId>,
    /// Messages to match.
    pub want: MatchOn,
    /// Buffer for the messages.
    pub into: Piece,
    /// Number of messages to take.
    pub take: ReceiveCount,
    /// Report on success. The release of a multi-receive is always an entry.
    pub report: Report,
    /// Value returned in the completion, and the identifier for [`cancel`](crate::Engine::cancel).
    pub context: u64,
}

/// Treatment of a message that [`peek`](crate::Engine::peek) finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The message stays (FI_PEEK).
    Stays,
    /// The message is hidden from everything but the [`claim`](crate::Engine::claim) with the same context (FI_PEEK |
    /// FI_CLAIM).
    Claimed,
    /// The message is dropped (FI_PEEK | FI_DISCARD).
    Dropped,
}

/// Search for an unexpected message. The result is a completion: one like that of a receive, or the error
/// [`Failure::NoMessage`](crate::Failure::NoMessage).
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// Source of the message; `None` matches any.
    pub from: Option<PeerId>,
    /// Messages to match.
    pub want: MatchOn,
    /// Treatment of the message found.
    pub found: Found,
    /// Value returned in the completion.
    pub context: u64,
}

/// Receive of a message that was claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Buffer for the message; `None` drops it (FI_CLAIM | FI_DISCARD).
    pub into: Option<Piece>,
    /// Report on success.
    pub report: Report,
    /// Context of the peek that claimed the message.
    pub context: u64,
}

/// Range of bytes in a region of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Key of the region, as its application chose it.
    pub key: u64,
    /// Address within the region, counted from its [`base`](crate::Region::base).
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
}

/// Up to four segments (rma_iov_limit), in the order of the local bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    all: [Segment; Segments::MOST],
    count: u8,
}

impl Segments {
    /// Largest number of segments.
    pub const MOST: usize = 4;

    /// Creates the list, or returns `None` if there are more than [`MOST`](Self::MOST) segments.
    pub fn new(segments: &[Segment]) -> Option<Self> {
        let mut all = [Segment::default(); Segments::MOST];
        all.get_mut(..segments.len())?.copy_from_slice(segments);
        Some(Segments { all, count: segments.len() as u8 })
    }
    /// Returns the segments.
    pub fn as_slice(&self) -> &[Segment] {
        &self.all[..usize::from(self.count)]
    }
    pub(crate) fn total(&self) -> Option<u64> {
        self.as_slice().iter().try_fold(0u64, |sum, s| sum.checked_add(s.len))
    }
}

impl From<Segment> for Segments {
    fn from(segment: Segment) -> Self {
        let mut all = [Segment::default(); Segments::MOST];
        all[0] = segment;
        Segments { all, count: 1 }
    }
}

/// RMA write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Peer that owns the memory.
    pub to: PeerId,
    /// Destination. The total length equals that of `from`.
    pub segments: Segments,
    /// Bytes to write.
    pub from: Piece,
    /// Remote CQ data (writedata).
    pub data: Option<u64>,
    /// Time for which the bytes stay unchanged.
    pub hold: BufferLifetime,
    /// Report on success.
    pub report: Report,
    /// Value returned in the completion.
    pub context: u64,
}

/// RMA read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Peer that owns the memory.
    pub to: PeerId,
    /// Source. The total length equals that of `into`.
    pub segments: Segments,
    /// Buffer for the bytes.
    pub into: Piece,
    /// Report on success.
    pub report: Report,
    /// Value returned in the completion.
    pub context: u64,
}

/// Result that an atomic returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// No result (fi_atomic).
    Nothing,
    /// The previous values (fi_fetch_atomic).
    Old {
        /// Buffer for the values.
        result: Piece,
    },
    /// The previous values, of a conditional swap (fi_compare_atomic).
    Compared {
        /// Comparands.
        compare: Piece,
        /// Buffer for the values.
        result: Piece,
    },
}

/// Atomic on consecutive values.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// Peer that owns the memory.
    pub to: PeerId,
    /// Key of the region.
    pub key: u64,
    /// Address of the first value, as the region counts.
    pub address: u64,
    /// Operation.
    pub op: AtomicOp,
    /// Type of the values.
    pub kind: AtomicType,
    /// Number of values. Their total size is at most [`MAX_ATOMIC_BYTES`](crate::MAX_ATOMIC_BYTES).
    pub count: u32,
    /// Operands, which are copied in this call. Ignored for [`AtomicOp::Read`].
    pub operand: Piece,
    /// Result to return.
    pub fetch: Fetch,
    /// Event that completes an atomic without a result.
    pub done: DoneWhen,
    /// Report on success.
    pub report: Report,
    /// Value returned in the completion.
    pub context: u64,
}

/// Reason why a call was refused. A refused call has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The limit of waiting operations is reached (-FI_EAGAIN).
    #[error("the queue is full")]
    Full,
    /// The driver has no memory for a copy (-FI_EAGAIN).
    #[error("no memory for a copy")]
    NoMemory,
    /// An inject, atomic or message exceeds its size limit (-FI_EMSGSIZE).
    #[error("{len} bytes; at most {most} are allowed")]
    TooLong {
        /// Requested length in bytes.
        len: u64,
        /// Limit in bytes.
        most: u64,
    },
    /// Lengths that must be equal differ, a range exceeds the address space, or a multi-receive has no room
    /// (-FI_EINVAL).
    #[error("lengths do not fit each other")]
    Lengths,
    /// The operation does not exist for the type or in this form (-FI_EOPNOTSUPP).
    #[error("no such atomic")]
    NotSupported,
    /// No message was claimed with this context (-FI_EINVAL).
    #[error("no message was claimed with this context")]
    NotClaimed,
    /// The key is in use (-FI_ENOKEY).
    #[error("the key is in use")]
    KeyInUse,
}
