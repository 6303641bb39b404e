//! A value for each message, in chunks that are made when the first of their values is set and can be let go one by one: a run
//! keeps what it knows of messages that have begun and not left.

use std::ops::Range;

/// The chunk of a message where there are so many, as a shift of its number: chunks of 8,192 at most, and 64 of them at least
/// where there are enough.
pub(crate) fn shift(messages: usize) -> u32 {
    (messages / 64).clamp(8, 1 << 13).ilog2()
}

/// How many of so many messages leave a run together, as [`Execution::leave`](crate::Execution::leave) has it.
pub fn messages_in_a_chunk(messages: usize) -> usize {
    1 << shift(messages)
}

/// So many values, all alike until they are set.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// How many values there are.
    len: usize,
    /// What values are that have not been set.
    rest: T,
    chunks: Vec<Option<Box<[T]>>>,
    shift: u32,
}

impl<T> Chunks<T> {
    /// So many, each as `rest`.
    pub(crate) fn new(len: usize, rest: T) -> Self {
        let shift = shift(len);
        Chunks { len, rest, chunks: (0..len.div_ceil(1 << shift)).map(|_| None).collect(), shift }
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The numbers of the values of a chunk.
    pub(crate) fn range(&self, chunk: usize) -> Range<u32> {
        (chunk << self.shift) as u32..((chunk + 1) << self.shift).min(self.len) as u32
    }

    /// The chunk of a value.
    pub(crate) fn chunk_of(&self, index: u32) -> usize {
        (index >> self.shift) as usize
    }

    /// The chunk of a value and its place there.
    #[inline]
    fn place(&self, index: u32) -> (usize, usize) {
        (self.chunk_of(index), index as usize & ((1 << self.shift) - 1))
    }

    /// A value; what it was before it was set if its chunk has been let go.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        let (chunk, place) = self.place(index);
        self.chunks[chunk].as_ref().map_or(&self.rest, |chunk| &chunk[place])
    }

    /// The values that may have been set, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = (0..).zip(&self.chunks).filter_map(|(number, chunk)| Some((number, chunk.as_ref()?)));
        chunks.flat_map(|(number, chunk)| self.range(number).zip(chunk))
    }

    /// A value that may have been set, to be changed.
    #[inline]
    pub(crate) fn known_mut(&mut self, index: u32) -> Option<&mut T> {
        let (chunk, place) = self.place(index);
        self.chunks[chunk].as_mut().map(|chunk| &mut chunk[place])
    }

    /// Takes a chunk, if any of its values may have been set.
    pub(crate) fn take(&mut self, chunk: usize) -> Option<Box<[T]>> {
        self.chunks[chunk].take()
    }
}

impl<T: Clone> Chunks<T> {
    /// A value, to be set.
    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> &mut T {
        let (chunk, place) = self.place(index);
        if self.chunks[chunk].is_none() {
            let fresh = vec![self.rest.clone(); self.range(chunk).len()];
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
        // Of 8 each, and a rest of 3.
        let mut values = Chunks::new(19, 0);
        assert_eq!((values.len(), values.chunks(), values.range(2)), (19, 3, 16..19));
        *values.at(18) = 7;
        *values.at(1) = 5;
        assert_eq!([0, 1, 8, 18].map(|index| *values.get(index)), [0, 5, 0, 7]);
        assert_eq!(values.known_mut(8), None);
        assert_eq!(values.iter().filter(|(_, value)| **value > 0).collect::<Vec<_>>(), [(1, &5), (18, &7)]);
        assert_eq!(values.iter().count(), 8 + 3);
        assert_eq!(values.take(0).map(|chunk| chunk[1]), Some(5));
        assert!(values.known_mut(1).is_none() && values.take(0).is_none());
        assert_eq!((*values.get(1), *values.get(18)), (0, 7));
    }
}
