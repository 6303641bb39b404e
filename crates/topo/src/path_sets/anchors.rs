//! Anchors: the switches a packet must be told of so that ordinary shortest-path routing takes it along a given path.

use crate::graph::{NodeId, Topology};
use crate::path_sets::PathSets;

impl PathSets {
    /// How few anchors pin each path, in the order of [`PathSets::number`]: between one anchor and the next, from the first
    /// switch to the first anchor and from the last one to the last switch, the shortest way is the only one. None where
    /// the path itself is. They pin the way back, too.
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

/// Shortest ways over switches, worked out from each switch when it is first asked for.
struct ShortestPaths<'a> {
    topology: &'a Topology,
    from: Vec<Option<Box<[Shortest]>>>,
}

/// The shortest ways to a switch: their hops, and whether there is just one.
#[derive(Clone, Copy)]
struct Shortest {
    hops: u32,
    is_only: bool,
}

const UNREACHABLE: Shortest = Shortest { hops: u32::MAX, is_only: false };

impl ShortestPaths<'_> {
    /// Anchors of the path over these switches. Going as far as possible each time takes the fewest, since what is
    /// part of an only shortest way is one itself.
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

    /// Whether the way from one of `switches` to another is the only shortest one.
    fn is_only(&mut self, switches: &[NodeId], from: usize, to: usize) -> bool {
        let index = |node| self.topology.switch_index(node).expect("paths lead over switches");
        let (source, target) = (index(switches[from]), index(switches[to]));
        if self.from[source].is_none() {
            self.from[source] = Some(self.explore(source));
        }
        let way = self.from[source].as_ref().map_or(UNREACHABLE, |ways| ways[target]);
        way.is_only && way.hops as usize == to - from
    }

    fn explore(&self, source: usize) -> Box<[Shortest]> {
        let mut ways = vec![UNREACHABLE; self.topology.switches().len()].into_boxed_slice();
        ways[source] = Shortest { hops: 0, is_only: true };
        let mut order = vec![source];
        let mut next = 0;
        while let Some(&switch) = order.get(next) {
            next += 1;
            let here = ways[switch];
            let ports = self.topology.ports(self.topology.switch_node(switch)).iter();
            for peer in ports.filter_map(|port| self.topology.switch_index(port.peer)) {
                if ways[peer].hops == u32::MAX {
                    ways[peer] = Shortest { hops: here.hops + 1, is_only: here.is_only };
                    order.push(peer);
                } else if ways[peer].hops == here.hops + 1 {
                    // Another neighbour as near, or a link parallel to the first.
                    ways[peer].is_only = false;
                }
            }
        }
        ways
    }
}
