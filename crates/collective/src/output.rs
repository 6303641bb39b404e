//! Orders of the engine to its caller.

use crate::call::Call;
use crate::frame::{Key, Target};
use crate::plan::Span;
use crate::reduce::Order;

/// Number of a process that this one talks to, chosen by the caller.
pub type PeerId = u32;
/// Number of an operation.
pub type OpId = u64;

/// Memory into which a peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// Memory of the operation.
    Span(Span),
    /// A place of [`SEGMENT_BYTES`](crate::SEGMENT_BYTES) with this number, shared by all operations.
    Scratch(u32),
}

/// Bytes that were received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// They came with a frame.
    Bytes(Vec<u8>),
    /// They are in a place of [`Landing::Scratch`].
    Scratch(u32),
}

/// Order to the caller. Orders are carried out one after the other; those about memory are complete before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a frame.
    Frame {
        /// Receiver.
        peer: PeerId,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// Send a frame with bytes of an operation, which may change afterwards.
    Eager {
        /// Receiver.
        peer: PeerId,
        /// First part of the frame.
        head: Vec<u8>,
        /// Operation.
        op: OpId,
        /// Second part.
        from: Span,
    },
    /// Let a peer write, and send it [`Frame::Ready`](crate::Frame::Ready) with address and key of the memory.
    Announce {
        /// Peer.
        peer: PeerId,
        /// Operation.
        op: OpId,
        /// Memory.
        landing: Landing,
        /// Transfer.
        key: Key,
        /// Own call.
        call: Call,
        /// Number of bytes.
        bytes: usize,
        /// Immediate of the peer's WRITE.
        token: u32,
    },
    /// Write into a peer's memory; then call [`Engine::written`](crate::Engine::written).
    Write {
        /// Peer.
        peer: PeerId,
        /// Operation.
        op: OpId,
        /// Bytes.
        from: Span,
        /// The peer's memory.
        target: Target,
        /// Number for the engine.
        id: u64,
    },
    /// Store bytes.
    Store {
        /// Operation.
        op: OpId,
        /// Place.
        to: Span,
        /// Bytes.
        bytes: Vec<u8>,
    },
    /// Combine `with` and received bytes into `into`.
    Combine {
        /// Operation.
        op: OpId,
        /// Own operand.
        with: Span,
        /// Result.
        into: Span,
        /// Other operand.
        received: Received,
        /// Order of the operands.
        order: Order,
    },
    /// Copy bytes.
    Copy {
        /// Operation.
        op: OpId,
        /// Source.
        from: Span,
        /// Destination.
        to: Span,
    },
    /// Divide sums.
    Divide {
        /// Operation.
        op: OpId,
        /// Sums.
        of: Span,
        /// Number of ranks.
        by: u32,
    },
    /// An operation has ended. No peer writes into memory of one that has succeeded.
    Done {
        /// Operation.
        op: OpId,
        /// Rank that a message came from, or the reason of the failure.
        result: Result<Option<u32>, String>,
    },
}
