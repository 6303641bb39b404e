//! Messages between ConWeave's switches, which travel in packets of their own.

use super::Tag;
use crate::forwarding::flow_table::FlowKey;
use crate::packet::Header;

/// Kinds of message, from the receiver's leaf to the sender's leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(super) enum Kind {
    /// The probe has arrived.
    Reply,
    /// The TAIL has arrived.
    Clear,
    /// The path is congested.
    Notify,
}

#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Message {
    pub(super) kind: Kind,
    pub(super) key: FlowKey,
    pub(super) epoch: u32,
    /// The path by the numbers of the sender's leaf: the uplink, and the leaf of the receiver.
    pub(super) uplink: u16,
    pub(super) leaf: u32,
}

impl Message {
    /// Creates a REPLY to a packet that has arrived at `leaf`.
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

/// Messages in flight.
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

    /// Frees the slot of a message that has arrived or is lost.
    pub(crate) fn discard(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(super) fn remove(&mut self, slot: u32) -> Message {
        self.discard(slot);
        self.slots[slot as usize]
    }

    /// Returns the number of messages in flight.
    pub(crate) fn alive(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
