//! A switch in a window of time: its arrivals in order, and what its ports make of them.

use crate::prefetch::{prefetch, prefetch_all};
use pathweave_units::Time;

use crate::calm::PORTS_AHEAD;
use crate::event::DropReason;
use crate::fabric::Fabric;
use crate::forwarding::{SwitchRoutes, ecmp_hash};
use crate::packet::{CORRUPT, Header, LOST, PFC};
use crate::port::{DOWN, PortId};
use crate::wires::LONGEST_WINDOW;

/// How many links ahead of its turn the packets on one are asked for.
const LINKS_AHEAD: usize = 4;

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
    /// Ports whose link is down.
    pub(crate) links_down: u32,
    /// Of the free shared buffer, in 65,536ths: what an ingress account may hold before its neighbour is paused.
    pub(crate) pfc_alpha: u64,
    /// Of the free buffer, in 65,536ths: what a queue may hold where PFC is off.
    pub(crate) egress_alpha: u64,
}

impl Switch {
    pub(crate) fn ports(&self) -> std::ops::Range<PortId> {
        self.first_port..self.end_port
    }

    /// What an ingress account may hold with this much in the buffer; above it the neighbour is paused.
    #[inline(always)]
    pub(crate) fn xoff_limit_bytes(&self, used_bytes: u64) -> u64 {
        (self.shared_bytes.saturating_sub(used_bytes) * self.pfc_alpha) >> 16
    }

    /// What a queue may hold with this much in the buffer where nobody is paused; above it packets are refused.
    #[inline(always)]
    pub(crate) fn queue_limit_bytes(&self, used_bytes: u64) -> u64 {
        (self.buffer_bytes.saturating_sub(used_bytes) * self.egress_alpha) >> 16
    }

    /// The egress port of a packet, or `None` where its destination cannot be reached.
    #[inline(always)]
    pub(crate) fn choose(&self, header: &Header) -> Option<PortId> {
        if let SwitchRoutes::Source(routes) = &self.routes {
            return routes.choose(header);
        }
        let hash = ecmp_hash(self.hash_seed, header.src(), header.dst(), header.path());
        self.routes.choose(header.src(), header.dst(), hash)
    }
}

/// Packets that arrive at the switch at hand before the end of the window. Kept for its memory.
pub(crate) struct Window<const C: usize> {
    arrivals: Vec<Header>,
    /// From the high end: index of the egress port in the switch, time since the window can have begun, index into
    /// `arrivals`.
    order: Vec<u64>,
    /// While `order` is sorted: where the next arrival for each port goes, and its new content. Kept for their memory.
    places: Vec<u32>,
    sorted: Vec<u64>,
    /// By ingress port and class.
    pub(crate) came_bytes: Vec<[u32; C]>,
    /// The sum of `came_bytes`.
    pub(crate) bytes: u64,
    /// Something in it is out of the ordinary, so that everything must be done in order of time.
    rough: bool,
}

const INDEX_BITS: u32 = 24;
/// Enough for [`LONGEST_WINDOW`] in picoseconds.
const TIME_BITS: u32 = 22;
const INDEX: u64 = (1 << INDEX_BITS) - 1;
const EGRESS_SHIFT: u32 = INDEX_BITS + TIME_BITS;

impl<const C: usize> Window<C> {
    pub(crate) fn new() -> Self {
        Window {
            arrivals: Vec::new(),
            order: Vec::new(),
            places: Vec::new(),
            sorted: Vec::new(),
            came_bytes: Vec::new(),
            bytes: 0,
            rough: false,
        }
    }

    pub(crate) fn is_rough(&self) -> bool {
        self.rough
    }

    /// Puts the arrivals in order of time and port.
    pub(crate) fn sort_by_time(&mut self) {
        self.order.iter_mut().for_each(|key| *key &= (1 << EGRESS_SHIFT) - 1);
        self.order.sort_unstable();
    }

