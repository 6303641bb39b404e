//! One value a message, stored in chunks. A chunk is allocated when the first of its values is set, and chunks are
//! freed one by one. A run thus keeps only the state of messages that have begun and have not left.

use std::ops::Range;

/// Returns the size of a chunk for a run of this many messages, as a shift: a power of two between 8 and 8,192. There
/// are at least 64 chunks if the messages suffice for chunks of 8.
pub(crate) fn shift(messages: usize) -> u32 {
    (messages / 64).clamp(8, 1 << 13).ilog2()
}

/// Returns the number of messages that leave together in a run of `messages` messages, see
/// [`Execution::leave`](crate::Execution::retire_chunk).
pub fn messages_in_a_chunk(messages: usize) -> usize {
    1 << shift(messages)
}

/// A vector of `len` values in chunks. Each value equals `rest` until it is set.
#[derive(Debug)]
pub(crate) struct ChunkedVec<T> {
    /// Number of values.
    len: usize,
    /// Value of every index that has not been set.
    default_value: T,
    chunks: Vec<Option<Box<[T]>>>,
    shift: u32,
}

impl<T> ChunkedVec<T> {
    /// Creates `len` values, each equal to `rest`.
    pub(crate) fn new(len: usize, rest: T) -> Self {
        let shift = shift(len);
        ChunkedVec {
            len,
            default_value: rest,
            chunks: (0..len.div_ceil(1 << shift)).map(|_| None).collect(),
            shift,
        }
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of chunks, allocated or not.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the indices of the values in `chunk`.
    pub(crate) fn range(&self, chunk: usize) -> Range<u32> {
        (chunk << self.shift) as u32..((chunk + 1) << self.shift).min(self.len) as u32
    }

    /// Returns the chunk that holds the value `index`.
    pub(crate) fn chunk_of(&self, index: u32) -> usize {
        (index >> self.shift) as usize
    }

    /// Returns the chunk of a value and the offset within that chunk.
    #[inline]
    fn chunk_and_offset(&self, index: u32) -> (usize, usize) {
        (self.chunk_of(index), index as usize & ((1 << self.shift) - 1))
    }

    /// Returns a value: `rest` if it was never set, or if its chunk has been freed.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let (chunk, place) = self.chunk_and_offset(index);
        self.chunks[chunk].as_ref().map_or(&self.default_value, |chunk| &chunk[place])
    }

    /// Iterates over all values of the allocated chunks, with their indices. Some of them may never have been set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = (0..).zip(&self.chunks).filter_map(|(number, chunk)| Some((number, chunk.as_ref()?)));
        chunks.flat_map(|(number, chunk)| self.range(number).zip(chunk))
    }

    /// Returns a value for modification, or `None` if its chunk is not allocated.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        let (chunk, place) = self.chunk_and_offset(index);
        self.chunks[chunk].as_mut().map(|chunk| &mut chunk[place])
    }

    /// Removes and returns a chunk, or returns `None` if it is not allocated.
    pub(crate) fn take(&mut self, chunk: usize) -> Option<Box<[T]>> {
        self.chunks[chunk].take()
    }
}

impl<T: Clone> ChunkedVec<T> {
    /// Returns a value to be set. Allocates its chunk if necessary.
    #[inline]
    pub(crate) fn get_or_allocate(&mut self, index: u32) -> &mut T {
        let (chunk, place) = self.chunk_and_offset(index);
        if self.chunks[chunk].is_none() {
            let fresh = vec![self.default_value.clone(); self.range(chunk).len()];
            self.chunks[chunk] = Some(fresh.into());
        }
        &mut self.chunks[chunk].as_mut().expect("it was just made")[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_neither_too_many_nor_too_large() {
        assert_eq!([0, 100, 1_024, 100_000, 10_000_000].map(shift), [3, 3, 4, 10, 13]);
    }

    #[test]
    fn values_are_there_when_they_are_set_and_go_by_chunks() {
        // Two chunks of 8 values, and one of 3.
        let mut values = ChunkedVec::new(19, 0);
        assert_eq!((values.len(), values.chunks(), values.range(2)), (19, 3, 16..19));
        *values.get_or_allocate(18) = 7;
        *values.get_or_allocate(1) = 5;
        assert_eq!([0, 1, 8, 18].map(|index| *values.get(index)), [0, 5, 0, 7]);
        assert_eq!(values.get_mut(8), None);
        assert_eq!(values.iter().filter(|(_, value)| **value > 0).collect::<Vec<_>>(), [(1, &5), (18, &7)]);
        assert_eq!(values.iter().count(), 8 + 3);
        assert_eq!(values.take(0).map(|chunk| chunk[1]), Some(5));
        assert!(values.get_mut(1).is_none() && values.take(0).is_none());
        assert_eq!((*values.get(1), *values.get(18)), (0, 7));
    }
}
