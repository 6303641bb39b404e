//! Output of the fabric: results of single events for the driver, and a log of rare events.

use pathweave_units::{HostId, Time};

use crate::packet::{Header, PortId};

/// Result of an arrival.
#[derive(Debug)]
pub enum Step {
    /// The driver has nothing to do.
    Done,
    /// An intact packet has reached its host.
    Delivered {
        /// The receiving host.
        host: HostId,
        /// The NIC port at which it arrived.
        port: PortId,
        /// The packet. Read it with [`Fabric::delivered`](crate::Fabric::delivered), then free it with
        /// [`Fabric::take`](crate::Fabric::take) or [`Fabric::discard`](crate::Fabric::discard).
        packet: Arrived,
    },
    /// A pause of a NIC port has ended: the host may send again.
    Resumed {
        /// The host that was paused.
        host: HostId,
        /// The NIC port that was paused.
        port: PortId,
    },
}

/// A delivered packet, still in the fabric's memory.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a delivered packet must be handed back"]
pub struct Arrived(pub(crate) Header);

/// Reason for the loss of a packet.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub enum DropReason {
    /// The switch's buffer had no room.
    Buffer,
    /// The packet was to be trimmed, and its header did not fit either.
    HeaderQueue,
    /// The link was down.
    LinkDown,
    /// The link lost the packet at random.
    Loss,
    /// The packet arrived with a bad checksum.
    Corruption,
    /// The switch has no route to the destination.
    NoRoute,
    /// The packet passed more switches than any route has: a loop.
    Loop,
}

/// A rare event, for the log.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct FabricEvent<P> {
    /// Time of the event.
    pub time: Time,
    /// Port at which the event happened.
    pub port: PortId,
    /// The kind of event.
    pub kind: FabricEventKind<P>,
}

impl<P> FabricEvent<P> {
    /// Returns the number of switches that a lost packet had passed; 0 for other events.
    pub fn hops(&self) -> u8 {
        match &self.kind {
            FabricEventKind::Dropped { header, .. } => header.hops(),
            FabricEventKind::Paused(_) | FabricEventKind::Resumed(_) => 0,
        }
    }
}

/// Kinds of rare events.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub enum FabricEventKind<P> {
    /// A packet was lost at this egress port.
    Dropped {
        /// Reason for the loss.
        reason: DropReason,
        /// Header of the packet.
        header: Header,
        /// Content of the packet.
        content: P,
    },
    /// The peer paused this class of the port.
    Paused(u8),
    /// The peer ended the pause of this class.
    Resumed(u8),
}
