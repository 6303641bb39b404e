//! What an application asks of an endpoint.

use core::fmt;

/// Longest message, in bytes (inclusive).
pub const MAX_MESSAGE_BYTES: u64 = 1 << 32;

/// Memory of the application: an address or a handle, opaque to the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer(pub u64);

/// A request to send, write or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// Returned in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: Op,
    /// Where the bytes come from; for a READ, where they go.
    pub local: Buffer,
    /// How many bytes, up to [`MAX_MESSAGE_BYTES`].
    pub len: u64,
}

/// What a work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// To the next receive of the other end.
    Send,
    /// To the next receive of the other end, with an immediate.
    SendImm {
        /// Delivered with the receive completion.
        imm: u32,
    },
    /// To the other end's memory.
    Write {
        /// Key of its memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
    },
    /// To the other end's memory; consumes a receive to deliver an immediate.
    WriteImm {
        /// Key of its memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
        /// Delivered with the receive completion.
        imm: u32,
    },
    /// From the other end's memory.
    Read {
        /// Key of its memory region.
        rkey: u64,
        /// Address within the region.
        remote_addr: u64,
    },
}

/// A buffer for one message of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvRequest {
    /// Returned in the completion.
    pub wr_id: u64,
    /// Where the message goes.
    pub buffer: Buffer,
    /// Room in bytes; a longer message fails the queue pair.
    pub len: u64,
}

/// Why a call with a queue pair number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// No such queue pair, or it has been destroyed.
    UnknownQp,
    /// The queue pair has failed; destroy it and make a new one.
    QpFailed,
    /// More than [`MAX_MESSAGE_BYTES`].
    TooLong {
        /// The length asked for.
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

/// Bytes of part `part` of `parts` of a message that is divided over as many queue pairs: as even as can be, the first
/// ones a byte longer. What a part of a shorter message takes also fits that part of a longer one.
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
