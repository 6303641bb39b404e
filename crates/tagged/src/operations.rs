//! State of operations in progress.

use alloc::boxed::Box;

use crate::memory::{Buffer, PeerId, Piece, Remote};
use crate::output::{Completion, Failure, Kind, Release};
use crate::request::{Atomic, BufferLifetime, DoneWhen, Label, Report, Segments};

/// Fields of the completion of an operation in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperationInfo {
    pub(crate) context: u64,
    pub(crate) kind: Kind,
    pub(crate) report: Report,
    pub(crate) peer: PeerId,
    pub(crate) len: u64,
    pub(crate) data: Option<u64>,
    pub(crate) slot: Slot,
}

/// Slot of an operation among those that [`Config::operations`](crate::Config::operations) limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Counted,
    NotCounted,
}

impl OperationInfo {
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

/// Message that waits to be sent.
#[derive(Debug)]
pub(crate) struct QueuedSend {
    pub(crate) ticket: OperationInfo,
    pub(crate) label: Label,
    pub(crate) data: Option<u64>,
    pub(crate) payload: Piece,
    /// Buffer of the engine's copy of the payload, if there is one. `payload` is then within it.
    pub(crate) kept: Option<Buffer>,
    pub(crate) hold: BufferLifetime,
    pub(crate) done: DoneWhen,
}

/// Atomic that waits to be sent, with operands and comparands.
#[derive(Debug)]
pub(crate) struct QueuedAtomic {
    pub(crate) ticket: OperationInfo,
    pub(crate) atomic: Atomic,
    pub(crate) values: Box<[u8]>,
}

/// Operation that waits in a peer's queue.
#[derive(Debug)]
pub(crate) enum Queued {
    Send(QueuedSend),
    Write(u64),
    Read(u64),
    Atomic(QueuedAtomic),
}

/// Message that has been sent and has not ended.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: OperationInfo,
    pub(crate) kept: Option<Buffer>,
    pub(crate) registered: Option<u64>,
    /// Events that must still occur.
    pub(crate) awaits: Awaits,
}

/// Events that a sent message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    Transport,
    TransportAndAck,
    Ack,
    Finish,
    /// A receive of this endpoint, for a message to itself.
    LocalReceive,
}

/// WRITE or READ of the application.
#[derive(Debug)]
pub(crate) struct Rma {
    pub(crate) ticket: OperationInfo,
    pub(crate) segments: Segments,
    pub(crate) local: Piece,
    pub(crate) kept: Option<Buffer>,
    pub(crate) stage: Stage,
    /// Remote location of each segment, and the peer's number of its region.
    pub(crate) remote: [RemoteLocation; Segments::MOST],
    /// Number of requests and transfers in progress.
    pub(crate) under_way: u32,
    pub(crate) failure: Option<Failure>,
}

/// Remote location of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteLocation {
    pub(crate) remote: Remote,
    pub(crate) region: u64,
}

impl RemoteLocation {
    pub(crate) const NOWHERE: RemoteLocation =
        RemoteLocation { remote: Remote { address: 0, rkey: 0 }, region: 0 };
}

/// Progress of an RMA operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Some keys are not known yet.
    Unresolved,
    /// This many local bytes have been requested.
    Bytes(u64),
    /// The notice of this segment is next.
    Notice(usize),
    /// Everything has been requested.
    Requested,
}

/// Transfer into local memory by READs.
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

/// Operation that a transfer belongs to.
#[derive(Debug)]
pub(crate) enum Owner {
    /// A message, with the sender's number `id`.
    Landing { landing: MatchedReceive, id: u64 },
    /// A READ of the application.
    Rma(u64),
}

/// Message together with the receive that it matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedReceive {
    pub(crate) ticket: OperationInfo,
    /// Destination: the part of the message that fits.
    pub(crate) into: Piece,
    /// Number of bytes that do not fit.
    pub(crate) cut: u64,
    /// Multi-receive that takes the message.
    pub(crate) many: Option<u64>,
}

impl MatchedReceive {
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

/// Atomic that awaits its result.
#[derive(Debug)]
pub(crate) struct Fetching {
    pub(crate) ticket: OperationInfo,
    pub(crate) result: Piece,
    pub(crate) region: u64,
}

/// Request in flight at the transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) peer: PeerId,
    pub(crate) what: RequestPart,
}

/// Part of an operation that a request carries out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestPart {
    Message(u64),
    /// A transfer's chunk: its transfer and its length in bytes.
    ReadChunk(u64, u64),
    /// An RMA's chunk: its RMA and its length in bytes.
    WriteChunk(u64, u64),
    Notice(u64),
}
