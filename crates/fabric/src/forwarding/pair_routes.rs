//! Next hops by pair: at each switch those that the explicit paths of a packet's source and destination take there.
//!
//! Hosts of one switch have the same paths up to the last hop, so that sets are kept for pairs of *edges* (switches with
//! hosts), and at each switch for those whose paths pass it.

use std::sync::Arc;

use pathweave_units::HostId;

use super::routes::Candidates;
use crate::packet::PortId;

/// Where packets that go from one edge to another may leave a switch.
#[derive(Clone, Debug)]
pub struct PairRoutes {
    /// Edge of each host.
    edge_of: Arc<[u32]>,
    edges: u32,
    /// Hosts at this switch, ascending, with the port that leads to each.
    attached: Vec<(HostId, PortId)>,
    /// Pairs whose paths pass here, ascending: first edge times the number of edges, plus the second.
    pairs: Vec<u32>,
    /// Ports of pair `pairs[i]` are `ports[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    ports: Vec<PortId>,
}

impl PairRoutes {
    /// Routes of a switch with these hosts, in ascending order, and no pairs yet.
    pub fn new(edge_of: Arc<[u32]>, edges: u32, attached: Vec<(HostId, PortId)>) -> Self {
        debug_assert!(attached.is_sorted_by_key(|(host, _)| *host));
        PairRoutes { edge_of, edges, attached, pairs: Vec::new(), first: vec![0], ports: Vec::new() }
    }

    /// Packets from the first edge to the second may leave by this port. Pairs come in ascending order; a port that
    /// several paths of a pair take counts once.
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

    /// The ports for a packet; none where none of its paths passes here.
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
        // Hosts 0 and 1 at edges 0 and 1, host 2 at edge 2, which is this switch.
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
