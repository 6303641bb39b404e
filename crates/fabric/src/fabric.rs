//! The fabric: ports, switches and the packets between them, and the calls that drive it.
//!
//! **Windows.** A packet that leaves a node takes at least the shortest delay of a link to reach the next node. This
//! is the fabric's [look-ahead](Fabric::lookahead). Within a window of that length no node can affect another. Each
//! node is therefore simulated through the window alone, with its ports and queues in cache, and its departing
//! packets are put on the links for later windows. Inside a node all events happen in order of time. The result is
//! that of one global order, to the picosecond, whatever the windows are.
//!
//! **Lazy port service.** The only event of a hop is the arrival of a packet at the far end of a link. The queues of
//! a port are served when their state is needed: `advance` starts every service that began up to now, and puts the
//! packets on the link with their exact arrival times. It runs before each enqueue and at the end of each window, so
//! no service is ever late. Until `advance` runs, a queue or buffer seems fuller than it is. Before a decision to
//! mark, drop or pause, the state that it depends on is brought up to date.

use std::ops::Range;

use pathweave_units::{Duration, HostId, Time};

use crate::config::SwitchClasses;
use crate::event::Arrived;
use crate::forwarding::Balancing;
use crate::impairments::Impairments;
use crate::numbers::PortNumbers;
use crate::packet::{Header, PFC, PortId};
use crate::port::{DOWN, LISTED};
use crate::prefetch::prefetch;
use crate::transit::Transit;
use crate::window::Window;

/// A fabric that carries contents of type `P` in `C` traffic classes (class 0 is control).
///
/// The caller repeats these steps, from an instant before which everything is done:
///
/// 1. Choose the end of a window: at most [`Fabric::lookahead`] after the earlier of [`Fabric::next_due`] and the
///    caller's own next event.
/// 2. Simulate each host that is [due](Fabric::host_due) before that end through the window, in order of its time.
///    The events of a host are packets that arrive ([`Fabric::next_arrival`], [`Fabric::on_arrival`]) and its own
///    actions, which may send packets ([`Fabric::send`]). Then set the time at which the host is due next
///    ([`Fabric::set_host_due`]). Actions of hosts in the same window do not reach each other through the fabric, so
///    hosts may be simulated in any order.
/// 3. Call [`Fabric::run_until`] with the end of the window.
///
/// Events that concern more than one node (faults, samples) belong between windows, before other events of the same
/// instant.
pub struct Fabric<P, const C: usize> {
    /// Packets in transit, with ports, links and buffers.
    pub(crate) transit: Transit<P, C>,
    /// Load balancing in the switches, other than by hash.
    pub(crate) balancing: Balancing,
    pub(crate) impairments: Impairments,
    /// Ports of hosts that have had packets queued since they were last served to the end.
    pub(crate) busy_nics: Vec<PortId>,
    /// Switches to simulate in the current window. Kept to reuse its memory.
    pub(crate) active: Vec<u32>,
    pub(crate) window: Window<C>,
    pub(crate) lookahead: Duration,
    /// Settings of switches, for links whose rate changes.
    pub(crate) classes: SwitchClasses,
    /// Numbers of the ports, which calls use.
    pub(crate) numbers: PortNumbers,
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Puts a packet of a host on the queue of its NIC port.
    #[inline]
    pub fn send(&mut self, now: Time, port: PortId, header: Header, content: P) {
        let header = header.with_content(self.transit.contents.insert(content));
        self.send_inserted(now, port, header);
    }

    /// Puts a packet of a host, whose content is in its slot, on the queue of its NIC port.
    #[inline(always)]
    pub(crate) fn send_inserted(&mut self, now: Time, port: PortId, header: Header) {
        let transit = &mut self.transit;
        debug_assert!(transit.lines.ports[port as usize].node == header.src().0);
        if transit.lines.ports[port as usize].is(DOWN) {
            return self.send_on_dead_link(now, port, &header);
        }
        transit.advance(now, port);
        // Ports of hosts mark nothing, and their queues are in no buffer.
        let lines = &mut transit.lines;
        let at = &mut lines.ports[port as usize];
        let class = usize::from(header.class());
        if at.starts_at_once(class, now) {
            return lines.transmit(port, &header);
        }
        at.push(class, &header);
        if !at.is(LISTED) {
            at.flags |= LISTED;
            lines.wires.nic_due = lines.wires.nic_due.min(at.tx_free);
            self.busy_nics.push(port);
        }
    }

    /// Returns the time at which a host's port has finished its transmission: now or earlier if it is idle.
    #[inline]
    pub fn port_free_at(&self, port: PortId) -> Time {
        self.transit.lines.ports[port as usize].tx_free
    }

