//! All links, and when each node has something to do.

use pathweave_units::{Duration, Time};

use crate::link::{Link, LinkSpec};
use crate::packet::Header;
use crate::port::Port;

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
    /// No later than the next service of a host's port.
    pub(crate) nic_due: Time,
    /// Hosts; nodes from this number on are switches.
    pub(crate) hosts: u32,
}

impl Wires {
    /// Empty links into so many ports, of no kind yet.
    pub(crate) fn new(hosts: u32, switches: u32, ports: u32) -> Self {
        Wires {
            links: (0..ports).map(|_| Link::new()).collect(),
            specs: Vec::new(),
            due: vec![Time::MAX; (hosts + switches) as usize],
            nic_due: Time::MAX,
            hosts,
        }
    }

    /// The longest window in which no node can disturb another.
    pub(crate) fn lookahead(&self) -> Duration {
        let shortest = self.specs.iter().map(LinkSpec::shortest_hop).min();
        shortest.unwrap_or(LONGEST_WINDOW).min(LONGEST_WINDOW)
    }

    /// The number of a kind of link, which it is given if it has none; `None`: no number is left.
    pub(crate) fn number_of(&mut self, spec: LinkSpec) -> Option<u16> {
        let index = self.specs.iter().position(|s| *s == spec).unwrap_or_else(|| {
            self.specs.push(spec);
            self.specs.len() - 1
        });
        u16::try_from(index).ok()
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
        let arrival = port.transmit(header, &self.specs);
        self.links[port.peer as usize].push(header, port.peer, arrival);
        self.due_by(port.peer_node, arrival);
    }
}
