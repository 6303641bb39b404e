//! Requests of the application to the loop, and completions.

use std::sync::Arc;

use pathweave_transport::{Opcode, Status};

use super::address_vector::{Peer, PeerEntry};
use super::stats::{RdmPeer, RdmStats};
use crate::error::ConnectError;
use crate::region::Slice;
use crate::shared::{Answer, Room, Shared};

/// Completion of a message or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmCompletion {
    /// Identifier given when the request was posted.
    pub wr_id: u64,
    /// Destination or sender of the message; `None` for a receive that no message has taken.
    pub peer: Option<Peer>,
    /// Final status.
    pub status: Status,
    /// [`Opcode::Send`] or [`Opcode::Recv`].
    pub opcode: Opcode,
    /// Bytes of the message; zero unless successful.
    pub byte_len: u64,
}

impl RdmCompletion {
    /// Returns true if the status is success.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// Returns the bytes of the message, or the error status.
    ///
    /// # Errors
    /// The status, if it is not success.
    pub fn result(&self) -> Result<u64, Status> {
        if self.is_success() { Ok(self.byte_len) } else { Err(self.status) }
    }
}

/// Request of the application to the loop.
pub(super) enum Command {
    Send {
        to: Arc<PeerEntry>,
        wr_id: u64,
        memory: Slice,
    },
    Receive {
        from: Option<Arc<PeerEntry>>,
        wr_id: u64,
        memory: Slice,
    },
    Reach {
        peer: Arc<PeerEntry>,
        answer: Answer<Result<(), ConnectError>>,
    },
    Remove {
        peer: Arc<PeerEntry>,
        answer: Answer<()>,
    },
    /// Makes room for another peer by retiring idle ones, if necessary.
    MakeRoom {
        answer: Answer<bool>,
    },
    Peers {
        answer: Answer<Vec<RdmPeer>>,
    },
    Stats {
        answer: Answer<RdmStats>,
    },
    Stop,
}

/// Free slots for requests that are outstanding or whose completions have not been taken; separate for sends and
/// receives.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) sends: Room,
    pub(super) receives: Room,
}

pub(super) type EndpointShared = Shared<Command, RdmCompletion>;
