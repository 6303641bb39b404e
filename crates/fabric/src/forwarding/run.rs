//! A balancing switch: asking its scheme about a packet, and doing what it says.

use pathweave_units::Time;

use crate::buffering::Resumable;
use crate::event::DropReason;
use crate::fabric::Fabric;
use crate::forwarding::{Action, Balancer, SwitchRoutes, ecmp_hash, flow_hash};
use crate::packet::Header;
use crate::port::{DOWN, PortId};

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Does with a packet that has come into a switch what its scheme says.
    pub(crate) fn balance(&mut self, now: Time, switch: u32, header: &Header) {
        let action = self.decide(now, switch, header);
        for (egress, held) in self.outbox.held_before.split_off(0) {
            self.let_go(now, switch, egress, &held);
        }
        match action {
            Action::Forward(egress) => {
                if self.may_leave(now, switch, egress, header) {
                    self.enqueue(now, egress, header);
                }
            }
            Action::Hold(egress) => {
                if !self.may_leave(now, switch, egress, header) {
                    self.balancer.lost_instead_of_held(switch, header);
                }
            }
            Action::Consume => {}
            Action::Drop(reason) => self.lose(now, header.ingress(), header, reason),
        }
        self.send_outbox(now, switch);
    }

    /// What becomes of a packet.
    fn decide(&mut self, now: Time, switch: u32, header: &Header) -> Action {
        let at = &self.switches[switch as usize];
        if let SwitchRoutes::Source(routes) = &at.routes {
            return routes.choose(header).map_or(Action::Drop(DropReason::NoRoute), Action::Forward);
        }
        if header.links() == 1
            && let Some(ways) = &mut self.explicit
        {
            ways.forget(header);
        }
        let candidates = at.routes.candidates(header.src(), header.dst());
        let ways = candidates.len();
        if ways == 0 {
            return Action::Drop(DropReason::NoRoute);
        }
        let hash = || ecmp_hash(at.hash_seed, header.src(), header.dst(), header.path());
        Action::Forward(match &mut self.balancer {
            Balancer::Conga(_) => self.conga(now, switch, header),
            Balancer::Ugal(_) => self.ugal(now, switch, header),
            Balancer::ConWeave(_) => return self.conweave(now, switch, header),
            Balancer::LetFlow(_) if self.explicit.is_some() => self.letflow_among_ways(now, switch, header),
            _ if ways == 1 => candidates.get(0),
            Balancer::Ecmp => candidates.by_hash(hash()),
            Balancer::Rps(dice) => candidates.by_hash(dice.draw(switch)),
            Balancer::LetFlow(letflow) => {
                letflow.choose(switch, now, flow_hash(hash()), candidates, &mut self.forwarding_stats)
            }
            Balancer::Drill(_) => self.drill(now, switch, header),
        })
    }

    /// Sends what the switch held back or made itself, behind the packet at hand.
    pub(crate) fn send_outbox(&mut self, now: Time, switch: u32) {
        if self.outbox.is_empty() {
            return;
        }
        for (egress, held) in self.outbox.held_after.split_off(0) {
            self.let_go(now, switch, egress, &held);
        }
        for (egress, made) in self.outbox.made.split_off(0) {
            if self.may_leave(now, switch, egress, &made) {
                self.enqueue(now, egress, &made);
            }
        }
    }

    /// A held packet leaves. It is in the buffer already.
    fn let_go(&mut self, now: Time, switch: u32, egress: PortId, header: &Header) {
        if self.ports[egress as usize].is(DOWN) {
            let at = Resumable { switch, ingress: header.ingress(), class: usize::from(header.class()) };
            self.release(now, at, u32::from(header.wire_bytes()));
            return self.lose(now, egress, header, DropReason::LinkDown);
        }
        self.advance(now, egress);
        self.enqueue(now, egress, header);
    }

    /// What waits at a port that is up to date, and what is left of the packet it is sending.
    pub(crate) fn unsent_bytes(&self, now: Time, port: PortId) -> u64 {
        let port = &self.ports[port as usize];
        let rate = self.wires.specs[usize::from(port.spec)].rate;
        u64::from(port.total_queued_bytes()) + rate.bytes_in(port.tx_free.saturating_since(now))
    }

    /// Brings a port up to `now` between windows, when its switch may not have had its turn: ticks of CONGA, which count what
    /// was sent before them, come before what is sent now.
    pub(crate) fn bring_up_to(&mut self, now: Time, port: PortId) {
        let switch = self.ports[port as usize].node.checked_sub(self.wires.hosts);
        if let (Balancer::Conga(_), Some(switch)) = (&self.balancer, switch) {
            self.run_clock(now, switch);
        }
        self.advance(now, port);
    }

    /// Does what the switch does by the clock up to `until`, each at its time.
    pub(crate) fn run_clock(&mut self, until: Time, switch: u32) {
        loop {
            let due = self.balancer.next_clock(switch);
            if due > until {
                return;
            }
            self.serve_on_time(due, switch);
            if matches!(self.balancer, Balancer::ConWeave(_)) {
                self.events += 1;
                self.flush_held(due, switch);
                continue;
            }
            self.advance_switch(due, switch);
            let ports = self.switches[switch as usize].ports();
            if let Balancer::Conga(conga) = &mut self.balancer {
                let of_switch = &self.ports[ports.start as usize..ports.end as usize];
                conga.tick(switch, ports.start, of_switch, until);
            }
        }
    }
}
