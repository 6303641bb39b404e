//! All links, and whom they wake.

use pathweave_des::EventQueue;
use pathweave_units::{Duration, Time};

use crate::link::Link;
use crate::packet::Header;
use crate::port::{LinkSpec, Port};

/// A window is at most this long even where every link is longer: what happens in it should fit a cache.
pub(crate) const LONGEST_WINDOW: Duration = Duration::from_us(2);

/// The links of the fabric, and when each switch has something to do.
pub(crate) struct Wires {
    /// By the port they lead to.
    pub(crate) links: Vec<Link>,
    /// Kinds of link.
    pub(crate) specs: Vec<LinkSpec>,
    /// By switch: no later than the next thing that happens there.
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

    /// A port transmits a frame from when it is free.
    #[inline(always)]
    pub(crate) fn put<const C: usize>(
        &mut self,
        queue: &mut EventQueue,
        port: &mut Port<C>,
        header: &Header,
    ) {
        let arrival = port.transmit(header.wire_bytes(), &self.specs);
        let was_empty = self.links[port.peer as usize].push(header, port.peer, arrival);
        if port.peer_node >= self.hosts {
            let due = &mut self.due[(port.peer_node - self.hosts) as usize];
            *due = arrival.min(*due);
        } else if was_empty {
            queue.schedule(port.peer, arrival);
        }
    }
}
