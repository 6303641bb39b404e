//! Control messages of a connection.

/// Control message, sent as the immediate of a message. The highest byte is the kind, the rest a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Sent by the server: the test can begin. The text holds the server's key.
    Ready,
    /// Sent by the client: the test begins.
    Start,
    /// Sent by the client: it has sent its last message.
    Finish,
    /// Sent by the server: the text is its report.
    Report,
    /// Sent by the server: it refuses the test. The text is the reason.
    Refused,
    /// A data message that arrived by WRITE.
    Data,
    /// Number of messages that arrived by WRITE and have been checked.
    Checked(u32),
}

/// Largest number that a control message can carry.
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
