//! All links, and whom they wake.

use pathweave_units::{Duration, Time};

use crate::link::Link;
use crate::packet::Header;
use crate::port::{LinkSpec, Port};

/// A window is at most this long even where every link is longer: what happens in it should fit a cache.
pub(crate) const LONGEST_WINDOW: Duration = Duration::from_us(2);

/// The links of the fabric, and when each node has something to do.
pub(crate) struct Wires {
    /// By the port they lead to.
    pub(crate) links: Vec<Link>,
    /// Kinds of link.
    pub(crate) specs: Vec<LinkSpec>,
    /// By node: no later than the next thing that happens there.
    pub(crate) due: Vec<Time>,
    /// Hosts; nodes from this number on are switches.
    pub(crate) hosts: u32,
}

impl Wires {
    /// The longest window in which no node can disturb another.
    pub(crate) fn lookahead(&self) -> Duration {
        let shortest = self.specs.iter().map(LinkSpec::shortest_hop).min();
        shortest.unwrap_or(LONGEST_WINDOW).min(LONGEST_WINDOW)
    }

    /// Something happens at a node at this time.
    #[inline(always)]
    pub(crate) fn due_by(&mut self, node: u32, at: Time) {
        let due = &mut self.due[node as usize];
        *due = at.min(*due);
    }

    /// When the next thing happens at a switch, no later.
    #[inline(always)]
    pub(crate) fn due_of_switch(&mut self, switch: u32) -> &mut Time {
        &mut self.due[(self.hosts + switch) as usize]
    }

    /// A port transmits a frame from when it is free.
    #[inline(always)]
    pub(crate) fn put<const C: usize>(&mut self, port: &mut Port<C>, header: &Header) {
        let arrival = port.transmit(header.wire_bytes(), &self.specs);
        self.links[port.peer as usize].push(header, port.peer, arrival);
        self.due_by(port.peer_node, arrival);
    }
}
