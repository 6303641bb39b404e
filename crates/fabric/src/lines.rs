//! All ports and the links between them: queues and services, apart from the accounts of buffers.

use std::ops::Range;

use pathweave_units::Time;

use crate::link::LinkSpec;
use crate::marking::{MarkAt, Marker};
use crate::packet::{Header, PortId};
use crate::port::Port;
use crate::prefetch::{prefetch, prefetch_all};
use crate::scheduling::Scheduler;
use crate::wires::Wires;

/// How many links ahead of its turn the packets on one are asked for.
pub(crate) const LINKS_AHEAD: usize = 4;

/// The ports of all nodes, the links between them, and what decides about a packet in a queue: which class is next, and
/// whether it is marked.
pub(crate) struct Lines<const C: usize> {
    pub(crate) ports: Vec<Port<C>>,
    pub(crate) wires: Wires,
    pub(crate) scheduler: Scheduler<C>,
    pub(crate) marker: Marker,
    /// Ports of hosts; they come first.
    pub(crate) host_ports: PortId,
    /// Packets put on a link, pause frames not counted.
    pub(crate) packet_hops: u64,
}

impl<const C: usize> Lines<C> {
    /// The switch that a port belongs to; `None`: a host.
    #[inline(always)]
    pub(crate) fn switch_of(&self, port: PortId) -> Option<u32> {
        self.ports[port as usize].node.checked_sub(self.wires.hosts)
    }

    /// Rate, delay and marking of the link that a port feeds.
    pub(crate) fn spec(&self, port: PortId) -> &LinkSpec {
        &self.wires.specs[usize::from(self.ports[port as usize].spec)]
    }

    /// The next service among these ports: when, and of which.
    pub(crate) fn next_service(&self, ports: Range<PortId>) -> Option<(Time, PortId)> {
        let eligible = ports.filter(|&port| self.ports[port as usize].eligible() != 0);
        eligible.map(|port| (self.ports[port as usize].tx_free, port)).min()
    }

    /// A port may have something to send again: sees to its being served in time.
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

    /// Begins to load ports, and the links into them.
    #[inline(always)]
    pub(crate) fn prefetch_ports(&self, ports: Range<PortId>) {
        for port in ports {
            prefetch(&self.wires.links[port as usize]);
            prefetch_all(&self.ports[port as usize]);
        }
    }

    /// Then, once that is there: the packets that arrive first.
    #[inline(always)]
    pub(crate) fn prefetch_packets(&self, ports: Range<PortId>) {
        for id in ports.take(LINKS_AHEAD) {
            self.wires.links[id as usize].prefetch();
        }
    }

    /// Begins to load what the services of a port touch: the packets that wait, and the link they will go to.
    #[inline(always)]
    pub(crate) fn prefetch_services(&self, id: PortId) {
        let port = &self.ports[id as usize];
        port.prefetch_waiting();
        prefetch(&self.wires.links[port.peer as usize]);
    }
}

/// A packet as it joins the queue of its class: perhaps marked.
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
    if port.may_mark(class) && marker.at == MarkAt::Enqueue {
        let red = specs[usize::from(port.spec)].red.as_ref();
        return room.insert(marker.mark(id, red, port.queued_bytes[class], header));
    }
    header
}

/// Takes the next packet out of the queue of a class: perhaps marked.
#[inline(always)]
pub(crate) fn served<const C: usize>(
    marker: &mut Marker,
    specs: &[LinkSpec],
    id: PortId,
    port: &mut Port<C>,
    class: usize,
) -> Header {
    let header = port.pop(class);
    if port.may_mark(class) && marker.at == MarkAt::Dequeue {
        let red = specs[usize::from(port.spec)].red.as_ref();
        return marker.mark(id, red, port.queued_bytes[class], &header);
    }
    header
}
