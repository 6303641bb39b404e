//! What an application asks of the engine.

use crate::atomic::{AtomicOp, AtomicType};
use crate::memory::{PeerId, Piece};

/// To which of the two spaces a message belongs, and its tag. Receives of one space never see messages of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A message without tag (FI_MSG).
    Message,
    /// A message with a tag (FI_TAGGED).
    Tagged(u64),
}

/// Which messages a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Any without tag.
    Message,
    /// Those with `(tag ^ theirs) & !ignore == 0`.
    Tagged {
        /// The tag.
        tag: u64,
        /// Bits of it that do not matter.
        ignore: u64,
    },
}

/// What the application wants to hear of an operation that succeeds. Errors are always reported, and counters count all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// An entry in its completion queue.
    Entry,
    /// No entry: counters only.
    Count,
}

/// How long the application keeps its bytes for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the completion.
    UntilDone,
    /// Until the driver has drained the actions of this call (inject): what must wait is copied. At most
    /// [`MAX_INJECT`](crate::MAX_INJECT) bytes.
    ThisCall,
}

/// When a message counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoneWhen {
    /// The other side's transport has it (FI_TRANSMIT_COMPLETE).
    Transmitted,
    /// The other side's engine has matched and placed it, or holds it (FI_DELIVERY_COMPLETE).
    Delivered,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    /// To whom; [`PeerId::SELF`] is allowed.
    pub to: PeerId,
    /// Space and tag.
    pub label: Label,
    /// Its bytes.
    pub payload: Piece,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// How long the bytes stay.
    pub hold: Hold,
    /// When it is done.
    pub done: DoneWhen,
    /// What is reported of success.
    pub report: Report,
    /// Returned in the completion.
    pub context: u64,
}

/// How many messages a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// One.
    One,
    /// One behind the other until less than `least` bytes are free (FI_MULTI_RECV).
    Many {
        /// FI_OPT_MIN_MULTI_RECV, in bytes; at least 1.
        least: u64,
    },
}

/// A receive to post.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// From whom; `None` is anyone.
    pub from: Option<PeerId>,
    /// Which messages.
    pub want: Want,
    /// Where they go.
    pub into: Piece,
    /// How many.
    pub take: Take,
    /// What is reported of success. That a multi-receive is released is always reported.
    pub report: Report,
    /// Returned in the completion, and the name for [`cancel`](crate::Engine::cancel).
    pub context: u64,
}

/// What becomes of a message that [`peek`](crate::Engine::peek) finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It stays (FI_PEEK).
    Stays,
    /// It is hidden from all but the [`claim`](crate::Engine::claim) with the same context (FI_PEEK | FI_CLAIM).
    Claimed,
    /// It is dropped (FI_PEEK | FI_DISCARD).
    Dropped,
}

/// A look for an unexpected message. The answer is a completion: one like that of a receive, or the error
/// [`Failure::NoMessage`](crate::Failure::NoMessage).
#[derive(Clone, Copy, Debug)]
pub struct Peek {
    /// From whom; `None` is anyone.
    pub from: Option<PeerId>,
    /// Which messages.
    pub want: Want,
    /// What becomes of it.
    pub found: Found,
    /// Returned in the completion.
    pub context: u64,
}

/// The receive of a message that was claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Where it goes; `None` drops it (FI_CLAIM | FI_DISCARD).
    pub into: Option<Piece>,
    /// What is reported of success.
    pub report: Report,
    /// The context of the peek.
    pub context: u64,
}

/// Bytes of a region of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Key of the region, the application's.
    pub key: u64,
    /// Address as the region counts: from its [`base`](crate::Region::base).
    pub address: u64,
    /// Bytes.
    pub len: u64,
}

/// Up to four segments (rma_iov_limit), in the order in which the local bytes go there or come from there.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    all: [Segment; Segments::MOST],
    count: u8,
}

impl Segments {
    /// The most there may be.
    pub const MOST: usize = 4;

    /// `None` if there are more than [`MOST`](Self::MOST).
    pub fn new(segments: &[Segment]) -> Option<Self> {
        let mut all = [Segment::default(); Segments::MOST];
        all.get_mut(..segments.len())?.copy_from_slice(segments);
        Some(Segments { all, count: segments.len() as u8 })
    }
    /// The segments.
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

/// An RMA write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Whose memory.
    pub to: PeerId,
    /// Where it goes; as long as `from` together.
    pub segments: Segments,
    /// The bytes.
    pub from: Piece,
    /// Remote CQ data (writedata).
    pub data: Option<u64>,
    /// How long the bytes stay.
    pub hold: Hold,
    /// What is reported of success.
    pub report: Report,
    /// Returned in the completion.
    pub context: u64,
}

/// An RMA read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// Whose memory.
    pub to: PeerId,
    /// Where it comes from; as long as `into` together.
    pub segments: Segments,
    /// Where it goes.
    pub into: Piece,
    /// What is reported of success.
    pub report: Report,
    /// Returned in the completion.
    pub context: u64,
}

/// What an atomic brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Nothing (fi_atomic).
    Nothing,
    /// The values before (fi_fetch_atomic).
    Old {
        /// Where they go.
        result: Piece,
    },
    /// The values before, of a conditional swap (fi_compare_atomic).
    Compared {
        /// What they are compared with.
        compare: Piece,
        /// Where they go.
        result: Piece,
    },
}

/// An atomic on values that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// Whose memory.
    pub to: PeerId,
    /// Key of the region.
    pub key: u64,
    /// Address as the region counts.
    pub address: u64,
    /// What is done.
    pub op: AtomicOp,
    /// To what.
    pub kind: AtomicType,
    /// How many values; together at most [`MAX_ATOMIC_BYTES`](crate::MAX_ATOMIC_BYTES).
    pub count: u32,
    /// The operands; copied in this call. Ignored for [`AtomicOp::Read`].
    pub operand: Piece,
    /// What comes back.
    pub fetch: Fetch,
    /// When it is done, where nothing comes back.
    pub done: DoneWhen,
    /// What is reported of success.
    pub report: Report,
    /// Returned in the completion.
    pub context: u64,
}

/// Why a call was refused. Nothing has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// So many operations wait already (-FI_EAGAIN).
    #[error("the queue is full")]
    Full,
    /// The driver has no memory for a copy (-FI_EAGAIN).
    #[error("no memory for a copy")]
    NoMemory,
    /// Longer than it may be: an inject, an atomic, or a message (-FI_EMSGSIZE).
    #[error("{len} bytes; at most {most} are allowed")]
    TooLong {
        /// What was asked for.
        len: u64,
        /// What is allowed.
        most: u64,
    },
    /// Lengths that must be equal are not, or a multi-receive has no room at all (-FI_EINVAL).
    #[error("lengths do not fit each other")]
    Lengths,
    /// The operation does not exist for the type, or not in this form (-FI_EOPNOTSUPP).
    #[error("no such atomic")]
    NotSupported,
    /// Nothing was claimed with this context (-FI_EINVAL).
    #[error("nothing was claimed with this context")]
    NotClaimed,
    /// The key is taken (-FI_ENOKEY).
    #[error("the key is in use")]
    KeyInUse,
}
