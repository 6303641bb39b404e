//! Events that an endpoint reports to the application.

use pathweave_units::{PathId, QpNum, Time};
use pathweave_wire::Operation;

/// An event for the application.
///
/// Order within a queue pair: completions of sends, writes and reads come in the order in which they were posted,
/// those of receives in the order of the messages. `Delivered` comes in message order as well, when the message and
/// every earlier one are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A work request or a receive is done.
    Completion(Completion),
    /// A message of the peer, and every earlier one, is complete. For observers; an application needs only
    /// completions.
    Delivered {
        /// Queue pair.
        qp: QpNum,
        /// Number of the message in the peer's direction, from 0. The peer's READ requests and its responses to READs
        /// of this end count too.
        msn: u32,
        /// Operation of the message.
        op: Operation,
        /// Bytes of the message. Zero for a READ request.
        bytes: u64,
    },
    /// A data packet was retransmitted. Reported only after
    /// [`Endpoint::report_losses`](crate::Endpoint::report_losses).
    Retransmitted {
        /// The packet.
        packet: SentPacket,
        /// Time of the retransmission.
        at: Time,
    },
    /// A retransmission timer expired. Reported only after
    /// [`Endpoint::report_losses`](crate::Endpoint::report_losses).
    TimedOut {
        /// Oldest packet that the timer covered.
        packet: SentPacket,
        /// Time of the timeout.
        at: Time,
    },
    /// The queue pair has failed. The completions of all posted requests come before this event.
    QpError {
        /// Queue pair.
        qp: QpNum,
        /// Reason of the failure.
        status: Status,
    },
}

/// A data packet of a sending queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Queue pair.
    pub qp: QpNum,
    /// PSN of the packet.
    pub psn: u64,
    /// Number of its message. `None` if no packet is outstanding, but an acknowledged READ request waits for its
    /// response.
    pub msn: Option<u32>,
    /// Path of its latest transmission. `None` in the same case.
    pub path: Option<PathId>,
}

/// A work request or a receive that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Identifier given when the request was posted.
    pub wr_id: u64,
    /// Queue pair.
    pub qp: QpNum,
    /// Result.
    pub status: Status,
    /// Kind of operation.
    pub opcode: Opcode,
    /// Bytes moved; zero unless successful. For a receive with a WRITE's immediate, the bytes written.
    pub byte_len: u64,
    /// Immediate of the message, for receives.
    pub imm: Option<u32>,
}

/// Kind of a completed operation.
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

/// Result of a work request or reason of a queue pair's failure, named after the verbs' completion statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The operation succeeded.
    Success,
    /// The peer did not answer (`IBV_WC_RETRY_EXC_ERR`).
    RetryExceeded,
    /// The peer had no receive posted for too long (`IBV_WC_RNR_RETRY_EXC_ERR`).
    RnrRetryExceeded,
    /// The peer refused key, bounds or access (`IBV_WC_REM_ACCESS_ERR`).
    RemoteAccess,
    /// The peer could not carry out the request (`IBV_WC_REM_INV_REQ_ERR`).
    RemoteInvalidRequest,
    /// A message did not fit its receive (`IBV_WC_LOC_LEN_ERR`).
    LocalLength,
    /// The peer requested memory that it may not access, or more than was agreed (`IBV_WC_LOC_QP_OP_ERR`).
    LocalOperation,
    /// The queue pair failed before the request was done (`IBV_WC_WR_FLUSH_ERR`).
    Flushed,
}
