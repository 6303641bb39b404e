//! CRCs of unprotected packets, computed and checked a batch at a time.
//!
//! The CRC of a packet is combined (XOR) with its connection's tag, so that a packet of another connection counts as
//! damaged. The connection is known only after the packet has been parsed. This module therefore computes the
//! residue, which is the CRC XOR the trailing field, and must equal the tag.
//!
//! The final steps of a CRC are a chain of dependent multiplications. The chain takes as long as the CRC of the rest
//! of a packet of 1,500 bytes. The chains of different packets are independent: without other work in between,
//! processors execute several of them in parallel. Batching also avoids reading data that has just been copied word
//! by word before it has left the store buffer.

use pathweave_wire::datagram_crc;

use crate::secure::{Recipient, recipient_of};

/// Length of the CRC behind an unprotected packet, in bytes.
pub(crate) const CRC_LEN: usize = 4;

/// Number of datagrams whose CRCs are computed or checked at a time: they still are in the first-level cache when
/// they are processed afterwards.
pub(crate) const AT_ONCE: usize = 16;

/// Combines the CRC with the tag at the end of each datagram of a batch. All have `segment_bytes` except for the
/// last.
pub(crate) fn write(batch: &mut [u8], segment_bytes: usize) {
    for datagram in batch.chunks_mut(segment_bytes.max(1)) {
        if let Some((content, end)) = datagram.split_last_chunk_mut::<CRC_LEN>() {
            *end = (datagram_crc(content) ^ u32::from_le_bytes(*end)).to_le_bytes();
        }
    }
}

/// Writes the tag of a connection's packets at the place of the CRC.
#[inline]
pub(crate) fn put_tag(end: &mut [u8], tag: u32) {
    end.copy_from_slice(&tag.to_le_bytes());
}

/// Returns the residues of up to [`AT_ONCE`] datagrams of `segment_bytes`: the tag of each, if it is intact. The
/// value for a protected or too short datagram is meaningless.
pub(crate) fn residues(datagrams: &[u8], segment_bytes: usize) -> [u32; AT_ONCE] {
    let mut residues = [0; AT_ONCE];
    for (residue, datagram) in residues.iter_mut().zip(datagrams.chunks(segment_bytes.max(1))) {
        if recipient_of(datagram) == Recipient::Plain
            && let Some((content, end)) = datagram.split_last_chunk::<CRC_LEN>()
        {
            *residue = datagram_crc(content) ^ u32::from_le_bytes(*end);
        }
    }
    residues
}

/// Returns a datagram without its CRC; empty if it is too short.
#[inline]
pub(crate) fn content(datagram: &[u8]) -> &[u8] {
    &datagram[..datagram.len().saturating_sub(CRC_LEN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_matches_until_a_bit_changes() {
        // Starts like an opcode, so it counts as unprotected. The last datagram is shorter than the others.
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
    fn protected_and_short_packets_are_skipped() {
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
