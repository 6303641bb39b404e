//! A switch in a window of time: its arrivals in order, and what its ports make of them.

use pathweave_des::{EventQueue, prefetch, prefetch_all};
use pathweave_units::Time;

use crate::event::DropReason;
use crate::fabric::Fabric;
use crate::forwarding::{SwitchRoutes, ecmp_hash};
use crate::packet::{CORRUPT, Header, LOST, PFC};
use crate::port::{DOWN, PortId};

/// Switches a packet may pass before it counts as caught in a loop.
const MAX_HOPS: u8 = 64;

/// A switch: routes and the buffer its ports share.
pub(crate) struct Switch {
    pub(crate) routes: SwitchRoutes,
    pub(crate) hash_seed: u64,
    /// Bytes in the buffer; may count packets whose service has begun but was not looked at.
    pub(crate) used_bytes: u64,
    pub(crate) buffer_bytes: u64,
    /// The buffer less the headroom of all ports.
    pub(crate) shared_bytes: u64,
    /// (Port, class) pairs whose neighbour is paused. Above 0 somebody waits for the buffer to drain, so services are
    /// executed on time instead of when somebody looks.
    pub(crate) paused_neighbours: u32,
    pub(crate) first_port: PortId,
    pub(crate) end_port: PortId,
    pub(crate) max_used_bytes: u64,
}

impl Switch {
    pub(crate) fn ports(&self) -> std::ops::Range<PortId> {
        self.first_port..self.end_port
    }
}

/// Packets that arrive at the switch at hand before the end of the window. Kept for its memory.
#[derive(Default)]
pub(crate) struct Window {
    arrivals: Vec<Header>,
    /// Time since the start, and index into `arrivals` in the low [`INDEX_BITS`].
    order: Vec<u64>,
}

