//! Requests of an application to an endpoint.

use core::fmt;

/// Longest message, in bytes (inclusive).
pub const MAX_MESSAGE_BYTES: u64 = 1 << 32;

/// Memory of the application: an address or a handle, opaque to the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer(pub u64);

/// A request to send, write or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Identifier returned in the completion.
    pub wr_id: u64,
    /// Operation.
    pub op: Op,
    /// Local memory: the source of the bytes, or the destination of a READ.
    pub local: Buffer,
    /// Number of bytes, up to [`MAX_MESSAGE_BYTES`].
    pub len: u64,
}

/// Operation of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sends to the next receive of the peer.
    Send,
    /// Sends to the next receive of the peer, with an immediate.
    SendImm {
        /// Immediate, delivered with the receive completion.
        imm: u32,
    },
    /// Writes to the peer's memory.
    Write {
        /// Key of the peer's memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
    },
    /// Writes to the peer's memory and consumes a receive to deliver an immediate.
    WriteImm {
        /// Key of the peer's memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
        /// Immediate, delivered with the receive completion.
        imm: u32,
    },
    /// Reads the peer's memory.
    Read {
        /// Key of the peer's memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
    },
}

/// A buffer for one message of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvRequest {
    /// Identifier returned in the completion.
    pub wr_id: u64,
    /// Destination of the message.
    pub buffer: Buffer,
    /// Size of the buffer in bytes. A longer message fails the queue pair.
    pub len: u64,
}

/// Reason why a call with a queue pair number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The queue pair does not exist, or no longer.
    UnknownQp,
    /// The queue pair has failed. Destroy it and create a new one.
    QpFailed,
    /// The message has more than [`MAX_MESSAGE_BYTES`].
    TooLong {
        /// Requested length.
        len: u64,
    },
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostError::UnknownQp => f.write_str("no such queue pair"),
            PostError::QpFailed => f.write_str("the queue pair has failed"),
            PostError::TooLong { len } => {
                write!(f, "a message of {len} bytes; at most {MAX_MESSAGE_BYTES} bytes are allowed")
            }
        }
    }
}
impl core::error::Error for PostError {}

/// Returns the bytes of part `part` of a message of `size` bytes that is divided over `parts` queue pairs. Parts are
/// as even as possible; the first ones are one byte longer. A buffer for a part of a message also fits that part of
/// any shorter one.
pub const fn part_bytes(size: u64, part: u64, parts: u64) -> u64 {
    size / parts + (part < size % parts) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_complete() {
        let parts: alloc::vec::Vec<u64> = (0..16).map(|p| part_bytes(8_000_003, p, 16)).collect();
        assert_eq!(parts.iter().sum::<u64>(), 8_000_003);
        assert_eq!((parts[0], parts[2], parts[3]), (500_001, 500_001, 500_000));
    }
}
