//! Time and path of the last transmission of each packet in flight.

use alloc::collections::VecDeque;

use pathweave_units::{PathId, Time};

/// Last transmission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Time of the transmission.
    pub at: Time,
    /// Path of the transmission.
    pub path: PathId,
}

/// Last transmissions of the packets in flight, by PSN.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// PSN of the first entry.
    first: u64,
    entries: VecDeque<Option<Sending>>,
    /// Number of entries that hold a transmission.
    len: usize,
}

impl History {
    /// Records that a packet, or a copy of it, has left.
    pub fn sent(&mut self, psn: u64, sending: Sending) {
        if self.len == 0 {
            self.entries.clear();
            self.first = psn;
        }
        while psn < self.first {
            self.entries.push_front(None);
            self.first -= 1;
        }
        let index = (psn - self.first) as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, None);
        }
        self.len += usize::from(self.entries[index].is_none());
        self.entries[index] = Some(sending);
    }
    /// Removes a packet that has arrived, or that counts as lost and will be retransmitted.
    pub fn gone(&mut self, psn: u64) {
        let Some(index) = psn.checked_sub(self.first) else { return };
        if let Some(entry) = self.entries.get_mut(index as usize)
            && entry.take().is_some()
        {
            self.len -= 1;
        }
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
    }
    /// Returns the last transmission of a packet, if it is in flight.
    pub fn get(&self, psn: u64) -> Option<Sending> {
        *self.entries.get(usize::try_from(psn.checked_sub(self.first)?).ok()?)?
    }
    /// Returns true if nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns all packets in flight, by PSN.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Sending)> {
        (self.first..).zip(&self.entries).filter_map(|(psn, entry)| Some((psn, (*entry)?)))
    }
}
