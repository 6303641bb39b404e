//! What happens later at a host, beyond its NIC's transmitter and its endpoint's timer: one source of events for all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_transport::rd::SideMessage;
use pathweave_units::{HostId, QpNum, Time};

use crate::nic::Datagram;

/// Something that happens later.
#[derive(Debug)]
pub(crate) enum Later {
    /// The NIC has the work request of a message posted before; `granted`: the context it waited for is its own.
    Posted { flow: u32, at: Time, granted: bool },
    /// A datagram is in the memory of its host.
    InMemory { host: HostId, datagram: Datagram },
    /// The core of a queue pair is done with a datagram.
    Handled { host: HostId, qp: QpNum },
    /// A message of the side channel arrives.
    Side { host: HostId, from: HostId, message: SideMessage },
}

/// What is to come, by time and then in the order in which it became known.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    order: BinaryHeap<Reverse<(Time, u64, u32)>>,
    items: Vec<Option<Later>>,
    free: Vec<u32>,
    count: u64,
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Time, what: Later) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.items[slot as usize] = Some(what);
                slot
            }
            None => {
                self.items.push(Some(what));
                self.items.len() as u32 - 1
            }
        };
        self.count += 1;
        self.order.push(Reverse((at, self.count, slot)));
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.peek().map(|Reverse((at, ..))| *at)
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<Later> {
        self.next().filter(|&at| at <= now)?;
        let Reverse((_, _, slot)) = self.order.pop()?;
        self.free.push(slot);
        self.items[slot as usize].take()
    }
}
