//! The fabric: ports, switches and the packets between them, and how it is driven.
//!
//! **Windows.** What leaves a node needs some time to reach the next one: at least the shortest delay of a link, the
//! fabric's [look-ahead](Fabric::lookahead). So within a window of that length no node can disturb another, and each
//! is simulated through the window by itself, its ports and queues at hand in the nearest cache, while the packets
//! that go out are put on the links for later windows. Inside a node everything happens in order of time, so the
//! outcome is that of one global order, to the picosecond, whatever the windows are.
//!
//! **Lazy port service.** The only event of a hop is a packet's arrival at the far end of a link. A port's queues are
//! served when their state is needed: `advance` starts every service that began up to now and puts the packets on the link
//! with their exact arrival times. It runs before each enqueue and at the end of each window, so no service is ever
//! late. Until looked at, a queue or buffer seems fuller than it is; decisions that would mark, drop or pause bring up
//! to date what they count first.

use std::ops::Range;

use pathweave_units::{Duration, HostId, Time};

use crate::event::Arrived;
use crate::forwarding::Balancing;
use crate::impairments::Impairments;
use crate::marking::EcnConfig;
use crate::packet::{Header, PFC, PortId};
use crate::port::{DOWN, LISTED};
use crate::prefetch::prefetch;
use crate::transit::Transit;
use crate::trim::TrimConfig;
use crate::window::Window;

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
    /// Packets, and what they pass.
    pub(crate) transit: Transit<P, C>,
    /// How switches choose where that is not a hash.
    pub(crate) balancing: Balancing,
    pub(crate) impairments: Impairments,
    /// Ports of hosts that have had packets queued since they were last served to the end.
    pub(crate) busy_nics: Vec<PortId>,
    /// Switches to run in the window at hand. Kept for its memory.
    pub(crate) active: Vec<u32>,
    pub(crate) window: Window<C>,
    pub(crate) lookahead: Duration,
    /// For links that change.
    pub(crate) ecn: EcnConfig,
    pub(crate) trim: TrimConfig,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// A host puts a packet on its NIC port's queue.
    #[inline]
    pub fn send(&mut self, now: Time, port: PortId, header: Header, content: P) {
        let transit = &mut self.transit;
        debug_assert!(transit.lines.ports[port as usize].node == header.src().0);
        let header = header.with_content(transit.contents.insert(content));
        if transit.lines.ports[port as usize].is(DOWN) {
            return self.send_into_the_void(now, port, &header);
        }
        transit.advance(now, port);
        transit.enqueue(now, port, &header);
        let at = &mut transit.lines.ports[port as usize];
        if at.backlog != 0 && !at.is(LISTED) {
            at.flags |= LISTED;
            let wires = &mut transit.lines.wires;
            wires.nic_due = wires.nic_due.min(at.tx_free);
            self.busy_nics.push(port);
        }
    }

    /// When a host's port has nothing left to transmit: now or earlier if it is idle.
    #[inline]
    pub fn port_free_at(&self, port: PortId) -> Time {
        self.transit.lines.ports[port as usize].tx_free
    }

    /// Whether a host's port could start a data packet at `now`: up, idle once what waits before it is served, and no
    /// data class paused.
    #[inline]
    pub fn port_ready(&mut self, now: Time, port_id: PortId) -> bool {
        self.transit.advance(now, port_id);
        let port = &self.transit.lines.ports[port_id as usize];
        port.tx_free <= now && (port.paused | port.backlog) & !1 == 0 && !port.is(DOWN)
    }

    /// The link of a port is down, and the port could start a packet now all the same, which is lost.
    pub fn port_loses(&self, now: Time, port_id: PortId) -> bool {
        let port = &self.transit.lines.ports[port_id as usize];
        port.is(DOWN) && port.tx_free <= now
    }

    /// The longest window in which no node can disturb another: what a packet takes from one to the next at least.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// No later than the next thing that happens, hosts included. [`Time::MAX`] if nothing will.
    pub fn next_due(&self) -> Time {
        let wires = &self.transit.lines.wires;
        wires.due.iter().copied().min().unwrap_or(Time::MAX).min(wires.nic_due)
    }

    /// No later than the next thing that happens at a host: the next arrival, and what the caller told.
    #[inline(always)]
    pub fn host_due(&self, host: HostId) -> Time {
        self.transit.lines.wires.due[host.index()]
    }

    /// The hosts that are due before `end`.
    pub fn hosts_due(&self, end: Time) -> impl Iterator<Item = HostId> {
        let wires = &self.transit.lines.wires;
        let due = (0..).zip(&wires.due[..wires.hosts as usize]);
        due.filter(move |(_, due)| **due < end).map(|(host, _)| HostId(host))
    }

    /// A host is due at this time, or before.
    #[inline(always)]
    pub fn host_due_by(&mut self, host: HostId, at: Time) {
        self.transit.lines.wires.due_by(host.0, at);
    }

    /// All that happens at a host before this time has been executed.
    #[inline(always)]
    pub fn set_host_due(&mut self, host: HostId, at: Time) {
        self.transit.lines.wires.due[host.index()] = at;
    }

    /// When the next packet reaches a host by one of its ports, and by which; [`Time::MAX`] if none is on its way. Of
    /// several at one instant it is that of the first port.
    #[inline(always)]
    pub fn next_arrival(&self, ports: Range<PortId>) -> (Time, PortId) {
        let mut first = (Time::MAX, ports.start);
        for port in ports {
            let arrival = self.transit.lines.wires.links[port as usize].next_arrival();
            if arrival < first.0 {
                first = (arrival, port);
            }
        }
        first
    }

    /// What has been delivered: the packet as the fabric sees it, and what it carries.
    #[inline]
    pub fn delivered<'a>(&'a self, packet: &'a Arrived) -> (&'a Header, &'a P) {
        (&packet.0, self.transit.contents.get(&packet.0))
    }

    /// Frees a delivered packet. To be called for each.
    #[inline]
    pub fn take(&mut self, packet: Arrived) -> (Header, P) {
        let content = *self.transit.contents.get(&packet.0);
        self.transit.contents.free(&packet.0);
        (packet.0, content)
    }

    /// As [`Fabric::take`], for who has seen enough.
    #[inline]
    pub fn discard(&mut self, packet: Arrived) {
        self.transit.contents.free(&packet.0);
    }

    /// Begins to load what a host's turn touches first: its ports, and the links into them.
    #[inline(always)]
    pub fn prefetch_host(&self, ports: Range<PortId>) {
        self.transit.lines.prefetch_ports(ports);
    }

    /// Then, once that is there: the packets that arrive, and the links it feeds.
    #[inline(always)]
    pub fn prefetch_arrivals(&self, ports: Range<PortId>) {
        let lines = &self.transit.lines;
        for port in ports {
            lines.wires.links[port as usize].prefetch();
            prefetch(&lines.wires.links[lines.ports[port as usize].peer as usize]);
        }
    }

    /// Then, once that is there: what the packets carry.
    #[inline(always)]
    pub fn prefetch_contents(&self, ports: Range<PortId>, packets: usize) {
        let lines = &self.transit.lines;
        for port in ports {
            let link = &lines.wires.links[port as usize];
            link.packets().take(packets).for_each(|header| self.transit.contents.prefetch(header));
            lines.wires.links[lines.ports[port as usize].peer as usize].prefetch_end();
        }
    }

    /// What the packets carry that are on their way to a host's port.
    #[inline(always)]
    pub fn coming(&self, port: PortId) -> impl Iterator<Item = &P> {
        let packets = self.transit.lines.wires.links[port as usize].packets();
        packets.filter(|header| !header.is(PFC)).map(|header| self.transit.contents.get(header))
    }
}
