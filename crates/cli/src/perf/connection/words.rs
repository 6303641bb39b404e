//! What the ends tell each other, and how a measurement can break.

use std::fmt;
use std::time::Duration;

use pathweave_datapath::{CloseReason, Opcode, PostError, RegionError, Status};

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

/// Why a measurement did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A request failed.
    Request { opcode: Opcode, status: Status, reason: Option<CloseReason> },
    /// The other end has closed the connection.
    Closed,
    /// Nothing was heard for too long.
    Silent(Duration),
    /// The other end says what does not make sense.
    Nonsense(String),
    /// The other end does not take part.
    Refused(String),
    /// This end's own memory or device.
    Own(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Request { opcode, status, reason } => {
                write!(f, "a {opcode:?} failed: {status:?}")?;
                match reason {
                    Some(CloseReason::PeerSilent) => f.write_str(" (the other end no longer answers)"),
                    Some(CloseReason::Peer) => f.write_str(" (the other end has closed the connection)"),
                    _ => Ok(()),
                }
            }
            Broken::Closed => f.write_str("the other end has closed the connection"),
            Broken::Silent(span) => write!(f, "nothing was heard for {span:?}"),
            Broken::Nonsense(what) => write!(f, "the other end does not speak as expected: {what}"),
            Broken::Refused(why) => write!(f, "the server refuses: {why}"),
            Broken::Own(what) => f.write_str(what),
        }
    }
}

impl From<PostError> for Broken {
    fn from(why: PostError) -> Self {
        match why {
            PostError::Closed => Broken::Closed,
            why => Broken::Own(why.to_string()),
        }
    }
}

impl From<RegionError> for Broken {
    fn from(why: RegionError) -> Self {
        Broken::Own(why.to_string())
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
