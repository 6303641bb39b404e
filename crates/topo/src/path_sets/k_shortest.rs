//! The k paths with the fewest hops and without a loop.
//!
//! Hops are whole numbers, so paths are enumerated by increasing length, with a search from the source that turns
//! back if the remaining length does not suffice. Two libraries were rejected: Yen's algorithm in `pathfinding` 4.16
//! misses paths if many have equal length, which is common here, and `petgraph` returns only the lengths of paths.

use pathweave_units::mix64;

use super::config::KShortest;
use super::search::{MAX_SWITCHES, PathSearch, PathSets};
use crate::error::{TopoError, refuse};
use crate::graph::{NodeId, Topology};

const MAX_K: u32 = 256;

pub(super) fn build(config: &KShortest, plan: PathSearch<'_>) -> Result<PathSets, TopoError> {
    if !(1..=MAX_K).contains(&config.k) {
        return Err(refuse("k", config.k, format!("must be 1 to {MAX_K}")));
    }
    if config.max_extra_hops as usize > MAX_SWITCHES - 2 {
        let allowed = format!("must be 0 to {}", MAX_SWITCHES - 2);
        return Err(refuse("max_extra_hops", config.max_extra_hops, allowed));
    }
    let neighbours = neighbours(plan.topology);
    let first_switch = plan.topology.hosts();
    plan.collect(|_, ends, out| {
        let [src, dst] = ends.switches.map(|switch| switch.0 - first_switch);
        let to_dst = distances(&neighbours, dst);
        let shortest = to_dst[src as usize];
        let longest = shortest.saturating_add(config.max_extra_hops).min(MAX_SWITCHES as u32 - 1);
        let mut search = Search {
            neighbours: &neighbours,
            to_dst: &to_dst,
            dst,
            start: mix64(u64::from(src) << 32 | u64::from(dst)),
            max_paths: config.k as usize,
            path: vec![src],
            found: Vec::new(),
        };
        for hops in shortest..=longest {
            search.extend(hops);
        }
        search.found.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        for path in search.found {
            let nodes: Vec<NodeId> = path.iter().map(|switch| NodeId(first_switch + switch)).collect();
            out.path_over(&nodes);
        }
        Ok(())
    })
}

/// Search for the paths to a switch with a given number of hops.
struct Search<'a> {
    neighbours: &'a [Vec<u32>],
    to_dst: &'a [u32],
    dst: u32,
    /// Seed of the position in its list of neighbours at which the search leaves a switch. The position differs
    /// between pairs and switches. Pairs with more paths of a length than are allowed thus do not all use the same
    /// links.
    start: u64,
    max_paths: usize,
    /// Switches of the current path, from the source on.
    path: Vec<u32>,
    found: Vec<Vec<u32>>,
}

impl Search<'_> {
    /// Completes the current path in every possible way with exactly `left` more hops.
    fn extend(&mut self, left: u32) {
        let at = *self.path.last().expect("begins with the source");
        if at == self.dst {
            if left == 0 && self.found.len() < self.max_paths {
                self.found.push(self.path.clone());
            }
            return;
        }
        let peers = &self.neighbours[at as usize];
        let first = (mix64(self.start ^ u64::from(at)) % peers.len().max(1) as u64) as usize;
        for &peer in peers[first..].iter().chain(&peers[..first]) {
            if self.found.len() == self.max_paths {
                return;
            }
            if left > 0 && self.to_dst[peer as usize] < left && !self.path.contains(&peer) {
                self.path.push(peer);
                self.extend(left - 1);
                self.path.pop();
            }
        }
    }
}

/// Returns the switches linked to each switch, in ascending order and without repetition.
fn neighbours(topology: &Topology) -> Vec<Vec<u32>> {
    let of = |index: usize| {
        let ports = topology.ports(topology.switch_node(index)).iter();
        let mut peers: Vec<u32> =
            ports.filter_map(|port| topology.switch_index(port.peer)).map(|peer| peer as u32).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    };
    (0..topology.switches().len()).map(of).collect()
}

/// Returns the hops from each switch to this one, over switches only.
fn distances(neighbours: &[Vec<u32>], to: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; neighbours.len()];
    hops[to as usize] = 0;
    let mut order = vec![to as usize];
    let mut next = 0;
    while let Some(&switch) = order.get(next) {
        next += 1;
        for &peer in &neighbours[switch] {
            if hops[peer as usize] == u32::MAX {
                hops[peer as usize] = hops[switch] + 1;
                order.push(peer as usize);
            }
        }
    }
    hops
}
