//! The fabric: ports, switches and the packets between them, and how it is driven.
//!
//! **Windows.** What leaves a node needs some time to reach the next one: at least the shortest delay of a link, the
//! fabric's [look-ahead](Fabric::lookahead). So within a window of that length no node can disturb another, and each
//! is simulated through the window by itself, its ports and queues at hand in the nearest cache, while the packets
//! that go out are put on the links for later windows. Inside a node everything happens in order of time, so the
//! outcome is that of one global order, to the picosecond, whatever the windows are.
//!
//! **Lazy port service.** The only event of a hop is a packet's arrival at the far end of a link. A port's queues are
//! served when somebody looks: `advance` starts every service that began up to now and puts the packets on the link
//! with their exact arrival times. It runs before each enqueue and at the end of each window, so no service is ever
//! late. Until looked at, a queue or buffer seems fuller than it is; decisions that would mark, drop or pause bring up
//! to date what they count first.

use pathweave_des::{EventQueue, SourceId, prefetch};
use pathweave_units::{Duration, HostId, Time};

use crate::config::EcnConfig;
use crate::event::{Arrived, DropReason, FabricEvent, FabricEventKind, Step};
use crate::faults::Impairments;
use crate::forwarding::{Balancer, ForwardingStats, Outbox};
use crate::link::Link;
use crate::marking::Marker;
use crate::middlebox::Middlebox;
use crate::packet::{CORRUPT, Contents, Header, LOST, PFC};
use crate::port::{DOWN, Held, LISTED, Port, PortId, PortStats};
use crate::scheduling::Scheduler;
use crate::switch::{Switch, Window};
use crate::wires::Wires;

