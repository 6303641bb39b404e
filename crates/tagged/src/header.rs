//! The first bytes of a message.

use core::fmt;

/// Most bytes of a header.
const ROOM: usize = 72;

/// The first bytes of a message, held in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; ROOM],
    len: u8,
}

impl Header {
    pub(crate) const fn new() -> Self {
        Header { bytes: [0; ROOM], len: 0 }
    }
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// The longest message of this crate has 70 bytes without payload: a test of the wire format proves it.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}
