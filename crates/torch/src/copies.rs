//! Transfers between processes of one host.
//!
//! A sender names memory in a note, a piece at a time; the receiver copies the piece and answers. A piece that cannot be
//! copied goes over the network, with the rest and all that follows.
#![allow(unsafe_code, reason = "writes to memory of tensors")]

use std::collections::HashMap;

use pathweave_collective::{Landing, OpId, PeerId, SEGMENT_BYTES, Target};
use pathweave_datapath::Slice;

/// Bytes of the longest copy: the loop does nothing else meanwhile.
const PIECE_BYTES: usize = 8 << 20;

/// Transfers of this process with others of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// Processes of this host whose memory this one copies.
    pub neighbours: u64,
    /// Copies from them.
    pub copies: u64,
    /// Bytes of the copies.
    pub bytes: u64,
    /// Processes and copies for which packets were used instead.
    pub refused: u64,
    /// Reason of the last refusal.
    pub refusal: Option<String>,
}

/// Frame between processes of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A piece of the bytes for this token is there to be copied.
    Fetch { number: u64, token: u32, piece: Piece },
    /// The piece was copied.
    Fetched { number: u64 },
    /// The piece could not be copied.
    Failed { number: u64 },
}

/// Part of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Place in the sender's process.
    pub(crate) address: u64,
    /// First byte in the transfer.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Bytes of the whole transfer.
    pub(crate) total: u64,
}

impl Piece {
    /// Returns first byte and length within memory of `room` bytes; `None` if the piece is not within it.
    pub(crate) fn within(&self, room: usize) -> Option<(usize, usize)> {
        let end = self.start.checked_add(self.bytes)?;
        (end <= self.total && self.total <= room as u64).then_some((self.start as usize, self.bytes as usize))
    }

    /// Returns true if nothing comes after it.
    pub(crate) fn is_last(&self) -> bool {
        self.start.checked_add(self.bytes) == Some(self.total)
    }
}

/// First bytes of notes, which no frame of the engine has.
const FETCH: u8 = 0xf0;
const FETCHED: u8 = 0xf1;
const FAILED: u8 = 0xf2;

impl Note {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, numbers): (u8, &[u64]) = match self {
            Note::Fetch { number, token, piece: Piece { address, start, bytes, total } } => {
                (FETCH, &[*number, u64::from(*token), *address, *start, *bytes, *total])
            }
            Note::Fetched { number } => (FETCHED, &[*number]),
            Note::Failed { number } => (FAILED, &[*number]),
        };
        let mut to = vec![kind];
        numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
        to
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (words, odd) = rest.as_chunks::<8>();
        let word = |index: usize| words.get(index).map(|word| u64::from_le_bytes(*word));
        if !odd.is_empty() {
            return None;
        }
        let number = word(0)?;
        match (kind, words.len()) {
            (&FETCH, 6) => {
                let piece = Piece { address: word(2)?, start: word(3)?, bytes: word(4)?, total: word(5)? };
                Some(Note::Fetch { number, token: u32::try_from(word(1)?).ok()?, piece })
            }
            (&FETCHED, 1) => Some(Note::Fetched { number }),
            (&FAILED, 1) => Some(Note::Failed { number }),
            _ => None,
        }
    }
}

/// An own WRITE that a neighbour carries out by copies.
pub(crate) struct Offered {
    peer: PeerId,
    /// Memory, which lives until the neighbour has copied it.
    pub(crate) memory: Slice,
    pub(crate) target: Target,
    /// Bytes that were named so far.
    named: usize,
}

/// Own WRITEs that neighbours carry out, by number.
#[derive(Default)]
pub(crate) struct Offers(HashMap<u64, Offered>);

/// Answer to a piece that was copied.
pub(crate) enum Next {
    /// The next piece.
    Note(Note),
    /// The transfer is complete.
    Complete,
}

impl Offers {
    /// Offers memory; returns the first note.
    pub(crate) fn add(&mut self, peer: PeerId, memory: Slice, target: Target, number: u64) -> Note {
        let mut offered = Offered { peer, memory, target, named: 0 };
        let note = offered.name(number);
        self.0.insert(number, offered);
        note
    }

    /// Takes note of a copy.
    pub(crate) fn copied(&mut self, peer: PeerId, number: u64) -> Option<Next> {
        let offered = self.0.get_mut(&number).filter(|offered| offered.peer == peer)?;
        if offered.named < offered.memory.len() {
            return Some(Next::Note(offered.name(number)));
        }
        self.0.remove(&number);
        Some(Next::Complete)
    }

