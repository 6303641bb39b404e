//! All paths with the fewest hops. Paths are counted, so that the r-th path is found without enumerating the others.

use pathweave_units::HostId;

use super::config::AllShortest;
use super::own::{evenly_spaced, max_paths};
use super::search::{Hop, PathSearch, PathSets};
use crate::bfs::Distances;
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};

pub(super) fn build(config: &AllShortest, plan: PathSearch<'_>) -> Result<PathSets, TopoError> {
    let max = max_paths(config.max_paths)?;
    let mut towards = ShortestPathCounts::new(plan.topology);
    let mut filled = None;
    plan.collect(|plan, ends, out| {
        let [from, to] = ends.switches;
        // Paths are found from their far end, so one search serves all paths that begin at `from`.
        if filled != Some((ends.edges[0], from)) {
            towards.fill(plan.topology, from, plan.host_at[ends.edges[0]]);
            filled = Some((ends.edges[0], from));
        }
        for rank in evenly_spaced(towards.count(to), max) {
            let back = towards.path(plan.topology, to, rank);
            out.path(back.iter().rev().map(|hop| hop.reversed()));
        }
        Ok(())
    })
}

/// Distances to a switch, and the number of shortest paths to it from each node.
struct ShortestPathCounts {
    distances: Distances,
    dst: NodeId,
    counts: Vec<u64>,
}

impl ShortestPathCounts {
    fn new(topology: &Topology) -> Self {
        let counts = vec![0; topology.nodes() as usize];
        ShortestPathCounts { distances: Distances::new(topology), dst: NodeId(0), counts }
    }

    fn fill(&mut self, topology: &Topology, dst: NodeId, host_there: HostId) {
        self.dst = dst;
        self.distances.compute(topology, host_there, &|_| true);
        self.counts.fill(0);
        self.counts[dst.index()] = 1;
        let mut ports = Vec::new();
        for &node in self.distances.order() {
            if topology.is_host(node) || node == dst {
                continue;
            }
            self.distances.next_hops(topology, node, &|_| true, &mut ports);
            let next = ports.iter().map(|&port| topology.ports(node)[usize::from(port)].peer);
            self.counts[node.index()] =
                next.fold(0, |sum: u64, peer| sum.saturating_add(self.counts[peer.index()]));
        }
    }

    fn count(&self, from: NodeId) -> u64 {
        self.counts[from.index()]
    }

    /// Returns the path of a rank below [`ShortestPathCounts::count`].
    fn path(&self, topology: &Topology, from: NodeId, mut rank: u64) -> Vec<Hop> {
        let (mut path, mut ports, mut node) = (Vec::new(), Vec::new(), from);
        while node != self.dst {
            self.distances.next_hops(topology, node, &|_| true, &mut ports);
            for &port in &ports {
                let port = &topology.ports(node)[usize::from(port)];
                let behind = self.counts[port.peer.index()];
                if rank < behind {
                    path.push(Hop::out_of_port(port));
                    node = port.peer;
                    break;
                }
                rank -= behind;
            }
        }
        path
    }
}
