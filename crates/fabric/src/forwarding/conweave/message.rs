//! What ConWeave's switches tell each other in packets of their own.

use super::Tag;
use crate::forwarding::flow_table::FlowKey;
use crate::packet::Header;

/// The kinds of message, from the leaf of a flow's receiver to that of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(super) enum Kind {
    /// The probe has come.
    Reply,
    /// The TAIL has come.
    Clear,
    /// The way is congested.
    Notify,
}

#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Message {
    pub(super) kind: Kind,
    pub(super) key: FlowKey,
    pub(super) epoch: u32,
    /// The way, as the leaf of the sender knows it: uplink, and leaf of the receiver.
    pub(super) uplink: u16,
    pub(super) leaf: u32,
}

impl Message {
    /// About a packet that has come to `leaf`.
    pub(super) fn about(header: &Header, tag: &Tag, leaf: u32) -> Self {
        Message {
            kind: Kind::Reply,
            key: FlowKey::from_header(header),
            epoch: tag.epoch,
            uplink: tag.uplink,
            leaf,
        }
    }
}

/// The messages under way.
#[derive(Default)]
pub(crate) struct Messages {
    slots: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    pub(super) fn insert(&mut self, message: Message) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = message;
            return slot;
        }
        self.slots.push(message);
        self.slots.len() as u32 - 1
    }

    /// A message has come to its end, arrived or lost.
    pub(crate) fn discard(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(super) fn remove(&mut self, slot: u32) -> Message {
        self.discard(slot);
        self.slots[slot as usize]
    }

    /// Messages that have not come to their end.
    pub(crate) fn alive(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
