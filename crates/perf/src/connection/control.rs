//! Control messages of a connection.

/// Control message, sent as the immediate of a message. The highest byte is the kind, the rest a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
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

impl ControlMessage {
    pub(crate) fn encode(self) -> u32 {
        let (kind, count) = match self {
            ControlMessage::Ready => (1, 0),
            ControlMessage::Start => (2, 0),
            ControlMessage::Finish => (3, 0),
            ControlMessage::Report => (4, 0),
            ControlMessage::Refused => (5, 0),
            ControlMessage::Data => (6, 0),
            ControlMessage::Checked(count) => (7, count),
        };
        kind << 24 | count
    }
    pub(crate) fn decode(word: u32) -> Option<ControlMessage> {
        let all = [
            ControlMessage::Ready,
            ControlMessage::Start,
            ControlMessage::Finish,
            ControlMessage::Report,
            ControlMessage::Refused,
            ControlMessage::Data,
        ];
        match word >> 24 {
            7 => Some(ControlMessage::Checked(word & LARGEST_COUNT)),
            _ => all.into_iter().find(|known| known.encode() == word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [
            ControlMessage::Ready,
            ControlMessage::Start,
            ControlMessage::Finish,
            ControlMessage::Report,
            ControlMessage::Refused,
            ControlMessage::Data,
        ];
        for word in
            words.into_iter().chain([ControlMessage::Checked(1), ControlMessage::Checked(LARGEST_COUNT)])
        {
            assert_eq!(ControlMessage::decode(word.encode()), Some(word));
        }
        assert_eq!(
            (
                ControlMessage::decode(0),
                ControlMessage::decode(u32::MAX),
                ControlMessage::decode(1 << 24 | 1)
            ),
            (None, None, None)
        );
    }
}
