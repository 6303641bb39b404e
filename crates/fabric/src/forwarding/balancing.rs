//! Switches that balance load: they ask their balancer for an action for each packet, and execute it.

use std::ops::Range;
use std::sync::Arc;

use pathweave_units::{HostId, Time};

use super::explicit::ExplicitPaths;
use super::registry::{Balancer, Kept};
use super::routes::{Candidates, SwitchRoutes, ecmp_hash};
use super::view::{Action, Outbox, Ports, SwitchView};
use crate::event::DropReason;
use crate::link::LinkSpec;
use crate::packet::{Header, PortId};
use crate::port::DOWN;
use crate::source_route::SourceRoutes;
use crate::transit::Transit;

/// Load balancing of all switches, with its auxiliary state.
pub(crate) struct Balancing {
    pub(crate) balancer: Balancer,
    /// Explicit paths among which the switches of senders choose, if there are any.
    explicit: Option<Box<ExplicitPaths>>,
    /// Packets to send besides the one in hand, in a call of the balancer.
    outbox: Outbox,
}

impl Balancing {
    pub(crate) fn new(balancer: Balancer) -> Self {
        Balancing { balancer, explicit: None, outbox: Outbox::default() }
    }

    /// Makes the switches of senders choose among these explicit paths.
    pub(crate) fn set_explicit(&mut self, routes: Arc<SourceRoutes>) {
        self.explicit = Some(Box::new(ExplicitPaths::new(routes)));
    }

    /// Updates the set of usable explicit paths after routing has noticed which links are down.
    pub(crate) fn update_usable_paths(&mut self, alive: impl Fn(PortId) -> bool) {
        if let Some(ways) = &mut self.explicit {
            ways.update_usable(alive);
        }
    }
}

/// State that switches keep for a packet, in transfer to another part of the fabric.
#[derive(borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct PacketState {
    kept: Option<Kept>,
    /// Number of the explicit path that the packet was given.
    way: Option<u32>,
}

impl Balancing {
    /// Returns true if this kind of load balancing ever keeps state for packets.
    pub(crate) fn keeps_notes(&self) -> bool {
        self.explicit.is_some() || self.balancer.keeps_notes()
    }

    /// Removes and returns the state of a packet, if there is any.
    pub(crate) fn hand_over(&mut self, header: &Header) -> Option<PacketState> {
        let way = self.explicit.as_ref().and_then(|ways| ways.assigned(header));
        let kept = self.balancer.hand_over(header);
        (kept.is_some() || way.is_some()).then_some(PacketState { kept, way })
    }

    /// Stores the state of a packet from another part of the fabric. Returns the packet's header as this part must
    /// store it.
    pub(crate) fn take_over(&mut self, header: Header, note: Option<PacketState>) -> Header {
        let PacketState { kept, way } = note.unwrap_or(PacketState { kept: None, way: None });
        let header = match kept {
            Some(kept) => self.balancer.take_over(header, kept),
            None => header,
        };
        if let Some(ways) = &mut self.explicit {
            match way {
                Some(way) => ways.assign(&header, way),
                None => ways.clear(&header),
            }
        }
        header
    }
}

impl<P: Copy, const C: usize> Transit<P, C> {
    /// Executes the balancer's action for a packet that has arrived at a switch.
    pub(crate) fn balance(&mut self, by: &mut Balancing, now: Time, switch: u32, header: &Header) {
        let action = self.decide(by, now, switch, header);
        for (egress, held) in by.outbox.held_before.split_off(0) {
            self.release_held(by, now, switch, egress, &held);
        }
        match action {
            Action::Forward(egress) => self.send_balanced(by, now, switch, egress, header),
            Action::Hold(egress) => {
                if let Err(reason) = self.take_in_to_hold(now, switch, egress, header) {
                    self.lose(by, now, egress, header, reason);
                    by.balancer.lost_instead_of_held(switch, header);
                }
            }
            Action::Consume => {}
            Action::Drop(reason) => self.lose(by, now, header.ingress(), header, reason),
        }
        self.send_outbox(by, now, switch);
    }

    /// Returns the action for a packet.
    fn decide(&mut self, by: &mut Balancing, now: Time, switch: u32, header: &Header) -> Action {
        let at = &self.switches.each[switch as usize];
        let routes = &at.routes;
        if let SwitchRoutes::Source(_) = routes {
            return at.choose(header).map_or(Action::Drop(DropReason::NoRoute), Action::Forward);
        }
        if header.links() == 1
            && let Some(ways) = &mut by.explicit
        {
            ways.clear(header);
        }
        if routes.candidates(header.src(), header.dst()).len() == 0 {
            return Action::Drop(DropReason::NoRoute);
        }
        let (explicit, outbox) = (&mut by.explicit, &mut by.outbox);
        by.balancer.decide(&mut SwitchAccess { transit: self, explicit, outbox, now, switch }, header)
    }

    /// Sends the packets that the switch held back or made itself, after the packet in hand.
    fn send_outbox(&mut self, by: &mut Balancing, now: Time, switch: u32) {
        if by.outbox.is_empty() {
            return;
        }
        for (egress, held) in by.outbox.held_after.split_off(0) {
            self.release_held(by, now, switch, egress, &held);
        }
        for (egress, made) in by.outbox.made.split_off(0) {
            self.send_balanced(by, now, switch, egress, &made);
        }
    }

