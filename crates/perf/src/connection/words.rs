//! What the ends of a connection tell each other.

/// What one end tells the other, as the immediate of a message: kind in the highest byte, a number below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Server: the test can begin. The text holds the server's key.
    Ready,
    /// Client: it begins.
    Start,
    /// Client: that was all.
    Finish,
    /// Server: the text is its part of the measurement.
    Report,
    /// Server: it does not take part; the text says why.
    Refused,
    /// A message that has arrived by WRITE.
    Data,
    /// So many messages that arrived by WRITE have been checked.
    Checked(u32),
}

/// What a word can count to.
pub(crate) const LARGEST_COUNT: u32 = (1 << 24) - 1;

impl Word {
    pub(crate) fn encode(self) -> u32 {
        let (kind, count) = match self {
            Word::Ready => (1, 0),
            Word::Start => (2, 0),
            Word::Finish => (3, 0),
            Word::Report => (4, 0),
            Word::Refused => (5, 0),
            Word::Data => (6, 0),
            Word::Checked(count) => (7, count),
        };
        kind << 24 | count
    }
    pub(crate) fn decode(word: u32) -> Option<Word> {
        let all = [Word::Ready, Word::Start, Word::Finish, Word::Report, Word::Refused, Word::Data];
        match word >> 24 {
            7 => Some(Word::Checked(word & LARGEST_COUNT)),
            _ => all.into_iter().find(|known| known.encode() == word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [Word::Ready, Word::Start, Word::Finish, Word::Report, Word::Refused, Word::Data];
        for word in words.into_iter().chain([Word::Checked(1), Word::Checked(LARGEST_COUNT)]) {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        assert_eq!((Word::decode(0), Word::decode(u32::MAX), Word::decode(1 << 24 | 1)), (None, None, None));
    }
}
