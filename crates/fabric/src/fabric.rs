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

use std::ops::Range;

use crate::prefetch::{prefetch, prefetch_all};
use pathweave_units::{Duration, HostId, Time};

use crate::config::EcnConfig;
use crate::event::{Arrived, DropReason, FabricEvent, FabricEventKind, Step};
use crate::faults::Impairments;
use crate::forwarding::{Balancer, ExplicitWays, Outbox};
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
/// 1. Choose the end of a window, at most [`Fabric::lookahead`] behind [`Fabric::next_due`] and what else the caller
///    knows of.
/// 2. Take each host that is [due](Fabric::host_due) before that end through the window. In order of its time: packets
///    that reach it ([`Fabric::next_arrival`], [`Fabric::on_arrival`]) and what it does of its own, putting packets in
///    with [`Fabric::send`]. Then tell when the host is due next ([`Fabric::set_host_due`]). What hosts do in a window
///    does not reach each other through the fabric, so their order is the caller's to choose.
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
    /// What the switches of senders choose among, where that is whole paths.
    pub(crate) explicit: Option<Box<ExplicitWays>>,
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
    pub fn send(&mut self, now: Time, port: PortId, header: Header, content: P) {
        debug_assert!(self.ports[port as usize].node == header.src().0);
        let header = header.with_content(self.contents.insert(content));
        if self.ports[port as usize].is(DOWN) {
            return self.send_into_the_void(now, port, &header);
        }
        self.advance(now, port);
        self.enqueue(now, port, &header);
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
    pub fn port_ready(&mut self, now: Time, port_id: PortId) -> bool {
        self.advance(now, port_id);
        let port = &self.ports[port_id as usize];
        port.tx_free <= now && (port.paused | port.backlog) & !1 == 0 && !port.is(DOWN)
    }

    /// The longest window in which no node can disturb another: what a packet takes from one to the next at least.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// No later than the next thing that happens, hosts included. [`Time::MAX`] if nothing will.
    pub fn next_due(&self) -> Time {
        self.wires.due.iter().copied().min().unwrap_or(Time::MAX).min(self.nic_due)
    }

    /// No later than the next thing that happens at a host: the next arrival, and what the caller told.
    #[inline(always)]
    pub fn host_due(&self, host: HostId) -> Time {
        self.wires.due[host.index()]
    }

    /// The hosts that are due before `end`.
    pub fn hosts_due(&self, end: Time) -> impl Iterator<Item = HostId> {
        let due = (0..).zip(&self.wires.due[..self.wires.hosts as usize]);
        due.filter(move |(_, due)| **due < end).map(|(host, _)| HostId(host))
    }

    /// A host is due at this time, or before.
    #[inline(always)]
    pub fn host_due_by(&mut self, host: HostId, at: Time) {
        self.wires.due_by(host.0, at);
    }

    /// All that happens at a host before this time has been executed.
    #[inline(always)]
    pub fn set_host_due(&mut self, host: HostId, at: Time) {
        self.wires.due[host.index()] = at;
    }

    /// When the next packet reaches a host by one of its ports, and by which; [`Time::MAX`] if none is on its way. Of
    /// several at one instant it is that of the first port.
    #[inline(always)]
    pub fn next_arrival(&self, ports: Range<PortId>) -> (Time, PortId) {
        let mut first = (Time::MAX, ports.start);
        for port in ports {
            let arrival = self.wires.links[port as usize].next_arrival();
            if arrival < first.0 {
                first = (arrival, port);
            }
        }
        first
    }

    /// Simulates everything but the hosts through all that happens before `end`.
    pub fn run_until(&mut self, end: Time) {
        let Some(last) = end.as_ps().checked_sub(1).map(Time::from_ps) else { return };
        self.serve_nics(last);
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        let due = (0..).zip(&self.wires.due[self.wires.hosts as usize..]);
        active.extend(due.filter(|(_, due)| **due < end).map(|(switch, _)| switch));
        for (turn, &switch) in active.iter().enumerate() {
            for (ahead, stage) in [(1, Self::prefetch_packets as fn(&Self, u32)), (2, Self::prefetch_ports)] {
                if let Some(&next) = active.get(turn + ahead) {
                    stage(self, next);
                }
            }
            self.run_switch(end, switch);
        }
        self.active = active;
    }

    /// Starts what services of hosts' ports begin up to `last`.
    fn serve_nics(&mut self, last: Time) {
        let mut busy = std::mem::take(&mut self.busy_nics);
        self.nic_due = Time::MAX;
        busy.retain(|&id| {
            self.advance(last, id);
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
    pub fn on_arrival(&mut self, now: Time, port: PortId) -> Step {
        let link = &mut self.wires.links[port as usize];
        let mut header = link.pop_before(Time::MAX).expect("one is on its way");
        if link.impaired {
            self.impair(port, &mut header);
        }
        if header.is(LOST | CORRUPT | PFC) {
            return self.on_special_arrival(now, port, &header);
        }
        Step::Delivered { host: HostId(self.ports[port as usize].node), port, packet: Arrived(header) }
    }

    /// A pause frame, or a packet that does not count as arrived.
    #[cold]
    pub(crate) fn on_special_arrival(&mut self, now: Time, ingress: PortId, header: &Header) -> Step {
        if header.is(PFC) {
            return if header.is(LOST) { Step::Done } else { self.on_pause_frame(now, ingress, header) };
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

    /// Begins to load what a host's turn touches first: its ports, and the links into them.
    #[inline(always)]
    pub fn prefetch_host(&self, ports: Range<PortId>) {
        for port in ports {
            prefetch(&self.wires.links[port as usize]);
            prefetch_all(&self.ports[port as usize]);
        }
    }

    /// Then, once that is there: the packets that arrive, and the links it feeds.
    #[inline(always)]
    pub fn prefetch_arrivals(&self, ports: Range<PortId>) {
        for port in ports {
            self.wires.links[port as usize].prefetch();
            prefetch(&self.wires.links[self.ports[port as usize].peer as usize]);
        }
    }

    /// Then, once that is there: what the packets carry.
    #[inline(always)]
    pub fn prefetch_contents(&self, ports: Range<PortId>, packets: usize) {
        for port in ports {
            let link = &self.wires.links[port as usize];
            link.packets().take(packets).for_each(|header| self.contents.prefetch(header));
            self.wires.links[self.ports[port as usize].peer as usize].prefetch_end();
        }
    }

    /// What the packets carry that are on their way to a host's port.
    #[inline(always)]
    pub fn coming(&self, port: PortId) -> impl Iterator<Item = &P> {
        let packets = self.wires.links[port as usize].packets();
        packets.filter(|header| !header.is(PFC)).map(|header| self.contents.get(header))
    }
}
