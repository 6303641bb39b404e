//! What the engine wants of its driver and tells the application.

use alloc::boxed::Box;

use crate::header::Header;
use crate::memory::{PeerId, Piece, Remote};
use crate::request::{Label, Report};

/// The engine's name for a request to the transport; said again in [`completed`](crate::Engine::completed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What follows the header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// Bytes of the application. Up to [`MAX_INJECT`](crate::MAX_INJECT) of them must be copied as the action is taken;
    /// longer ones stay until the request is completed.
    Piece(Piece),
    /// Bytes of the engine.
    Bytes(Box<[u8]>),
}

/// What the driver is to do, in the order given.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect to a peer; answer with [`peer_up`](crate::Engine::peer_up) or [`peer_down`](crate::Engine::peer_down).
    Connect {
        /// To whom.
        peer: PeerId,
    },
    /// Cut the connection to a peer at once. For the engine it is gone already.
    Disconnect {
        /// To whom.
        peer: PeerId,
        /// Why.
        fault: Fault,
    },
    /// Post receives of the driver's memory on the connection. They are filled in this order, and each message that
    /// fills one is told by [`delivered`](crate::Engine::delivered).
    PostReceives {
        /// Of whom.
        peer: PeerId,
        /// How many.
        count: u16,
        /// Bytes of each.
        size: u32,
    },
    /// SEND header and payload as one message.
    Send {
        /// To whom.
        peer: PeerId,
        /// The first bytes.
        header: Header,
        /// What follows.
        payload: Payload,
        /// Completed when the peer's transport has it.
        request: RequestId,
    },
    /// READ memory of a peer.
    Read {
        /// Whose.
        peer: PeerId,
        /// From where.
        remote: Remote,
        /// To where, and how much.
        into: Piece,
        /// Completed when the bytes are there.
        request: RequestId,
    },
    /// WRITE memory of a peer.
    Write {
        /// Whose.
        peer: PeerId,
        /// To where.
        remote: Remote,
        /// From where, and how much.
        from: Piece,
        /// Completed when the peer's transport has it.
        request: RequestId,
    },
}

/// Why a peer was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message that cannot be read.
    Malformed,
    /// A message that has no place here: more than was granted, an answer nobody asked for, memory beyond its bounds.
    Violation,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message was sent (FI_SEND, and FI_MSG or FI_TAGGED).
    Send(Label),
    /// A message was received, or looked at (FI_RECV).
    Receive(Label),
    /// RMA write (FI_RMA | FI_WRITE).
    Write,
    /// RMA read (FI_RMA | FI_READ).
    Read,
    /// Atomic that fetched nothing (FI_ATOMIC | FI_WRITE).
    Atomic,
    /// Atomic that fetched (FI_ATOMIC | FI_READ).
    FetchAtomic,
    /// A peer wrote or changed memory here (FI_REMOTE_WRITE); an entry only if it came with data.
    RemoteWrite,
    /// A peer read memory here (FI_REMOTE_READ).
    RemoteRead,
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than its receive (FI_ETRUNC); the first bytes are there.
    Truncated {
        /// Bytes cut off (olen).
        cut: u64,
    },
    /// Cancelled (FI_ECANCELED).
    Cancelled,
    /// A peek found nothing (FI_ENOMSG).
    NoMessage,
    /// The connection is gone (FI_ECONNRESET).
    Reset,
    /// The peer does not answer (FI_ETIMEDOUT).
    TimedOut,
    /// The peer refused to be connected (FI_ECONNREFUSED).
    Refused,
    /// No such key, beyond the region's bounds, or without right (FI_EACCES).
    Access,
    /// The transport has no memory or regions left (FI_ENOMEM).
    NoMemory,
    /// The transport failed otherwise (FI_EIO).
    Io,
}

/// Whether a multi-receive is done with its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// No multi-receive, or there is more to come.
    No,
    /// No further message will be put into the buffer (FI_MULTI_RECV).
    Released,
}

/// An operation has ended, or something has happened to memory here. Each operation ends exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As posted; zero for what a peer did.
    pub context: u64,
    /// What it is about; which counters it counts for.
    pub kind: Kind,
    /// Whether it is an entry in the completion queue; failures always are.
    pub report: Report,
    /// How it ended.
    pub result: Result<(), Failure>,
    /// Bytes moved; for a peek those of the message. Zero for operations that failed otherwise than by truncation.
    pub len: u64,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// The other side.
    pub peer: Option<PeerId>,
    /// Where a receive put the message.
    pub into: Piece,
    /// Whether a multi-receive ends with this.
    pub release: Release,
    /// Key of the region a peer reached, where known.
    pub region: Option<u64>,
}

impl Completion {
    /// The tag; zero without.
    pub fn tag(&self) -> u64 {
        match self.kind {
            Kind::Send(Label::Tagged(tag)) | Kind::Receive(Label::Tagged(tag)) => tag,
            _ => 0,
        }
    }
}
