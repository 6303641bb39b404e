//! What is due at a host besides packets, its transmitter and the timers of its endpoint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::{ConnId, Step};
use pathweave_policy::PolicyEnv;
use pathweave_transport::rd::SideMessage;
use pathweave_units::{Duration, HostId, QpNum, Rate, Time};

use crate::nic::Datagram;

/// Something that is due.
#[derive(Debug, BorshSerialize, BorshDeserialize)]
pub(crate) enum Item {
    /// A message was posted to this host: its first packet comes no earlier. With the first of a connection, what the
    /// queue pairs at this end are made from.
    Expect { flow: u32, opening: Option<Box<Opening>> },
    /// The sender is done with the last message of a connection.
    Close(ConnId),
    /// The sender has given up a message.
    GivenUp { flow: u32 },
    /// A task begins, a computation is over, or a notification arrives.
    Step(Step),
    /// The NIC has the work request of a message that was posted at `at`; `granted`: the context it waited for is its own.
    Posted { flow: u32, at: Time, granted: bool },
    /// A datagram is in the memory of the host.
    InMemory(Datagram),
    /// The core of a queue pair is done with a datagram.
    Handled(QpNum),
    /// A message of the side channel arrives.
    Side { from: HostId, message: SideMessage },
}

/// What the receiving end of a connection is made from, as its sender knows it.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Opening {
    pub(crate) env: PolicyEnv,
    /// What one NIC port of the sender can send.
    pub(crate) port_rate: Rate,
    /// NIC ports of the sender that lead to the receiver.
    pub(crate) nic_ports: u16,
    /// Round trip of the idle path, with what NICs and hosts add.
    pub(crate) rtt: Duration,
    /// Latency of the side channel back to the sender.
    pub(crate) side_latency: Duration,
}

/// The order of what is due at one instant. It does not depend on when it became known, so hosts can be run one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub(crate) enum Rank {
    /// By flow.
    Expect(u32),
    /// By connection.
    Close(ConnId),
    /// By flow.
    GivenUp(u32),
    /// A step that another host or the workload's beginning leads to.
    Step(Step),
    /// By sender and count of its messages to this host.
    Side(HostId, u64),
    /// What the host itself has put off, in its order.
    Own(u64),
}

/// What is to come at a host.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    order: BinaryHeap<Reverse<(Time, Rank, u32)>>,
    /// By the number in `order`, so that what is large is not moved about.
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    /// Items that the host has put off.
    own: u64,
}

impl Agenda {
    /// Something that another host does to this one.
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

    /// Something that the host itself does later.
    pub(crate) fn push_own(&mut self, at: Time, item: Item) {
        self.own += 1;
        self.push(at, Rank::Own(self.own), item);
    }

    /// When the next is due; [`Time::MAX`] if none is.
    pub(crate) fn next(&self) -> Time {
        self.order.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes the next item that is due by now.
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
    fn what_is_due_at_one_instant_has_an_order_of_its_own() {
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
