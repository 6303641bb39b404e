//! What the application learns of its requests.

use pathweave_transport::{Opcode, Status};

use crate::state::ConnectionId;

/// A request or a receive that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The connection it was posted to.
    pub connection: ConnectionId,
    /// As given when it was posted.
    pub wr_id: u64,
    /// How it ended.
    pub status: Status,
    /// What was done.
    pub opcode: Opcode,
    /// Bytes moved; zero unless successful. For a receive with a WRITE's immediate, the bytes written.
    pub byte_len: u64,
    /// Immediate of the message, for receives.
    pub imm: Option<u32>,
}

impl Completion {
    /// Whether it ended well.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// Bytes moved, or what went wrong.
    ///
    /// # Errors
    /// The status, if it is not success.
    pub fn result(&self) -> Result<u64, Status> {
        if self.is_success() { Ok(self.byte_len) } else { Err(self.status) }
    }
}
