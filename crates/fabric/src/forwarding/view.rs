//! What a balancer sees of the switch it decides for, and what it may do there: nothing else of the fabric.

use std::ops::Range;

use pathweave_units::{HostId, Time, mix64};

use super::explicit::ExplicitWays;
use super::routes::Candidates;
use crate::event::DropReason;
use crate::link::LinkSpec;
use crate::packet::{Header, PortId};

/// Ports, as their counters and links say.
pub(crate) trait Ports {
    /// Bytes a port has sent in all, up to when it was looked at last.
    fn sent_bytes(&self, port: PortId) -> u64;
    /// A port that is not paused has packets waiting.
    fn is_serving(&self, port: PortId) -> bool;
    /// Rate and delay of a port's link.
    fn link(&self, port: PortId) -> &LinkSpec;
}

/// A switch at the moment at which a packet has come, or its balancer's clock rings.
pub(crate) trait SwitchView: Ports {
    /// The present.
    fn now(&self) -> Time;
    /// Which switch it is.
    fn switch(&self) -> u32;
    /// Its ports.
    fn ports(&self) -> Range<PortId>;
    /// The hash of a packet's ends and path with this switch's seed.
    fn hash(&self, header: &Header) -> u64;
    /// Next hops of equal cost at any switch.
    fn candidates_at(&self, switch: u32, src: HostId, dst: HostId) -> Candidates<'_>;
    /// The switch at the other end of a port's link; `None`: a host.
    fn next_switch(&self, port: PortId) -> Option<u32>;
    /// Has a port begin all services up to the present.
    fn serve(&mut self, port: PortId);
    /// What waits at a port that has been served up to the present, and what is left of the packet it is sending.
    fn unsent_bytes(&self, port: PortId) -> u64;
    /// What waits at a port that has been served up to the present; the packet it is sending is no part of it.
    fn waiting_bytes(&self, port: PortId) -> u64;
    /// Whole paths, where the switch of a packet's sender chooses among those.
    fn explicit(&self) -> Option<&ExplicitWays>;
    /// Gives a packet one of these, if there are any.
    fn give(&mut self, header: &Header, way: u32);
    /// Packets that leave besides the one at hand.
    fn outbox(&mut self) -> &mut Outbox;

    /// Next hops of equal cost here.
    fn candidates(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        self.candidates_at(self.switch(), src, dst)
    }

    /// What tells a packet's flow from others.
    fn flow(&self, header: &Header) -> u64 {
        // Not the hash itself, whose bits choose ports.
        mix64(self.hash(header) ^ 0x5bd1_e995_7b93_1c4d)
    }

    /// The port for a packet past the switch that chose, or that no switch chooses for: on the way it was given, or by hash.
    /// There must be a next hop.
    fn onward(&self, header: &Header) -> PortId {
        let given = self.explicit().and_then(|ways| ways.next(header));
        given.unwrap_or_else(|| self.candidates(header.src(), header.dst()).by_hash(self.hash(header)))
    }

    /// The port by which the `i`-th way of a packet begins at the switch of its sender.
    fn first_hop(&self, header: &Header, i: u32) -> Option<PortId> {
        match self.explicit() {
            Some(ways) => {
                let all = ways.between(header.src(), header.dst());
                (i < all.len()).then(|| ways.port(header, all.get(i), 1))
            }
            None => {
                let all = self.candidates(header.src(), header.dst());
                (i < all.len()).then(|| all.get(i))
            }
        }
    }
}

/// What becomes of a packet at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It leaves by this port.
    Forward(PortId),
    /// It stays in the buffer, on its way to this port, until the scheme lets it go.
    Hold(PortId),
    /// It was for the switch itself.
    Consume,
    /// It is lost.
    Drop(DropReason),
}

/// What a switch sends besides the packet at hand, with egress ports.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Held until now; before that packet.
    pub(super) held_before: Vec<(PortId, Header)>,
    /// Held until now; behind it.
    pub(super) held_after: Vec<(PortId, Header)>,
    /// Made here; behind those.
    pub(super) made: Vec<(PortId, Header)>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.held_after.is_empty() && self.made.is_empty()
    }
}

/// What load balancing in the switches did, all of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct ForwardingStats {
    /// Flowlets begun.
    pub flowlets: u64,
    /// Times a flow was sent another way than before; packets sent a detour.
    pub reroutes: u64,
    /// Packets held until those before them had come.
    pub held_packets: u64,
    /// Packets that overtook others and were not held, for want of a queue.
    pub unheld_packets: u64,
    /// Queues of held packets emptied because those before them were overdue.
    pub late_flushes: u64,
    /// Packets of flows for which a switch's table had no room.
    pub untracked_packets: u64,
    /// Packets between switches.
    pub messages: u64,
}

impl std::ops::AddAssign<&ForwardingStats> for ForwardingStats {
    fn add_assign(&mut self, other: &ForwardingStats) {
        self.flowlets += other.flowlets;
        self.reroutes += other.reroutes;
        self.held_packets += other.held_packets;
        self.unheld_packets += other.unheld_packets;
        self.late_flushes += other.late_flushes;
        self.untracked_packets += other.untracked_packets;
        self.messages += other.messages;
    }
}

impl ForwardingStats {
    pub(crate) const NONE: ForwardingStats = ForwardingStats {
        flowlets: 0,
        reroutes: 0,
        held_packets: 0,
        unheld_packets: 0,
        late_flushes: 0,
        untracked_packets: 0,
        messages: 0,
    };
}
