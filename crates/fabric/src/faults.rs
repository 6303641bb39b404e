//! Faults: links that fail, slow down, lose or corrupt; switches that fail; NICs that send pause frames without end.

use std::sync::Arc;

use pathweave_units::{Duration, Rate, Time};

use crate::event::{DropReason, Step};
use crate::fabric::Fabric;
use crate::forwarding::SwitchRoutes;
use crate::link::LinkSpec;
use crate::middlebox::{ContentAccess, ExternalConfig, SwitchPosition};
use crate::packet::{Header, PortId};
use crate::port::{DOWN, HAS_MIDDLEBOX, STORM};
use crate::ring::Ring;
use crate::source_route::SourceRoutes;

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Takes both directions of a port's link down. Packets queued or in flight are lost, and pause state is cleared.
    pub fn link_down(&mut self, now: Time, port: PortId) {
        for end in [port, self.transit.lines.ports[port as usize].peer] {
            self.transit.bring_up_to(&mut self.balancing, now, end);
            self.set_down(end, true);
            self.transit.lines.wires.links[self.transit.lines.ports[end as usize].peer as usize].lose_all();
            self.drop_queued(now, end);
            self.clear_pauses(now, end);
        }
    }

    /// Brings both directions of a port's link back.
    pub fn link_up(&mut self, now: Time, port: PortId) {
        for end in [port, self.transit.lines.ports[port as usize].peer] {
            self.direction_up(now, end);
        }
    }

    fn set_down(&mut self, id: PortId, down: bool) {
        let port = &mut self.transit.lines.ports[id as usize];
        if port.is(DOWN) == down {
            return;
        }
        port.flags ^= DOWN;
        if let Some(switch) = self.transit.lines.switch_of(id) {
            let links_down = &mut self.transit.switches.each[switch as usize].links_down;
            *links_down = if down { *links_down + 1 } else { *links_down - 1 };
        }
    }

    /// Loses a packet on a dead link. The transmitter is busy as long as if the link were up.
    #[cold]
    pub(crate) fn send_on_dead_link(&mut self, now: Time, port_id: PortId, header: &Header) {
        let busy_for = self.transit.lines.spec(port_id).time_for(header.wire_bytes());
        let port = &mut self.transit.lines.ports[port_id as usize];
        port.tx_free = port.tx_free.max(now) + busy_for;
        self.lose(now, port_id, header, DropReason::LinkDown);
    }

    /// Takes the direction of a link that a port feeds down. Packets queued for it or in flight are lost. Pauses that
    /// the port's node has requested over it end, since nothing renews them. Returns the effect on the other end.
    pub fn direction_down(&mut self, now: Time, port: PortId) -> Step {
        let peer = self.transit.lines.ports[port as usize].peer;
        self.transit.bring_up_to(&mut self.balancing, now, port);
        self.transit.bring_up_to(&mut self.balancing, now, peer);
        self.set_down(port, true);
        self.transit.lines.wires.links[peer as usize].lose_all();
        self.drop_queued(now, port);
        self.forget_requests(port);
        let paused = self.transit.lines.ports[peer as usize].paused;
        if self.transit.lines.ports[peer as usize].is(STORM) {
            return Step::Done;
        }
        (1..C as u8).filter(|class| paused >> class & 1 != 0).fold(Step::Done, |done, class| {
            match self.transit.resume(now, peer, class) {
                Step::Done => done,
                step => step,
            }
        })
    }

    /// Brings the direction of a link that a port feeds back.
    pub fn direction_up(&mut self, now: Time, port: PortId) {
        if self.transit.lines.ports[port as usize].is(DOWN) {
            self.set_down(port, false);
            // The frame in transmission is lost. The transmitter must not seem busy with nothing on the link.
            self.transit.lines.ports[port as usize].tx_free = now;
        }
    }

    /// Changes the rate or the delay of both directions of a port's link, for packets whose service has not started.
    pub fn set_link(&mut self, now: Time, port: PortId, rate: Option<Rate>, delay: Option<Duration>) {
        let peer = self.transit.lines.ports[port as usize].peer;
        self.set_direction(now, port, rate, delay);
        self.set_direction(now, peer, rate, delay);
    }

    /// Changes the rate or the delay of the direction that a port feeds, for packets whose service has not started.
    pub fn set_direction(&mut self, now: Time, port: PortId, rate: Option<Rate>, delay: Option<Duration>) {
        self.transit.bring_up_to(&mut self.balancing, now, port);
        let lines = &mut self.transit.lines;
        let old = lines.spec(port);
        let (rate, delay) = (rate.unwrap_or(old.rate), delay.unwrap_or(old.delay));
        let node = lines.ports[port as usize].node;
        let spec = self.add_kind(node, rate, delay);
        let lines = &mut self.transit.lines;
        let marks = lines.ports[port as usize].marks();
        lines.ports[port as usize].set_spec(spec, &lines.wires.specs, marks);
    }

    /// Takes into account that a direction of a link between two other parts, which leaves `node`, has this rate and
    /// delay. The shortest link limits the windows of all parts.
    pub fn note_direction_elsewhere(&mut self, node: u32, rate: Rate, delay: Duration) {
        self.add_kind(node, rate, delay);
    }

    /// Returns the number of the kind of a direction that leaves `node`.
    fn add_kind(&mut self, node: u32, rate: Rate, delay: Duration) -> u16 {
        let wires = &mut self.transit.lines.wires;
        let own = match node.checked_sub(wires.hosts) {
            Some(switch) => self.classes.of(switch),
            None => self.classes.general(),
        };
        let spec = LinkSpec::new(rate, delay, &own.ecn, &own.trim);
        let spec = wires.number_of(spec).expect("fewer than 65,536 kinds of link in one run");
        self.lookahead = wires.lookahead();
        spec
    }

    /// Stops a port from marking. Used for ports of a switch that is part of a host.
    pub fn disable_marking(&mut self, port: PortId) {
        self.transit.lines.ports[port as usize].leave_unmarked();
    }

    /// Returns the rate and the delay of the direction that a port feeds.
    pub fn link(&self, port: PortId) -> (Rate, Duration) {
        let spec = self.transit.lines.spec(port);
        (spec.rate, spec.delay)
    }

    /// Sets the probabilities that a packet is lost or corrupted, in both directions of a port's link.
    pub fn set_impairment(&mut self, port: PortId, loss: f64, corruption: f64) {
        for end in [port, self.transit.lines.ports[port as usize].peer] {
            self.set_impairment_of_direction(end, loss, corruption);
        }
    }

    /// Sets the probabilities that a packet is lost or corrupted in the direction that a port feeds.
    pub fn set_impairment_of_direction(&mut self, port: PortId, loss: f64, corruption: f64) {
        let lines = &mut self.transit.lines;
        let into = lines.ports[port as usize].peer;
        lines.wires.links[into as usize].impaired = self.impairments.set(port, loss, corruption);
    }

    /// Returns the probabilities of loss and corruption of the direction that a port feeds.
    pub fn impairment(&self, port: PortId) -> (f64, f64) {
        self.impairments.probabilities(port)
    }

    /// Starts a pause storm: the broken NIC at the peer of `port` pauses all data classes of the port without end.
    pub fn start_pause_storm(&mut self, now: Time, port: PortId) {
        self.transit.bring_up_to(&mut self.balancing, now, port);
        self.transit.lines.ports[port as usize].flags |= STORM;
        for class in 1..C as u8 {
            self.transit.pause(now, port, class);
        }
    }

    /// Ends a pause storm of a port.
    pub fn stop_pause_storm(&mut self, now: Time, port: PortId) -> Step {
        self.transit.bring_up_to(&mut self.balancing, now, port);
        self.transit.lines.ports[port as usize].flags &= !STORM;
        (1..C as u8).fold(Step::Done, |_, class| self.transit.resume(now, port, class))
    }

    /// Makes the switches of senders choose among these explicit paths, under LetFlow, CONGA and ConWeave.
    pub fn set_explicit_paths(&mut self, routes: Arc<SourceRoutes>) {
        self.balancing.set_explicit(routes);
    }

    /// Attaches a middlebox to an external switch. Must be called before anything is sent.
    pub fn attach_middlebox(
        &mut self,
        switch: u32,
        config: &ExternalConfig,
        lens: ContentAccess<P>,
        place: SwitchPosition,
    ) {
        self.transit.attach_middlebox(switch, config, lens, place);
    }

    /// Replaces the routes of all switches, as routing does some time after a change.
    pub fn set_routes(&mut self, routes: Vec<SwitchRoutes>) {
        assert_eq!(routes.len(), self.transit.switches.each.len());
        for (switch, routes) in self.transit.switches.each.iter_mut().zip(routes) {
            switch.routes = routes;
        }
        let ports = &self.transit.lines.ports;
        self.balancing.update_usable_paths(|port| !ports[port as usize].is(DOWN));
    }

    fn drop_queued(&mut self, now: Time, port_id: PortId) {
        if self.transit.lines.ports[port_id as usize].is(HAS_MIDDLEBOX) {
            self.transit.give_up_controlled(port_id);
        }
        let switch = self.transit.lines.switch_of(port_id);
        for class in 0..C {
            let port = &mut self.transit.lines.ports[port_id as usize];
            let waiting = std::mem::replace(&mut port.queues[class], Ring::new());
            port.queued_bytes[class] = 0;
            port.backlog &= !(1 << class);
            for header in waiting.iter() {
                if let Some(switch) = switch {
                    self.transit.release(now, switch, header);
                }
                self.lose(now, port_id, header, DropReason::LinkDown);
            }
        }
    }

    /// Clears the pause state at both ends of a failed link. A pause storm survives.
    fn clear_pauses(&mut self, now: Time, port_id: PortId) {
        let port = &mut self.transit.lines.ports[port_id as usize];
        if port.paused != 0 && !port.is(STORM) {
            port.paused = 0;
            self.transit.journal.pause_ends(now, port_id);
        }
        self.forget_requests(port_id);
    }

    /// Clears the pauses that a port's node has requested from the peer.
    fn forget_requests(&mut self, port_id: PortId) {
        let switch = self.transit.lines.switch_of(port_id);
        let xoff_sent = &mut self.transit.switches.held[port_id as usize].xoff_sent;
        let paused_neighbours = std::mem::take(xoff_sent).count_ones();
        if let Some(switch) = switch {
            self.transit.switches.each[switch as usize].paused_neighbours -= paused_neighbours;
        }
    }
}
