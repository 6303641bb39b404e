//! All links, and the time at which each node is due.

use pathweave_units::{Duration, Time};

use crate::link::{Link, LinkSpec};
use crate::packet::Header;
use crate::port::Port;

/// Longest window, even if every link has a longer delay. The events of a window should fit in cache.
pub(crate) const LONGEST_WINDOW: Duration = Duration::from_us(2);

/// Links of the fabric, and the time at which each node is due.
pub(crate) struct Wires {
    /// Links, indexed by the port that they lead to.
    pub(crate) links: Vec<Link>,
    /// Kinds of link.
    pub(crate) specs: Vec<LinkSpec>,
    /// Lower bound of the time of the next event at each node.
    pub(crate) due: Vec<Time>,
    /// Lower bound of the time of the next service of a host's port.
    pub(crate) nic_due: Time,
    /// Number of hosts. Nodes from this number on are switches.
    pub(crate) hosts: u32,
    #[cfg(feature = "hops")]
    pub(crate) hops: crate::hop::HopLog,
}

impl Wires {
    /// Creates empty links into `ports` ports, without a kind.
    pub(crate) fn new(hosts: u32, switches: u32, ports: u32) -> Self {
        Wires {
            links: (0..ports).map(|_| Link::new()).collect(),
            specs: Vec::new(),
            due: vec![Time::MAX; (hosts + switches) as usize],
            nic_due: Time::MAX,
            hosts,
            #[cfg(feature = "hops")]
            hops: Default::default(),
        }
    }

    /// Returns the longest window in which no node can affect another.
    pub(crate) fn lookahead(&self) -> Duration {
        let shortest = self.specs.iter().map(LinkSpec::shortest_hop).min();
        shortest.unwrap_or(LONGEST_WINDOW).min(LONGEST_WINDOW)
    }

    /// Returns the number of a kind of link, and adds the kind if it is new. Returns `None` if all numbers are in
    /// use.
    pub(crate) fn number_of(&mut self, spec: LinkSpec) -> Option<u16> {
        let index = self.specs.iter().position(|s| *s == spec).unwrap_or_else(|| {
            self.specs.push(spec);
            self.specs.len() - 1
        });
        u16::try_from(index).ok()
    }

    /// Makes a node due at `at` or earlier.
    #[inline(always)]
    pub(crate) fn advance_due(&mut self, node: u32, at: Time) {
        let due = &mut self.due[node as usize];
        *due = at.min(*due);
    }

    /// Returns the lower bound of the time of the next event at a switch.
    #[inline(always)]
    pub(crate) fn due_of_switch(&mut self, switch: u32) -> &mut Time {
        &mut self.due[(self.hosts + switch) as usize]
    }

    /// Transmits a frame from a port when the port is free.
    #[inline(always)]
    pub(crate) fn transmit<const C: usize>(&mut self, port: &mut Port<C>, header: &Header) {
        #[cfg(feature = "hops")]
        let start = port.tx_free;
        let arrival = port.transmit(header, &self.specs);
        self.links[port.peer as usize].push(header, port.peer, arrival);
        #[cfg(feature = "hops")]
        self.hops.note(header, port.peer, start, self.links[port.peer as usize].last_arrival());
        self.advance_due(port.peer_node, arrival);
    }
}
