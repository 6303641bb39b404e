//! All ports and the links between them: queues and services, without the accounts of buffers.

use std::ops::Range;

use pathweave_units::Time;

use crate::link::LinkSpec;
use crate::links::Wires;
use crate::marking::{MarkAt, Marker};
use crate::packet::{Header, PortId};
use crate::port::Port;
use crate::prefetch::{prefetch, prefetch_all};
use crate::scheduling::Scheduler;

/// Number of links by which prefetching of packets runs ahead.
pub(crate) const LINKS_AHEAD: usize = 4;

/// Ports of all nodes, the links between them, and the decisions about queued packets: the class served next, and
/// marking.
pub(crate) struct Lines<const C: usize> {
    pub(crate) ports: Vec<Port<C>>,
    pub(crate) wires: Wires,
    pub(crate) scheduler: Scheduler<C>,
    pub(crate) marker: Marker,
    /// Number of ports of hosts, which have the lowest port ids.
    pub(crate) host_ports: PortId,
    /// Number of packets put on a link, without pause frames.
    pub(crate) packet_hops: u64,
}

impl<const C: usize> Lines<C> {
    /// Returns the switch that a port belongs to, or `None` for a port of a host.
    #[inline(always)]
    pub(crate) fn switch_of(&self, port: PortId) -> Option<u32> {
        self.ports[port as usize].node.checked_sub(self.wires.hosts)
    }

    /// Transmits a packet from the instant at which the port became free, and counts it.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        self.wires.transmit(port, header);
        port.sent_bytes += u64::from(header.wire_bytes());
        port.sent_packets += 1;
        self.packet_hops += 1;
    }

    /// Returns the rate, delay and marking of the link that a port feeds.
    pub(crate) fn spec(&self, port: PortId) -> &LinkSpec {
        &self.wires.specs[usize::from(self.ports[port as usize].spec)]
    }

    /// Returns the time and the port of the next service among these ports.
    pub(crate) fn next_service(&self, ports: Range<PortId>) -> Option<(Time, PortId)> {
        let eligible = ports.filter(|&port| self.ports[port as usize].eligible() != 0);
        eligible.map(|port| (self.ports[port as usize].tx_free, port)).min()
    }

    /// Makes the node of a port due at the port's next service, after the port may have become eligible again.
    pub(crate) fn note_service(&mut self, port: PortId) {
        let switch = self.switch_of(port);
        let port = &self.ports[port as usize];
        if port.eligible() == 0 {
            return;
        }
        let due = match switch {
            Some(switch) => self.wires.due_of_switch(switch),
            None => &mut self.wires.nic_due,
        };
        *due = port.tx_free.min(*due);
    }

    /// Prefetches ports, and the links into them.
    #[inline(always)]
    pub(crate) fn prefetch_ports(&self, ports: Range<PortId>) {
        for port in ports {
            prefetch(&self.wires.links[port as usize]);
            prefetch_all(&self.ports[port as usize]);
        }
    }

    /// Prefetches the packets that arrive first, after [`Lines::prefetch_ports`] has taken effect.
    #[inline(always)]
    pub(crate) fn prefetch_packets(&self, ports: Range<PortId>) {
        for id in ports.take(LINKS_AHEAD) {
            self.wires.links[id as usize].prefetch();
        }
    }

    /// Prefetches the memory that the services of a port use: the packets that wait, and the outgoing link.
    #[inline(always)]
    pub(crate) fn prefetch_services(&self, id: PortId) {
        let port = &self.ports[id as usize];
        port.prefetch_waiting();
        prefetch(&self.wires.links[port.peer as usize]);
    }
}

/// Returns a packet as it joins the queue of its class, marked if the queue requires it.
#[inline(always)]
pub(crate) fn as_queued<'a, const C: usize>(
    marker: &mut Marker,
    specs: &[LinkSpec],
    id: PortId,
    port: &Port<C>,
    header: &'a Header,
    room: &'a mut Option<Header>,
) -> &'a Header {
    let class = usize::from(header.class());
    if port.may_mark(class) && marker.on_enqueue {
        let red = specs[usize::from(port.spec)].red.as_ref();
        return room.insert(marker.mark(MarkAt::Enqueue, id, red, port.queued_bytes[class], header));
    }
    header
}

/// Removes the next packet from the queue of a class, marked if the queue requires it.
#[inline(always)]
pub(crate) fn served<const C: usize>(
    marker: &mut Marker,
    specs: &[LinkSpec],
    id: PortId,
    port: &mut Port<C>,
    class: usize,
) -> Header {
    let header = port.pop(class);
    if port.may_mark(class) && marker.on_dequeue {
        let red = specs[usize::from(port.spec)].red.as_ref();
        return marker.mark(MarkAt::Dequeue, id, red, port.queued_bytes[class], &header);
    }
    header
}
