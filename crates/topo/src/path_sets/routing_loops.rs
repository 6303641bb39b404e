//! Detection of routing circles: switches that know only next hops, and not the path of a packet, could forward it in
//! a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::search::PathSets;
use crate::graph::{NodeId, Topology};

impl PathSets {
    /// Returns two edges whose paths could form a circle if switches mix their next hops, and a switch on the circle.
    /// No single path does. But if one path goes from `a` over `b` to `c` and another from `a` over `c` to `b`,
    /// switches may forward a packet back and forth.
    pub fn find_next_hop_loop(&self, topology: &Topology) -> Option<(NodeId, NodeId, NodeId)> {
        let edges = self.edges().len() as u32;
        let mut pairs = (0..edges).flat_map(|from| (0..edges).map(move |to| (from, to)));
        pairs.find_map(|(from, to)| {
            let at = self.next_hop_loop(topology, from, to)?;
            Some((self.edges()[from as usize][0], self.edges()[to as usize][0], at))
        })
    }

    /// Returns a switch on a circle of the next hops from one edge to another, if there is one.
    fn next_hop_loop(&self, topology: &Topology, from: u32, to: u32) -> Option<NodeId> {
        // A circle needs at least two paths.
        if self.between_edges(from, to).len() < 2 {
            return None;
        }
        let mut next: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        let mut before: BTreeMap<NodeId, u32> = BTreeMap::new();
        for hop in self.between_edges(from, to).flatten() {
            let (begin, end) = (hop.reversed().end(topology), hop.end(topology));
            before.entry(begin).or_default();
            if next.entry(begin).or_default().insert(end) {
                *before.entry(end).or_default() += 1;
            }
        }
        // A node without predecessors is on no circle. Removing it may leave its successors without predecessors.
        let mut free: Vec<NodeId> =
            before.iter().filter(|(_, count)| **count == 0).map(|(&at, _)| at).collect();
        while let Some(at) = free.pop() {
            before.remove(&at);
            for after in next.get(&at).into_iter().flatten() {
                let count = before.get_mut(after).expect("it has one before it that was left");
                *count -= 1;
                if *count == 0 {
                    free.push(*after);
                }
            }
        }
        before.into_keys().next()
    }
}
