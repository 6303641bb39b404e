//! CRCs behind unprotected packets, made and compared a batch at a time.
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

/// Writes the CRC at the end of each datagram of a batch, which are of `segment_bytes` but for the last.
pub(crate) fn write(batch: &mut [u8], segment_bytes: usize) {
    for datagram in batch.chunks_mut(segment_bytes.max(1)) {
        if let Some((content, crc)) = datagram.split_last_chunk_mut::<CRC_LEN>() {
            *crc = datagram_crc(content).to_le_bytes();
        }
    }
}

/// Which of up to [`AT_ONCE`] datagrams of `segment_bytes` are unprotected and intact: bit i for the i-th.
pub(crate) fn intact(datagrams: &[u8], segment_bytes: usize) -> u32 {
    let mut intact = 0;
    for (index, datagram) in datagrams.chunks(segment_bytes.max(1)).take(AT_ONCE).enumerate() {
        intact |= u32::from(is_intact(datagram)) << index;
    }
    intact
}

#[inline]
fn is_intact(datagram: &[u8]) -> bool {
    kind_of(datagram) == Kind::Plain
        && datagram
            .split_last_chunk::<CRC_LEN>()
            .is_some_and(|(content, crc)| datagram_crc(content) == u32::from_le_bytes(*crc))
}

/// An intact datagram without its CRC.
#[inline]
pub(crate) fn content(datagram: &[u8]) -> &[u8] {
    &datagram[..datagram.len().saturating_sub(CRC_LEN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_intact_until_a_bit_changes() {
        // As an opcode begins: unprotected. The last datagram is shorter than the others.
        let mut batch = vec![0xc6; 3 * 100 + 40];
        write(&mut batch, 100);
        assert_eq!(intact(&batch, 100), 0b1111);
        assert_eq!(datagram_crc(content(&batch[..100])).to_le_bytes(), batch[96..100]);
        batch[150] ^= 1;
        batch[339] ^= 0x80;
        assert_eq!(intact(&batch, 100), 0b0101);
        assert_eq!(intact(&batch, 400), 0, "nor are they one");
    }

    #[test]
    fn what_is_protected_or_too_short_is_not_looked_at() {
        let mut batch = vec![0; 2 * 50];
        write(&mut batch, 50);
        assert_eq!(intact(&batch, 50), 0);
        let mut short = [0xc6; 3];
        write(&mut short, 3);
        assert_eq!((short, intact(&short, 3), intact(&[], 0)), ([0xc6; 3], 0, 0));
        assert!(content(&short).is_empty());
    }
}
