//! Output of the engine: actions for its driver and completions for the application.

use alloc::boxed::Box;

use crate::header::Header;
use crate::memory::{PeerId, Piece, Remote};
use crate::request::{Label, Report};

/// Engine's number of a request to the transport, which the driver passes to [`completed`](crate::Engine::completed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Payload of a message, after its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// No payload.
    None,
    /// Bytes of the application. The driver must copy up to [`MAX_INJECT`](crate::MAX_INJECT) of them when it takes
    /// the action; longer payload stays valid until the request is completed.
    Piece(Piece),
    /// Bytes of the engine.
    Bytes(Box<[u8]>),
}

/// Action that the driver must execute, in the order given.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect to a peer; answer with [`peer_up`](crate::Engine::peer_up) or [`peer_down`](crate::Engine::peer_down).
    Connect {
        /// Peer to connect to.
        peer: PeerId,
    },
    /// Close the connection to a peer at once. The engine has already discarded it.
    Disconnect {
        /// Peer to disconnect.
        peer: PeerId,
        /// Reason for the disconnection.
        fault: Fault,
    },
    /// Post receives of the driver's memory on the connection. They are filled in this order, and the driver reports
    /// each message that fills one with [`delivered`](crate::Engine::delivered).
    PostReceives {
        /// Peer whose connection gets the receives.
        peer: PeerId,
        /// Number of receives.
        count: u16,
        /// Size of each receive in bytes.
        size: u32,
    },
    /// SEND header and payload as one message.
    Send {
        /// Peer to send to.
        peer: PeerId,
        /// Header of the message.
        header: Header,
        /// Payload after the header.
        payload: Payload,
        /// Request to complete when the peer's transport has the message.
        request: RequestId,
    },
    /// READ memory of a peer.
    Read {
        /// Peer that owns the memory.
        peer: PeerId,
        /// Remote source.
        remote: Remote,
        /// Local destination, which also gives the length.
        into: Piece,
        /// Request to complete when the bytes have arrived.
        request: RequestId,
    },
    /// WRITE memory of a peer.
    Write {
        /// Peer that owns the memory.
        peer: PeerId,
        /// Remote destination.
        remote: Remote,
        /// Local source, which also gives the length.
        from: Piece,
        /// Request to complete when the peer's transport has the bytes.
        request: RequestId,
    },
}

/// Reason why the engine disconnected a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message that cannot be parsed.
    Malformed,
    /// A message that breaks a rule: it exceeds the grant, answers no question, or names memory beyond its bounds.
    Violation,
}

/// Kind of operation that a completion reports.
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

/// Reason why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than its receive (FI_ETRUNC). The buffer holds its first bytes.
    Truncated {
        /// Number of bytes cut off (olen).
        cut: u64,
    },
    /// The operation was cancelled (FI_ECANCELED).
    Cancelled,
    /// A peek found nothing (FI_ENOMSG).
    NoMessage,
    /// The connection has ended (FI_ECONNRESET).
    Reset,
    /// The peer does not answer (FI_ETIMEDOUT).
    TimedOut,
    /// The peer refused the connection (FI_ECONNREFUSED).
    Refused,
    /// The key is unknown, the range is out of the region's bounds, or the access right is missing (FI_EACCES).
    Access,
    /// The transport has no memory or regions left (FI_ENOMEM).
    NoMemory,
    /// Any other failure of the transport (FI_EIO).
    Io,
}

/// State of a multi-receive's buffer after a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Not a multi-receive, or further messages may be put into the buffer.
    No,
    /// No further message will be put into the buffer (FI_MULTI_RECV).
    Released,
}

/// Completion: the end of an operation, or an access of a peer to local memory. Each operation ends exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Context given when the operation was posted; zero for an access of a peer.
    pub context: u64,
    /// Kind of operation, which also selects the counters it increments.
    pub kind: Kind,
    /// Entry in the completion queue, or counters only. Failures are always entries.
    pub report: Report,
    /// Result of the operation.
    pub result: Result<(), Failure>,
    /// Number of bytes moved; for a peek, length of the message. Zero for operations that failed, except by
    /// truncation.
    pub len: u64,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// The other side of the operation.
    pub peer: Option<PeerId>,
    /// Location where a receive put the message.
    pub into: Piece,
    /// Release of a multi-receive's buffer with this completion.
    pub release: Release,
    /// Key of the region that a peer accessed, if known.
    pub region: Option<u64>,
}

impl Completion {
    /// Returns the tag, or zero if there is none.
    pub fn tag(&self) -> u64 {
        match self.kind {
            Kind::Send(Label::Tagged(tag)) | Kind::Receive(Label::Tagged(tag)) => tag,
            _ => 0,
        }
    }
}
