//! What the fabric reports: steps to the driver, and a log of what is rare.

use pathweave_units::{HostId, Time};

use crate::packet::{Header, PortId};

/// What came of an event.
#[derive(Debug)]
pub enum Step {
    /// Nothing the driver must act on.
    Done,
    /// A packet has reached its host, intact, by this NIC port.
    Delivered {
        /// The host.
        host: HostId,
        /// Its port.
        port: PortId,
        /// The packet: look at it with [`Fabric::delivered`](crate::Fabric::delivered), then hand it back with
        /// [`Fabric::take`](crate::Fabric::take) or [`Fabric::discard`](crate::Fabric::discard).
        packet: Arrived,
    },
    /// A pause on this NIC port has ended: the host may send again.
    Resumed {
        /// The host.
        host: HostId,
        /// Its port.
        port: PortId,
    },
}

/// A delivered packet, still in the fabric's memory.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a delivered packet must be handed back"]
pub struct Arrived(pub(crate) Header);

/// Why a packet was lost.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub enum DropReason {
    /// The switch's buffer had no room.
    Buffer,
    /// It was to be trimmed, and there was no room even for its header.
    HeaderQueue,
    /// Its link was down.
    LinkDown,
    /// The link lost it at random.
    Loss,
    /// It arrived with a bad checksum.
    Corruption,
    /// The switch knows no way to its destination.
    NoRoute,
    /// It passed more switches than any route has: a loop.
    Loop,
}

/// Something rare enough to keep.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct FabricEvent<P> {
    /// When.
    pub time: Time,
    /// At which port.
    pub port: PortId,
    /// What.
    pub kind: FabricEventKind<P>,
}

impl<P> FabricEvent<P> {
    /// Switches that a lost packet had passed; of others 0.
    pub fn hops(&self) -> u8 {
        match &self.kind {
            FabricEventKind::Dropped { header, .. } => header.hops(),
            FabricEventKind::Paused(_) | FabricEventKind::Resumed(_) => 0,
        }
    }
}

/// The kinds of rare event.
#[derive(Clone, Copy, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub enum FabricEventKind<P> {
    /// A packet was lost at this egress port.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The packet as the fabric saw it.
        header: Header,
        /// What it carried.
        content: P,
    },
    /// The neighbour paused this port's class.
    Paused(u8),
    /// The neighbour ended the pause.
    Resumed(u8),
}
