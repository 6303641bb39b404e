//! Messages between the ends of a connection that do not belong to a queue pair. They report that the connection has
//! ended, and test whether packets arrive from one address at another.
//!
//! They travel as packets do, protected or with a CRC. `docs/wire.md` has the layout.

use crate::state::ConnectionId;

/// First byte: an opcode of the manufacturer's range that no packet has.
pub(crate) const OPCODE: u8 = 0xdf;
/// Version of messages without an address pair, and version of messages with one.
const VERSION: u8 = 1;
const VERSION_OF_PAIRS: u8 = 2;
/// Length of a message without an address pair, and with one (without padding), in bytes.
const LEN: usize = 12;
const LEN_WITH_PAIR: usize = 24;
/// Largest size of the headers before the payload of a data packet, in bytes. A full Ask is longer than a payload by
/// this much.
const BEFORE_PAYLOAD: usize = 64;

/// Content of a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The connection has ended. The sender repeats it until it is answered.
    Close,
    /// Acknowledges `Close`.
    Closed,
    /// Tests an address pair, which is numbered by the sender. The peer answers it if it arrives. No other message
    /// contains the secret.
    Ask { pair: u8, secret: u64 },
    /// Acknowledges an Ask that has arrived, and repeats its secret.
    Answer { pair: u8, secret: u64 },
}

/// Length of an Ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Length of an Answer: for addresses that are not validated.
    Short,
    /// Length of the longest data packet.
    Full,
}

/// Control message with the numbers of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) message: Message,
    /// Connection number of the receiver.
    pub(crate) to: u32,
    /// Connection number of the sender.
    pub(crate) from: ConnectionId,
}

impl Control {
    /// Returns the length in bytes on a connection with this MTU payload. `length` matters for an Ask only.
    pub(crate) fn len(&self, length: Length, mtu_payload: u16) -> usize {
        match (self.message, length) {
            (Message::Close | Message::Closed, _) => LEN,
            (Message::Ask { .. }, Length::Full) => {
                usize::from(mtu_payload).next_multiple_of(4) + BEFORE_PAYLOAD
            }
            (Message::Ask { .. }, Length::Short) | (Message::Answer { .. }, _) => LEN_WITH_PAIR,
        }
    }

    /// Writes the message into `out`, which must have the length of [`Control::len`].
    pub(crate) fn write(&self, out: &mut [u8]) {
        let (version, code, pair) = match self.message {
            Message::Close => (VERSION, 1, None),
            Message::Closed => (VERSION, 2, None),
            Message::Ask { pair, secret } => (VERSION_OF_PAIRS, 3, Some((pair, secret))),
            Message::Answer { pair, secret } => (VERSION_OF_PAIRS, 4, Some((pair, secret))),
        };
        out.fill(0);
        out[..4].copy_from_slice(&[OPCODE, version, code, 0]);
        out[4..8].copy_from_slice(&self.to.to_be_bytes());
        out[8..12].copy_from_slice(&self.from.0.to_be_bytes());
        if let Some((pair, secret)) = pair {
            out[LEN] = pair;
            out[LEN + 4..LEN_WITH_PAIR].copy_from_slice(&secret.to_be_bytes());
        }
    }

    /// Parses a message; returns `None` for anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Control> {
        let (head, rest) = bytes.split_first_chunk::<LEN>()?;
        let [OPCODE, version, code, 0, ..] = *head else { return None };
        let message = match (version, code, rest) {
            (VERSION, 1, []) => Message::Close,
            (VERSION, 2, []) => Message::Closed,
            (VERSION_OF_PAIRS, 3 | 4, [pair, 0, 0, 0, rest @ ..]) => {
                let (secret, padding) = rest.split_first_chunk::<8>()?;
                let (pair, secret) = (*pair, u64::from_be_bytes(*secret));
                match code {
                    3 if padding.iter().all(|byte| *byte == 0) => Message::Ask { pair, secret },
                    4 if padding.is_empty() => Message::Answer { pair, secret },
                    _ => return None,
                }
            }
            _ => return None,
        };
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Some(Control { message, to: number(4), from: ConnectionId(number(8)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DOC: &str = include_str!("../../../../docs/wire.md");

    proptest! {
        #[test]
        fn comes_back(
            to in any::<u32>(), from in any::<u32>(), pair in any::<u8>(), secret in any::<u64>(), mtu in 256u16..=32_576,
            full in any::<bool>(),
        ) {
            let length = if full { Length::Full } else { Length::Short };
            let (ask, answer) = (Message::Ask { pair, secret }, Message::Answer { pair, secret });
            for message in [Message::Close, Message::Closed, ask, answer] {
                let control = Control { message, to, from: ConnectionId(from) };
                let mut bytes = vec![0xaa; control.len(length, mtu)];
                control.write(&mut bytes);
                prop_assert_eq!(Control::parse(&bytes), Some(control));
                prop_assert_eq!(Control::parse(&bytes[1..]), None);
                prop_assert_eq!(Control::parse(&bytes[..LEN - 1]), None);
                bytes.push(1);
                prop_assert_eq!(Control::parse(&bytes), None);
            }
        }

        #[test]
        fn any_bytes_are_judged(version in 0u8..4, code in 0u8..6, rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&[OPCODE, version, code, 0], &rest[..]].concat();
            if let Some(control) = Control::parse(&bytes) {
                let mut again = vec![0; bytes.len()];
                control.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn lies_where_the_document_says() {
        let start = DOC.find("\n## Connection control\n").expect("its section");
        let section = &DOC[start..];
        for row in [
            "| 0 | 1 | opcode | 0xdf |",
            "| 1 | 1 | version | 1 of Close and Closed, 2 of Ask and Answer |",
            "| 2 | 1 | message | 1: Close; 2: Closed; 3: Ask; 4: Answer |",
            "| 3 | 1 | reserved | 0, checked |",
            "| 4 | 4 | receiver's number |",
            "| 8 | 4 | sender's number |",
            "| 12 | 1 | pair |",
            "| 13 | 3 | reserved |",
            "| 16 | 8 | secret |",
            "64 bytes more than the MTU payload",
        ] {
            assert!(section.contains(row), "{row}");
        }
        let mut bytes = [0; LEN];
        Control { message: Message::Closed, to: 0x0102_0304, from: ConnectionId(0x0506_0708) }
            .write(&mut bytes);
        assert_eq!(bytes, [0xdf, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let message = Message::Answer { pair: 9, secret: 0x0b0c_0d0e_0f10_1112 };
        let answer = Control { message, to: 1, from: ConnectionId(2) };
        let mut bytes = [0; LEN_WITH_PAIR];
        answer.write(&mut bytes);
        let secret = [0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12];
        assert_eq!(bytes[..LEN_WITH_PAIR - 8], [0xdf, 2, 4, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 0, 0, 0]);
        assert_eq!(bytes[LEN_WITH_PAIR - 8..], secret);
    }

    #[test]
    fn a_short_question_is_as_long_as_its_answer() {
        let of = |message, length| Control { message, to: 1, from: ConnectionId(2) }.len(length, 1_343);
        let (ask, answer) = (Message::Ask { pair: 0, secret: 0 }, Message::Answer { pair: 0, secret: 0 });
        assert_eq!([of(ask, Length::Short), of(answer, Length::Short), of(answer, Length::Full)], [24; 3]);
        assert_eq!(of(ask, Length::Full), 1_344 + 64);
    }
}
