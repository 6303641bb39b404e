//! Byte stream of a side channel's TCP connection (docs/wire.md). The end that opens it sends a preamble. Messages of
//! `pathweave_wire` follow, in protected records unless the endpoints are insecure. This module uses no sockets and
//! no keys.

use std::ops::Range;

use thiserror::Error;

use crate::secure::{Protection, SessionId};

/// Length of a preamble, in bytes.
pub const PREAMBLE_LEN: usize = 12;
const MAGIC: u8 = 0x74;
const VERSION: u8 = 1;
/// Length of a record's header, which contains the record's length; in bytes.
pub const RECORD_HEAD: usize = 2;
/// Largest length of a record without its header, in bytes.
pub const MAX_RECORD: usize = 16_384;

/// First bytes from the end that opens a TCP connection: they name the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// Protection of records, as the handshake has negotiated.
    pub protection: Protection,
    /// Number of the association at the accepting end.
    pub to: SessionId,
    /// Number of the association at the connecting end.
    pub from: SessionId,
}

/// Violation of the stream format. The connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}, allowed: {allowed}")]
pub struct StreamError {
    /// Name of the invalid field.
    pub field: &'static str,
    /// Value of the field.
    pub value: u64,
    /// Allowed values.
    pub allowed: &'static str,
}

impl Preamble {
    /// Encodes the preamble.
    pub fn encode(&self) -> [u8; PREAMBLE_LEN] {
        let mut bytes = [0; PREAMBLE_LEN];
        bytes[..4].copy_from_slice(&[MAGIC, VERSION, self.protection.code(), 0]);
        bytes[4..8].copy_from_slice(&self.to.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.from.0.to_be_bytes());
        bytes
    }

    /// Parses the preamble at the beginning of a stream; returns `None` while it is incomplete.
    ///
    /// # Errors
    /// [`StreamError`] names the invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Option<Preamble>, StreamError> {
        let Some(bytes) = bytes.first_chunk::<PREAMBLE_LEN>() else { return Ok(None) };
        let refuse = |field, value: u8, allowed| Err(StreamError { field, value: value.into(), allowed });
        match bytes {
            [MAGIC, VERSION, _, 0, ..] => {}
            [MAGIC, VERSION, _, reserved, ..] => return refuse("reserved", *reserved, "0"),
            [MAGIC, version, ..] => return refuse("version", *version, "1"),
            [magic, ..] => return refuse("magic", *magic, "116"),
        }
        let Some(protection) = Protection::from_code(bytes[2]) else {
            return refuse("protection", bytes[2], "0 to 2");
        };
        let number = |at: usize| {
            SessionId(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
        };
        Ok(Some(Preamble { protection, to: number(4), from: number(8) }))
    }
}

/// Returns the range in `bytes` of the first record, without its header; `None` while it is incomplete.
///
/// # Errors
/// [`StreamError`] if the length is out of range.
pub fn record(bytes: &[u8]) -> Result<Option<Range<usize>>, StreamError> {
    let Some(head) = bytes.first_chunk::<RECORD_HEAD>() else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes(*head));
    if !(1..=MAX_RECORD).contains(&len) {
        return Err(StreamError { field: "record length", value: len as u64, allowed: "1 to 16384" });
    }
    Ok((bytes.len() >= RECORD_HEAD + len).then_some(RECORD_HEAD..RECORD_HEAD + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_by_hand() {
        let preamble =
            Preamble { protection: Protection::Encrypt, to: SessionId(0x0102_0304), from: SessionId(7) };
        let bytes = [0x74, 1, 2, 0, 1, 2, 3, 4, 0, 0, 0, 7];
        assert_eq!(preamble.encode(), bytes);
        assert_eq!(Preamble::parse(&[&bytes[..], &[9]].concat()), Ok(Some(preamble)));
        for len in 0..bytes.len() {
            assert_eq!(Preamble::parse(&bytes[..len]), Ok(None));
        }
        for (at, value, field) in
            [(0, 0x73, "magic"), (1, 2, "version"), (2, 3, "protection"), (3, 1, "reserved")]
        {
            let mut wrong = bytes;
            wrong[at] = value;
            let error = Preamble::parse(&wrong).unwrap_err();
            assert_eq!((error.field, error.value), (field, value.into()));
        }
    }

    #[test]
    fn records_are_bounded() {
        assert_eq!(record(&[0]), Ok(None));
        assert_eq!(record(&[0, 3, 1, 2]), Ok(None));
        assert_eq!(record(&[0, 3, 1, 2, 3, 4]), Ok(Some(2..5)));
        assert_eq!(record(&[0, 0]).unwrap_err().value, 0);
        assert_eq!(record(&[0x40, 1]).unwrap_err().value, 16_385);
    }
}
