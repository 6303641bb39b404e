//! What a port does with a packet at an instant: queue, service, link.

use pathweave_units::Time;

use crate::buffering::Resumable;
use crate::config::MarkAt;
use crate::fabric::Fabric;
use crate::marking::Marker;
use crate::packet::Header;
use crate::port::{BOXED, LinkSpec, Port, PortId};

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
    if port.may_mark(usize::from(header.class())) && marker.at == MarkAt::Enqueue {
        return room.insert(marker.mark(id, port, specs, header));
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
        return marker.mark(id, port, specs, &header);
    }
    header
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Puts a packet in its class's queue, or on the link if the port is idle. The port is up to date.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        let mut room = None;
        let header = as_queued(&mut self.marker, &self.wires.specs, id, port, header, &mut room);
        let class = usize::from(header.class());
        if port.is_turn_of(class, now) {
            self.transmit(now, id, header);
        } else {
            port.push(class, header);
        }
    }

    /// Starts every service of a port that begins up to `now`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Time, id: PortId) {
        if self.ports[id as usize].serves_by(now).is_some() {
            self.serve_backlog(now, id);
        }
    }

    #[inline(never)]
    fn serve_backlog(&mut self, now: Time, id: PortId) {
        if self.ports[id as usize].is(BOXED) {
            return self.serve_boxed_port(now, id);
        }
        while let Some(eligible) = self.ports[id as usize].serves_by(now) {
            let class = self.scheduler.next_class(id, &self.ports[id as usize], eligible);
            let header = served(&mut self.marker, &self.wires.specs, id, &mut self.ports[id as usize], class);
            self.transmit(now, id, &header);
        }
    }

    /// Transmits a packet from the instant the port became free, and takes it out of the buffer.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        self.wires.put(port, header);
        port.sent_bytes += u64::from(header.wire_bytes());
        port.sent_packets += 1;
        self.packet_hops += 1;
        if id < self.host_ports {
            return;
        }
        let (switch, class) = (port.node - self.wires.hosts, usize::from(header.class()));
        self.switches[switch as usize].used_bytes -= u64::from(header.wire_bytes());
        let held = &mut self.held[header.ingress() as usize];
        held.bytes[class] -= u32::from(header.wire_bytes());
        if held.xoff_sent >> class & 1 != 0 {
            self.consider_resume(now, Resumable { switch, ingress: header.ingress(), class });
        }
    }
}
