//! Completions of requests.

use pathweave_transport::{Opcode, Status};

use crate::state::ConnectionId;

/// Completion of a request or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Connection to which it was posted.
    pub connection: ConnectionId,
    /// Identifier given when it was posted.
    pub wr_id: u64,
    /// Final status.
    pub status: Status,
    /// Operation.
    pub opcode: Opcode,
    /// Bytes transferred; zero unless successful. For a receive consumed by a WRITE with immediate: the bytes
    /// written.
    pub byte_len: u64,
    /// Immediate of the message, for receives.
    pub imm: Option<u32>,
}

impl Completion {
    /// Returns true if the status is success.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// Returns the bytes transferred, or the error status.
    ///
    /// # Errors
    /// The status, if it is not success.
    pub fn result(&self) -> Result<u64, Status> {
        if self.is_success() { Ok(self.byte_len) } else { Err(self.status) }
    }
}
