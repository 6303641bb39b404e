//! What a port does with a packet: queue, service, link.

use pathweave_des::EventQueue;
use pathweave_units::{Time, mix64};

use crate::buffering::Resumable;
use crate::fabric::Fabric;
use crate::packet::{CE, ECN_CAPABLE, Header};
use crate::port::PortId;

/// What a port draws random numbers for. Separate counts, since services may run ahead of arrivals.
#[derive(Clone, Copy)]
pub(crate) enum Draw {
    Mark,
    Impair,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Puts a packet in its class's queue, or on the link if the port is idle. The port is up to date.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId, header: &Header) {
        let port = &self.ports[port_id as usize];
        let class = usize::from(header.class());
        let queued = port.queued_bytes[class];
        if (queued > port.mark_above_bytes) & (class > 0) && !self.mark_at_dequeue {
            let mut header = *header;
            self.mark(port_id, &mut header, queued);
            self.put_in(queue, now, port_id, &header);
        } else {
            self.put_in(queue, now, port_id, header);
        }
    }

    #[inline(always)]
    fn put_in(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId, header: &Header) {
        let class = usize::from(header.class());
        let port = &mut self.ports[port_id as usize];
        if port.tx_free <= now {
            // Nothing that may be served waits, so this packet's turn is now, unless its class is paused.
            port.tx_free = now;
            if port.paused >> class & 1 == 0 {
                self.start_service(queue, now, port_id, header);
                return;
            }
        }
        port.queues[class].push(*header);
        port.queued_bytes[class] += u32::from(header.wire_bytes());
        port.backlog |= 1 << class;
        port.max_queue_bytes = port.max_queue_bytes.max(port.total_queued_bytes());
    }

    /// Starts every service of a port that begins up to `now`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId) {
        let port = &self.ports[port_id as usize];
        // One branch: either half alone is a coin toss.
        if (port.eligible() != 0) & (port.tx_free <= now) {
            self.serve_backlog(queue, now, port_id);
        }
    }

    #[inline(never)]
    fn serve_backlog(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId) {
        loop {
            let port = &mut self.ports[port_id as usize];
            let eligible = port.eligible();
            if (eligible == 0) | (port.tx_free > now) {
                return;
            }
            let class = if C <= 2 || eligible & 1 != 0 {
                // Strict priority of control: 0 if it waits, else 1.
                usize::from(eligible & 1 == 0)
            } else {
                self.next_data_class(port_id, eligible)
            };
            let port = &mut self.ports[port_id as usize];
            let header = port.queues[class].pop().expect("its backlog bit is set");
            port.backlog &= !(u8::from(port.queues[class].is_empty()) << class);
            port.queued_bytes[class] -= u32::from(header.wire_bytes());
            let left = port.queued_bytes[class];
            if (left > port.mark_above_bytes) & (class > 0) && self.mark_at_dequeue {
                let mut header = header;
                self.mark(port_id, &mut header, left);
                self.start_service(queue, now, port_id, &header);
            } else {
                self.start_service(queue, now, port_id, &header);
            }
        }
    }

    /// Transmits a packet from the instant the port became free, and takes it out of the buffer.
    #[inline(always)]
    fn start_service(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId, header: &Header) {
        self.put_on_link(queue, port_id, header);
        let bytes = header.wire_bytes();
        let port = &mut self.ports[port_id as usize];
        port.sent_bytes += u64::from(bytes);
        port.sent_packets += 1;
        self.packet_hops += 1;
        if port_id < self.host_ports {
            return;
        }
        let (switch, class) = (port.node - self.hosts, usize::from(header.class()));
        self.switches[switch as usize].used_bytes -= u64::from(bytes);
        let account = &mut self.ports[header.ingress() as usize];
        account.held_bytes[class] -= u32::from(bytes);
        if account.xoff_sent >> class & 1 != 0 {
            self.consider_resume(queue, now, Resumable { switch, ingress: header.ingress(), class });
        }
    }

    /// Transmits a frame from `tx_free`, which moves to its end, uncounted. The port is up to date.
    #[inline(always)]
    pub(crate) fn put_on_link(&mut self, queue: &mut EventQueue, port_id: PortId, header: &Header) {
        let port = &mut self.ports[port_id as usize];
        let arrival = port.transmit(header.wire_bytes(), &self.specs);
        let was_empty = self.links[port.peer as usize].push(header, port.peer, arrival);
        if port.peer_node >= self.hosts {
            let due = &mut self.due[(port.peer_node - self.hosts) as usize];
            *due = arrival.min(*due);
        } else if was_empty {
            queue.schedule(port.peer, arrival);
        }
    }

    /// Marks a packet with the probability that goes with a queue of this many bytes, above the lower threshold.
    #[cold]
    fn mark(&mut self, port_id: PortId, header: &mut Header, queued_bytes: u32) {
        let port = &self.ports[port_id as usize];
        let Some(red) = &self.specs[usize::from(port.spec)].red else { return };
        let probability = red.probability(queued_bytes);
        if port.node < self.hosts || !header.is(ECN_CAPABLE) {
            return;
        }
        if probability >= 1.0 || self.draw(port_id, Draw::Mark) < probability {
            self.stats[port_id as usize].marked_packets += 1;
            header.set(CE);
        }
    }

    /// A number in [0, 1) fixed by the seed, the port, what it is for, and how often the port has drawn for that.
    pub(crate) fn draw(&mut self, port_id: PortId, purpose: Draw) -> f64 {
        let drawn = &mut self.draws[port_id as usize][purpose as usize];
        *drawn += 1;
        let place = u64::from(port_id) << 34 | (purpose as u64) << 33 | u64::from(*drawn);
        (mix64(self.seed ^ mix64(place)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