    /// Puts the arrivals in order of egress port and time: they are spread over the ports, which leaves few for each.
    pub(crate) fn sort_by_egress(&mut self) {
        let egress = |key: u64| (key >> EGRESS_SHIFT) as usize;
        self.places.clear();
        self.places.resize(self.came_bytes.len() + 1, 0);
        self.order.iter().for_each(|&key| self.places[egress(key) + 1] += 1);
        (1..self.places.len()).for_each(|port| self.places[port] += self.places[port - 1]);
        self.sorted.resize(self.order.len(), 0);
        for &key in &self.order {
            let place = &mut self.places[egress(key)];
            self.sorted[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(&mut self.order, &mut self.sorted);
        // Each place has come to where the next port's arrivals begin.
        let mut first = 0;
        for &end in &self.places[..self.came_bytes.len()] {
            sort_few(&mut self.order[first..end as usize]);
            first = end as usize;
        }
    }

    /// The arrivals in that order.
    pub(crate) fn by_time(&self) -> impl Iterator<Item = &Header> {
        self.order.iter().map(|key| &self.arrivals[(key & INDEX) as usize])
    }

    /// The arrivals by egress port and time.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder { arrivals: &self.arrivals, order: self.order.iter() }
    }
}

/// Sorts different keys, mostly a handful: each goes where the number of smaller ones says, so that no branch hangs on how
/// they compare.
#[inline(always)]
fn sort_few(keys: &mut [u64]) {
    const FEW: usize = 12;
    if keys.len() > FEW {
        return keys.sort_unstable();
    }
    let mut sorted = [0; FEW];
    for &key in &*keys {
        let rank: usize = keys.iter().map(|&other| usize::from(other < key)).sum();
        sorted[rank.min(FEW - 1)] = key;
    }
    keys.copy_from_slice(&sorted[..keys.len()]);
}

/// What is left of the arrivals of a window.
pub(crate) struct InOrder<'a> {
    arrivals: &'a [Header],
    order: std::slice::Iter<'a, u64>,
}

impl<'a> InOrder<'a> {
    /// The next arrival, if it is for this egress port.
    #[inline(always)]
    pub(crate) fn next_at(&mut self, egress: u64) -> Option<&'a Header> {
        let key = *self.order.as_slice().first()?;
        if key >> EGRESS_SHIFT != egress {
            return None;
        }
        self.order.next();
        self.arrivals.get((key & INDEX) as usize)
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Takes a switch through everything that happens there before `end`.
    pub(crate) fn run_switch(&mut self, end: Time, switch: u32) {
        let mut window = std::mem::replace(&mut self.window, Window::new());
        let last = Time::from_ps(end.as_ps() - 1);
        for port in self.switches[switch as usize].ports().take(PORTS_AHEAD) {
            self.prefetch_services(port);
        }
        let (next_arrival, next_service);
        if !self.balancer.is_hash() {
            next_arrival = self.collect::<false>(&mut window, end, switch);
            next_service = self.run_in_order::<false>(last, switch, &mut window);
        } else {
            next_arrival = self.collect::<true>(&mut window, end, switch);
            next_service = if self.has_middlebox(switch) {
                self.run_boxed(last, switch, &mut window)
            } else if self.is_calm(switch, &window) {
                window.sort_by_egress();
                self.run_calm(last, switch, &window)
            } else {
                self.run_in_order::<true>(last, switch, &mut window)
            };
        }
        self.events += window.order.len() as u64;
        self.window = window;
        *self.wires.due_of_switch(switch) = next_arrival.min(next_service);
    }

    /// Takes from the links what arrives before `end`. Returns when more arrives. Where ports are chosen by a `HASH` the
    /// window notes them; other choices have to wait until what comes before is done.
    fn collect<const HASH: bool>(&mut self, window: &mut Window<C>, end: Time, switch: u32) -> Time {
        let start_ps = end.as_ps().saturating_sub(LONGEST_WINDOW.as_ps());
        let at = &self.switches[switch as usize];
        let (first, ports) = (at.first_port, (at.end_port - at.first_port) as usize);
        window.arrivals.clear();
        window.order.clear();
        window.came_bytes.clear();
        window.bytes = 0;
        window.rough = false;
        let mut next = Time::MAX;
        let links = &mut self.wires.links[first as usize..][..ports];
        for index in 0..ports {
            if let Some(link) = links.get(index + LINKS_AHEAD) {
                link.prefetch();
            }
            let link = &mut links[index];
            let mut came_bytes = [0; C];
            let mut flags = if link.impaired { u8::MAX } else { 0 };
            while let Some(header) = link.pop_before(end) {
                flags |= header.flags();
                came_bytes[usize::from(header.class())] += u32::from(header.wire_bytes());
                let egress = if HASH { at.choose(&header).unwrap_or(PortId::MAX) } else { first };
                let down = egress == PortId::MAX || header.links() > MAX_HOPS;
                flags |= u8::from(down) * LOST;
                let since = header.arrival().as_ps() - start_ps;
                debug_assert!(since >> TIME_BITS == 0 && window.arrivals.len() as u64 <= INDEX);
                let egress = u64::from(egress.wrapping_sub(first));
                window
                    .order
                    .push(egress << EGRESS_SHIFT | since << INDEX_BITS | window.arrivals.len() as u64);
                window.arrivals.push(header);
            }
            window.rough |= flags & (LOST | PFC) != 0;
            window.bytes += came_bytes.iter().map(|&bytes| u64::from(bytes)).sum::<u64>();
            window.came_bytes.push(came_bytes);
            next = next.min(link.next_arrival());
        }
        window.rough |= at.links_down > 0 || ports >> (64 - EGRESS_SHIFT) != 0;
        next
    }

