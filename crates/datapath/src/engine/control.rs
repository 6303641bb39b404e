//! Messages between the ends of a connection that are no packets of a queue pair: that it is over.
//!
//! They travel as packets do, protected or with a CRC. `docs/wire.md` has the layout.

use crate::state::ConnectionId;

/// First byte: an opcode of the manufacturer's range that no packet has.
pub(crate) const OPCODE: u8 = 0xdf;
const VERSION: u8 = 1;
/// Bytes of a message.
pub(crate) const LEN: usize = 12;

/// What an end tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The connection is over. To be answered, or it is said again.
    Close,
    /// That has been heard.
    Closed,
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
    pub(crate) fn write(&self, out: &mut [u8]) {
        let code = match self.message {
            Message::Close => 1,
            Message::Closed => 2,
        };
        out[..4].copy_from_slice(&[OPCODE, VERSION, code, 0]);
        out[4..8].copy_from_slice(&self.to.to_be_bytes());
        out[8..12].copy_from_slice(&self.from.0.to_be_bytes());
    }

    /// `None` for anything else.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Control> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let [OPCODE, VERSION, code, 0, ..] = *bytes else { return None };
        let message = match code {
            1 => Message::Close,
            2 => Message::Closed,
            _ => return None,
        };
        let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
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
        fn comes_back(to in any::<u32>(), from in any::<u32>(), close in any::<bool>()) {
            let message = if close { Message::Close } else { Message::Closed };
            let control = Control { message, to, from: ConnectionId(from) };
            let mut bytes = [0xaa; LEN];
            control.write(&mut bytes);
            prop_assert_eq!(Control::parse(&bytes), Some(control));
            prop_assert_eq!(Control::parse(&bytes[1..]), None);
        }

        #[test]
        fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(control) = Control::parse(&bytes) {
                let mut again = [0; LEN];
                control.write(&mut again);
                prop_assert_eq!(&again[..], &bytes[..]);
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
            "| 2 | 1 | message | 1: Close; 2: Closed |",
            "| 3 | 1 | reserved | 0, checked |",
            "| 4 | 4 | receiver's number |",
            "| 8 | 4 | sender's number |",
        ] {
            assert!(section.contains(row), "{row}");
        }
        let mut bytes = [0; LEN];
        Control { message: Message::Closed, to: 0x0102_0304, from: ConnectionId(0x0506_0708) }
            .write(&mut bytes);
        assert_eq!(bytes, [0xdf, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