    /// Returns true if a host's port could start a data packet at `now`: it is up, idle after serving the packets
    /// that wait, and no data class is paused.
    #[inline]
    pub fn port_ready(&mut self, now: Time, port_id: PortId) -> bool {
        self.transit.advance(now, port_id);
        let port = &self.transit.lines.ports[port_id as usize];
        port.tx_free <= now && (port.paused | port.backlog) & !1 == 0 && !port.is(DOWN)
    }

    /// Returns true if the link of a port is down while the port could start a packet. A packet sent now is lost.
    pub fn port_loses(&self, now: Time, port_id: PortId) -> bool {
        let port = &self.transit.lines.ports[port_id as usize];
        port.is(DOWN) && port.tx_free <= now
    }

    /// Returns the longest window in which no node can affect another: the shortest time that a packet takes from one
    /// node to the next.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// Returns a lower bound of the time of the next event, hosts included, or [`Time::MAX`] if there is none.
    pub fn next_due(&self) -> Time {
        let wires = &self.transit.lines.wires;
        wires.due.iter().copied().min().unwrap_or(Time::MAX).min(wires.nic_due)
    }

    /// Returns a lower bound of the time of the next event at a host: the next arrival, or the time that the caller
    /// has set.
    #[inline(always)]
    pub fn host_due(&self, host: HostId) -> Time {
        self.transit.lines.wires.due[host.index()]
    }

    /// Iterates over the hosts that are due before `end`.
    pub fn hosts_due(&self, end: Time) -> impl Iterator<Item = HostId> {
        let wires = &self.transit.lines.wires;
        let due = (0..).zip(&wires.due[..wires.hosts as usize]);
        due.filter(move |(_, due)| **due < end).map(|(host, _)| HostId(host))
    }

    /// Makes a host due at `at` or earlier.
    #[inline(always)]
    pub fn make_host_due(&mut self, host: HostId, at: Time) {
        self.transit.lines.wires.advance_due(host.0, at);
    }

    /// Sets the time at which a host is due. All its events before `at` have been executed.
    #[inline(always)]
    pub fn set_host_due(&mut self, host: HostId, at: Time) {
        self.transit.lines.wires.due[host.index()] = at;
    }

    /// Returns the time of the next arrival at one of a host's ports, and that port; [`Time::MAX`] if no packet is in
    /// flight to it. Of several arrivals at the same instant, the one at the first port is returned.
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

    /// Returns the header and the content of a delivered packet.
    #[inline]
    pub fn delivered<'a>(&'a self, packet: &'a Arrived) -> (&'a Header, &'a P) {
        (&packet.0, self.transit.contents.get(&packet.0))
    }

    /// Frees a delivered packet and returns it. Each delivered packet must be freed by this or by
    /// [`Fabric::discard`].
    #[inline]
    pub fn take(&mut self, packet: Arrived) -> (Header, P) {
        let content = *self.transit.contents.get(&packet.0);
        self.transit.contents.free(&packet.0);
        (packet.0, content)
    }

    /// Frees a delivered packet as [`Fabric::take`] does, without returning it.
    #[inline]
    pub fn discard(&mut self, packet: Arrived) {
        self.transit.contents.free(&packet.0);
    }

    /// Prefetches the ports of a host and the links into them, which its turn in a window reads first.
    #[inline(always)]
    pub fn prefetch_host(&self, ports: Range<PortId>) {
        self.transit.lines.prefetch_ports(ports);
    }

    /// Prefetches the arriving packets and the outgoing links of a host, after [`Fabric::prefetch_host`] has taken
    /// effect.
    #[inline(always)]
    pub fn prefetch_arrivals(&self, ports: Range<PortId>) {
        let lines = &self.transit.lines;
        for port in ports {
            lines.wires.links[port as usize].prefetch();
            prefetch(&lines.wires.links[lines.ports[port as usize].peer as usize]);
        }
    }

    /// Prefetches the contents of arriving packets, after [`Fabric::prefetch_arrivals`] has taken effect.
    #[inline(always)]
    pub fn prefetch_contents(&self, ports: Range<PortId>, packets: usize) {
        let lines = &self.transit.lines;
        for port in ports {
            let link = &lines.wires.links[port as usize];
            link.packets().take(packets).for_each(|header| self.transit.contents.prefetch(header));
            lines.wires.links[lines.ports[port as usize].peer as usize].prefetch_end();
        }
    }

    /// Iterates over the contents of the packets in flight to a host's port.
    #[inline(always)]
    pub fn coming(&self, port: PortId) -> impl Iterator<Item = &P> {
        let packets = self.transit.lines.wires.links[port as usize].packets();
        packets.filter(|header| !header.is(PFC)).map(|header| self.transit.contents.get(header))
    }
}
