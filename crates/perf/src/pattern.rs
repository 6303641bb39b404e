//! Message contents that identify the message, so that the receiver can check every byte.

use pathweave_datapath::{Region, RegionError};

use crate::broken::MeasureError;

/// Bytes processed at a time. They stay in the cache.
const CHUNK_BYTES: usize = 32 << 10;
/// Chunks between two turns of the event loop, in which peers are answered. They take about 0.1 ms, or several times
/// that on a busy processor.
const CHUNKS_A_TURN: usize = 8;
const WORD_BYTES: usize = 8;
/// Odd multiplier with random-looking bits: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Generator and checker of contents, with their buffers.
pub(crate) struct Pattern {
    chunk: Vec<u8>,
    expected: Vec<u8>,
}

impl Pattern {
    pub(crate) fn new() -> Self {
        Pattern { chunk: vec![0; CHUNK_BYTES], expected: vec![0; CHUNK_BYTES] }
    }

    /// Writes the contents of message `number` to `len` bytes from `start` on. `turn` runs the event loop, here and
    /// in the functions below.
    ///
    /// # Errors
    /// If the bytes are not within the region.
    pub(crate) fn fill(
        &mut self,
        region: &Region,
        start: usize,
        len: usize,
        number: u64,
        turn: impl FnMut(),
    ) -> Result<(), RegionError> {
        self.write(region, (start, len), number, 0, turn)
    }

    /// Writes contents that differ from the message in every byte.
    ///
    /// # Errors
    /// If the bytes are not within the region.
    pub(crate) fn fill_inverted(
        &mut self,
        region: &Region,
        start: usize,
        len: usize,
        number: u64,
        turn: impl FnMut(),
    ) -> Result<(), RegionError> {
        self.write(region, (start, len), number, u8::MAX, turn)
    }

    /// Writes the contents of a message, with every byte XORed with `flip`.
    fn write(
        &mut self,
        region: &Region,
        (start, len): (usize, usize),
        number: u64,
        flip: u8,
        mut turn: impl FnMut(),
    ) -> Result<(), RegionError> {
        for (index, (at, size)) in (1..).zip(chunks(len)) {
            make(&mut self.chunk[..size], number, at);
            self.chunk[..size].iter_mut().for_each(|byte| *byte ^= flip);
            region.write(start + at, &self.chunk[..size])?;
            turn_after(index, &mut turn);
        }
        Ok(())
    }

    /// Returns the offset from `start` of the first byte that differs from message `number`.
    ///
    /// # Errors
    /// If the bytes are not within the region.
    pub(crate) fn first_wrong(
        &mut self,
        region: &Region,
        start: usize,
        len: usize,
        number: u64,
        mut turn: impl FnMut(),
    ) -> Result<Option<usize>, RegionError> {
        for (index, (at, size)) in (1..).zip(chunks(len)) {
            region.read(start + at, &mut self.chunk[..size])?;
            make(&mut self.expected[..size], number, at);
            if self.chunk[..size] != self.expected[..size] {
                let differs = self.chunk.iter().zip(&self.expected).position(|(is, should)| is != should);
                return Ok(differs.map(|offset| at + offset));
            }
            turn_after(index, &mut turn);
        }
        Ok(None)
    }
}

fn turn_after(chunks: usize, turn: &mut impl FnMut()) {
    if chunks.is_multiple_of(CHUNKS_A_TURN) {
        turn();
    }
}

fn chunks(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(CHUNK_BYTES).map(move |at| (at, CHUNK_BYTES.min(len - at)))
}

/// Fills `bytes` with message `number` from `offset` on, which must be a multiple of the word size.
fn make(bytes: &mut [u8], number: u64, offset: usize) {
    let first = (offset / WORD_BYTES) as u64;
    for (word, to) in (first..).zip(bytes.chunks_mut(WORD_BYTES)) {
        to.copy_from_slice(&mixed(number, word).to_le_bytes()[..to.len()]);
    }
}

/// Returns a word that depends on message and position, with very few collisions.
fn mixed(number: u64, word: u64) -> u64 {
    let mut value = number.wrapping_mul(STEP) ^ word.wrapping_add(1).wrapping_mul(STEP.rotate_left(32) | 1);
    value ^= value >> 29;
    value = value.wrapping_mul(STEP);
    value ^ value >> 32
}

/// Allocates zeroed memory.
///
/// # Errors
/// If there is not enough memory.
pub(crate) fn region(bytes: u64) -> Result<Region, MeasureError> {
    region_with_turns(bytes, || ())
}

/// Allocates zeroed memory, and calls `turn` again and again, so that the peer is answered meanwhile.
///
/// # Errors
/// If there is not enough memory.
pub(crate) fn region_with_turns(bytes: u64, turn: impl FnMut()) -> Result<Region, MeasureError> {
    let len =
        usize::try_from(bytes).map_err(|_| MeasureError::Local(format!("no memory for {bytes} bytes")))?;
    Ok(Region::zeroed_in_parts(len, turn)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_is_found_wherever_it_is() {
        let len = 2 * CHUNK_BYTES + 5;
        let (region, mut pattern) = (Region::zeroed(len + 3).unwrap(), Pattern::new());
        pattern.fill(&region, 3, len, 42, || ()).unwrap();
        assert_eq!(pattern.first_wrong(&region, 3, len, 42, || ()), Ok(None));
        for place in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, len - 1] {
            let mut byte = region.to_vec(3 + place..4 + place).unwrap();
            byte[0] ^= 1;
            region.write(3 + place, &byte).unwrap();
            assert_eq!(pattern.first_wrong(&region, 3, len, 42, || ()), Ok(Some(place)));
            byte[0] ^= 1;
            region.write(3 + place, &byte).unwrap();
        }
        assert!(pattern.fill(&region, 4, len, 42, || ()).is_err());
    }

    #[test]
    fn the_loop_is_turned_all_along() {
        let len = 64 * CHUNK_BYTES;
        let (region, mut pattern, mut turns) = (Region::zeroed(len).unwrap(), Pattern::new(), 0);
        pattern.fill(&region, 0, len, 1, || turns += 1).unwrap();
        pattern.fill_inverted(&region, 0, len, 1, || turns += 1).unwrap();
        pattern.fill(&region, 0, len, 2, || ()).unwrap();
        assert_eq!(pattern.first_wrong(&region, 0, len, 2, || turns += 1), Ok(None));
        assert_eq!(turns, 3 * 64 / CHUNKS_A_TURN);
    }

    #[test]
    fn messages_and_what_is_spoilt_differ_from_the_first_byte_or_nearly() {
        let (region, mut pattern) = (Region::zeroed(64).unwrap(), Pattern::new());
        let mut alike = 0;
        for number in 0..1_000 {
            pattern.fill(&region, 0, 64, number, || ()).unwrap();
            alike += usize::from(pattern.first_wrong(&region, 0, 64, number + 1, || ()) != Ok(Some(0)));
            pattern.fill_inverted(&region, 0, 64, number, || ()).unwrap();
            assert_eq!(pattern.first_wrong(&region, 0, 64, number, || ()), Ok(Some(0)));
        }
        // Of 1,000 random bytes about 4 equal their counterpart.
        assert!(alike < 20, "{alike}");
    }
}
