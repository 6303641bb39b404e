//! CRCs behind unprotected packets, made and compared a batch at a time.
//!
//! A connection's CRCs are combined (XOR) with a tag of its own, so that a packet of another connection is as good as a
//! damaged one. Which connection a packet is of is known only once it has been looked into; hence what is computed here is
//! the residue, CRC XOR what stands at the end, and must be the tag.
//!
//! The end of a CRC is a chain of multiplications that wait for one another, as long as the CRC of all the rest of a
//! packet of 1,500 bytes. Packets' chains are independent: where nothing else is done between two of them, processors
//! work at several at once. And what has just been copied word by word is not read until it has left the store buffer.

use pathweave_wire::datagram_crc;

use crate::secure::{Kind, kind_of};

/// Bytes of the CRC behind an unprotected packet.
pub(crate) const CRC_LEN: usize = 4;

/// Datagrams whose CRCs are made or compared at a time: what they take of a first-level cache is still there when they are
/// looked at.
pub(crate) const AT_ONCE: usize = 16;

/// Puts the CRC to the tag at the end of each datagram of a batch, which are of `segment_bytes` but for the last.
pub(crate) fn write(batch: &mut [u8], segment_bytes: usize) {
    for datagram in batch.chunks_mut(segment_bytes.max(1)) {
        if let Some((content, end)) = datagram.split_last_chunk_mut::<CRC_LEN>() {
            *end = (datagram_crc(content) ^ u32::from_le_bytes(*end)).to_le_bytes();
        }
    }
}

/// Writes the tag of a connection's packets where the CRC will be.
#[inline]
pub(crate) fn put_tag(end: &mut [u8], tag: u32) {
    end.copy_from_slice(&tag.to_le_bytes());
}

/// Of up to [`AT_ONCE`] datagrams of `segment_bytes`, which tag each has if it is intact. Of one that is protected, or too
/// short, the answer means nothing.
pub(crate) fn residues(datagrams: &[u8], segment_bytes: usize) -> [u32; AT_ONCE] {
    let mut residues = [0; AT_ONCE];
    for (residue, datagram) in residues.iter_mut().zip(datagrams.chunks(segment_bytes.max(1))) {
        if kind_of(datagram) == Kind::Plain
            && let Some((content, end)) = datagram.split_last_chunk::<CRC_LEN>()
        {
            *residue = datagram_crc(content) ^ u32::from_le_bytes(*end);
        }
    }
    residues
}

/// A datagram without its CRC; nothing of one that is too short for it.
#[inline]
pub(crate) fn content(datagram: &[u8]) -> &[u8] {
    &datagram[..datagram.len().saturating_sub(CRC_LEN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_has_its_tag_until_a_bit_changes() {
        // As an opcode begins: unprotected. The last datagram is shorter than the others.
        let mut batch = vec![0xc6; 3 * 100 + 40];
        let tags = [0, 7, 0xffff_ffff, 0x1234_5678];
        for (datagram, tag) in batch.chunks_mut(100).zip(tags) {
            put_tag(datagram.last_chunk_mut::<CRC_LEN>().unwrap(), tag);
        }
        write(&mut batch, 100);
        assert_eq!(residues(&batch, 100)[..5], [0, 7, 0xffff_ffff, 0x1234_5678, 0]);
        assert_eq!(
            datagram_crc(content(&batch[..100])).to_le_bytes(),
            batch[96..100],
            "of tag 0 it is the CRC"
        );
        batch[150] ^= 1;
        batch[339] ^= 0x80;
        let damaged = residues(&batch, 100);
        assert_eq!((damaged[0], damaged[2]), (tags[0], tags[2]));
        assert!(damaged[1] != tags[1] && damaged[3] != tags[3], "{damaged:x?}");
    }

    #[test]
    fn what_is_protected_or_too_short_is_not_looked_at() {
        let mut batch = vec![0; 2 * 50];
        write(&mut batch, 50);
        assert_eq!(residues(&batch, 50), [0; AT_ONCE]);
        let mut short = [0xc6; 3];
        write(&mut short, 3);
        assert_eq!((short, residues(&short, 3)), ([0xc6; 3], [0; AT_ONCE]));
        assert_eq!(residues(&[], 0), [0; AT_ONCE]);
        assert!(content(&short).is_empty());
    }
}
