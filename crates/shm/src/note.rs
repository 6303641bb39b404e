//! Notes between the two ends of a lane about memory that an end cannot read itself. Its bytes go through the ring.
//!
//! | byte | 0 | 1 | 2, 3 | 4 to 7 | 8 to 15 | 16 to 23 | 24 to 31 | then |
//! |---|---|---|---|---|---|---|---|---|
//! | ask | 1 | 0 | 0 | number | key | address | length | |
//! | give | 2 | 0 | 0 | number | bytes | | | |
//! | put | 3 | 1 for the last piece, else 0 | 0 | number | key | address | bytes | |
//! | done | 4 | 0 | 0 | number | | | | |
//! | deny | 5 | 0 | 0 | number | | | | |
//! | pull | 6 | 0 | 0 | number | key | address | length | address of the bytes at the sender |
//! | unable | 7 | 0 | 0 | number | | | | |
//! | withdrawn | 8 | 0 | 0 | 0 | key | | | |
//!
//! Numbers are little endian. The sender of ask, put and pull chooses the number; give, done, deny and unable repeat
//! the number that they answer.

/// Size of the largest note in bytes, without the memory behind it.
pub const MOST_NOTE_BYTES: usize = 40;

/// Location in the peer's memory. The peer checks that the key opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteLocation {
    /// Key under which the memory was opened.
    pub key: u64,
    /// Address of the first byte.
    pub address: u64,
}

/// Indicates whether more pieces follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// More pieces follow.
    Follows,
    /// This is the last piece.
    Ends,
}

/// Message about memory between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryRequest {
    /// Requests `len` bytes of the peer's memory.
    Ask {
        /// Number that the answers repeat.
        id: u32,
        /// Location of the bytes.
        from: RemoteLocation,
        /// Number of bytes.
        len: u64,
    },
    /// Carries the next requested bytes, which follow the note.
    Give {
        /// Number of the ask.
        id: u32,
    },
    /// Carries bytes for the peer's memory, which follow the note. The pieces of one put are consecutive.
    Put {
        /// Number that the answer repeats.
        id: u32,
        /// Location for the bytes of this piece.
        to: RemoteLocation,
        /// Indicates whether more pieces of this put follow.
        more: More,
    },
    /// Confirms that all pieces of a put have arrived.
    Done {
        /// Number of the put.
        id: u32,
    },
    /// Refuses a request, or a piece of a put. No further answer follows.
    Refused {
        /// Number of the ask, put or pull.
        id: u32,
    },
    /// Requests that the peer copies bytes of our memory to its own, and answers as to a put. Only the owner of
    /// memory writes to it.
    Pull {
        /// Number that the answer repeats.
        id: u32,
        /// Location for the bytes in the peer's memory.
        to: RemoteLocation,
        /// Address of the bytes in the sender's memory.
        from: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Reports that the kernel does not permit this end to copy. The bytes must be put.
    Unable {
        /// Number of the pull.
        id: u32,
    },
    /// Announces that memory under a key was closed before the peer released it. Bytes that the peer copied from
    /// there after the [count](crate::ShmChannel::peer_withdrawals) was raised are invalid.
    Withdrawn {
        /// Key of the memory.
        key: u64,
    },
}

/// Encoded note.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; MOST_NOTE_BYTES],
    len: usize,
}

impl Encoded {
    /// Returns the encoded bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn place(bytes: &[u8]) -> Option<RemoteLocation> {
    Some(RemoteLocation { key: word(bytes, 8)?, address: word(bytes, 16)? })
}

