//! Messages between the two ends of a connection: a note that announces a group of receives, and the immediate of a
//! WRITE into one of them.

use crate::abi::{MAX_BYTES, MAX_RECEIVES};

const HEAD_BYTES: usize = 8;
const ENTRY_BYTES: usize = 28;
/// Bytes of the longest note.
pub(crate) const MAX_NOTE_BYTES: usize = HEAD_BYTES + MAX_RECEIVES * ENTRY_BYTES;

/// Number of a group: counts from 0, and wraps around.
pub(crate) const GROUP_BITS: u32 = 28;

/// A receive of a group, as the sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: u64,
    pub(crate) rkey: u64,
    pub(crate) bytes: usize,
    pub(crate) tag: i32,
}

/// Group of receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Number of the group.
    pub(crate) group: u32,
    /// Receives, 1 to 8.
    pub(crate) entries: Vec<Entry>,
}

impl Note {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAX_NOTE_BYTES);
        bytes.extend(self.group.to_le_bytes());
        bytes.extend((self.entries.len() as u32).to_le_bytes());
        for Entry { address, rkey, bytes: room, tag } in &self.entries {
            bytes.extend(address.to_le_bytes());
            bytes.extend(rkey.to_le_bytes());
            bytes.extend((*room as u64).to_le_bytes());
            bytes.extend(tag.to_le_bytes());
        }
        bytes
    }

    /// Parses a note of a peer; `None` if it is not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (group, rest) = bytes.split_first_chunk()?;
        let (count, mut rest) = rest.split_first_chunk()?;
        let count = u32::from_le_bytes(*count) as usize;
        let group = u32::from_le_bytes(*group);
        if !(1..=MAX_RECEIVES).contains(&count)
            || rest.len() != count * ENTRY_BYTES
            || group >> GROUP_BITS != 0
        {
            return None;
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let mut number = || {
                let (number, behind) = rest.split_first_chunk()?;
                rest = behind;
                Some(u64::from_le_bytes(*number))
            };
            let (address, rkey, room) = (number()?, number()?, number()?);
            let (tag, behind) = rest.split_first_chunk()?;
            rest = behind;
            let bytes = usize::try_from(room).ok().filter(|bytes| *bytes <= MAX_BYTES)?;
            entries.push(Entry { address, rkey, bytes, tag: i32::from_le_bytes(*tag) });
        }
        Some(Note { group, entries })
    }
}

/// Content of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The message.
    Message,
    /// Nothing, for the message is longer than its receive.
    TooLong,
}

/// Immediate of a WRITE: the receive that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Immediate {
    pub(crate) content: Content,
    pub(crate) group: u32,
    pub(crate) entry: usize,
}

/// Bytes of each message of a finished request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) count: usize,
    pub(crate) bytes: [usize; MAX_RECEIVES],
}

const TOO_LONG: u32 = 1 << 31;

impl Immediate {
    pub(crate) fn encode(self) -> u32 {
        let flag = match self.content {
            Content::Message => 0,
            Content::TooLong => TOO_LONG,
        };
        flag | (self.group & ((1 << GROUP_BITS) - 1)) << 3 | self.entry as u32 & 7
    }

    pub(crate) fn decode(imm: u32) -> Self {
        Immediate {
            content: if imm & TOO_LONG == 0 { Content::Message } else { Content::TooLong },
            group: (imm & !TOO_LONG) >> 3,
            entry: (imm & 7) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        Entry { address: number << 40, rkey: !number, bytes: number as usize, tag: -(number as i32) }
    }

    #[test]
    fn notes_come_back_and_others_are_none() {
        assert_eq!(MAX_NOTE_BYTES, 232);
        for count in 1..=8 {
            let note = Note { group: (1 << GROUP_BITS) - 1, entries: (0..count).map(entry).collect() };
            let bytes = note.encode();
            assert_eq!(bytes.len(), 8 + 28 * count as usize);
            assert_eq!(Note::decode(&bytes), Some(note));
            assert!((0..bytes.len()).all(|len| Note::decode(&bytes[..len]).is_none()));
        }
        let mut long = Note { group: 0, entries: vec![entry(1)] };
        long.entries[0].bytes = MAX_BYTES + 1;
        assert_eq!(Note::decode(&long.encode()), None, "longer than any message");
        assert_eq!(Note::decode(&[0; 8]), None, "no receive");
    }

    #[test]
    fn immediates_come_back() {
        for content in [Content::Message, Content::TooLong] {
            for (group, entry) in [(0, 0), ((1 << GROUP_BITS) - 1, 7), (12_345, 3)] {
                let imm = Immediate { content, group, entry };
                assert_eq!(Immediate::decode(imm.encode()), imm);
            }
        }
    }
}
