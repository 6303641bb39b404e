//! The fabric: ports, switches and the packets between them.
//!
//! **Lazy port service.** The only event of a hop is a packet's arrival at the far end of a link. A port's queues are
//! served when somebody looks: [`Fabric::advance`] starts every service that began up to now and puts the packets on
//! the link with their exact arrival times. It runs before each enqueue and at each arrival of the port's link, and a
//! busy port always has a packet on its link, so no service is ever late. Until looked at, a queue or buffer seems
//! fuller than it is; decisions that would mark, drop or pause bring up to date what they count first.

use pathweave_des::{EventQueue, SourceId, prefetch, prefetch_all};
use pathweave_units::{Duration, HostId, Time, mix64};

use crate::config::EcnConfig;
use crate::event::{Arrived, DropReason, FabricEvent, FabricEventKind, Step};
use crate::faults::Impairment;
use crate::forwarding::{SwitchRoutes, ecmp_hash};
use crate::packet::{CE, CORRUPT, ECN_CAPABLE, Header, LOST, PFC, PacketId, Slab};
use crate::port::{DOWN, EXPLICIT, IMPAIRED, Ingress, LinkSpec, Port, PortId, PortStats, Sent};
use crate::scheduling::Deficit;

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
    /// (Port, class) pairs whose neighbour is paused; above 0 services are events.
    pub(crate) paused_neighbours: u32,
    pub(crate) first_port: PortId,
    pub(crate) end_port: PortId,
    pub(crate) max_used_bytes: u64,
}

/// Where a packet that is about to arrive will go.
#[derive(Clone, Copy, Debug, Default)]
pub enum Target {
    /// Nowhere, or it is not known.
    #[default]
    Nothing,
    /// To this host, over the link of this port.
    Host(HostId, PortId),
    /// To this egress port.
    Port(PortId),
}

/// An account that has shrunk while the neighbour behind it is paused.
#[derive(Clone, Copy)]
pub(crate) struct Resumable {
    pub(crate) switch: u32,
    pub(crate) ingress: PortId,
    pub(crate) class: usize,
}

/// What a port draws random numbers for. Separate counts, since services may run ahead of arrivals.
#[derive(Clone, Copy)]
pub(crate) enum Draw {
    Mark,
    Impair,
}

/// A fabric that carries contents of type `P` in `C` traffic classes (class 0 is control).
///
/// Drive it so: pop an event; if its source is below [`crate::event_sources`], hand it to [`Fabric::on_event`] and act
/// on the [`Step`]; hosts put packets in with [`Fabric::send`].
pub struct Fabric<P, const C: usize> {
    pub(crate) ports: Vec<Port<C>>,
    pub(crate) specs: Vec<LinkSpec>,
    pub(crate) packets: Slab<P>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) ingress: Vec<Ingress<C>>,
    pub(crate) sent: Vec<Sent>,
    /// Counters of what is rare; `tx_bytes` and `tx_packets` are kept in `sent`.
    pub(crate) stats: Vec<PortStats>,
    /// Since when each port has had a paused class; [`Time::MAX`] where it has none.
    pub(crate) paused_since: Vec<Time>,
    pub(crate) round_robin: Vec<Deficit<C>>,
    pub(crate) impairments: Vec<Impairment>,
    pub(crate) hosts: u32,
    pub(crate) ecn: EcnConfig,
    pub(crate) mark_at_dequeue: bool,
    pub(crate) pfc: bool,
    pub(crate) pfc_alpha: u64,
    pub(crate) xon_gap_bytes: u64,
    pub(crate) egress_alpha: u64,
    pub(crate) weights: [u32; C],
    pub(crate) seed: u64,
    /// Random numbers each port has used, by [`Draw`].
    pub(crate) draws: Vec<[u32; 2]>,
    pub(crate) packet_hops: u64,
    pub(crate) log: Vec<FabricEvent<P>>,
}

impl<P: Copy + Default, const C: usize> Fabric<P, C> {
    /// A host puts a packet on its NIC port's queue.
    #[inline]
    pub fn send(&mut self, queue: &mut EventQueue, now: Time, port: PortId, header: Header, content: P) {
        debug_assert!(self.ports[port as usize].node == header.src.0);
        let id = self.packets.insert(header, content);
        if self.ports[port as usize].is(DOWN) {
            return self.send_into_the_void(now, port, id);
        }
        self.advance(queue, now, port);
        self.enqueue(queue, now, port, id);
    }

    /// When a host's port has nothing left to transmit: now or earlier if it is idle.
    #[inline]
    pub fn port_free_at(&self, port: PortId) -> Time {
        self.ports[port as usize].tx_free
    }

