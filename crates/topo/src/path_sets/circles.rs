//! Whether switches that know next hops only, and not what path a packet is on, could send it in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::PathSets;
use crate::graph::{NodeId, Topology};

impl PathSets {
    /// Two edges whose paths, taken hop by hop and mixed, could lead in a circle, and a switch on it. No path does so by
    /// itself; but where one goes from `a` over `b` to `c` and another from `a` over `c` to `b`, a packet may go to and fro.
    pub fn next_hops_in_a_circle(&self, topology: &Topology) -> Option<(NodeId, NodeId, NodeId)> {
        let edges = self.edges().len() as u32;
        let mut pairs = (0..edges).flat_map(|from| (0..edges).map(move |to| (from, to)));
        pairs.find_map(|(from, to)| {
            let at = self.circle(topology, from, to)?;
            Some((self.edges()[from as usize][0], self.edges()[to as usize][0], at))
        })
    }

    /// A switch on a circle of the next hops from one edge to another, if there is one.
    fn circle(&self, topology: &Topology, from: u32, to: u32) -> Option<NodeId> {
        // Two paths at least make a circle.
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
        // A node without predecessors is in no circle; the same then holds for those that only it led to.
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
