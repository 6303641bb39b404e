//! Next hops by pair: at each switch, the ports that the explicit paths of a packet's source and destination take
//! there.
//!
//! Hosts of one switch have the same paths up to the last hop. Sets are therefore kept for pairs of *edges* (switches
//! with hosts), and at each switch only for the pairs whose paths pass it.

use std::sync::Arc;

use pathweave_units::HostId;

use super::routes::Candidates;
use crate::packet::PortId;

/// Routes of one switch for packets from one edge to another.
#[derive(Clone, Debug)]
pub struct PairRoutes {
    /// Edge of each host.
    edge_of: Arc<[u32]>,
    edges: u32,
    /// Hosts of this switch, ascending, each with the port that leads to it.
    attached: Vec<(HostId, PortId)>,
    /// Pairs whose paths pass this switch, ascending. The number of a pair is its first edge times the number of
    /// edges, plus its second edge.
    pairs: Vec<u32>,
    /// Ports of pair `pairs[i]` are `ports[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    ports: Vec<PortId>,
}

impl PairRoutes {
    /// Creates the routes of a switch with these hosts, in ascending order, and no pairs yet.
    pub fn new(edge_of: Arc<[u32]>, edges: u32, attached: Vec<(HostId, PortId)>) -> Self {
        debug_assert!(attached.is_sorted_by_key(|(host, _)| *host));
        PairRoutes { edge_of, edges, attached, pairs: Vec::new(), first: vec![0], ports: Vec::new() }
    }

    /// Adds a port by which packets from the first edge to the second may leave. Pairs must be added in ascending
    /// order. A port that several paths of a pair take counts once.
    pub fn add(&mut self, (from, to): (u32, u32), port: PortId) {
        let pair = from * self.edges + to;
        match self.pairs.last() {
            Some(&last) if last == pair => {
                let begin = self.first[self.first.len() - 2] as usize;
                if self.ports[begin..].contains(&port) {
                    return;
                }
            }
            last => {
                assert!(last.is_none_or(|&last| last < pair), "pairs come in ascending order");
                self.pairs.push(pair);
                self.first.push(self.ports.len() as u32);
            }
        }
        self.ports.push(port);
        let end = self.first.last_mut().expect("there is the end of the last pair");
        *end = u32::try_from(self.ports.len()).expect("fewer than 2^32 next hops at a switch");
    }

    /// Returns the ports for a packet; none if none of its paths passes this switch.
    pub(crate) fn candidates(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        if let Ok(host) = self.attached.binary_search_by_key(&dst, |(host, _)| *host) {
            return Candidates::Range(self.attached[host].1, 1);
        }
        let pair = self.edge_of[src.index()] * self.edges + self.edge_of[dst.index()];
        match self.pairs.binary_search(&pair) {
            Ok(i) => Candidates::List(&self.ports[self.first[i] as usize..self.first[i + 1] as usize]),
            Err(_) => Candidates::List(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_counts_once_for_a_pair_however_many_paths_take_it() {
        // Hosts 0 and 1 at edges 0 and 1. Host 2 at edge 2, which is this switch.
        let mut routes = PairRoutes::new(Arc::from([0, 1, 2]), 3, vec![(HostId(2), 40)]);
        for (pair, port) in [((0, 1), 41), ((0, 1), 42), ((0, 1), 42), ((0, 1), 41), ((2, 1), 43)] {
            routes.add(pair, port);
        }
        let ports = |src, dst| routes.candidates(HostId(src), HostId(dst)).iter().collect::<Vec<_>>();
        assert_eq!(ports(0, 1), [41, 42]);
        assert_eq!(ports(2, 1), [43]);
        assert!(ports(1, 0).is_empty(), "no path of this pair passes here");
        assert_eq!([ports(0, 2), ports(1, 2)], [[40], [40]], "to the host itself");
    }
}
