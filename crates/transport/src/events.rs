//! What an endpoint tells the application.

use pathweave_units::{PathId, QpNum, Time};
use pathweave_wire::Operation;

/// Something the application wants to know.
///
/// Order within a queue pair: completions of sends, writes and reads come in the order they were posted, those
/// of receives in the order of the messages, `Delivered` in message order as well: a message is told of when it
/// and every message before it have arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A work request or a receive is done.
    Completion(Completion),
    /// A message of the other end, and every one before it, has arrived whole. For observers; an application
    /// needs only completions.
    Delivered {
        /// Queue pair.
        qp: QpNum,
        /// Number of the message in the other end's direction, from 0. Its READ requests and the answers to
        /// READs of this end count too.
        msn: u32,
        /// What the message did.
        op: Operation,
        /// Its bytes. Zero for a READ request.
        bytes: u64,
    },
    /// A data packet was sent again. Only from an endpoint that was asked to tell; see
    /// [`Endpoint::report_losses`](crate::Endpoint::report_losses).
    Retransmitted {
        /// The packet.
        packet: SentPacket,
        /// When.
        at: Time,
    },
    /// A retransmission timer expired. Only from an endpoint that was asked to tell.
    TimedOut {
        /// The oldest packet it stood for.
        packet: SentPacket,
        /// When.
        at: Time,
    },
    /// The queue pair has failed; completions of all that was posted come before this.
    QpError {
        /// Queue pair.
        qp: QpNum,
        /// Why.
        status: Status,
    },
}

/// A data packet of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Queue pair.
    pub qp: QpNum,
    /// Its number.
    pub psn: u64,
    /// Number of its message; `None` where a READ that is acknowledged waits for its answer.
    pub msn: Option<u32>,
    /// The path it took, the last time it was sent; `None` likewise.
    pub path: Option<PathId>,
}

/// A work request or a receive that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As given when it was posted.
    pub wr_id: u64,
    /// Queue pair.
    pub qp: QpNum,
    /// How it ended.
    pub status: Status,
    /// What was done.
    pub opcode: Opcode,
    /// Bytes moved; zero unless successful. For a receive with a WRITE's immediate, the bytes written.
    pub byte_len: u64,
    /// Immediate of the message, for receives.
    pub imm: Option<u32>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// SEND, with or without immediate.
    Send,
    /// WRITE, with or without immediate.
    Write,
    /// READ.
    Read,
    /// A receive filled by a SEND.
    Recv,
    /// A receive consumed by a WRITE with immediate.
    RecvWriteImm,
}

/// How a work request or a queue pair ended. Names follow the verbs' completion statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Success,
    /// The other end did not answer (`IBV_WC_RETRY_EXC_ERR`).
    RetryExceeded,
    /// The other end had no receive posted for too long (`IBV_WC_RNR_RETRY_EXC_ERR`).
    RnrRetryExceeded,
    /// The other end refused key, bounds or access (`IBV_WC_REM_ACCESS_ERR`).
    RemoteAccess,
    /// The other end could not carry the request out (`IBV_WC_REM_INV_REQ_ERR`).
    RemoteInvalidRequest,
    /// A message did not fit its receive (`IBV_WC_LOC_LEN_ERR`).
    LocalLength,
    /// The other end asked for memory it may not touch, or for more than was agreed (`IBV_WC_LOC_QP_OP_ERR`).
    LocalOperation,
    /// The queue pair failed before this was done (`IBV_WC_WR_FLUSH_ERR`).
    Flushed,
}
