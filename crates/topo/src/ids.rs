//! Numbers of nodes and links.

use std::fmt;

use pathweave_units::HostId;

/// Host or switch. Hosts are `0..hosts`, switches follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

/// Link, by its index in [`Topology::links`](crate::Topology::links).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LinkId(pub u32);

impl NodeId {
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl LinkId {
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl From<HostId> for NodeId {
    fn from(host: HostId) -> Self {
        NodeId(host.0)
    }
}
impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({})", self.0)
    }
}
impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkId({})", self.0)
    }
}