    /// Whether a host's port could start a data packet at `now`: up, idle once what waits before it is served, and no
    /// data class paused.
    #[inline]
    pub fn port_ready(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId) -> bool {
        self.advance(queue, now, port_id);
        let port = &self.ports[port_id as usize];
        port.tx_free <= now && (port.paused | port.backlog) & !1 == 0 && !port.is(DOWN)
    }

    /// Loads ahead of time what an event will touch first: its port.
    #[inline(always)]
    pub fn prefetch_port(&self, source: SourceId) {
        if let Some(port) = self.ports.get(source as usize) {
            prefetch(port);
        }
    }

    /// Then, once that is there: the packet that arrives, and the one that will be served next.
    #[inline(always)]
    pub fn prefetch_packet(&self, source: SourceId) {
        let Some(port) = self.ports.get(source as usize) else { return };
        self.packets.prefetch(port.in_flight.head);
        self.packets.prefetch(port.queues[0].head);
        self.packets.prefetch(port.queues[1].head);
    }

    /// Then, once that is there: where the packet goes.
    #[inline(always)]
    pub fn prefetch_target(&self, source: SourceId) -> Target {
        let Some(port) = self.ports.get(source as usize).filter(|port| !port.in_flight.is_empty()) else {
            return Target::Nothing;
        };
        if port.peer_node < self.hosts {
            prefetch_all(self.packets.content(port.in_flight.head));
            return Target::Host(HostId(port.peer_node), source);
        }
        let header = &self.packets[port.in_flight.head];
        let at = &self.switches[(port.peer_node - self.hosts) as usize];
        let hash = ecmp_hash(at.hash_seed, header.src, header.dst, header.path);
        let Some(egress) = at.routes.choose(header.dst, hash) else { return Target::Nothing };
        prefetch(&self.ports[egress as usize]);
        prefetch(&self.ingress[port.peer as usize]);
        Target::Port(egress)
    }

    /// What the packet next to arrive over a port's link carries.
    #[inline(always)]
    pub fn next_content(&self, port: PortId) -> Option<&P> {
        let head = self.ports[port as usize].in_flight.head;
        (head != crate::packet::NO_PACKET).then(|| self.packets.content(head))
    }

    /// Then, once that is there: the packets it will stand behind or follow, and the port's counters.
    #[inline(always)]
    pub fn prefetch_queue(&self, egress: PortId) {
        let port = &self.ports[egress as usize];
        self.packets.prefetch(port.in_flight.tail);
        for queue in &port.queues[..2] {
            self.packets.prefetch(queue.tail);
            self.packets.prefetch(queue.head);
        }
        prefetch(&self.sent[egress as usize]);
    }

    /// Executes one of the fabric's events.
    #[inline(always)]
    pub fn on_event(&mut self, queue: &mut EventQueue, now: Time, source: SourceId) -> Step {
        let ports = self.ports.len() as u32;
        if source < ports {
            return self.on_arrival(queue, now, source);
        }
        // A port of a switch that somebody waits for: its next service is due.
        self.on_service(queue, now, source - ports);
        Step::Done
    }

    /// The packet at the head of a link has arrived at the far end.
    #[inline(always)]
    fn on_arrival(&mut self, queue: &mut EventQueue, now: Time, from: PortId) -> Step {
        let port = &mut self.ports[from as usize];
        let (id, next) = port.in_flight.pop_arrival(&self.packets);
        let (ingress, node, flags) = (port.peer, port.peer_node, port.flags);
        if let Some(next) = next {
            queue.schedule(from, Time::from_ps(next));
        }
        self.advance(queue, now, from);
        if flags & IMPAIRED != 0 {
            self.impair(from, id);
        }
        if self.packets[id].flags & (LOST | CORRUPT | PFC) != 0 {
            return self.on_special_arrival(queue, now, from, ingress, id);
        }
        if node < self.hosts {
            return Step::Delivered { host: HostId(node), port: ingress, packet: Arrived(id) };
        }
        self.forward(queue, now, node - self.hosts, ingress, id);
        Step::Done
    }

    /// What has been delivered: the packet as the fabric sees it, and what it carries.
    #[inline]
    pub fn delivered(&self, packet: &Arrived) -> (&Header, &P) {
        (&self.packets[packet.0], self.packets.content(packet.0))
    }

    /// Frees a delivered packet. To be called for each.
    #[inline]
    pub fn take(&mut self, packet: Arrived) -> (Header, P) {
        self.packets.remove(packet.0)
    }