    /// Takes a switch through the window in order of time. Returns when the next service begins, or what it does by the
    /// clock.
    fn run_in_order<const HASH: bool>(&mut self, last: Time, switch: u32, window: &mut Window<C>) -> Time {
        window.sort_by_time();
        for header in window.by_time() {
            let now = header.arrival();
            if !HASH {
                self.run_clock(now, switch);
            }
            if self.switches[switch as usize].paused_neighbours > 0 {
                self.serve_on_time(now, switch);
            }
            self.on_switch_arrival::<HASH>(now, switch, header);
        }
        if HASH {
            return self.finish(last, switch);
        }
        self.run_clock(last, switch);
        self.finish(last, switch).min(self.balancer.alarm(switch))
    }

    /// Executes the services due up to `until`, as long as somebody waits for them.
    pub(crate) fn serve_on_time(&mut self, until: Time, switch: u32) {
        while self.switches[switch as usize].paused_neighbours > 0 {
            let Some((due, port)) = self.next_service(switch) else { return };
            if due > until {
                return;
            }
            self.events += 1;
            self.advance(due, port);
        }
    }

    /// The next service of a switch: when, and of which port.
    pub(crate) fn next_service(&self, switch: u32) -> Option<(Time, PortId)> {
        let ports = self.switches[switch as usize].ports();
        let eligible = ports.filter(|&port| self.ports[port as usize].eligible() != 0);
        eligible.map(|port| (self.ports[port as usize].tx_free, port)).min()
    }

    /// Starts what services begin up to `last`. Returns when the next one does.
    fn finish(&mut self, last: Time, switch: u32) -> Time {
        self.serve_on_time(last, switch);
        let mut next = Time::MAX;
        for id in self.switches[switch as usize].ports() {
            self.advance(last, id);
            let port = &self.ports[id as usize];
            if port.eligible() != 0 {
                next = next.min(port.tx_free);
            }
        }
        next
    }

    /// A packet has come into a switch by its ingress port.
    #[inline(always)]
    fn on_switch_arrival<const HASH: bool>(&mut self, now: Time, switch: u32, header: &Header) {
        if self.wires.links[header.ingress() as usize].impaired | header.is(LOST | PFC) {
            if let Some(header) = self.inspect(now, *header) {
                self.forward::<HASH>(now, switch, &header);
            }
        } else {
            self.forward::<HASH>(now, switch, header);
        }
    }

    /// A pause frame, or a packet that may not have come through: returns what is to be forwarded.
    #[cold]
    pub(crate) fn inspect(&mut self, now: Time, mut header: Header) -> Option<Header> {
        let ingress = header.ingress();
        if self.wires.links[ingress as usize].impaired {
            self.impair(ingress, &mut header);
        }
        if !header.is(LOST | CORRUPT | PFC) {
            return Some(header);
        }
        self.on_special_arrival(now, ingress, &header);
        None
    }

    #[inline(always)]
    fn forward<const HASH: bool>(&mut self, now: Time, switch: u32, header: &Header) {
        if !HASH {
            return self.balance(now, switch, header);
        }
        let Some(egress) = self.switches[switch as usize].choose(header) else {
            return self.lose(now, header.ingress(), header, DropReason::NoRoute);
        };
        if self.may_leave(now, switch, egress, header) {
            self.enqueue(now, egress, header);
        }
    }

    /// Takes a packet into the buffer for a port that is up; false if that is not to be, and the packet lost.
    #[inline(always)]
    pub(crate) fn may_leave(&mut self, now: Time, switch: u32, egress: PortId, header: &Header) -> bool {
        if header.links() > MAX_HOPS {
            self.lose(now, egress, header, DropReason::Loop);
            return false;
        }
        if self.ports[egress as usize].is(DOWN) {
            self.lose(now, egress, header, DropReason::LinkDown);
            return false;
        }
        // Before the buffer is asked, so that this port's share of it is exact.
        self.advance(now, egress);
        self.admit(now, switch, egress, header)
    }

    /// Brings every port of a switch up to `now`.
    pub(crate) fn advance_switch(&mut self, now: Time, switch: u32) {
        for port in self.switches[switch as usize].ports() {
            self.advance(now, port);
        }
    }

    /// Begins to load what running a switch touches first: its ports, and both ends of their cables.
    #[inline(always)]
    pub(crate) fn prefetch_ports(&self, switch: u32) {
        for port in self.switches[switch as usize].ports() {
            prefetch(&self.wires.links[port as usize]);
            prefetch_all(&self.ports[port as usize]);
        }
    }

    /// Then, once that is there: the packets that arrive first.
    #[inline(always)]
    pub(crate) fn prefetch_packets(&self, switch: u32) {
        for id in self.switches[switch as usize].ports().take(LINKS_AHEAD) {
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
