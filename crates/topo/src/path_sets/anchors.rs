//! Anchors: switches that a packet must name so that ordinary shortest-path routing takes it along a given path.

use crate::graph::{NodeId, Topology};
use crate::path_sets::PathSets;

impl PathSets {
    /// Returns the smallest number of anchors that pin each path, in the order of [`PathSets::number`]. Anchors split
    /// a path into sections, each of which is the only shortest path between its ends. A path that is itself the only
    /// shortest one needs no anchors. The anchors pin the reverse path, too.
    pub fn anchors(&self, topology: &Topology) -> Vec<u8> {
        let mut ways = ShortestPaths { topology, from: vec![None; topology.switches().len()] };
        let of_edge = |from: usize| {
            let pairs = from * self.edges.len()..(from + 1) * self.edges.len();
            self.first_path[pairs.start] as usize..self.first_path[pairs.end] as usize
        };
        let mut anchors = Vec::with_capacity(self.first_hop.len() - 1);
        for (from, switches) in self.edges.iter().enumerate() {
            for path in of_edge(from) {
                let hops = &self.hops[self.first_hop[path] as usize..self.first_hop[path + 1] as usize];
                let first = switches[usize::from(self.ends[path][0])];
                let switches: Vec<NodeId> =
                    [first].into_iter().chain(hops.iter().map(|hop| hop.end(topology))).collect();
                anchors.push(ways.anchors(&switches));
            }
        }
        anchors
    }
}

/// Shortest paths over switches, computed from each switch on first use.
struct ShortestPaths<'a> {
    topology: &'a Topology,
    from: Vec<Option<Box<[ShortestDistance]>>>,
}

/// Shortest paths to a switch: their number of hops, and whether there is only one.
#[derive(Clone, Copy)]
struct ShortestDistance {
    hops: u32,
    is_only: bool,
}

const UNREACHABLE: ShortestDistance = ShortestDistance { hops: u32::MAX, is_only: false };

impl ShortestPaths<'_> {
    /// Returns the number of anchors of the path over these switches. Each step advances as far as possible, which
    /// needs the fewest anchors, because a section of an only shortest path is an only shortest path itself.
    fn anchors(&mut self, switches: &[NodeId]) -> u8 {
        let (mut anchors, mut at) = (0, 0);
        while at + 1 < switches.len() {
            let mut next = at + 1;
            while next + 1 < switches.len() && self.is_only(switches, at, next + 1) {
                next += 1;
            }
            if next + 1 < switches.len() {
                anchors += 1;
            }
            at = next;
        }
        anchors
    }

    /// Returns true if the section of the path between two of `switches` is the only shortest path between them.
    fn is_only(&mut self, switches: &[NodeId], from: usize, to: usize) -> bool {
        let index = |node| self.topology.switch_index(node).expect("paths lead over switches");
        let (source, target) = (index(switches[from]), index(switches[to]));
        if self.from[source].is_none() {
            self.from[source] = Some(self.explore(source));
        }
        let way = self.from[source].as_ref().map_or(UNREACHABLE, |ways| ways[target]);
        way.is_only && way.hops as usize == to - from
    }

    fn explore(&self, source: usize) -> Box<[ShortestDistance]> {
        let mut ways = vec![UNREACHABLE; self.topology.switches().len()].into_boxed_slice();
        ways[source] = ShortestDistance { hops: 0, is_only: true };
        let mut order = vec![source];
        let mut next = 0;
        while let Some(&switch) = order.get(next) {
            next += 1;
            let here = ways[switch];
            let ports = self.topology.ports(self.topology.switch_node(switch)).iter();
            for peer in ports.filter_map(|port| self.topology.switch_index(port.peer)) {
                if ways[peer].hops == u32::MAX {
                    ways[peer] = ShortestDistance { hops: here.hops + 1, is_only: here.is_only };
                    order.push(peer);
                } else if ways[peer].hops == here.hops + 1 {
                    // Another neighbour at the same distance, or a link parallel to the first.
                    ways[peer].is_only = false;
                }
            }
        }
        ways
    }
}
