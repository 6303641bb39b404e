//! Order of the messages of each connection.

use std::collections::{BTreeMap, VecDeque};

use crate::connections::ConnId;
use crate::scale_up::ScaleUpMessage;

/// Messages that wait for the one that moves on their connection.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Messages behind the one that moves, of each connection on which one does.
    waiting: BTreeMap<ConnId, VecDeque<ScaleUpMessage>>,
}

impl Queues {
    /// Appends a message to its connection. Returns true if it moves at once.
    pub(super) fn append(&mut self, message: ScaleUpMessage) -> bool {
        let mut is_first = false;
        let waiting = self.waiting.entry(message.connection).or_insert_with(|| {
            is_first = true;
            VecDeque::new()
        });
        if !is_first {
            waiting.push_back(message);
        }
        is_first
    }

    /// Removes the message that moves on a connection. Returns the next one, which moves from now on.
    pub(super) fn advance(&mut self, connection: ConnId) -> Option<ScaleUpMessage> {
        let next = self.waiting.get_mut(&connection).and_then(VecDeque::pop_front);
        if next.is_none() {
            self.waiting.remove(&connection);
        }
        next
    }
}