impl MemoryRequest {
    /// Encodes the note.
    pub fn encode(&self) -> Encoded {
        let mut bytes = [0; MOST_NOTE_BYTES];
        let (kind, flag, id, words) = match *self {
            MemoryRequest::Ask { id, from, len } => (1, 0, id, &[from.key, from.address, len][..]),
            MemoryRequest::Give { id } => (2, 0, id, &[][..]),
            MemoryRequest::Put { id, to, more } => {
                (3, u8::from(more == More::Ends), id, &[to.key, to.address][..])
            }
            MemoryRequest::Done { id } => (4, 0, id, &[][..]),
            MemoryRequest::Refused { id } => (5, 0, id, &[][..]),
            MemoryRequest::Pull { id, to, from, len } => (6, 0, id, &[to.key, to.address, len, from][..]),
            MemoryRequest::Unable { id } => (7, 0, id, &[][..]),
            MemoryRequest::Withdrawn { key } => (8, 0, 0, &[key][..]),
        };
        (bytes[0], bytes[1]) = (kind, flag);
        bytes[4..8].copy_from_slice(&id.to_le_bytes());
        for (into, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        Encoded { bytes, len: 8 + 8 * words.len() }
    }

    /// Decodes the note at the start of a message of `len` bytes. Returns it with the number of bytes behind it, or
    /// `None` if it is invalid. `first` is the message, or the first [`MOST_NOTE_BYTES`] of a longer one.
    pub fn decode(first: &[u8], len: usize) -> Option<(Self, usize)> {
        let (kind, flag) = (*first.first()?, *first.get(1)?);
        if first.get(2..4)? != [0, 0] || (flag != 0 && kind != 3) {
            return None;
        }
        let id = u32::from_le_bytes(first.get(4..8)?.try_into().ok()?);
        let note = match (kind, flag) {
            (1, _) => MemoryRequest::Ask { id, from: place(first)?, len: word(first, 24)? },
            (2, _) => MemoryRequest::Give { id },
            (3, 0) => MemoryRequest::Put { id, to: place(first)?, more: More::Follows },
            (3, 1) => MemoryRequest::Put { id, to: place(first)?, more: More::Ends },
            (4, _) => MemoryRequest::Done { id },
            (5, _) => MemoryRequest::Refused { id },
            (6, _) => {
                MemoryRequest::Pull { id, to: place(first)?, len: word(first, 24)?, from: word(first, 32)? }
            }
            (7, _) => MemoryRequest::Unable { id },
            (8, _) if id == 0 => MemoryRequest::Withdrawn { key: word(first, 8)? },
            _ => return None,
        };
        let behind = len.checked_sub(note.encode().len)?;
        let brings_bytes = matches!(note, MemoryRequest::Give { .. } | MemoryRequest::Put { .. });
        (brings_bytes == (behind > 0)).then_some((note, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn notes() -> impl Strategy<Value = MemoryRequest> {
        let place = (any::<u64>(), any::<u64>()).prop_map(|(key, address)| RemoteLocation { key, address });
        let more = prop_oneof![Just(More::Follows), Just(More::Ends)];
        prop_oneof![
            (any::<u32>(), place.clone(), any::<u64>()).prop_map(|(id, from, len)| MemoryRequest::Ask {
                id,
                from,
                len
            }),
            any::<u32>().prop_map(|id| MemoryRequest::Give { id }),
            (any::<u32>(), place.clone(), more).prop_map(|(id, to, more)| MemoryRequest::Put {
                id,
                to,
                more
            }),
            (any::<u32>(), place, any::<u64>(), any::<u64>())
                .prop_map(|(id, to, from, len)| MemoryRequest::Pull { id, to, from, len }),
            any::<u32>().prop_map(|id| MemoryRequest::Unable { id }),
            any::<u64>().prop_map(|key| MemoryRequest::Withdrawn { key }),
            any::<u32>().prop_map(|id| MemoryRequest::Done { id }),
            any::<u32>().prop_map(|id| MemoryRequest::Refused { id }),
        ]
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let put = MemoryRequest::Put {
            id: 0x01020304,
            to: RemoteLocation { key: 5, address: 0x0607 },
            more: More::Ends,
        };
        let bytes = [3, 1, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0, 0, 0, 0, 7, 6, 0, 0, 0, 0, 0, 0];
        assert_eq!(put.encode().as_slice(), bytes);
        assert_eq!(MemoryRequest::decode(&bytes, 25), Some((put, 1)));
        assert_eq!(MemoryRequest::decode(&bytes, 24), None, "a put without bytes");
        assert_eq!(MemoryRequest::Give { id: 1 }.encode().as_slice(), [2, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(MemoryRequest::decode(&[4, 0, 0, 0, 1, 0, 0, 0, 9], 9), None, "more than is said");
    }

    proptest! {
        #[test]
        fn notes_are_read_as_written(note in notes(), behind in 1usize..100_000) {
            let bytes = note.encode();
            let brings_bytes = matches!(note, MemoryRequest::Give { .. } | MemoryRequest::Put { .. });
            let behind = if brings_bytes { behind } else { 0 };
            let len = bytes.len + behind;
            let mut first = bytes.as_slice().to_vec();
            first.resize(len.min(MOST_NOTE_BYTES), 0xa5);
            prop_assert_eq!(MemoryRequest::decode(&first, len), Some((note, behind)));
            for short in 0..bytes.len {
                prop_assert_eq!(MemoryRequest::decode(&first[..short], short), None);
            }
        }

        /// Any bytes are either invalid or decode to a note that encodes to the same bytes.
        #[test]
        fn other_bytes_are_none(first in prop::collection::vec(any::<u8>(), 0..=MOST_NOTE_BYTES), small in any::<bool>()) {
            let mut first = first;
            if small && first.len() >= 4 {
                // Makes a valid note more likely.
                let nearer = [first[0] % 9, first[1] % 2, 0, 0];
                first[..4].copy_from_slice(&nearer);
            }
            if let Some((note, behind)) = MemoryRequest::decode(&first, first.len()) {
                let again = note.encode();
                prop_assert_eq!(again.as_slice(), &first[..first.len() - behind]);
            }
        }
    }
}
