//! Folding: the graph omits ranks that behave exactly like others.

use std::sync::Arc;

use pathweave_topo::{Automorphism, Topology};
use pathweave_units::HostId;

/// Permission for workloads to omit ranks that other ranks represent.
///
/// Folding fits runs in which ranks that are symmetric in network and job do the same at the same time. That
/// is the case for flows spread over all paths, but not for packets, because random choices differ between
/// ranks.
#[derive(Clone, Debug)]
pub enum Fold {
    /// Folding is not allowed, for this reason.
    Never(String),
    /// Workloads fold if they are larger than [`Fold::LARGE`].
    Large(Arc<Topology>),
    /// Workloads fold, or fail.
    Always(Arc<Topology>),
}

impl Fold {
    /// Number of messages and computations above which a workload is large.
    pub const LARGE: u64 = 1 << 22;
}

/// Returns the smallest rotation step that leaves a circle of `things` unchanged, and the symmetry of the
/// network for it. Only steps that divide `things` are tried. `symmetry` returns the symmetry of a step, or
/// `None` if the step changes something.
pub(crate) fn smallest_step(
    things: usize,
    symmetry: impl Fn(usize) -> Option<Automorphism>,
) -> Option<(usize, Automorphism)> {
    (1..things).filter(|by| things.is_multiple_of(*by)).find_map(|by| Some((by, symmetry(by)?)))
}

/// Mapping of all hosts to the hosts of a folded graph.
///
/// Symmetries of the network map the whole workload to itself. The graph has the tasks of one host of each
/// orbit, its *representative*. A message goes from a representative to its real destination. The tasks that
/// would follow there are tasks of the destination's representative. Therefore a dependency in such a graph
/// names its moment, delivery or completion, and is always at the host that observes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folding {
    pub(crate) representative: Vec<HostId>,
    pub(crate) symmetries: Vec<Automorphism>,
    pub(crate) order: u32,
}

impl Folding {
    /// Returns the host of the graph that represents a host. A host without another representative represents
    /// itself.
    pub fn representative(&self, host: HostId) -> HostId {
        self.representative[host.index()]
    }
    /// Returns generators of the group of symmetries that leave the workload unchanged.
    pub fn symmetries(&self) -> &[Automorphism] {
        &self.symmetries
    }
    /// Returns the number of ranks that each rank of the graph represents, itself included. It equals the
    /// number of all symmetries.
    pub fn order(&self) -> u32 {
        self.order
    }
}
