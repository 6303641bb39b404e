//! Header of a message: its bytes before the payload.

use core::fmt;

/// Capacity of a header in bytes.
const ROOM: usize = 72;

/// Header of a message, stored inline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; ROOM],
    len: u8,
}

impl Header {
    pub(crate) const fn new() -> Self {
        Header { bytes: [0; ROOM], len: 0 }
    }
    /// Returns the bytes of the header.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// Appends bytes. The longest header has 70 bytes; a test of the wire format proves it.
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
