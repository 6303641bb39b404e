//! Links that fail, slow down, lose or corrupt; switches that die; NICs that pause for ever.

use pathweave_units::{Duration, Rate, Time};

use crate::buffering::Resumable;
use crate::build::intern;
use crate::event::{DropReason, Step};
use crate::fabric::Fabric;
use crate::forwarding::SwitchRoutes;
use crate::marking::{Dice, Purpose};
use crate::packet::{CORRUPT, Header, LOST, PFC};
use crate::port::{BOXED, DOWN, LinkSpec, PortId, STORM};
use crate::ring::Ring;

/// Random loss and corruption on the link of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairment {
    port: PortId,
    loss: f64,
    corruption: f64,
}

/// All impaired links, and their dice.
pub(crate) struct Impairments {
    list: Vec<Impairment>,
    dice: Dice,
}

impl Impairments {
    pub(crate) fn new(seed: u64, ports: usize) -> Self {
        Impairments { list: Vec::new(), dice: Dice::new(seed, Purpose::Impair, ports) }
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Takes both directions of a port's link down: what is queued or in flight is lost, pauses are forgotten.
    pub fn link_down(&mut self, now: Time, port: PortId) {
        for end in [port, self.ports[port as usize].peer] {
            self.bring_up_to(now, end);
            self.set_down(end, true);
            self.wires.links[self.ports[end as usize].peer as usize].lose_all();
            self.drop_queued(now, end);
            self.forget_pauses(now, end);
        }
    }

    /// Brings both directions of a port's link back.
    pub fn link_up(&mut self, now: Time, port: PortId) {
        for end in [port, self.ports[port as usize].peer] {
            if self.ports[end as usize].is(DOWN) {
                self.set_down(end, false);
                // Whatever the transmitter was at is lost; it must not seem busy with nothing on the link.
                self.ports[end as usize].tx_free = now;
            }
        }
    }

    fn set_down(&mut self, id: PortId, down: bool) {
        let port = &mut self.ports[id as usize];
        if port.is(DOWN) == down {
            return;
        }
        port.flags ^= DOWN;
        if let Some(switch) = port.node.checked_sub(self.wires.hosts) {
            let links_down = &mut self.switches[switch as usize].links_down;
            *links_down = if down { *links_down + 1 } else { *links_down - 1 };
        }
    }

    /// A dead link takes as long to lose a packet as it would to send it.
    #[cold]
    pub(crate) fn send_into_the_void(&mut self, now: Time, port_id: PortId, header: &Header) {
        let port = &mut self.ports[port_id as usize];
        let spec = &self.wires.specs[usize::from(port.spec)];
        port.tx_free = port.tx_free.max(now) + spec.time_for(header.wire_bytes());
        self.lose(now, port_id, header, DropReason::LinkDown);
    }

    /// Changes rate or delay of both directions of a port's link, for packets whose service is yet to start.
    pub fn set_link(&mut self, now: Time, port: PortId, rate: Option<Rate>, delay: Option<Duration>) {
        for end in [port, self.ports[port as usize].peer] {
            self.bring_up_to(now, end);
            let old = &self.wires.specs[usize::from(self.ports[end as usize].spec)];
            let spec = LinkSpec::new(rate.unwrap_or(old.rate), delay.unwrap_or(old.delay), &self.ecn);
            let spec =
                intern(&mut self.wires.specs, spec).expect("fewer than 65,536 kinds of link in one run");
            let of_switch = end >= self.host_ports;
            self.ports[end as usize].set_spec(spec, &self.wires.specs, of_switch);
        }
        self.lookahead = self.wires.lookahead();
    }

    /// Rate and delay of a port's link.
    pub fn link(&self, port: PortId) -> (Rate, Duration) {
        let spec = &self.wires.specs[usize::from(self.ports[port as usize].spec)];
        (spec.rate, spec.delay)
    }

    /// Sets the probability that a packet is lost or corrupted, in both directions of a port's link.
    pub fn set_impairment(&mut self, port: PortId, loss: f64, corruption: f64) {
        for end in [port, self.ports[port as usize].peer] {
            self.impairments.list.retain(|i| i.port != end);
            let impaired = loss > 0.0 || corruption > 0.0;
            if impaired {
                self.impairments.list.push(Impairment { port: end, loss, corruption });
            }
            self.wires.links[self.ports[end as usize].peer as usize].impaired = impaired;
        }
    }

    /// Loss and corruption probability of a port's link.
    pub fn impairment(&self, port: PortId) -> (f64, f64) {
        self.impairments.list.iter().find(|i| i.port == port).map_or((0.0, 0.0), |i| (i.loss, i.corruption))
    }

    /// A broken NIC behind `port` pauses all data classes of the port for ever.
    pub fn start_pause_storm(&mut self, now: Time, port: PortId) {
        self.bring_up_to(now, port);
        self.ports[port as usize].flags |= STORM;
        for class in 1..C as u8 {
            self.pause(now, port, class);
        }
    }

    /// The broken NIC falls silent.
    pub fn stop_pause_storm(&mut self, now: Time, port: PortId) -> Step {
        self.bring_up_to(now, port);
        self.ports[port as usize].flags &= !STORM;
        (1..C as u8).fold(Step::Done, |_, class| self.resume(now, port, class))
    }

    /// Replaces the routes of all switches, as routing does some time after a change.
    pub fn set_routes(&mut self, routes: Vec<SwitchRoutes>) {
        assert_eq!(routes.len(), self.switches.len());
        for (switch, routes) in self.switches.iter_mut().zip(routes) {
            switch.routes = routes;
        }
        self.review_explicit_ways();
    }

    /// Rolls the dice for a packet that has crossed an impaired link into a port.
    #[cold]
    pub(crate) fn impair(&mut self, ingress: PortId, header: &mut Header) {
        if header.is(PFC) {
            // A real pause runs out and is repeated while needed; ours is said once, so it must get through.
            return;
        }
        let from = self.ports[ingress as usize].peer;
        let (loss, corruption) = self.impairment(from);
        let draw = self.impairments.dice.roll(from);
        if draw < loss {
            header.set(LOST);
        } else if draw < loss + corruption {
            header.set(CORRUPT);
        }
    }

    fn drop_queued(&mut self, now: Time, port_id: PortId) {
        if self.ports[port_id as usize].is(BOXED) {
            self.give_up_controlled(port_id);
        }
        for class in 0..C {
            let port = &mut self.ports[port_id as usize];
            let waiting = std::mem::replace(&mut port.queues[class], Ring::new());
            port.queued_bytes[class] = 0;
            port.backlog &= !(1 << class);
            let node = port.node;
            for header in waiting.iter() {
                if node >= self.wires.hosts {
                    let at = Resumable { switch: node - self.wires.hosts, ingress: header.ingress(), class };
                    self.release(now, at, u32::from(header.wire_bytes()));
                }
                self.lose(now, port_id, header, DropReason::LinkDown);
            }
        }
    }

    /// Pause state does not survive the link: neither end remembers being paused or having paused.
    fn forget_pauses(&mut self, now: Time, port_id: PortId) {
        let port = &mut self.ports[port_id as usize];
        if port.paused != 0 && !port.is(STORM) {
            port.paused = 0;
            self.stats[port_id as usize].paused += now - self.paused_since[port_id as usize];
            self.paused_since[port_id as usize] = Time::MAX;
        }
        let node = self.ports[port_id as usize].node;
        let xoff_sent = &mut self.held[port_id as usize].xoff_sent;
        let paused_neighbours = std::mem::take(xoff_sent).count_ones();
        if paused_neighbours > 0 {
            self.switches[(node - self.wires.hosts) as usize].paused_neighbours -= paused_neighbours;
        }
    }
}
