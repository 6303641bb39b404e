//! Distances of all nodes to one host, in hops over links that are up. Hosts do not forward.

use pathweave_units::HostId;

use crate::graph::{LinkId, NodeId, PortRef, Topology};
use crate::scale_up_ports::scale_up_ports;

/// Distance of a node from which the destination is unreachable.
const UNREACHED: u32 = u32::MAX;

/// Distances to a destination. Reused from one destination to the next.
pub(crate) struct Distances {
    hops: Vec<u32>,
    /// Nodes in the order in which they were reached. Serves as the queue of the search.
    order: Vec<NodeId>,
    dst: NodeId,
}

impl Distances {
    pub(crate) fn new(topology: &Topology) -> Self {
        let hops = vec![UNREACHED; topology.nodes() as usize];
        Distances { hops, order: Vec::new(), dst: NodeId(0) }
    }

    /// Computes the distances to `dst`.
    pub(crate) fn compute(&mut self, topology: &Topology, dst: HostId, alive: &dyn Fn(LinkId) -> bool) {
        for node in self.order.drain(..) {
            self.hops[node.index()] = UNREACHED;
        }
        self.dst = dst.into();
        self.hops[self.dst.index()] = 0;
        self.order.push(self.dst);
        let mut next = 0;
        while let Some(&node) = self.order.get(next) {
            next += 1;
            if topology.is_host(node) && node != self.dst {
                continue;
            }
            let hops = self.hops[node.index()] + 1;
            for port in topology.ports(node).iter().filter(|port| alive(port.link)) {
                let peer = port.peer.index();
                if self.hops[peer] == UNREACHED {
                    self.hops[peer] = hops;
                    self.order.push(port.peer);
                }
            }
        }
    }

    /// Returns the nodes in order of their distance.
    pub(crate) fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// Stores in `ports` the ports of `node` that are up and on shortest paths, in ascending order. A host other than
    /// the destination is not on any path. Hosts of one scale-up network take the shortest paths inside it as long as
    /// there are any, even if others are shorter.
    pub(crate) fn next_hops(
        &self,
        topology: &Topology,
        node: NodeId,
        alive: &dyn Fn(LinkId) -> bool,
        ports: &mut Vec<u16>,
    ) {
        if let Some(src) = topology.as_host(node) {
            let inside = scale_up_ports(topology, src, HostId(self.dst.0));
            if inside != 0 {
                self.nearest(
                    topology,
                    node,
                    &|index, port| inside >> index & 1 == 1 && alive(port.link),
                    ports,
                );
                if !ports.is_empty() {
                    return;
                }
            }
        }
        self.nearest(topology, node, &|_, port| alive(port.link), ports);
    }

    /// Stores in `ports` those ports of `node`, among the usable ones, whose peers are nearest.
    fn nearest(
        &self,
        topology: &Topology,
        node: NodeId,
        usable: &dyn Fn(usize, &PortRef) -> bool,
        ports: &mut Vec<u16>,
    ) {
        ports.clear();
        let forwards = |peer: NodeId| peer == self.dst || !topology.is_host(peer);
        let mut least = UNREACHED;
        for (index, port) in topology.ports(node).iter().enumerate() {
            let hops = self.hops[port.peer.index()];
            if hops == UNREACHED || hops > least || !forwards(port.peer) || !usable(index, port) {
                continue;
            }
            if hops < least {
                least = hops;
                ports.clear();
            }
            ports.push(index as u16);
        }
    }
}
