//! Observation of a fabric without effect on it.

use pathweave_units::{Bytes, Duration, HostId, PathId, Time};

use crate::event::FabricEvent;
use crate::fabric::Fabric;
use crate::forwarding::{ForwardingStats, SwitchRoutes, ecmp_hash};
use crate::middlebox::MiddleboxStats;
use crate::numbers::PortNumbers;
use crate::packet::PortId;
use crate::port::PortStats;
use crate::ring::Ring;

/// Length above which a route counts as a loop.
const MOST_HOPS: usize = 64;

#[cfg(feature = "hops")]
impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Records hops from now on.
    pub fn record_hops(&mut self) {
        self.transit.lines.wires.hops.start();
    }

    /// Returns the hops since the last call, in order of their start. Ports have their numbers in the whole fabric. Must
    /// be called between windows.
    pub fn drain_hops(&mut self) -> Vec<crate::Hop> {
        let mut hops = self.transit.lines.wires.hops.take();
        for hop in &mut hops {
            let port = self.transit.lines.ports[hop.far as usize].peer;
            hop.port = self.numbers.global(port);
            hop.far = self.numbers.global(hop.far);
            hop.ingress = hop.ingress.map(|port| self.numbers.global(port));
        }
        hops.sort_by_key(|hop| (hop.start, hop.port));
        hops
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Returns the counters of a port, up to its last service; see [`Fabric::settle`].
    pub fn stats(&self, port: PortId) -> PortStats {
        let at = &self.transit.lines.ports[port as usize];
        let rare = self.transit.journal.of_port.get(port);
        PortStats {
            tx_bytes: at.sent_bytes,
            tx_packets: at.sent_packets,
            dropped_packets: rare.dropped_packets,
            marked_packets: *self.transit.lines.marker.marked_packets.get(port),
            trimmed_packets: rare.trimmed_packets,
            max_queue_bytes: u64::from(at.max_queue_bytes),
            pauses: rare.pauses,
            paused: rare.paused,
        }
    }

    /// Returns the exact number of bytes queued at a port. The call has no effect on later events: a port whose
    /// services are events is up to date already, and for any other an early service has the same result.
    pub fn queued_bytes(&mut self, now: Time, port: PortId) -> Bytes {
        self.settle(now, port);
        Bytes::new(u64::from(self.transit.lines.ports[port as usize].total_queued_bytes()))
    }

    /// Brings a port's counters up to `now`.
    pub fn settle(&mut self, now: Time, port: PortId) {
        if !self.serves_on_time(port) {
            self.transit.bring_up_to(&mut self.balancing, now, port);
        }
    }

    /// Returns true if the services of a port are executed on time: its switch has a middlebox or pauses an upstream
    /// port.
    fn serves_on_time(&self, port: PortId) -> bool {
        let transit = &self.transit;
        let Some(switch) = transit.lines.switch_of(port) else { return false };
        transit.middleboxes.get(switch).is_some()
            || transit.switches.each[switch as usize].paused_neighbours > 0
    }

    /// Returns the total time for which classes of a port have been paused up to `now`.
    pub fn paused_time(&self, port: PortId, now: Time) -> Duration {
        let events = self.transit.journal.of_port.get(port);
        events.paused + now.saturating_since(events.paused_since)
    }

    /// Returns the number of arrivals at switches, and of services executed on time, so far.
    pub fn events(&self) -> u64 {
        self.transit.events
    }

    /// Returns the numbers of the ports, by which calls name them. Ports of hosts have the lowest numbers of the own
    /// ones.
    pub fn numbers(&self) -> &PortNumbers {
        &self.numbers
    }

    /// Returns the egress ports of a packet of `src`, `dst` and path entropy, from this port of `src` on, by
    /// evaluating the hashes of all switches on its route. Returns `None` if sources choose the route, or if the
    /// packet would not arrive.
    pub fn hashed_route_from(
        &self,
        mut port: PortId,
        (src, dst): (HostId, HostId),
        path: PathId,
    ) -> Option<Vec<PortId>> {
        let mut route = vec![port];
        while self.transit.lines.ports[port as usize].peer_node != dst.0 {
            let at = self.transit.lines.ports[port as usize]
                .peer_node
                .checked_sub(self.transit.lines.wires.hosts)?;
            let switch = &self.transit.switches.each[at as usize];
            if matches!(switch.routes, SwitchRoutes::Source(_)) || route.len() > MOST_HOPS {
                return None;
            }
            port = switch.routes.choose(src, dst, ecmp_hash(switch.hash_seed, src, dst, path))?;
            route.push(port);
        }
        Some(route)
    }

    /// Returns the node that a port belongs to and the node at the other end of its link.
    pub fn ends(&self, port: PortId) -> (u32, u32) {
        let at = &self.transit.lines.ports[port as usize];
        (at.node, at.peer_node)
    }

    /// Returns the host that a port of a host belongs to.
    #[inline]
    pub fn host_of(&self, port: PortId) -> HostId {
        HostId(self.transit.lines.ports[port as usize].node)
    }

    /// Returns the number of packets put on a link so far, without pause frames.
    pub fn packet_hops(&self) -> u64 {
        self.transit.lines.packet_hops
    }

    /// Returns the counters of load balancing in the switches.
    pub fn forwarding(&self) -> &ForwardingStats {
        self.balancing.balancer.stats()
    }

    /// Returns the counters of a switch's middlebox, or `None` if it has none.
    pub fn middlebox_stats(&self, switch: u32) -> Option<MiddleboxStats> {
        self.transit.middleboxes.get(switch).map(crate::middlebox::Middlebox::stats)
    }

    /// Returns the number of packets between switches in flight.
    pub fn messages_alive(&self) -> usize {
        self.balancing.balancer.messages_alive()
    }

    /// Returns the number of packets inside the fabric, queued or in flight.
    pub fn packets_alive(&self) -> u32 {
        self.transit.contents.alive()
    }

    /// Iterates over the contents of all packets queued at a port, for checkers.
    pub fn queued(&self, port: PortId) -> impl Iterator<Item = &P> {
        let waiting = self.transit.lines.ports[port as usize]
            .queues
            .iter()
            .flat_map(Ring::iter)
            .chain(self.transit.controlled(port));
        waiting.filter(|header| !header.is_message()).map(|header| self.transit.contents.get(header))
    }

    /// Returns true if any port is paused.
    pub fn any_paused(&self) -> bool {
        self.transit.journal.any_paused()
    }

    /// Drains the log of rare events since the last call, in order of time. Ports have their numbers in the whole fabric.
    /// Must be called between windows.
    pub fn drain_log(&mut self) -> std::vec::Drain<'_, FabricEvent<P>> {
        let numbers = &self.numbers;
        self.transit.journal.log.iter_mut().for_each(|event| event.port = numbers.global(event.port));
        // Each node appended its own part of the window.
        self.transit.journal.log.sort_by_key(|event| (event.time, event.port));
        self.transit.journal.log.drain(..)
    }

    /// Returns true if the log has entries.
    pub fn has_log(&self) -> bool {
        !self.transit.journal.log.is_empty()
    }

    /// Recounts every queue and account, and panics on a difference. For tests.
    pub fn check_accounts(&self) {
        let mut held = vec![[0u32; C]; self.transit.lines.ports.len()];
        let mut used = vec![0u64; self.transit.switches.each.len()];
        for (id, port) in (0..).zip(&self.transit.lines.ports) {
            for (class, queue) in port.queues.iter().enumerate() {
                let bytes: u32 = queue.iter().map(|header| u32::from(header.wire_bytes())).sum();
                let aside =
                    || self.transit.controlled(id).filter(|header| usize::from(header.class()) == class);
                let all = bytes + aside().map(|header| u32::from(header.wire_bytes())).sum::<u32>();
                assert_eq!(all, port.queued_bytes[class], "queue account");
                assert_eq!(bytes > 0, port.backlog >> class & 1 != 0, "backlog bit");
                if port.node < self.transit.lines.wires.hosts {
                    continue;
                }
                used[(port.node - self.transit.lines.wires.hosts) as usize] += u64::from(all);
                for header in queue.iter().chain(aside()) {
                    held[header.ingress() as usize][class] += u32::from(header.wire_bytes());
                }
            }
        }
        for (switch, header) in self.balancing.balancer.held() {
            used[switch as usize] += u64::from(header.wire_bytes());
            held[header.ingress() as usize][usize::from(header.class())] += u32::from(header.wire_bytes());
        }
        for (index, account) in self.transit.switches.held.iter().enumerate() {
            assert_eq!(account.bytes, held[index], "ingress account of port {index}");
        }
        for (switch, used) in self.transit.switches.each.iter().zip(used) {
            assert_eq!(switch.used_bytes, used, "buffer account");
            assert!(switch.used_bytes <= switch.buffer_bytes, "more than the buffer holds");
        }
    }
}