    /// As [`Fabric::take`], for who has seen enough.
    #[inline]
    pub fn discard(&mut self, packet: Arrived) {
        self.packets.free(packet.0);
    }

    #[cold]
    fn on_special_arrival(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        from: PortId,
        ingress: PortId,
        id: PacketId,
    ) -> Step {
        let header = self.packets[id];
        if header.is(PFC) {
            self.packets.remove(id);
            if header.is(LOST) {
                return Step::Done;
            }
            return self.on_pause_frame(queue, now, ingress, &header);
        }
        let reason = if header.is(CORRUPT) {
            DropReason::Corruption
        } else if self.ports[from as usize].is(IMPAIRED) && !self.ports[from as usize].is(DOWN) {
            DropReason::Loss
        } else {
            DropReason::LinkDown
        };
        self.lose(now, from, id, reason);
        Step::Done
    }

    /// Chooses the egress port of a packet that has come into a switch, and admits it to the buffer.
    #[inline(always)]
    fn forward(&mut self, queue: &mut EventQueue, now: Time, switch: u32, ingress: PortId, id: PacketId) {
        let header = &mut self.packets[id];
        header.ingress = ingress;
        header.hops += 1;
        let (src, dst, path, hops) = (header.src, header.dst, header.path, header.hops);
        let at = &self.switches[switch as usize];
        let Some(egress) = at.routes.choose(dst, ecmp_hash(at.hash_seed, src, dst, path)) else {
            return self.lose(now, ingress, id, DropReason::NoRoute);
        };
        if hops > MAX_HOPS {
            return self.lose(now, egress, id, DropReason::Loop);
        }
        let port = &self.ports[egress as usize];
        if port.is(DOWN) {
            return self.lose(now, egress, id, DropReason::LinkDown);
        }
        // Before the buffer is asked, so that this port's share of it is exact.
        self.advance(queue, now, egress);
        if self.admit(queue, now, switch, egress, ingress, id) {
            self.enqueue(queue, now, egress, id);
        }
    }

    /// Puts a packet in its class's queue, or on the link if the port is idle. The port is up to date.
    #[inline(always)]
    fn enqueue(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId, id: PacketId) {
        let port = &mut self.ports[port_id as usize];
        let header = &mut self.packets[id];
        let class = usize::from(header.class);
        let bytes = u32::from(header.wire_bytes);
        debug_assert!(class < C);
        if !self.mark_at_dequeue
            && class > 0
            && port.queued_bytes[class] > self.specs[usize::from(port.spec)].mark_above_bytes
        {
            let queued = port.queued_bytes[class];
            self.mark(port_id, id, queued);
        }
        let port = &mut self.ports[port_id as usize];
        if port.tx_free <= now {
            // Nothing that may be served waits, so this packet's turn is now, unless its class is paused.
            port.tx_free = now;
            if port.paused >> class & 1 == 0 {
                if let Some(resumable) = self.start_service(queue, port_id, id, class) {
                    self.consider_resume(queue, resumable);
                }
                return;
            }
        }
        port.queues[class].push(&mut self.packets, id);
        port.queued_bytes[class] += bytes;
        port.backlog |= 1 << class;
        port.max_queue_bytes = port.max_queue_bytes.max(port.total_queued_bytes());
        let explicit = port.is(EXPLICIT) && port.backlog & !port.paused != 0;
        let due = port.tx_free.max(now);
        if explicit {
            queue.schedule_no_later(self.service_source(port_id), due);
        }
    }

