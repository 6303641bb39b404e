//! Looking at a fabric without disturbing it.

use pathweave_units::{Bytes, Duration, HostId, PathId, Time};

use crate::event::FabricEvent;
use crate::fabric::Fabric;
use crate::forwarding::{ForwardingStats, SwitchRoutes, ecmp_hash};
use crate::middlebox::MiddleboxStats;
use crate::packet::PortId;
use crate::port::PortStats;
use crate::ring::Ring;

/// A route longer than this goes round in circles.
const MOST_HOPS: usize = 64;

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Counters of a port up to the last time it was brought up to date; see [`Fabric::settle`].
    pub fn stats(&self, port: PortId) -> PortStats {
        let at = &self.transit.lines.ports[port as usize];
        PortStats {
            tx_bytes: at.sent_bytes,
            tx_packets: at.sent_packets,
            max_queue_bytes: u64::from(at.max_queue_bytes),
            marked_packets: self.transit.lines.marker.marked_packets[port as usize],
            ..self.transit.journal.stats[port as usize].clone()
        }
    }

    /// Bytes queued at a port now, exactly. Never changes what happens later: a port whose services are events is
    /// up to date as it is, and in any other an early service has the same outcome.
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

    /// Whether the services of a port are executed on time, because a paused neighbour waits for its switch to drain.
    fn serves_on_time(&self, port: PortId) -> bool {
        let transit = &self.transit;
        let Some(switch) = transit.lines.switch_of(port) else { return false };
        transit.middleboxes.get(switch).is_some()
            || transit.switches.each[switch as usize].paused_neighbours > 0
    }

    /// Total time a port's classes have been paused up to `now`.
    pub fn paused_time(&self, port: PortId, now: Time) -> Duration {
        self.transit.journal.stats[port as usize].paused
            + now.saturating_since(self.transit.journal.paused_since[port as usize])
    }

    /// Arrivals at switches so far, and services executed on time.
    pub fn events(&self) -> u64 {
        self.transit.events
    }

    /// Ports of the fabric; hosts' ports come first.
    pub fn port_count(&self) -> u32 {
        self.transit.lines.ports.len() as u32
    }

    /// The egress ports of a packet of `src`, `dst` and path entropy, from this port of `src` on: the hashes of all switches on
    /// the way, evaluated. `None` where sources choose, or where it would not arrive.
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

    /// The node a port belongs to and the one at the far end.
    pub fn ends(&self, port: PortId) -> (u32, u32) {
        let at = &self.transit.lines.ports[port as usize];
        (at.node, at.peer_node)
    }

    /// The host a port belongs to. For ports of hosts.
    #[inline]
    pub fn host_of(&self, port: PortId) -> HostId {
        HostId(self.transit.lines.ports[port as usize].node)
    }

    /// Packets put on a link so far, pause frames not counted.
    pub fn packet_hops(&self) -> u64 {
        self.transit.lines.packet_hops
    }

    /// What load balancing in the switches did so far.
    pub fn forwarding(&self) -> &ForwardingStats {
        self.balancing.balancer.stats()
    }

    /// What the middlebox of a switch has counted; `None` where there is none.
    pub fn middlebox_stats(&self, switch: u32) -> Option<MiddleboxStats> {
        self.transit.middleboxes.get(switch).map(crate::middlebox::Middlebox::stats)
    }

    /// Packets between switches that are under way.
    pub fn messages_alive(&self) -> usize {
        self.balancing.balancer.messages_alive()
    }

    /// Packets inside the fabric, queued or in flight.
    pub fn packets_alive(&self) -> u32 {
        self.transit.contents.alive()
    }

    /// Contents of all packets queued at a port, for checkers.
    pub fn queued(&self, port: PortId) -> impl Iterator<Item = &P> {
        let waiting = self.transit.lines.ports[port as usize]
            .queues
            .iter()
            .flat_map(Ring::iter)
            .chain(self.transit.controlled(port));
        waiting.filter(|header| !header.is_message()).map(|header| self.transit.contents.get(header))
    }

    /// Whether any port is paused.
    pub fn any_paused(&self) -> bool {
        self.transit.journal.paused_since.iter().any(|&t| t != Time::MAX)
    }

    /// Takes the log of rare events since the last call, in order of time. To be called between windows.
    pub fn drain_log(&mut self) -> std::vec::Drain<'_, FabricEvent<P>> {
        // Each node wrote its part of the window.
        self.transit.journal.log.sort_by_key(|event| (event.time, event.port));
        self.transit.journal.log.drain(..)
    }

    /// Whether the log holds anything.
    pub fn has_log(&self) -> bool {
        !self.transit.journal.log.is_empty()
    }

    /// Recounts every queue and account and compares. For tests.
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
