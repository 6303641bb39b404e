//! What a port does with a packet at an instant: queue, service, link.

use pathweave_des::EventQueue;
use pathweave_units::Time;

use crate::buffering::Resumable;
use crate::config::MarkAt;
use crate::fabric::Fabric;
use crate::packet::Header;
use crate::port::PortId;

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Puts a packet in its class's queue, or on the link if the port is idle. The port is up to date.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, queue: &mut EventQueue, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        let class = usize::from(header.class());
        let marked;
        let mut header = header;
        if port.may_mark(class) && self.marker.at == MarkAt::Enqueue {
            marked = self.marker.mark(id, port, &self.wires.specs, header);
            header = &marked;
        }
        if port.tx_free <= now {
            // Nothing that may be served waits, so this packet's turn is now, unless its class is paused.
            port.tx_free = now;
            if port.paused >> class & 1 == 0 {
                return self.transmit(queue, now, id, header);
            }
        }
        port.push(class, header);
    }

    /// Starts every service of a port that begins up to `now`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, queue: &mut EventQueue, now: Time, id: PortId) {
        let port = &self.ports[id as usize];
        // One branch: either half alone is a coin toss.
        if (port.eligible() != 0) & (port.tx_free <= now) {
            self.serve_backlog(queue, now, id);
        }
    }

    #[inline(never)]
    fn serve_backlog(&mut self, queue: &mut EventQueue, now: Time, id: PortId) {
        loop {
            let port = &mut self.ports[id as usize];
            let eligible = port.eligible();
            if (eligible == 0) | (port.tx_free > now) {
                return;
            }
            let class = self.scheduler.next_class(id, port, eligible);
            let mut header = port.pop(class);
            if port.may_mark(class) && self.marker.at == MarkAt::Dequeue {
                header = self.marker.mark(id, port, &self.wires.specs, &header);
            }
            self.transmit(queue, now, id, &header);
        }
    }

    /// Transmits a packet from the instant the port became free, and takes it out of the buffer.
    #[inline(always)]
    fn transmit(&mut self, queue: &mut EventQueue, now: Time, id: PortId, header: &Header) {
        let port = &mut self.ports[id as usize];
        self.wires.put(queue, port, header);
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
            self.consider_resume(queue, now, Resumable { switch, ingress: header.ingress(), class });
        }
    }
}