    /// Takes back what a neighbour does not copy.
    pub(crate) fn take_back(&mut self, peer: PeerId, number: u64) -> Option<Offered> {
        self.0.get(&number).filter(|offered| offered.peer == peer)?;
        self.0.remove(&number)
    }

    /// Forgets what a peer that has gone was offered.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.0.retain(|_, offered| offered.peer != peer);
    }
}

impl Offered {
    fn name(&mut self, number: u64) -> Note {
        let (start, total) = (self.named, self.memory.len());
        let bytes = PIECE_BYTES.min(total - start);
        self.named += bytes;
        let address = (self.memory.region().as_ptr() as u64) + (self.memory.offset() + start) as u64;
        let piece = Piece { address, start: start as u64, bytes: bytes as u64, total: total as u64 };
        Note::Fetch { number, token: self.target.token, piece }
    }
}

/// Memory for WRITEs of peers, by token.
#[derive(Default)]
pub(crate) struct Landings(HashMap<u32, (PeerId, OpId, Landing)>);

impl Landings {
    pub(crate) fn add(&mut self, token: u32, peer: PeerId, op: OpId, landing: Landing) {
        self.0.insert(token, (peer, op, landing));
    }

    /// Returns what a peer may write with this token, and the number of bytes.
    pub(crate) fn get(&self, peer: PeerId, token: u32) -> Option<(OpId, Landing, usize)> {
        let (_, op, landing) = self.0.get(&token).copied().filter(|(of, ..)| *of == peer)?;
        let room = match landing {
            Landing::Span(span) => span.len,
            Landing::Scratch(_) => SEGMENT_BYTES,
        };
        Some((op, landing, room))
    }

    /// Closes what a peer has written.
    pub(crate) fn close(&mut self, peer: PeerId, token: u32) {
        if self.get(peer, token).is_some() {
            self.0.remove(&token);
        }
    }

    /// Forgets what a peer that has gone might have written.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.0.retain(|_, (of, ..)| *of != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_collective::Span;
    use pathweave_datapath::Region;

    #[test]
    fn notes_come_back_and_pieces_stay_within_their_memory() {
        let piece = Piece { address: 1 << 60, start: 3, bytes: 7, total: 10 };
        for note in [
            Note::Fetch { token: u32::MAX, number: 5, piece },
            Note::Fetched { number: 1 },
            Note::Failed { number: u64::MAX },
        ] {
            let bytes = note.encode();
            assert_eq!(Note::decode(&bytes), Some(note));
            assert!((0..bytes.len()).all(|len| Note::decode(&bytes[..len]).is_none()));
        }
        assert_eq!(Note::decode(&[1; 33]), None);
        assert_eq!((piece.within(10), piece.within(9), piece.is_last()), (Some((3, 7)), None, true));
        let beyond = Piece { bytes: u64::MAX, ..piece };
        assert_eq!((beyond.within(usize::MAX), beyond.is_last()), (None, false));
        assert!(!Piece { bytes: 6, ..piece }.is_last());
    }

    #[test]
    fn a_long_transfer_is_named_in_pieces_to_its_peer_only() {
        let region = Region::zeroed(2 * PIECE_BYTES + 5).unwrap();
        let memory = region.slice(1..2 * PIECE_BYTES + 5).unwrap();
        let target = Target { address: 0, rkey: 0, token: 9 };
        let mut offers = Offers::default();
        let mut next = Next::Note(offers.add(4, memory, target, 7));
        let (mut at, mut pieces) = (0, 0);
        while let Next::Note(Note::Fetch { number: 7, token: 9, piece }) = next {
            assert_eq!((piece.start, piece.total), (at, 2 * PIECE_BYTES as u64 + 4));
            assert_eq!(piece.address, region.as_ptr() as u64 + 1 + at);
            (at, pieces) = (at + piece.bytes, pieces + 1);
            assert_eq!(piece.is_last(), at == piece.total);
            assert!(offers.copied(5, 7).is_none() && offers.take_back(5, 7).is_none());
            next = offers.copied(4, 7).unwrap();
        }
        assert!(matches!(next, Next::Complete) && pieces == 3);
        assert!(offers.copied(4, 7).is_none());
    }

    #[test]
    fn a_token_is_of_one_peer() {
        let mut landings = Landings::default();
        let span = Landing::Span(Span::whole(0, 12));
        landings.add(1, 2, 3, span);
        assert_eq!((landings.get(2, 1), landings.get(3, 1)), (Some((3, span, 12)), None));
        landings.close(3, 1);
        assert!(landings.get(2, 1).is_some());
        landings.forget(2);
        assert_eq!(landings.get(2, 1), None);
    }
}
