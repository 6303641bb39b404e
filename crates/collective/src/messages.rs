//! Messages from one rank to another one, matched by tag in the order of their posting.

use std::collections::VecDeque;

use crate::call::Call;
use crate::frame::Key;
use crate::output::OpId;
use crate::plan::Span;

/// A message that has no receive yet.
pub(crate) struct Arrival {
    pub(crate) from: u32,
    pub(crate) tag: u64,
    pub(crate) call: Call,
    pub(crate) content: Content,
}

/// Bytes of a message, or the offer of them.
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Offer { key: Key, bytes: u64 },
}

/// A receive.
#[derive(Clone, Copy)]
pub(crate) struct Receive {
    pub(crate) op: OpId,
    /// Sender; any rank if `None`.
    pub(crate) from: Option<u32>,
    pub(crate) tag: u64,
    pub(crate) call: Call,
    pub(crate) to: Span,
}

/// A message that its receiver has not asked for.
#[derive(Clone, Copy)]
pub(crate) struct Send {
    pub(crate) op: OpId,
    pub(crate) to: u32,
    pub(crate) key: Key,
    pub(crate) call: Call,
    pub(crate) from: Span,
}

/// Messages of a group.
#[derive(Default)]
pub(crate) struct Messages {
    arrivals: VecDeque<Arrival>,
    receives: VecDeque<Receive>,
    sends: Vec<Send>,
    /// Receives that wait for the bytes of an offer, with their senders.
    pub(crate) landing: Vec<(Receive, u32)>,
    /// Own messages that are being written.
    pub(crate) leaving: Vec<Send>,
    next: u32,
}

impl Receive {
    fn takes(&self, from: u32, tag: u64) -> bool {
        self.tag == tag && self.from.is_none_or(|wanted| wanted == from)
    }
}

impl Messages {
    /// Returns the number of the next own message.
    pub(crate) fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Posts a receive; returns the message that it takes, if it is there.
    pub(crate) fn post(&mut self, receive: Receive) -> Option<Arrival> {
        let found = self.arrivals.iter().position(|arrival| receive.takes(arrival.from, arrival.tag));
        if found.is_none() {
            self.receives.push_back(receive);
        }
        found.and_then(|index| self.arrivals.remove(index))
    }

    /// Takes a message; returns the receive for it, if there is one.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> Option<(Receive, Arrival)> {
        let found = self.receives.iter().position(|receive| receive.takes(arrival.from, arrival.tag));
        let Some(receive) = found.and_then(|index| self.receives.remove(index)) else {
            self.arrivals.push_back(arrival);
            return None;
        };
        Some((receive, arrival))
    }

    pub(crate) fn offer(&mut self, send: Send) {
        self.sends.push(send);
    }

    /// Takes the message that a receiver asks for.
    pub(crate) fn asked(&mut self, by: u32, key: Key) -> Option<Send> {
        let index = self.sends.iter().position(|send| (send.to, send.key) == (by, key))?;
        Some(self.sends.swap_remove(index))
    }

    /// Takes back a receive that has no message.
    pub(crate) fn withdraw(&mut self, op: OpId) -> bool {
        let before = self.receives.len();
        self.receives.retain(|receive| receive.op != op);
        self.receives.len() < before
    }

    /// Returns all operations with the rank that each waits for.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (OpId, Option<u32>, Call)> {
        let receives = self.receives.iter().map(|receive| (receive.op, receive.from, receive.call));
        let landing = self.landing.iter().map(|(receive, from)| (receive.op, Some(*from), receive.call));
        let sends = self.sends.iter().chain(&self.leaving).map(|send| (send.op, Some(send.to), send.call));
        receives.chain(landing).chain(sends)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Messages { next: self.next, ..Messages::default() };
    }
}
