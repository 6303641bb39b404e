//! Distances of all nodes to one host, in hops over links that are up. Hosts do not forward. Of equally short paths,
//! those that go down and then up or across again count only where there are no others: traffic between two switches
//! does not pass through a third one of their tier as long as the tier above joins them.

use pathweave_units::HostId;

use crate::graph::{LinkId, NodeId, PortRef, Topology};
use crate::scale_up_ports::scale_up_ports;

/// Distance of a node from which the destination is unreachable.
const UNREACHED: u32 = u32::MAX;

/// Distances to a destination. Reused from one destination to the next.
pub(crate) struct Distances {
    places: Vec<Place>,
    /// Nodes in the order in which they were reached. Serves as the queue of the search.
    order: Vec<NodeId>,
    dst: NodeId,
}

/// Place of a node in the search.
#[derive(Clone, Copy)]
struct Place {
    hops: u32,
    /// Number of tiers of switches below the node: 0 for a host.
    height: u8,
    turns: Turns,
}

/// Best kind of the shortest paths from a node to the destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turns {
    /// Every path goes down and then up or across again, or there is none.
    Again,
    /// Up or across, then down.
    Once,
    /// Only down.
    Never,
}

impl Place {
    /// Returns the kind of the best shortest paths from a node of this height whose next hop is `next`.
    fn by(height: u8, next: Place) -> Turns {
        match next.turns {
            Turns::Never if next.height < height => Turns::Never,
            Turns::Never | Turns::Once if next.height >= height => Turns::Once,
            _ => Turns::Again,
        }
    }
}

impl Distances {
    pub(crate) fn new(topology: &Topology) -> Self {
        let height = |node: u32| {
            let switch = topology.switch_index(NodeId(node));
            switch.map_or(0, |index| topology.switches()[index].tier.saturating_add(1))
        };
        let place = |node| Place { hops: UNREACHED, height: height(node), turns: Turns::Again };
        let places = (0..topology.nodes()).map(place).collect();
        Distances { places, order: Vec::new(), dst: NodeId(0) }
    }

    /// Computes the distances to `dst`.
    pub(crate) fn compute(&mut self, topology: &Topology, dst: HostId, alive: &dyn Fn(LinkId) -> bool) {
        for node in self.order.drain(..) {
            let place = &mut self.places[node.index()];
            (place.hops, place.turns) = (UNREACHED, Turns::Again);
        }
        self.dst = dst.into();
        let place = &mut self.places[self.dst.index()];
        (place.hops, place.turns) = (0, Turns::Never);
        self.order.push(self.dst);
        let mut next = 0;
        while let Some(&node) = self.order.get(next) {
            next += 1;
            if topology.is_host(node) && node != self.dst {
                continue;
            }
            // All neighbours on shortest paths to the destination were visited before, so that this is final.
            let here = self.places[node.index()];
            for port in topology.ports(node).iter().filter(|port| alive(port.link)) {
                let peer = &mut self.places[port.peer.index()];
                if peer.hops == UNREACHED {
                    peer.hops = here.hops + 1;
                    self.order.push(port.peer);
                }
                if peer.hops == here.hops + 1 {
                    peer.turns = peer.turns.max(Place::by(peer.height, here));
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
        let height = self.places[node.index()].height;
        let mut least = UNREACHED;
        let mut turns = Turns::Again;
        for (index, port) in topology.ports(node).iter().enumerate() {
            let peer = self.places[port.peer.index()];
            if peer.hops == UNREACHED || peer.hops > least || !forwards(port.peer) || !usable(index, port) {
                continue;
            }
            if peer.hops < least {
                (least, turns) = (peer.hops, Turns::Again);
                ports.clear();
            }
            // Paths that turn once are as good as those that never do.
            let by = Place::by(height, peer).min(Turns::Once);
            if by > turns {
                turns = by;
                ports.clear();
            }
            if by == turns {
                ports.push(index as u16);
            }
        }
    }
}
