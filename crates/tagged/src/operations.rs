//! What is remembered of operations under way.

use alloc::boxed::Box;

use crate::memory::{Buffer, PeerId, Piece, Remote};
use crate::output::{Completion, Failure, Kind, Release};
use crate::request::{Atomic, DoneWhen, Hold, Label, Report, Segments};

/// What a completion will say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) context: u64,
    pub(crate) kind: Kind,
    pub(crate) report: Report,
    pub(crate) peer: PeerId,
    pub(crate) len: u64,
    pub(crate) data: Option<u64>,
    pub(crate) slot: Slot,
}

/// Whether an operation is among those that [`Config::operations`](crate::Config::operations) limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Held,
    Free,
}

impl Ticket {
    pub(crate) fn done(&self, result: Result<(), Failure>) -> Completion {
        Completion {
            context: self.context,
            kind: self.kind,
            report: if result.is_ok() { self.report } else { Report::Entry },
            result,
            len: if result.is_ok() { self.len } else { 0 },
            data: self.data,
            peer: Some(self.peer),
            into: Piece::NONE,
            release: Release::No,
            region: None,
        }
    }
}

/// A message that waits to be sent.
#[derive(Debug)]
pub(crate) struct QueuedSend {
    pub(crate) ticket: Ticket,
    pub(crate) label: Label,
    pub(crate) data: Option<u64>,
    pub(crate) payload: Piece,
    /// The copy that `payload` is.
    pub(crate) kept: Option<Buffer>,
    pub(crate) hold: Hold,
    pub(crate) done: DoneWhen,
}

/// An atomic that waits to be sent, with operands and comparands.
#[derive(Debug)]
pub(crate) struct QueuedAtomic {
    pub(crate) ticket: Ticket,
    pub(crate) atomic: Atomic,
    pub(crate) values: Box<[u8]>,
}

/// An operation that waits for its turn.
#[derive(Debug)]
pub(crate) enum Queued {
    Send(QueuedSend),
    Write(u64),
    Read(u64),
    Atomic(QueuedAtomic),
}

/// A message that has left.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: Ticket,
    pub(crate) kept: Option<Buffer>,
    pub(crate) registered: Option<u64>,
    /// What is still to come.
    pub(crate) awaits: Awaits,
}

/// What a message that has left is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    Transport,
    TransportAndAck,
    Ack,
    Finish,
    /// A receive of this endpoint.
    Self_,
}

/// A WRITE or READ of the application.
#[derive(Debug)]
pub(crate) struct Rma {
    pub(crate) ticket: Ticket,
    pub(crate) segments: Segments,
    pub(crate) local: Piece,
    pub(crate) kept: Option<Buffer>,
    pub(crate) stage: Stage,
    /// Where each segment is, and the peer's number of its region.
    pub(crate) found: [Place; Segments::MOST],
    /// Requests and transfers under way.
    pub(crate) under_way: u32,
    pub(crate) failure: Option<Failure>,
}

/// Where a segment is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) remote: Remote,
    pub(crate) region: u64,
}

impl Place {
    pub(crate) const NOWHERE: Place = Place { remote: Remote { address: 0, rkey: 0 }, region: 0 };
}

/// How far an RMA has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Keys are not all known.
    Unresolved,
    /// So many local bytes have been requested.
    Bytes(u64),
    /// The notice of this segment is next.
    Notice(usize),
    /// All has been requested.
    Requested,
}

/// Bytes on their way here by READs.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) peer: PeerId,
    pub(crate) remote: Remote,
    pub(crate) into: Piece,
    pub(crate) issued: u64,
    pub(crate) chunks: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) owner: Owner,
}

impl Transfer {
    pub(crate) fn is_over(&self) -> bool {
        self.chunks == 0 && (self.failure.is_some() || self.issued == self.into.len)
    }
}

/// What a transfer is for.
#[derive(Debug)]
pub(crate) enum Owner {
    /// A message, which its sender calls `id`.
    Landing { landing: Landing, id: u64 },
    /// A READ of the application.
    Rma(u64),
}

/// A message and the receive that it was matched with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    pub(crate) ticket: Ticket,
    /// As much as fits.
    pub(crate) into: Piece,
    /// Bytes that do not.
    pub(crate) cut: u64,
    /// The multi-receive it is put into.
    pub(crate) many: Option<u64>,
}

impl Landing {
    pub(crate) fn done(&self, failure: Option<Failure>, release: Release) -> Completion {
        let truncated = (self.cut > 0).then_some(Failure::Truncated { cut: self.cut });
        let result = failure.or(truncated).map_or(Ok(()), Err);
        let report = match (result, release) {
            (Ok(()), Release::No) => self.ticket.report,
            _ => Report::Entry,
        };
        let len = if failure.is_some() { 0 } else { self.into.len };
        Completion { report, len, into: self.into, release, ..self.ticket.done(result) }
    }
}

/// An atomic whose result is to come.
#[derive(Debug)]
pub(crate) struct Fetching {
    pub(crate) ticket: Ticket,
    pub(crate) result: Piece,
    pub(crate) region: u64,
}

/// What becomes of a request that the transport has completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) peer: PeerId,
    pub(crate) what: What,
}

/// Parts of operations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Message(u64),
    /// Of a transfer, and its bytes.
    ReadChunk(u64, u64),
    /// Of an RMA, and its bytes.
    WriteChunk(u64, u64),
    Notice(u64),
}
