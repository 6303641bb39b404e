//! Distances to one host, in hops over living links. Hosts forward nothing.

use pathweave_units::HostId;

use crate::graph::{LinkId, NodeId, Topology};

/// No way there.
pub(crate) const UNREACHED: u32 = u32::MAX;

/// Distances and numbers of shortest paths to a destination. Reused from one destination to the next.
pub(crate) struct Distances {
    hops: Vec<u32>,
    paths: Vec<u64>,
    /// Nodes in the order they were reached; doubles as the queue.
    order: Vec<NodeId>,
    dst: NodeId,
}

impl Distances {
    pub(crate) fn new(topology: &Topology) -> Self {
        let nodes = topology.nodes() as usize;
        Distances { hops: vec![UNREACHED; nodes], paths: vec![0; nodes], order: Vec::new(), dst: NodeId(0) }
    }

    /// Computes the distances to `dst`.
    pub(crate) fn fill(&mut self, topology: &Topology, dst: HostId, alive: &dyn Fn(LinkId) -> bool) {
        for node in self.order.drain(..) {
            self.hops[node.index()] = UNREACHED;
            self.paths[node.index()] = 0;
        }
        self.dst = dst.into();
        self.hops[self.dst.index()] = 0;
        self.paths[self.dst.index()] = 1;
        self.order.push(self.dst);
        let mut next = 0;
        while let Some(&node) = self.order.get(next) {
            next += 1;
            if topology.is_host(node) && node != self.dst {
                continue;
            }
            let hops = self.hops[node.index()] + 1;
            let paths = self.paths[node.index()];
            for port in topology.ports(node).iter().filter(|port| alive(port.link)) {
                let peer = port.peer.index();
                if self.hops[peer] == UNREACHED {
                    self.hops[peer] = hops;
                    self.order.push(port.peer);
                }
                if self.hops[peer] == hops {
                    self.paths[peer] = self.paths[peer].saturating_add(paths);
                }
            }
        }
    }

    /// Hops from `node` to the destination; [`UNREACHED`] if there is no way.
    pub(crate) fn hops(&self, node: NodeId) -> u32 {
        self.hops[node.index()]
    }
    /// Number of shortest paths from `node`, parallel links counted; saturates.
    pub(crate) fn paths(&self, node: NodeId) -> u64 {
        self.paths[node.index()]
    }

    /// The living ports of `node` on shortest paths, ascending. A host that is not the destination leads
    /// nowhere.
    pub(crate) fn next_hops(
        &self,
        topology: &Topology,
        node: NodeId,
        alive: &dyn Fn(LinkId) -> bool,
        ports: &mut Vec<u16>,
    ) {
        ports.clear();
        let forwards = |peer: NodeId| peer == self.dst || !topology.is_host(peer);
        let mut least = UNREACHED;
        for (p, port) in topology.ports(node).iter().enumerate() {
            let hops = self.hops[port.peer.index()];
            if hops == UNREACHED || hops > least || !forwards(port.peer) || !alive(port.link) {
                continue;
            }
            if hops < least {
                least = hops;
                ports.clear();
            }
            ports.push(p as u16);
        }
    }
}
