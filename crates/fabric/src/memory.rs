//! Memory use of a fabric: computed beforehand for its idle parts, counted for the parts that grow.

use pathweave_units::Time;

use crate::fabric::Fabric;
use crate::link::Link;
use crate::packet::Header;
use crate::port::Port;
use crate::ring::{FIRST_PLACES, Ring};
use crate::scheduling::Deficit;
use crate::switch::{IngressAccount, Switch};

/// Heap memory of a fabric in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricBytes {
    /// Ports, links and switches, which are allocated at the start. Routes are not included.
    pub idle: u64,
    /// Slots for packets in queues and on links. A ring of slots grows as it is used and never shrinks.
    pub places: u64,
    /// Contents of packets, which also grow and never shrink.
    pub contents: u64,
    /// Counters of losses, pauses and marks, which exist for ports that have had any, and the numbers of ports.
    pub counters: u64,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Bytes of an unused port, with the link into it and its entries in tables by port.
    pub const PORT_BYTES: usize = size_of::<Port<C>>()
        + size_of::<Link>()
        + size_of::<IngressAccount<C>>()
        + if C > 2 { size_of::<Deficit<C>>() } else { 0 };
    /// Bytes of a host or switch in the table of due times.
    pub const NODE_BYTES: usize = size_of::<Time>();
    /// Bytes of a switch without its ports and routes.
    pub const SWITCH_BYTES: usize = size_of::<Switch>();
    /// Bytes of a slot for a packet in a queue or on a link.
    pub const PLACE_BYTES: usize = size_of::<Header>();
    /// Smallest number of slots of a queue or link that has been used. The number is always a power of two.
    pub const FIRST_PLACES: usize = FIRST_PLACES;
    /// Bytes of a packet's content, with its entry in the free list.
    pub const CONTENT_BYTES: usize = size_of::<P>() + size_of::<u32>();

    /// Returns the present memory use.
    pub fn memory_use(&self) -> FabricBytes {
        let lines = &self.transit.lines;
        let ports = lines.ports.len();
        let switches = self.transit.switches.each.len();
        let in_queues = lines.ports.iter().flat_map(|port| &port.queues).map(Ring::slots);
        let on_links = lines.wires.links.iter().map(Link::places);
        let places: usize = in_queues.chain(on_links).sum();
        FabricBytes {
            idle: (ports * Self::PORT_BYTES
                + lines.wires.due.len() * Self::NODE_BYTES
                + switches * Self::SWITCH_BYTES) as u64,
            places: (places * Self::PLACE_BYTES) as u64,
            contents: self.transit.contents.bytes()
                + self.transit.telemetry.as_ref().map_or(0, |readings| readings.bytes()),
            counters: (self.transit.journal.of_port.bytes() + lines.marker.bytes() + self.numbers.bytes())
                as u64,
        }
    }
}
