//! A balancing switch: asking its scheme about a packet, and doing what it says.

use std::ops::Range;
use std::sync::Arc;

use pathweave_units::{HostId, Time};

use super::explicit::ExplicitWays;
use super::registry::Balancer;
use super::routes::{Candidates, SwitchRoutes, ecmp_hash};
use super::view::{Action, Outbox, Ports, SwitchView};
use crate::buffering::Resumable;
use crate::event::DropReason;
use crate::fabric::Fabric;
use crate::packet::Header;
use crate::port::{DOWN, LinkSpec, PortId};
use crate::source_route::SourceRoutes;

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
        if at.routes.candidates(header.src(), header.dst()).len() == 0 {
            return Action::Drop(DropReason::NoRoute);
        }
        self.with_balancer(now, switch, |balancer, at| balancer.decide(at, header))
    }

    /// The balancer works at a switch. It is not part of the fabric meanwhile: what it sees of that loses no packet.
    fn with_balancer<T>(
        &mut self,
        now: Time,
        switch: u32,
        work: impl FnOnce(&mut Balancer, &mut At<'_, P, C>) -> T,
    ) -> T {
        let mut balancer = std::mem::replace(&mut self.balancer, Balancer::idle());
        let result = work(&mut balancer, &mut At { fabric: self, now, switch });
        self.balancer = balancer;
        result
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

    /// Brings a port up to `now` between windows, when its switch may not have had its turn: ticks
    /// that count what was sent before them come before what is sent now.
    pub(crate) fn bring_up_to(&mut self, now: Time, port: PortId) {
        let switch = self.ports[port as usize].node.checked_sub(self.wires.hosts);
        if let Some(switch) = switch.filter(|_| self.balancer.counts_sent()) {
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
            // Decay of registers is no event; packets that are let go are.
            self.events += u64::from(!self.balancer.counts_sent());
            self.with_balancer(due, switch, |balancer, at| balancer.on_clock(at, until));
            self.send_outbox(due, switch);
        }
    }

    /// From now on the switches of senders choose among these paths. For LetFlow, CONGA and ConWeave.
    pub fn set_explicit_ways(&mut self, routes: Arc<SourceRoutes>) {
        self.explicit = Some(Box::new(ExplicitWays::new(routes)));
    }

    /// Routing has noticed which links are down.
    pub(crate) fn review_explicit_ways(&mut self) {
        let Some(mut ways) = self.explicit.take() else { return };
        ways.use_all(|port| !self.ports[port as usize].is(DOWN));
        self.explicit = Some(ways);
    }
}

/// A switch of the fabric as its balancer sees it.
struct At<'a, P, const C: usize> {
    fabric: &'a mut Fabric<P, C>,
    now: Time,
    switch: u32,
}

impl<P: Copy, const C: usize> Ports for At<'_, P, C> {
    fn sent_bytes(&self, port: PortId) -> u64 {
        self.fabric.ports[port as usize].sent_bytes
    }

    fn is_serving(&self, port: PortId) -> bool {
        self.fabric.ports[port as usize].eligible() != 0
    }

    fn link(&self, port: PortId) -> &LinkSpec {
        &self.fabric.wires.specs[usize::from(self.fabric.ports[port as usize].spec)]
    }
}

impl<P: Copy, const C: usize> SwitchView for At<'_, P, C> {
    fn now(&self) -> Time {
        self.now
    }

    fn switch(&self) -> u32 {
        self.switch
    }

    fn ports(&self) -> Range<PortId> {
        self.fabric.switches[self.switch as usize].ports()
    }

    fn hash(&self, header: &Header) -> u64 {
        let seed = self.fabric.switches[self.switch as usize].hash_seed;
        ecmp_hash(seed, header.src(), header.dst(), header.path())
    }

    fn candidates_at(&self, switch: u32, src: HostId, dst: HostId) -> Candidates<'_> {
        self.fabric.switches[switch as usize].routes.candidates(src, dst)
    }

    fn next_switch(&self, port: PortId) -> Option<u32> {
        self.fabric.ports[port as usize].peer_node.checked_sub(self.fabric.wires.hosts)
    }

    fn serve(&mut self, port: PortId) {
        self.fabric.advance(self.now, port);
    }

    fn unsent_bytes(&self, port: PortId) -> u64 {
        let queued = u64::from(self.fabric.ports[port as usize].total_queued_bytes());
        let sending = self.fabric.ports[port as usize].tx_free.saturating_since(self.now);
        queued + self.link(port).rate.bytes_in(sending)
    }

    fn explicit(&self) -> Option<&ExplicitWays> {
        self.fabric.explicit.as_deref()
    }

    fn give(&mut self, header: &Header, way: u32) {
        if let Some(ways) = &mut self.fabric.explicit {
            ways.give(header, way);
        }
    }

    fn outbox(&mut self) -> &mut Outbox {
        &mut self.fabric.outbox
    }
}
