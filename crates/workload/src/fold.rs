//! Ranks that are alike, of which one is enough.

use std::sync::Arc;

use pathweave_topo::{Symmetry, Topology};
use pathweave_units::HostId;

/// Whether workloads may leave out ranks that others stand for.
///
/// That is for runs in which ranks that the network and the job treat alike do the same at the same time: of flows that
/// are spread over all paths, not of packets, which chance tells apart.
#[derive(Clone, Debug)]
pub enum Fold {
    /// They may not, because of this.
    Never(String),
    /// They do where the whole is large: above [`Fold::LARGE`].
    Large(Arc<Topology>),
    /// They do, or it is an error.
    Always(Arc<Topology>),
}

impl Fold {
    /// Messages and computations of a whole that is large.
    pub const LARGE: u64 = 1 << 22;
}

/// The smallest step by which so many things, taken in a circle, can take each other's place, of those that divide their number;
/// and how the network is exchanged then. `symmetry` tells that of a step, where nothing is changed by it.
pub(crate) fn smallest_step(
    things: usize,
    symmetry: impl Fn(usize) -> Option<Symmetry>,
) -> Option<(usize, Symmetry)> {
    (1..things).filter(|by| things.is_multiple_of(*by)).find_map(|by| Some((by, symmetry(by)?)))
}

/// Which hosts the hosts of a graph stand for.
///
/// Symmetries of the network carry the whole workload over to itself. The graph has the tasks of one host of each set of
/// hosts that they carry to each other, its *representative*. A message goes from a representative to the very host that
/// it is for; what that host would do then, its own representative does. So dependencies in such a graph name the moment
/// that they wait for, delivery or completion, and are always at the host that knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folding {
    pub(crate) representative: Vec<HostId>,
    pub(crate) symmetries: Vec<Symmetry>,
    pub(crate) order: u32,
}

impl Folding {
    /// The host of the graph that stands for a host; that one itself where none other does.
    pub fn representative(&self, host: HostId) -> HostId {
        self.representative[host.index()]
    }
    /// What the workload is unchanged by; all others follow from these.
    pub fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }
    /// How many ranks each one of the graph stands for, itself included: the number of all symmetries.
    pub fn order(&self) -> u32 {
        self.order
    }
}
