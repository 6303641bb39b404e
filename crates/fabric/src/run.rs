//! Simulation of NICs and switches through one window.

use pathweave_units::{HostId, Time};

use crate::calm::{PORTS_AHEAD, is_calm, run_calm};
use crate::event::{Arrived, DropReason, Step};
use crate::fabric::Fabric;
use crate::packet::{CORRUPT, Header, LOST, PFC, PortId};
use crate::port::{DOWN, LISTED};
use crate::window::Window;

/// Number of packets on the link into a host by which prefetching of contents runs ahead.
pub const ARRIVALS_AHEAD: u32 = 6;

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Simulates everything except the hosts up to `end`.
    pub fn run_until(&mut self, end: Time) {
        let Some(last) = end.as_ps().checked_sub(1).map(Time::from_ps) else { return };
        self.serve_nics(last);
        let mut active = std::mem::take(&mut self.active);
        active.clear();
        let wires = &self.transit.lines.wires;
        let due = (0..).zip(&wires.due[wires.hosts as usize..]);
        active.extend(due.filter(|(_, due)| **due < end).map(|(switch, _)| switch));
        for (turn, &switch) in active.iter().enumerate() {
            if let Some(&next) = active.get(turn + 1) {
                self.transit.lines.prefetch_packets(self.transit.switches.each[next as usize].ports());
            }
            if let Some(&next) = active.get(turn + 2) {
                self.transit.lines.prefetch_ports(self.transit.switches.each[next as usize].ports());
            }
            self.run_switch(end, switch);
        }
        self.active = active;
    }

    /// Starts the services of hosts' ports that begin up to `last`.
    fn serve_nics(&mut self, last: Time) {
        let mut nic_due = Time::MAX;
        self.busy_nics.retain(|&id| {
            self.transit.advance(last, id);
            let port = &mut self.transit.lines.ports[id as usize];
            if port.backlog == 0 {
                port.flags &= !LISTED;
                return false;
            }
            if port.eligible() != 0 {
                nic_due = nic_due.min(port.tx_free);
            }
            true
        });
        self.transit.lines.wires.nic_due = nic_due;
    }

    /// Simulates a switch up to `end`.
    fn run_switch(&mut self, end: Time, switch: u32) {
        let last = Time::from_ps(end.as_ps() - 1);
        let transit = &mut self.transit;
        let at = &transit.switches.each[switch as usize];
        for port in at.ports().take(PORTS_AHEAD) {
            transit.lines.prefetch_services(port);
        }
        let links = &mut transit.lines.wires.links;
        let (next_arrival, next_service);
        if !self.balancing.balancer.is_hash() {
            next_arrival = self.window.collect::<false>(links, end, at);
            next_service = self.with_window(|it, window| it.run_in_order::<false>(last, switch, window));
        } else {
            next_arrival = self.window.collect::<true>(links, end, at);
            if at.trims {
                self.window.count_by_egress();
            }
            next_service = if transit.middleboxes.get(switch).is_some() {
                self.with_window(|it, window| it.run_boxed(last, switch, window))
            } else if transit.telemetry.is_none()
                && is_calm(&transit.lines, &transit.switches, switch, &self.window)
            {
                self.window.sort_by_egress();
                run_calm(&mut transit.lines, &mut transit.switches, last, switch, &self.window)
            } else {
                self.with_window(|it, window| it.run_in_order::<true>(last, switch, window))
            };
        }
        self.transit.events += self.window.len() as u64;
        *self.transit.lines.wires.due_of_switch(switch) = next_arrival.min(next_service);
    }

    /// Takes the window out of the fabric for a call of `run`.
    fn with_window(&mut self, run: impl FnOnce(&mut Self, &mut Window<C>) -> Time) -> Time {
        let mut window = std::mem::replace(&mut self.window, Window::new());
        let next = run(self, &mut window);
        self.window = window;
        next
    }

    /// Simulates a switch through the window in order of time. Returns the time of the next service or clock event.
    fn run_in_order<const HASH: bool>(&mut self, last: Time, switch: u32, window: &mut Window<C>) -> Time {
        window.sort_by_time();
        for header in window.by_time() {
            let now = header.arrival();
            if !HASH {
                self.transit.run_clock(&mut self.balancing, now, switch);
            }
            if self.transit.switches.each[switch as usize].paused_neighbours > 0 {
                self.transit.serve_on_time(now, switch);
            }
            if self.transit.lines.wires.links[header.ingress() as usize].impaired | header.is(LOST | PFC) {
                if let Some(header) = self.inspect(now, *header) {
                    self.forward::<HASH>(now, switch, &header);
                }
            } else {
                self.forward::<HASH>(now, switch, header);
            }
        }
        if HASH {
            return self.transit.serve_to_end_of_window(last, switch);
        }
        self.transit.run_clock(&mut self.balancing, last, switch);
        self.transit.serve_to_end_of_window(last, switch).min(self.balancing.balancer.alarm(switch))
    }

    /// Simulates a switch with a middlebox through the window. Returns the time of its next event other than an
    /// arrival.
    fn run_boxed(&mut self, last: Time, switch: u32, window: &mut Window<C>) -> Time {
        window.sort_by_time();
        for header in window.by_time() {
            let now = header.arrival();
            self.transit.serve_boxed(now, switch);
            let impaired = self.transit.lines.wires.links[header.ingress() as usize].impaired;
            let header = if impaired | header.is(LOST | CORRUPT | PFC) {
                self.inspect(now, *header)
            } else {
                Some(*header)
            };
            if let Some(header) = header {
                self.transit.forward_boxed(now, switch, &header);
            }
        }
        self.transit.serve_boxed(last, switch);
        self.transit.next_boxed(switch)
    }

    #[inline(always)]
    fn forward<const HASH: bool>(&mut self, now: Time, switch: u32, header: &Header) {
        if !HASH {
            return self.transit.balance(&mut self.balancing, now, switch, header);
        }
        let Some(egress) = self.transit.switches.each[switch as usize].choose(header) else {
            return self.lose(now, header.ingress(), header, DropReason::NoRoute);
        };
        let mut room = None;
        match self.transit.take_in(now, switch, egress, header, &mut room) {
            Ok(header) => self.transit.enqueue(now, egress, header),
            Err(reason) => self.lose(now, egress, header, reason),
        }
    }

    /// Handles the arrival of the first packet on the link into a host's port.
    #[inline(always)]
    pub fn on_arrival(&mut self, now: Time, port: PortId) -> Step {
        let lines = &mut self.transit.lines;
        let link = &mut lines.wires.links[port as usize];
        let mut header = link.pop_before(Time::MAX).expect("one is on its way");
        link.peek(ARRIVALS_AHEAD - 1).into_iter().for_each(|header| self.transit.contents.prefetch(header));
        if link.impaired {
            self.impairments.apply(lines.ports[port as usize].peer, &mut header);
        }
        if header.is(LOST | CORRUPT | PFC) {
            return self.on_special_arrival(now, port, &header);
        }
        Step::Delivered { host: HostId(lines.ports[port as usize].node), port, packet: Arrived(header) }
    }

    /// Handles an arrival at a switch that may be a pause frame or a lost packet. Returns the packet to forward, if
    /// any.
    #[cold]
    fn inspect(&mut self, now: Time, mut header: Header) -> Option<Header> {
        let ingress = header.ingress();
        let lines = &self.transit.lines;
        if lines.wires.links[ingress as usize].impaired {
            self.impairments.apply(lines.ports[ingress as usize].peer, &mut header);
        }
        if !header.is(LOST | CORRUPT | PFC) {
            return Some(header);
        }
        self.on_special_arrival(now, ingress, &header);
        None
    }

    /// Handles a pause frame, or a packet that was lost or corrupted.
    #[cold]
    fn on_special_arrival(&mut self, now: Time, ingress: PortId, header: &Header) -> Step {
        if header.is(PFC) {
            return match header.is(LOST) {
                true => Step::Done,
                false => self.transit.on_pause_frame(now, ingress, header),
            };
        }
        let lines = &self.transit.lines;
        let from = lines.ports[ingress as usize].peer;
        let reason = if header.is(CORRUPT) {
            DropReason::Corruption
        } else if lines.wires.links[ingress as usize].impaired && !lines.ports[from as usize].is(DOWN) {
            DropReason::Loss
        } else {
            DropReason::LinkDown
        };
        self.lose(now, from, header, reason);
        Step::Done
    }

    /// Records the loss of a packet at `port`.
    #[cold]
    pub(crate) fn lose(&mut self, now: Time, port: PortId, header: &Header, reason: DropReason) {
        self.transit.lose(&mut self.balancing, now, port, header, reason);
    }
}
