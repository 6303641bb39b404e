//! Messages between the ends of a connection that are no packets of a queue pair: that it is over, and whether packets come
//! through from one address to another.
//!
//! They travel as packets do, protected or with a CRC. `docs/wire.md` has the layout.

use crate::state::ConnectionId;

/// First byte: an opcode of the manufacturer's range that no packet has.
pub(crate) const OPCODE: u8 = 0xdf;
const VERSION: u8 = 1;
/// Bytes of a message that names no pair of addresses, and of one that does.
const LEN: usize = 12;
const LEN_WITH_PAIR: usize = 16;
/// Bytes of headers before the payload of a packet of data, at most: so much longer than a payload is a question.
const BEFORE_PAYLOAD: usize = 64;

/// What an end tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The connection is over. To be answered, or it is said again.
    Close,
    /// That has been heard.
    Closed,
    /// Whether this comes through, which has come by a pair of addresses, by the sender's number of it. It is as long as the
    /// longest packet of data.
    Ask { pair: u8 },
    /// It has.
    Answer { pair: u8 },
}

/// A message with the numbers of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) message: Message,
    /// The connection as the receiver numbers it.
    pub(crate) to: u32,
    /// The connection as the sender numbers it.
    pub(crate) from: ConnectionId,
}

impl Control {
    /// Bytes it takes on a connection whose full packets have so much payload.
    pub(crate) fn len(&self, mtu_payload: u16) -> usize {
        match self.message {
            Message::Close | Message::Closed => LEN,
            Message::Ask { .. } => usize::from(mtu_payload).next_multiple_of(4) + BEFORE_PAYLOAD,
            Message::Answer { .. } => LEN_WITH_PAIR,
        }
    }

    /// Into as many bytes as it takes.
    pub(crate) fn write(&self, out: &mut [u8]) {
        let (code, pair) = match self.message {
            Message::Close => (1, None),
            Message::Closed => (2, None),
            Message::Ask { pair } => (3, Some(pair)),
            Message::Answer { pair } => (4, Some(pair)),
        };
        out.fill(0);
        out[..4].copy_from_slice(&[OPCODE, VERSION, code, 0]);
        out[4..8].copy_from_slice(&self.to.to_be_bytes());
        out[8..12].copy_from_slice(&self.from.0.to_be_bytes());
        if let Some(pair) = pair {
            out[LEN] = pair;
        }
    }

    /// `None` for anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Control> {
        let (head, rest) = bytes.split_first_chunk::<LEN>()?;
        let [OPCODE, VERSION, code, 0, ..] = *head else { return None };
        let message = match (code, rest) {
            (1, []) => Message::Close,
            (2, []) => Message::Closed,
            (3, [pair, 0, 0, 0, padding @ ..]) if padding.iter().all(|byte| *byte == 0) => {
                Message::Ask { pair: *pair }
            }
            (4, [pair, 0, 0, 0]) => Message::Answer { pair: *pair },
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
        fn comes_back(to in any::<u32>(), from in any::<u32>(), pair in any::<u8>(), mtu in 256u16..=32_576) {
            for message in
                [Message::Close, Message::Closed, Message::Ask { pair }, Message::Answer { pair }]
            {
                let control = Control { message, to, from: ConnectionId(from) };
                let mut bytes = vec![0xaa; control.len(mtu)];
                control.write(&mut bytes);
                prop_assert_eq!(Control::parse(&bytes), Some(control));
                prop_assert_eq!(Control::parse(&bytes[1..]), None);
                prop_assert_eq!(Control::parse(&bytes[..LEN - 1]), None);
                bytes.push(1);
                prop_assert_eq!(Control::parse(&bytes), None);
            }
        }

        #[test]
        fn any_bytes_are_judged(code in 0u8..6, rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&[OPCODE, VERSION, code, 0], &rest[..]].concat();
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
            "| 1 | 1 | version | 1 |",
            "| 2 | 1 | message | 1: Close; 2: Closed; 3: Ask; 4: Answer |",
            "| 3 | 1 | reserved | 0, checked |",
            "| 4 | 4 | receiver's number |",
            "| 8 | 4 | sender's number |",
            "| 12 | 1 | pair |",
            "| 13 | 3 | reserved |",
            "64 bytes more than the MTU payload",
        ] {
            assert!(section.contains(row), "{row}");
        }
        let mut bytes = [0; LEN];
        Control { message: Message::Closed, to: 0x0102_0304, from: ConnectionId(0x0506_0708) }
            .write(&mut bytes);
        assert_eq!(bytes, [0xdf, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let answer = Control { message: Message::Answer { pair: 9 }, to: 1, from: ConnectionId(2) };
        let mut bytes = [0; LEN_WITH_PAIR];
        answer.write(&mut bytes);
        assert_eq!(bytes, [0xdf, 1, 4, 0, 0, 0, 0, 1, 0, 0, 0, 2, 9, 0, 0, 0]);
    }
}
