//! The view of a switch that a balancer gets: everything that it can read and do.

use std::ops::Range;

use pathweave_units::{HostId, Time, mix64};

use super::explicit::ExplicitPaths;
use super::routes::Candidates;
use crate::event::DropReason;
use crate::link::LinkSpec;
use crate::packet::{Header, PortId};

/// Counters and links of ports.
pub(crate) trait Ports {
    /// Returns the total of bytes that a port has sent, up to the time of its last service.
    fn sent_bytes(&self, port: PortId) -> u64;
    /// Returns true if a port that is not paused has packets waiting.
    fn is_serving(&self, port: PortId) -> bool;
    /// Returns the rate and the delay of a port's link.
    fn link(&self, port: PortId) -> &LinkSpec;
}

/// A switch at the time of a packet's arrival or of a clock event.
pub(crate) trait SwitchView: Ports {
    /// Returns the present time.
    fn now(&self) -> Time;
    /// Returns the number of the switch.
    fn switch(&self) -> u32;
    /// Returns the ports of the switch.
    fn ports(&self) -> Range<PortId>;
    /// Returns the hash of a packet's source, destination and path, with this switch's seed.
    fn hash(&self, header: &Header) -> u64;
    /// Returns the next hops of equal cost at any switch.
    fn candidates_at(&self, switch: u32, src: HostId, dst: HostId) -> Candidates<'_>;
    /// Returns the switch at the other end of a port's link, or `None` if it is a host.
    fn next_switch(&self, port: PortId) -> Option<u32>;
    /// Starts all services of a port up to the present.
    fn serve(&mut self, port: PortId);
    /// Returns the bytes waiting at a port, plus the rest of the packet in transmission. The port has been served up
    /// to the present.
    fn unsent_bytes(&self, port: PortId) -> u64;
    /// Returns the bytes waiting at a port, without the packet in transmission. The port has been served up to the
    /// present.
    fn waiting_bytes(&self, port: PortId) -> u64;
    /// Returns the explicit paths, if the senders' switches choose among such paths.
    fn explicit(&self) -> Option<&ExplicitPaths>;
    /// Gives a packet an explicit path, if there are any.
    fn give(&mut self, header: &Header, way: u32);
    /// Returns the packets that leave besides the one in hand.
    fn outbox(&mut self) -> &mut Outbox;

    /// Returns the next hops of equal cost at this switch.
    fn candidates(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        self.candidates_at(self.switch(), src, dst)
    }

    /// Returns a hash that identifies a packet's flow.
    fn flow(&self, header: &Header) -> u64 {
        // Not the ECMP hash itself, whose bits choose ports.
        mix64(self.hash(header) ^ 0x5bd1_e995_7b93_1c4d)
    }

    /// Returns the port for a packet beyond the switch that chose its path, or for a packet that no switch balances:
    /// on the explicit path that it was given, or by hash. There must be a next hop.
    fn default_port(&self, header: &Header) -> PortId {
        let given = self.explicit().and_then(|ways| ways.next(header));
        given.unwrap_or_else(|| self.candidates(header.src(), header.dst()).by_hash(self.hash(header)))
    }

    /// Returns the first port of a packet's `i`-th path at the switch of its sender.
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

/// Decision for a packet at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The packet leaves by this port.
    Forward(PortId),
    /// The packet stays in the buffer, accounted to this port, until the balancer releases it.
    Hold(PortId),
    /// The packet was addressed to the switch itself.
    Consume,
    /// The packet is lost.
    Drop(DropReason),
}

/// Packets that a switch sends besides the one in hand, with their egress ports.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Packets held until now that leave before the packet in hand.
    pub(super) held_before: Vec<(PortId, Header)>,
    /// Packets held until now that leave after it.
    pub(super) held_after: Vec<(PortId, Header)>,
    /// Packets made by the switch. They leave last.
    pub(super) made: Vec<(PortId, Header)>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.held_after.is_empty() && self.made.is_empty()
    }
}

/// Counters of load balancing, summed over all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct ForwardingStats {
    /// Number of flowlets begun.
    pub flowlets: u64,
    /// Number of times that a flow changed its path, or that a packet was sent on a detour.
    pub reroutes: u64,
    /// Packets held until the packets before them had arrived.
    pub held_packets: u64,
    /// Packets that overtook others and were not held, because no queue was free.
    pub unheld_packets: u64,
    /// Queues of held packets that were flushed because the packets before them were overdue.
    pub late_flushes: u64,
    /// Packets of flows for which a switch's table had no entry.
    pub untracked_packets: u64,
    /// Packets sent between switches.
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
