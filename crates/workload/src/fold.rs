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

/// Reason why no rank of a job represents another.
pub(crate) const NOTHING_SYMMETRIC: &str = "no exchange of tensor ranks or of data-parallel replicas leaves both the network and all collectives as they are";

/// Returns the symmetry of the network that moves the host of each rank to the host of rank `to(rank)`, or `None` if the
/// network is changed by it. `hosts` has the host of each rank. Other hosts stay.
pub(crate) fn symmetry_of(
    topology: &Topology,
    hosts: &[u32],
    to: impl Fn(usize) -> usize,
) -> Option<Automorphism> {
    let mut image: Vec<u32> = (0..topology.hosts()).collect();
    for (rank, &host) in hosts.iter().enumerate() {
        image[host as usize] = hosts[to(rank)];
    }
    Automorphism::of_hosts(topology, &image)
}

/// Ranks (GPUs) that are simulated. Each represents the ranks that are symmetric to it.
pub(crate) struct Representatives {
    /// Representative of each rank.
    representative: Vec<usize>,
    /// Number of ranks that each simulated rank represents.
    order: usize,
}

impl Representatives {
    /// Creates the set from the representative of each rank, and the number of ranks that each represents.
    pub(crate) fn new(representative: Vec<usize>, order: usize) -> Self {
        Representatives { representative, order }
    }
    /// Returns the trivial case, in which each rank represents itself only.
    pub(crate) fn none(ranks: usize) -> Self {
        Representatives { representative: (0..ranks).collect(), order: 1 }
    }
    pub(crate) fn order(&self) -> usize {
        self.order
    }
    pub(crate) fn representative(&self, rank: usize) -> usize {
        self.representative[rank]
    }
    pub(crate) fn is_simulated(&self, rank: usize) -> bool {
        self.representative[rank] == rank
    }

    /// Returns the folding of a network by these ranks. `hosts` has the host of each rank. Other hosts represent
    /// themselves.
    pub(crate) fn folding(
        &self,
        topology: &Topology,
        hosts: &[u32],
        symmetries: Vec<Automorphism>,
    ) -> Folding {
        let mut representative: Vec<HostId> = (0..topology.hosts()).map(HostId).collect();
        for (rank, &host) in hosts.iter().enumerate() {
            representative[host as usize] = HostId(hosts[self.representative(rank)]);
        }
        Folding { representative, symmetries, order: self.order as u32 }
    }
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
