//! Division of a vector into parts.

/// A vector divided into parts whose sizes differ by a byte at most. The first parts take the remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) bytes: u64,
    pub(crate) parts: usize,
}

impl Partition {
    /// Returns the offset of the first byte of a part.
    fn offset(self, part: usize) -> u64 {
        let (part, parts) = (part as u64, self.parts as u64);
        self.bytes / parts * part + part.min(self.bytes % parts)
    }
    /// Returns the bytes of the parts `first .. first + count`.
    pub(crate) fn bytes(self, first: usize, count: usize) -> u64 {
        self.offset(first + count) - self.offset(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parts_take_what_is_left_over() {
        let cut = Partition { bytes: 10, parts: 4 };
        assert_eq!([0, 1, 2, 3].map(|part| cut.bytes(part, 1)), [3, 3, 2, 2]);
        assert_eq!((cut.bytes(0, 4), cut.bytes(1, 2), cut.bytes(2, 0)), (10, 5, 0));
    }
}
