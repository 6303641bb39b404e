//! Frames between the engines of two processes.

use crate::call::{CALL_BYTES, Call};

/// Name of a transfer: both ends count alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Group.
    pub group: u64,
    /// Number of the collective in the group, or tag of a message between two ranks.
    pub lane: Lane,
    /// Number of the transfer in its direction between the two ranks.
    pub index: u32,
}

/// Kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Part of the collective with this number.
    Collective(u64),
    /// A message with this tag.
    Tag(u64),
}

/// Memory of the receiver, as the sender writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address of the first byte.
    pub address: u64,
    /// Key of the memory.
    pub rkey: u64,
    /// Immediate of the WRITE that fills it.
    pub token: u32,
}

/// Content of a SEND.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The receiver waits for a transfer of so many bytes.
    Ready {
        /// Transfer.
        key: Key,
        /// The receiver's call.
        call: Call,
        /// Bytes that it expects.
        bytes: u64,
        /// Memory for them.
        target: Target,
    },
    /// The bytes of a short transfer.
    Eager {
        /// Transfer.
        key: Key,
        /// The sender's call.
        call: Call,
        /// Bytes.
        payload: &'a [u8],
    },
    /// A message waits for its receive.
    Offer {
        /// Message.
        key: Key,
        /// The sender's call.
        call: Call,
        /// Bytes of the message.
        bytes: u64,
    },
    /// The sender waits for the receiver in a collective, and its patience has ended.
    Ask {
        /// Group.
        group: u64,
        /// Number of the collective.
        number: u64,
    },
    /// Answer: the sender has begun the collective, too.
    Here {
        /// Group.
        group: u64,
        /// Number of the collective.
        number: u64,
    },
    /// The group has failed.
    Fault {
        /// Group.
        group: u64,
        /// Reason.
        text: &'a str,
    },
}

/// Bytes in front of the payload of an eager frame.
pub const HEAD_BYTES: usize = 1 + KEY_BYTES + CALL_BYTES;
const KEY_BYTES: usize = 21;
/// Longest text of a fault.
const MOST_TEXT_BYTES: usize = 1_024;

const READY: u8 = 1;
const EAGER: u8 = 2;
const OFFER: u8 = 3;
const FAULT: u8 = 4;
const ASK: u8 = 5;
const HERE: u8 = 6;

/// Reads the parts of a frame one after the other.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(first)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }
    fn key(&mut self) -> Option<Key> {
        let group = self.u64()?;
        let [kind] = *self.take()?;
        let number = self.u64()?;
        let lane = match kind {
            0 => Lane::Collective(number),
            1 => Lane::Tag(number),
            _ => return None,
        };
        Some(Key { group, lane, index: self.u32()? })
    }
    fn call(&mut self) -> Option<Call> {
        Call::decode(self.take()?)
    }
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

impl Key {
    fn encode(&self, to: &mut Vec<u8>) {
        let (kind, number) = match self.lane {
            Lane::Collective(number) => (0, number),
            Lane::Tag(tag) => (1, tag),
        };
        to.extend(self.group.to_le_bytes());
        to.push(kind);
        to.extend(number.to_le_bytes());
        to.extend(self.index.to_le_bytes());
    }
}

impl<'a> Frame<'a> {
    /// Returns the bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(96);
        match self {
            Frame::Ready { key, call, bytes, target } => {
                to.push(READY);
                key.encode(&mut to);
                call.encode(&mut to);
                to.extend(bytes.to_le_bytes());
                to.extend(target.address.to_le_bytes());
                to.extend(target.rkey.to_le_bytes());
                to.extend(target.token.to_le_bytes());
            }
            Frame::Eager { key, call, payload } => {
                to.push(EAGER);
                key.encode(&mut to);
                call.encode(&mut to);
                to.extend(*payload);
            }
            Frame::Offer { key, call, bytes } => {
                to.push(OFFER);
                key.encode(&mut to);
                call.encode(&mut to);
                to.extend(bytes.to_le_bytes());
            }
            Frame::Ask { group, number } | Frame::Here { group, number } => {
                to.push(if matches!(self, Frame::Ask { .. }) { ASK } else { HERE });
                to.extend(group.to_le_bytes());
                to.extend(number.to_le_bytes());
            }
            Frame::Fault { group, text } => {
                to.push(FAULT);
                to.extend(group.to_le_bytes());
                let end = (0..=MOST_TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                to.extend(&text.as_bytes()[..end]);
            }
        }
        to
    }

    /// Parses a frame of a peer; `None` if it is not one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = Parts(bytes);
        let [kind] = *parts.take()?;
        if kind == FAULT {
            let group = parts.u64()?;
            return Some(Frame::Fault { group, text: std::str::from_utf8(parts.0).ok()? });
        }
        if kind == ASK || kind == HERE {
            let (group, number) = (parts.u64()?, parts.u64()?);
            let frame =
                if kind == ASK { Frame::Ask { group, number } } else { Frame::Here { group, number } };
            return parts.end(frame);
        }
        let (key, call) = (parts.key()?, parts.call()?);
        match kind {
            READY => {
                let bytes = parts.u64()?;
                let target = Target { address: parts.u64()?, rkey: parts.u64()?, token: parts.u32()? };
                parts.end(Frame::Ready { key, call, bytes, target })
            }
            EAGER => Some(Frame::Eager { key, call, payload: parts.0 }),
            OFFER => {
                let bytes = parts.u64()?;
                parts.end(Frame::Offer { key, call, bytes })
            }
            _ => None,
        }
    }

    /// Returns the group that the frame is about.
    pub fn group(&self) -> u64 {
        match self {
            Frame::Ready { key, .. } | Frame::Eager { key, .. } | Frame::Offer { key, .. } => key.group,
            Frame::Ask { group, .. } | Frame::Here { group, .. } | Frame::Fault { group, .. } => *group,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Kind;
    use crate::dtype::Dtype;

    #[test]
    fn frames_come_back_and_others_are_none() {
        let call = Call { kind: Kind::Gather, op: None, dtype: Dtype::I64, root: Some(1), elements: 5 };
        let target = Target { address: 1 << 50, rkey: !7, token: 0xffff_fff0 };
        for lane in [Lane::Collective(1 << 33), Lane::Tag(u64::MAX)] {
            let key = Key { group: 0xfeed, lane, index: 9 };
            let frames = [
                Frame::Ready { key, call, bytes: 1 << 34, target },
                Frame::Offer { key, call, bytes: 0 },
                Frame::Eager { key, call, payload: b"abc" },
                Frame::Fault { group: 0xfeed, text: "a reason" },
                Frame::Ask { group: 0xfeed, number: 1 << 40 },
                Frame::Here { group: 0xfeed, number: 3 },
            ];
            for frame in frames {
                let bytes = frame.encode();
                assert_eq!(Frame::decode(&bytes), Some(frame.clone()));
                assert_eq!(frame.group(), 0xfeed);
                if !matches!(frame, Frame::Eager { .. } | Frame::Fault { .. }) {
                    assert!((0..bytes.len()).all(|len| Frame::decode(&bytes[..len]).is_none()));
                }
            }
            let empty = Frame::Eager { key, call, payload: b"" }.encode();
            assert_eq!(empty.len(), HEAD_BYTES);
        }
        assert_eq!((Frame::decode(&[]), Frame::decode(&[9; 80])), (None, None));
        let long = "ü".repeat(MOST_TEXT_BYTES);
        let bytes = Frame::Fault { group: 1, text: &long }.encode();
        assert!(bytes.len() <= MOST_TEXT_BYTES + 9 && Frame::decode(&bytes).is_some());
    }
}
