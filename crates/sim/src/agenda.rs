//! Agenda of a host: pending items besides packet arrivals, the transmitter and the timers of the endpoint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::{ConnId, Step};
use pathweave_policy::PolicyEnv;
use pathweave_transport::rd::SideMessage;
use pathweave_units::{Duration, HostId, QpNum, Rate, Time};

use crate::nic::Datagram;

/// Pending item of a host.
#[derive(Debug, BorshSerialize, BorshDeserialize)]
pub(crate) enum Item {
    /// A message was posted to this host. The item is due no later than the message's first packet arrives. The first
    /// message of a connection carries the parameters of the queue pairs at this end.
    Expect { flow: u32, opening: Option<Box<Opening>> },
    /// The sender has finished the last message of a connection.
    Close(ConnId),
    /// The sender has given up a message.
    GivenUp { flow: u32 },
    /// A task begins, a computation ends, or a task notification arrives.
    Step(Step),
    /// The NIC has the work request of a message that was posted at `at`. `granted` is true if the message already
    /// holds the end-to-end context that it waited for.
    Posted { flow: u32, at: Time, granted: bool },
    /// A datagram has been written to the memory of the host.
    InMemory(Datagram),
    /// The core of a queue pair has finished handling a datagram.
    Handled(QpNum),
    /// A message has arrived at this host over the scale-up network.
    ScaleUpDelivered { flow: u32 },
    /// A message of this host has been sent over the scale-up network.
    ScaleUpSent { flow: u32 },
    /// A message of the side channel arrives.
    Side { from: HostId, message: SideMessage },
    /// A message of the side channel was sent over the fabric. The item is due no later than its bytes arrive.
    SideSent { from: HostId, message: SideMessage },
}

/// Parameters from which the receiving end of a connection is created, as computed by its sender.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Opening {
    pub(crate) env: PolicyEnv,
    /// Rate of one NIC port of the sender.
    pub(crate) port_rate: Rate,
    /// Number of NIC ports of the sender that lead to the receiver.
    pub(crate) nic_ports: u16,
    /// Round-trip time of the idle path, including the delays of NICs and hosts.
    pub(crate) rtt: Duration,
    /// Latency of the side channel from the receiver back to the sender.
    pub(crate) side_latency: Duration,
}

/// Order of items that are due at the same instant. The order does not depend on when an item was entered, so hosts
/// can be simulated one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub(crate) enum Rank {
    /// Ordered by flow number.
    Expect(u32),
    /// Ordered by connection number.
    Close(ConnId),
    /// Ordered by flow number.
    GivenUp(u32),
    /// Ordered by flow number.
    ScaleUp(u32),
    /// Step triggered by another host or by the start of the workload.
    Step(Step),
    /// Ordered by sender, then by the count of the sender's messages to this host.
    Side(HostId, u64),
    /// Item that the host scheduled for itself, in the order of scheduling.
    Own(u64),
}

/// Priority queue of the pending items of a host.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    order: BinaryHeap<Reverse<(Time, Rank, u32)>>,
    /// Items by their slot number in `order`. Keeping them out of the heap avoids moving large values.
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    /// Number of items that the host has scheduled for itself so far.
    own: u64,
}

impl Agenda {
    /// Adds an item that another host causes.
    pub(crate) fn push(&mut self, at: Time, rank: Rank, item: Item) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.items[slot as usize] = Some(item);
                slot
            }
            None => {
                self.items.push(Some(item));
                self.items.len() as u32 - 1
            }
        };
        self.order.push(Reverse((at, rank, slot)));
    }

    /// Adds an item that the host schedules for itself.
    pub(crate) fn push_own(&mut self, at: Time, item: Item) {
        self.own += 1;
        self.push(at, Rank::Own(self.own), item);
    }

    /// Returns the time of the next item, or [`Time::MAX`] if there is none.
    pub(crate) fn next(&self) -> Time {
        self.order.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Removes and returns the next item that is due at `now` or before.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Item> {
        if self.next() > now {
            return None;
        }
        let Reverse((_, _, slot)) = self.order.pop()?;
        self.free.push(slot);
        self.items[slot as usize].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_instant_have_a_fixed_order() {
        let at = Time::from_us(1);
        let close = |agenda: &mut Agenda, conn| agenda.push(at, Rank::Close(conn), Item::Close(conn));
        let expect = |agenda: &mut Agenda, flow| {
            agenda.push(at, Rank::Expect(flow), Item::Expect { flow, opening: None });
        };
        let orders = [false, true].map(|reversed| {
            let mut agenda = Agenda::default();
            if reversed {
                close(&mut agenda, 3);
                agenda.push_own(at, Item::Handled(QpNum(9)));
                expect(&mut agenda, 2);
                expect(&mut agenda, 1);
            } else {
                expect(&mut agenda, 1);
                expect(&mut agenda, 2);
                agenda.push_own(at, Item::Handled(QpNum(9)));
                close(&mut agenda, 3);
            }
            assert!(agenda.pop(Time::ZERO).is_none());
            let items: Vec<String> =
                std::iter::from_fn(|| agenda.pop(at)).map(|item| format!("{item:?}")).collect();
            items
        });
        assert_eq!(orders[0].len(), 4);
        assert_eq!(orders[0], orders[1]);
    }
}
