//! Packing of fields of any width into 32-bit words, starting at the lowest bit.

/// Packer of fields.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    words: Vec<u32>,
    bits: usize,
}

impl Writer {
    /// Creates an empty vector.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a field of `bits` bits, at most 64. Panics if the value needs more bits.
    pub fn put(mut self, value: impl Into<u64>, bits: usize) -> Self {
        let value = value.into();
        assert!(bits <= 64 && (bits == 64 || value >> bits == 0), "{value} does not fit into {bits} bits");
        for bit in 0..bits {
            if self.bits.is_multiple_of(32) {
                self.words.push(0);
            }
            let word = self.words.last_mut().expect("a word was added");
            *word |= ((value >> bit & 1) as u32) << (self.bits % 32);
            self.bits += 1;
        }
        self
    }
    /// Returns the words, padded with zeros to `count`. Panics if there are more.
    pub fn words(mut self, count: usize) -> Vec<u32> {
        assert!(self.words.len() <= count, "{} words, at most {count}", self.words.len());
        self.words.resize(count, 0);
        self.words
    }
}

/// Unpacker of fields in the order in which they were packed.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    words: &'a [u32],
    bits: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader that starts at the lowest bit.
    pub fn new(words: &'a [u32]) -> Self {
        Reader { words, bits: 0 }
    }
    /// Returns the next field of at most 64 bits. Panics beyond the end.
    pub fn take(&mut self, bits: usize) -> u64 {
        let field = (0..bits).fold(0, |field, bit| {
            let at = self.bits + bit;
            field | u64::from(self.words[at / 32] >> (at % 32) & 1) << bit
        });
        self.bits += bits;
        field
    }
    /// Returns the next bit.
    pub fn flag(&mut self) -> bool {
        self.take(1) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_out_as_they_went_in() {
        let fields = [(1u64, 1), (0x1234, 16), (0, 3), (u64::MAX, 64), (0xabcd_ef01_2345, 48), (7, 5)];
        let written = fields.iter().fold(Writer::new(), |writer, &(value, bits)| writer.put(value, bits));
        let words = written.words(6);
        assert_eq!(words[0], 1 | 0x1234 << 1 | 0xfff << 20);
        let mut reader = Reader::new(&words);
        for (value, bits) in fields {
            assert_eq!(reader.take(bits), value);
        }
    }
}
