//! Maximum flow over a set of links from one node to another (Edmonds and Karp, J. ACM 19, 1972).

use std::collections::{BTreeMap, VecDeque};

use pathweave_units::Rate;

use crate::graph::NodeId;

/// Returns the maximum flow from `source` to `sink` over these directed links, each with its rate. Rates of parallel
/// links add up. The flow is zero if the links do not connect the nodes.
pub fn max_flow(
    links: impl IntoIterator<Item = (NodeId, NodeId, Rate)>,
    source: NodeId,
    sink: NodeId,
) -> Rate {
    let mut left: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    let mut next: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (from, to, rate) in links {
        if !left.contains_key(&(from, to)) && !left.contains_key(&(to, from)) {
            next.entry(from).or_default().push(to);
            next.entry(to).or_default().push(from);
        }
        *left.entry((from, to)).or_default() += rate.as_bps();
        left.entry((to, from)).or_default();
    }
    let mut sum = 0;
    while let Some(way) = shortest(&next, &left, source, sink) {
        let steps = || way.windows(2).map(|pair| (pair[0], pair[1]));
        let least = steps().map(|step| left[&step]).min().expect("a way has a step");
        for (from, to) in steps() {
            *left.get_mut(&(from, to)).expect("a step of the way") -= least;
            *left.get_mut(&(to, from)).expect("both directions are there") += least;
        }
        sum += least;
    }
    Rate::from_bps(sum)
}

/// Returns the nodes of a shortest path with residual capacity.
fn shortest(
    next: &BTreeMap<NodeId, Vec<NodeId>>,
    left: &BTreeMap<(NodeId, NodeId), u64>,
    source: NodeId,
    sink: NodeId,
) -> Option<Vec<NodeId>> {
    let mut before: BTreeMap<NodeId, NodeId> = BTreeMap::from([(source, source)]);
    let mut queue = VecDeque::from([source]);
    while let Some(node) = queue.pop_front() {
        if node == sink {
            let mut way = vec![sink];
            while let Some(&node) = way.last().filter(|node| **node != source) {
                way.push(before[&node]);
            }
            way.reverse();
            return Some(way);
        }
        for &peer in next.get(&node).into_iter().flatten() {
            if !before.contains_key(&peer) && left[&(node, peer)] > 0 {
                before.insert(peer, node);
                queue.push_back(peer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(links: &[(u32, u32, u64)], sink: u32) -> u64 {
        let links = links.iter().map(|&(from, to, gbps)| (NodeId(from), NodeId(to), Rate::from_gbps(gbps)));
        max_flow(links, NodeId(0), NodeId(sink)).as_bps() / 1_000_000_000
    }

    #[test]
    fn parallel_ways_add_up_and_the_narrowest_cut_counts() {
        // 100 in, two spines of 40 in parallel: 80.
        assert_eq!(flow(&[(0, 1, 100), (1, 2, 40), (1, 3, 40), (2, 4, 40), (3, 4, 40), (4, 5, 100)], 5), 80);
        // Parallel links between the same nodes.
        assert_eq!(flow(&[(0, 1, 30), (0, 1, 20), (1, 2, 100)], 2), 50);
        assert_eq!(flow(&[(0, 1, 30), (2, 3, 20)], 3), 0);
        // The classic case that needs a step back: after a path over the middle link, each side carries 10.
        assert_eq!(flow(&[(0, 1, 10), (0, 2, 10), (1, 2, 1), (1, 3, 10), (2, 3, 10)], 3), 20);
        // A wide spine with a narrow link down: 10 + 40, although each level could carry 100.
        assert_eq!(flow(&[(0, 1, 100), (1, 2, 60), (1, 3, 40), (2, 4, 10), (3, 4, 90), (4, 5, 100)], 5), 50);
    }
}