    /// Sends a packet by the port `egress`, if there is room for it.
    fn send_balanced(&mut self, by: &mut Balancing, now: Time, switch: u32, egress: PortId, header: &Header) {
        let mut room = None;
        match self.take_in(now, switch, egress, header, &mut room) {
            Ok(header) => self.enqueue(now, egress, header),
            Err(reason) => self.lose(by, now, egress, header, reason),
        }
    }

    /// Sends a held packet. Held packets are in the buffer already.
    fn release_held(&mut self, by: &mut Balancing, now: Time, switch: u32, egress: PortId, header: &Header) {
        if self.lines.ports[egress as usize].is(DOWN) {
            self.release(now, switch, header);
            return self.lose(by, now, egress, header, DropReason::LinkDown);
        }
        self.advance(now, egress);
        self.enqueue(now, egress, header);
    }

    /// Records the loss of a packet at `port`. Packets between switches are freed by their balancer.
    #[cold]
    pub(crate) fn lose(
        &mut self,
        by: &mut Balancing,
        now: Time,
        port: PortId,
        header: &Header,
        reason: DropReason,
    ) {
        if header.is_message() {
            self.journal.of_port.at(port).dropped_packets += 1;
            return by.balancer.discard_message(header);
        }
        self.journal.lose(&mut self.contents, now, port, header, reason);
    }

    /// Brings a port up to `now` between windows, when its switch may not have been simulated that far. Clock events
    /// that count sent bytes must run before services that begin after them.
    pub(crate) fn bring_up_to(&mut self, by: &mut Balancing, now: Time, port: PortId) {
        if by.balancer.counts_sent()
            && let Some(switch) = self.lines.switch_of(port)
        {
            self.run_clock(by, now, switch);
        }
        self.advance(now, port);
    }

    /// Runs the clock events of a switch up to `until`, each at its time.
    pub(crate) fn run_clock(&mut self, by: &mut Balancing, until: Time, switch: u32) {
        loop {
            let now = by.balancer.next_clock(switch);
            if now > until {
                return;
            }
            self.serve_on_time(now, switch);
            // The decay of registers is not counted as an event, the release of held packets is.
            self.events += u64::from(!by.balancer.counts_sent());
            let (explicit, outbox) = (&mut by.explicit, &mut by.outbox);
            by.balancer.on_clock(&mut SwitchAccess { transit: self, explicit, outbox, now, switch }, until);
            self.send_outbox(by, now, switch);
        }
    }
}

/// A switch of the fabric, as its balancer sees it.
struct SwitchAccess<'a, P, const C: usize> {
    transit: &'a mut Transit<P, C>,
    explicit: &'a mut Option<Box<ExplicitPaths>>,
    outbox: &'a mut Outbox,
    now: Time,
    switch: u32,
}

impl<P: Copy, const C: usize> Ports for SwitchAccess<'_, P, C> {
    fn sent_bytes(&self, port: PortId) -> u64 {
        self.transit.lines.ports[port as usize].sent_bytes
    }

    fn is_serving(&self, port: PortId) -> bool {
        self.transit.lines.ports[port as usize].eligible() != 0
    }

    fn link(&self, port: PortId) -> &LinkSpec {
        self.transit.lines.spec(port)
    }
}

impl<P: Copy, const C: usize> SwitchView for SwitchAccess<'_, P, C> {
    fn now(&self) -> Time {
        self.now
    }

    fn switch(&self) -> u32 {
        self.switch
    }

    fn ports(&self) -> Range<PortId> {
        self.transit.switches.each[self.switch as usize].ports()
    }

    fn hash(&self, header: &Header) -> u64 {
        let seed = self.transit.switches.each[self.switch as usize].hash_seed;
        ecmp_hash(seed, header.src(), header.dst(), header.path())
    }

    fn candidates_at(&self, switch: u32, src: HostId, dst: HostId) -> Candidates<'_> {
        self.transit.switches.each[switch as usize].routes.candidates(src, dst)
    }

    fn next_switch(&self, port: PortId) -> Option<u32> {
        let lines = &self.transit.lines;
        lines.ports[port as usize].peer_node.checked_sub(lines.wires.hosts)
    }

    fn serve(&mut self, port: PortId) {
        self.transit.advance(self.now, port);
    }

    fn unsent_bytes(&self, port: PortId) -> u64 {
        let queued = u64::from(self.transit.lines.ports[port as usize].total_queued_bytes());
        let sending = self.transit.lines.ports[port as usize].tx_free.saturating_since(self.now);
        queued + self.link(port).rate.bytes_in(sending)
    }

    fn waiting_bytes(&self, port: PortId) -> u64 {
        u64::from(self.transit.lines.ports[port as usize].total_queued_bytes())
    }

    fn explicit(&self) -> Option<&ExplicitPaths> {
        self.explicit.as_deref()
    }

    fn give(&mut self, header: &Header, way: u32) {
        if let Some(ways) = self.explicit {
            ways.assign(header, way);
        }
    }

    fn outbox(&mut self) -> &mut Outbox {
        self.outbox
    }
}