/// A fabric that carries contents of type `P` in `C` traffic classes (class 0 is control).
///
/// Drive it so, from an instant at which everything before is done:
///
/// 1. Choose the end of a window, at most [`Fabric::lookahead`] behind the earlier of the caller's next event and
///    [`Fabric::next_due`].
/// 2. Execute the events of hosts before that end in order of time: those whose source is below
///    [`crate::event_sources`] go to [`Fabric::on_arrival`], others are the caller's own. Hosts put packets in with
///    [`Fabric::send`].
/// 3. Call [`Fabric::run_until`] with the end.
///
/// What concerns more than one node (faults, samples) belongs between windows, before events of the same instant.
pub struct Fabric<P, const C: usize> {
    pub(crate) ports: Vec<Port<C>>,
    /// By ingress port.
    pub(crate) held: Vec<Held<C>>,
    pub(crate) wires: Wires,
    pub(crate) contents: Contents<P>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) balancer: Balancer,
    pub(crate) forwarding_stats: ForwardingStats,
    /// Packets that a balancing switch is about to send besides the one it looks at.
    pub(crate) outbox: Outbox,
    /// By switch; empty where none has one.
    pub(crate) boxes: Vec<Option<Box<Middlebox<P>>>>,
    pub(crate) scheduler: Scheduler<C>,
    pub(crate) marker: Marker,
    pub(crate) impairments: Impairments,
    /// Counters of what is rare; the others are kept in the ports and by the marker.
    pub(crate) stats: Vec<PortStats>,
    /// Since when each port has had a paused class; [`Time::MAX`] where it has none.
    pub(crate) paused_since: Vec<Time>,
    /// Ports of hosts; they come first.
    pub(crate) host_ports: PortId,
    /// Ports of hosts that have had packets queued since they were last served to the end.
    pub(crate) busy_nics: Vec<PortId>,
    /// No later than the next service of those.
    pub(crate) nic_due: Time,
    /// Switches to run in the window at hand. Kept for its memory.
    pub(crate) active: Vec<u32>,
    pub(crate) window: Window<C>,
    pub(crate) lookahead: Duration,
    pub(crate) ecn: EcnConfig,
    pub(crate) pfc: bool,
    pub(crate) xon_gap_bytes: u64,
    pub(crate) packet_hops: u64,
    /// Arrivals at switches, and services that were events of their own.
    pub(crate) events: u64,
    pub(crate) log: Vec<FabricEvent<P>>,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// A host puts a packet on its NIC port's queue.
    #[inline]
    pub fn send(&mut self, queue: &mut EventQueue, now: Time, port: PortId, header: Header, content: P) {
        debug_assert!(self.ports[port as usize].node == header.src().0);
        let header = header.with_content(self.contents.insert(content));
        if self.ports[port as usize].is(DOWN) {
            return self.send_into_the_void(now, port, &header);
        }
        self.advance(queue, now, port);
        self.enqueue(queue, now, port, &header);
        let at = &mut self.ports[port as usize];
        if at.backlog != 0 && !at.is(LISTED) {
            at.flags |= LISTED;
            self.nic_due = self.nic_due.min(at.tx_free);
            self.busy_nics.push(port);
        }
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

    /// The longest window in which no node can disturb another: what a packet takes from one to the next at least.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// No later than the next thing that happens in the fabric but for arrivals at hosts, which are events of the
    /// queue. [`Time::MAX`] if nothing will.
    pub fn next_due(&self) -> Time {
        self.wires.due.iter().copied().min().unwrap_or(Time::MAX).min(self.nic_due)
    }

    /// Simulates everything but the hosts through all that happens before `end`.
    pub fn run_until(&mut self, queue: &mut EventQueue, end: Time) {
        let Some(last) = end.as_ps().checked_sub(1).map(Time::from_ps) else { return };
        self.serve_nics(queue, last);
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        active.extend((0..).zip(&self.wires.due).filter(|(_, due)| **due < end).map(|(switch, _)| switch));
        for (turn, &switch) in active.iter().enumerate() {
            for (ahead, stage) in
                [Self::prefetch_tails, Self::prefetch_packets, Self::prefetch_ports].iter().enumerate()
            {
                if let Some(&next) = active.get(turn + ahead + 1) {
                    stage(self, next);
                }
            }
            self.run_switch(queue, end, switch);
        }
        self.active = active;
    }

    /// Starts what services of hosts' ports begin up to `last`.
    fn serve_nics(&mut self, queue: &mut EventQueue, last: Time) {
        let mut busy = std::mem::take(&mut self.busy_nics);
        self.nic_due = Time::MAX;
        busy.retain(|&id| {
            self.advance(queue, last, id);
            let port = &mut self.ports[id as usize];
            if port.backlog == 0 {
                port.flags &= !LISTED;
                return false;
            }
            if port.eligible() != 0 {
                self.nic_due = self.nic_due.min(port.tx_free);
            }
            true
        });
        self.busy_nics = busy;
    }

    /// The first packet on the link into a host's port has arrived there.
    #[inline(always)]
    pub fn on_arrival(&mut self, queue: &mut EventQueue, now: Time, port: SourceId) -> Step {
        let link = &mut self.wires.links[port as usize];
        let mut header = link.pop_before(Time::MAX).expect("scheduled for it");
        if link.next_arrival() != Time::MAX {
            queue.schedule(port, link.next_arrival());
        }
        if link.impaired {
            self.impair(port, &mut header);
        }
        if header.is(LOST | CORRUPT | PFC) {
            return self.on_special_arrival(queue, now, port, &header);
        }
        Step::Delivered { host: HostId(self.ports[port as usize].node), port, packet: Arrived(header) }
    }

    /// A pause frame, or a packet that does not count as arrived.
    #[cold]
    pub(crate) fn on_special_arrival(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        ingress: PortId,
        header: &Header,
    ) -> Step {
        if header.is(PFC) {
            return if header.is(LOST) {
                Step::Done
            } else {
                self.on_pause_frame(queue, now, ingress, header)
            };
        }
        let from = self.ports[ingress as usize].peer;
        let reason = if header.is(CORRUPT) {
            DropReason::Corruption
        } else if self.wires.links[ingress as usize].impaired && !self.ports[from as usize].is(DOWN) {
            DropReason::Loss
        } else {
            DropReason::LinkDown
        };
        self.lose(now, from, header, reason);
        Step::Done
    }

    /// What has been delivered: the packet as the fabric sees it, and what it carries.
    #[inline]
    pub fn delivered<'a>(&'a self, packet: &'a Arrived) -> (&'a Header, &'a P) {
        (&packet.0, self.contents.get(&packet.0))
    }

    /// Frees a delivered packet. To be called for each.
    #[inline]
    pub fn take(&mut self, packet: Arrived) -> (Header, P) {
        let content = *self.contents.get(&packet.0);
        self.contents.free(&packet.0);
        (packet.0, content)
    }

    /// As [`Fabric::take`], for who has seen enough.
    #[inline]
    pub fn discard(&mut self, packet: Arrived) {
        self.contents.free(&packet.0);
    }

    /// A packet is lost at `port`.
    #[cold]
    pub(crate) fn lose(&mut self, now: Time, port: PortId, header: &Header, reason: DropReason) {
        self.stats[port as usize].dropped_packets += 1;
        if header.is_message() {
            return self.balancer.discard_message(header);
        }
        let content = *self.contents.get(header);
        self.contents.free(header);
        let kind = FabricEventKind::Dropped { reason, header: *header, content };
        self.log.push(FabricEvent { time: now, port, kind });
    }

    /// Loads ahead of time what an arrival at a host's port will touch first.
    #[inline(always)]
    pub fn prefetch_link(&self, port: SourceId) {
        if let (Some(link), Some(port)) = (self.wires.links.get(port as usize), self.ports.get(port as usize))
        {
            prefetch(link);
            prefetch(port);
        }
    }

    /// Then, once that is there: the packet that arrives.
    #[inline(always)]
    pub fn prefetch_header(&self, port: SourceId) {
        if let Some(first) = self.wires.links.get(port as usize).and_then(Link::first) {
            prefetch(first);
        }
    }

    /// Then, once that is there: what it carries. Tells the host.
    #[inline(always)]
    pub fn prefetch_content(&self, port: SourceId) -> Option<HostId> {
        let first = self.wires.links[port as usize].first()?;
        self.contents.prefetch(first);
        Some(first.dst())
    }

    /// What the packet next to arrive at a host's port carries.
    #[inline(always)]
    pub fn next_content(&self, port: PortId) -> Option<&P> {
        let first = self.wires.links[port as usize].first()?;
        (!first.is(PFC)).then(|| self.contents.get(first))
    }
}
