//! What the application asks of the loop, and what it is told.

use std::sync::Arc;

use pathweave_transport::{Opcode, Status};

use super::address_vector::{Peer, PeerEntry};
use super::stats::{RdmPeer, RdmStats};
use crate::error::ConnectError;
use crate::region::Slice;
use crate::shared::{Answer, Room, Shared};

/// A message or a receive that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmCompletion {
    /// As given when it was posted.
    pub wr_id: u64,
    /// To whom the message went, or who sent it; `None` for a receive that no message has taken.
    pub peer: Option<Peer>,
    /// How it ended.
    pub status: Status,
    /// [`Opcode::Send`] or [`Opcode::Recv`].
    pub opcode: Opcode,
    /// Bytes of the message; zero unless successful.
    pub byte_len: u64,
}

impl RdmCompletion {
    /// Whether it ended well.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// Bytes of the message, or what went wrong.
    ///
    /// # Errors
    /// The status, if it is not success.
    pub fn result(&self) -> Result<u64, Status> {
        if self.is_success() { Ok(self.byte_len) } else { Err(self.status) }
    }
}

/// What the application asks of the loop.
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
    /// Peers that are idle make room for another one, if need be.
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

/// Requests that may be under way or not taken out; one half each.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) sends: Room,
    pub(super) receives: Room,
}

pub(super) type EndpointShared = Shared<Command, RdmCompletion>;