    /// Starts every service of a port that begins up to `now`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId) {
        let port = &self.ports[port_id as usize];
        // One branch: either half alone is a coin toss.
        if (port.backlog & !port.paused != 0) & (port.tx_free <= now) {
            self.serve_backlog(queue, now, port_id);
        }
    }

    #[inline(never)]
    fn serve_backlog(&mut self, queue: &mut EventQueue, now: Time, port_id: PortId) {
        loop {
            let port = &mut self.ports[port_id as usize];
            let eligible = port.backlog & !port.paused;
            if (eligible == 0) | (port.tx_free > now) {
                return;
            }
            let class = if eligible & 1 != 0 {
                0
            } else if C <= 2 {
                1
            } else {
                self.next_data_class(port_id, eligible)
            };
            let port = &mut self.ports[port_id as usize];
            let id = port.queues[class].pop(&self.packets);
            port.backlog &= !(u8::from(port.queues[class].is_empty()) << class);
            port.queued_bytes[class] -= u32::from(self.packets[id].wire_bytes);
            if self.mark_at_dequeue
                && class > 0
                && port.queued_bytes[class] > self.specs[usize::from(port.spec)].mark_above_bytes
            {
                let queued = port.queued_bytes[class];
                self.mark(port_id, id, queued);
            }
            if let Some(resumable) = self.start_service(queue, port_id, id, class) {
                self.consider_resume(queue, resumable);
            }
            let port = &self.ports[port_id as usize];
            if port.is(EXPLICIT) && port.backlog & !port.paused != 0 {
                let due = port.tx_free;
                queue.schedule_no_later(self.service_source(port_id), due.max(now));
            }
        }
    }

    /// Transmits a packet from the instant the port became free, and takes it out of the buffer. Returns the account
    /// it was on if the neighbour behind that is paused.
    #[inline(always)]
    fn start_service(
        &mut self,
        queue: &mut EventQueue,
        port_id: PortId,
        id: PacketId,
        class: usize,
    ) -> Option<Resumable> {
        self.packet_hops += 1;
        let header = &self.packets[id];
        let (wire_bytes, ingress) = (header.wire_bytes, header.ingress);
        self.put_on_link(queue, port_id, id);
        let node = self.ports[port_id as usize].node;
        let sent = &mut self.sent[port_id as usize];
        sent.bytes += u64::from(wire_bytes);
        sent.packets += 1;
        if node < self.hosts {
            return None;
        }
        let switch = node - self.hosts;
        self.switches[switch as usize].used_bytes -= u64::from(wire_bytes);
        let account = &mut self.ingress[ingress as usize];
        account.bytes[class] -= u32::from(wire_bytes);
        (account.xoff_sent >> class & 1 != 0).then_some(Resumable { switch, ingress, class })
    }

    /// Transmits a frame from `tx_free`, which moves to its end, uncounted. The port is up to date.
    #[inline(always)]
    pub(crate) fn put_on_link(&mut self, queue: &mut EventQueue, port_id: PortId, id: PacketId) {
        let port = &mut self.ports[port_id as usize];
        let spec = &self.specs[usize::from(port.spec)];
        port.tx_free += spec.time_for(self.packets[id].wire_bytes);
        // Not before the packet ahead, which has just arrived where this service is noticed late.
        let arrival = (port.tx_free + spec.delay).max(queue.now());
        if port.in_flight.push_arrival(&mut self.packets, id, arrival.as_ps()) {
            queue.schedule(port_id, arrival);
        }
    }

    /// Marks a packet with the probability that goes with a queue of this many bytes, above the lower threshold.
    #[cold]
    fn mark(&mut self, port_id: PortId, id: PacketId, queued_bytes: u32) {
        let port = &self.ports[port_id as usize];
        let Some(red) = &self.specs[usize::from(port.spec)].red else { return };
        let probability = red.probability(queued_bytes);
        if port.node < self.hosts || self.packets[id].flags & ECN_CAPABLE == 0 {
            return;
        }
        if probability >= 1.0 || self.draw(port_id, Draw::Mark) < probability {
            self.stats[port_id as usize].marked_packets += 1;
            self.packets[id].flags |= CE;
        }
    }

    /// A number in [0, 1) fixed by the seed, the port, what it is for, and how often the port has drawn for that.
    pub(crate) fn draw(&mut self, port_id: PortId, purpose: Draw) -> f64 {
        let drawn = &mut self.draws[port_id as usize][purpose as usize];
        *drawn += 1;
        let place = u64::from(port_id) << 34 | (purpose as u64) << 33 | u64::from(*drawn);
        (mix64(self.seed ^ mix64(place)) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[inline]
    pub(crate) fn service_source(&self, port: PortId) -> SourceId {
        self.ports.len() as u32 + port
    }

    /// A packet is lost at `port`.
    #[cold]
    pub(crate) fn lose(&mut self, now: Time, port: PortId, id: PacketId, reason: DropReason) {
        let (header, content) = self.packets.remove(id);
        self.stats[port as usize].dropped_packets += 1;
        let kind = FabricEventKind::Dropped { reason, header, content };
        self.log.push(FabricEvent { time: now, port, kind });
    }

    /// Brings every port of a switch up to `now`.
    pub(crate) fn advance_switch(&mut self, queue: &mut EventQueue, now: Time, switch: u32) {
        let Switch { first_port, end_port, .. } = self.switches[switch as usize];
        for port in first_port..end_port {
            self.advance(queue, now, port);
        }
    }

    /// Total time a port's classes have been paused up to `now`.
    pub fn paused_time(&self, port: PortId, now: Time) -> Duration {
        self.stats[port as usize].paused + now.saturating_since(self.paused_since[port as usize])
    }
}