/// More packets than arrive at a switch in a window.
const INDEX_BITS: u32 = 24;

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Takes a switch through everything that happens there before `end`.
    pub(crate) fn run_switch(&mut self, queue: &mut EventQueue, end: Time, switch: u32) {
        let mut window = std::mem::take(&mut self.window);
        let next_arrival = self.collect(&mut window, end, switch);
        for &key in &window.order {
            let header = &window.arrivals[(key & ((1 << INDEX_BITS) - 1)) as usize];
            let now = header.arrival();
            if self.switches[switch as usize].paused_neighbours > 0 {
                self.serve_on_time(queue, now, switch);
            }
            self.on_switch_arrival(queue, now, switch, header);
        }
        self.events += window.order.len() as u64;
        self.window = window;
        let next_service = self.finish(queue, Time::from_ps(end.as_ps() - 1), switch);
        self.due[switch as usize] = next_arrival.min(next_service);
    }

    /// Takes from the links what arrives before `end`, in order of time, then of port. Returns when more arrives.
    fn collect(&mut self, window: &mut Window, end: Time, switch: u32) -> Time {
        let start = self.due[switch as usize];
        window.arrivals.clear();
        window.order.clear();
        let mut next = Time::MAX;
        for ingress in self.switches[switch as usize].ports() {
            let link = &mut self.links[ingress as usize];
            while let Some(header) = link.pop_before(end) {
                let index = window.arrivals.len() as u64;
                debug_assert!(index >> INDEX_BITS == 0);
                window.order.push((header.arrival() - start).as_ps() << INDEX_BITS | index);
                window.arrivals.push(header);
            }
            next = next.min(link.next_arrival());
        }
        window.order.sort_unstable();
        next
    }

    /// Executes the services due up to `until`, as long as somebody waits for them.
    fn serve_on_time(&mut self, queue: &mut EventQueue, until: Time, switch: u32) {
        while self.switches[switch as usize].paused_neighbours > 0 {
            let Some((due, port)) = self.next_service(switch) else { return };
            if due > until {
                return;
            }
            self.events += 1;
            self.advance(queue, due, port);
        }
    }

    /// The next service of a switch: when, and of which port.
    fn next_service(&self, switch: u32) -> Option<(Time, PortId)> {
        let ports = self.switches[switch as usize].ports();
        let eligible = ports.filter(|&port| self.ports[port as usize].eligible() != 0);
        eligible.map(|port| (self.ports[port as usize].tx_free, port)).min()
    }

    /// Starts what services begin up to `last`. Returns when the next one does.
    fn finish(&mut self, queue: &mut EventQueue, last: Time, switch: u32) -> Time {
        self.serve_on_time(queue, last, switch);
        let mut next = Time::MAX;
        for id in self.switches[switch as usize].ports() {
            self.advance(queue, last, id);
            let port = &self.ports[id as usize];
            if port.eligible() != 0 {
                next = next.min(port.tx_free);
            }
        }
        next
    }

    /// A packet has come into a switch by its ingress port.
    #[inline(always)]
    fn on_switch_arrival(&mut self, queue: &mut EventQueue, now: Time, switch: u32, header: &Header) {
        if self.links[header.ingress() as usize].impaired | header.is(LOST | PFC) {
            if let Some(header) = self.inspect(queue, now, *header) {
                self.forward(queue, now, switch, &header);
            }
        } else {
            self.forward(queue, now, switch, header);
        }
    }

    /// A pause frame, or a packet that may not have come through: returns what is to be forwarded.
    #[cold]
    fn inspect(&mut self, queue: &mut EventQueue, now: Time, mut header: Header) -> Option<Header> {
        let ingress = header.ingress();
        if self.links[ingress as usize].impaired {
            self.impair(ingress, &mut header);
        }
        if !header.is(LOST | CORRUPT | PFC) {
            return Some(header);
        }
        self.on_special_arrival(queue, now, ingress, &header);
        None
    }

    #[inline(always)]
    fn forward(&mut self, queue: &mut EventQueue, now: Time, switch: u32, header: &Header) {
        let at = &self.switches[switch as usize];
        let hash = ecmp_hash(at.hash_seed, header.src(), header.dst(), header.path());
        let Some(egress) = at.routes.choose(header.dst(), hash) else {
            return self.lose(now, header.ingress(), header, DropReason::NoRoute);
        };
        if header.links() > MAX_HOPS {
            return self.lose(now, egress, header, DropReason::Loop);
        }
        if self.ports[egress as usize].is(DOWN) {
            return self.lose(now, egress, header, DropReason::LinkDown);
        }
        // Before the buffer is asked, so that this port's share of it is exact.
        self.advance(queue, now, egress);
        if self.admit(queue, now, switch, egress, header) {
            self.enqueue(queue, now, egress, header);
        }
    }

    /// Brings every port of a switch up to `now`.
    pub(crate) fn advance_switch(&mut self, queue: &mut EventQueue, now: Time, switch: u32) {
        for port in self.switches[switch as usize].ports() {
            self.advance(queue, now, port);
        }
    }

    /// Begins to load what running a switch touches first: its ports, and both ends of their cables.
    #[inline(always)]
    pub(crate) fn prefetch_ports(&self, switch: u32) {
        for port in self.switches[switch as usize].ports() {
            prefetch(&self.links[port as usize]);
            prefetch_all(&self.ports[port as usize]);
        }
    }

    /// Then, once that is there: the packets that arrive, those that wait, and the links they will go to.
    #[inline(always)]
    pub(crate) fn prefetch_packets(&self, switch: u32) {
        for id in self.switches[switch as usize].ports() {
            self.links[id as usize].prefetch();
            let port = &self.ports[id as usize];
            for queue in &port.queues {
                for n in [0, 2] {
                    queue.peek(n).into_iter().for_each(prefetch);
                }
            }
            prefetch(&self.links[port.peer as usize]);
        }
    }

    /// Then, once that is there: where packets will be put.
    #[inline(always)]
    pub(crate) fn prefetch_tails(&self, switch: u32) {
        for id in self.switches[switch as usize].ports() {
            let port = &self.ports[id as usize];
            if let Some(last) = self.links[port.peer as usize].last() {
                prefetch(last);
            }
            if let Some(last) = port.queues[1.min(C - 1)].back() {
                prefetch(last);
            }
        }
    }
}
