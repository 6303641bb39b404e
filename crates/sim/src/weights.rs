//! Weights of next hops by the capacity behind them, as in WCMP (Zhou et al., "WCMP: Weighted Cost Multipathing for
//! Improved Fairness in Data Centers", EuroSys 2014). A port appears in the table as often as its weight.

use pathweave_topo::{NextHops, NodeId, Routing};
use pathweave_units::HostId;

use crate::routes::View;

/// Weights by the rate that reaches the destination's switch.
pub(crate) struct Weights<'a> {
    view: &'a View<'a>,
    most_entries: u32,
    /// Rate in bits per second that reaches a host's switch from another switch, by (host, switch). The map is never
    /// iterated, so its order cannot affect results.
    capacity: foldhash::HashMap<(HostId, NodeId), u64>,
}

impl<'a> Weights<'a> {
    pub(crate) fn new(view: &'a View<'a>, most_entries: u32) -> Self {
        Weights { view, most_entries, capacity: foldhash::HashMap::default() }
    }

    /// Returns the next hops of a switch, each repeated as often as it has shares.
    pub(crate) fn entries(
        &mut self,
        routing: &Routing,
        switch: NodeId,
        hops: NextHops<'_>,
        dst: HostId,
    ) -> Vec<u16> {
        let weights: Vec<u64> = hops.iter().map(|port| self.through(routing, switch, port, dst)).collect();
        let shares = shares(&weights, self.most_entries);
        hops.iter().zip(shares).flat_map(|(port, share)| std::iter::repeat_n(port, share as usize)).collect()
    }

    /// Returns the rate, in bits per second, that reaches the switch of `dst` by a port.
    pub(crate) fn through(&mut self, routing: &Routing, switch: NodeId, port: u16, dst: HostId) -> u64 {
        let port = self.view.topology.ports(switch)[usize::from(port)];
        (self.view.rate)(&port).as_bps().min(self.from(routing, port.peer, dst))
    }

    /// Returns the rate, in bits per second, that reaches the switch of `dst` from a node. Unlimited if the node is
    /// that switch.
    fn from(&mut self, routing: &Routing, node: NodeId, dst: HostId) -> u64 {
        let topology = self.view.topology;
        if topology.is_host(node) || topology.ports(dst.into()).iter().any(|port| port.peer == node) {
            return u64::MAX;
        }
        if let Some(&known) = self.capacity.get(&(dst, node)) {
            return known;
        }
        // Shortest paths contain no cycle, so the recursion ends.
        let through = |sum: u64, port| sum.saturating_add(self.through(routing, node, port, dst));
        let sum = routing.next_hops(node, dst).iter().fold(0, through);
        self.capacity.insert((dst, node), sum);
        sum
    }
}

/// Returns integer shares in the ratio of the weights, at most `most` in total but at least one for each weight. The
/// weights are divided by their greatest common divisor, then rounded.
fn shares(weights: &[u64], most: u32) -> Vec<u32> {
    let common = weights.iter().fold(0, |a, &b| gcd(a, b)).max(1);
    let reduced: Vec<u64> = weights.iter().map(|weight| weight / common).collect();
    let sum: u128 = reduced.iter().map(|&weight| u128::from(weight)).sum();
    if sum <= u128::from(most) {
        return reduced.into_iter().map(|weight| weight as u32).collect();
    }
    let scaled = |weight: u64| ((u128::from(weight) * u128::from(most) * 2 + sum) / (2 * sum)) as u32;
    reduced.into_iter().map(|weight| scaled(weight).max(1)).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_topo::{Build, FatTree, LeafSpine, PortRef, Topology};
    use pathweave_units::Rate;
    use std::path::Path;

    #[test]
    fn shares_by_hand() {
        assert_eq!(shares(&[100, 100, 25], 64), [4, 4, 1]);
        assert_eq!(shares(&[400, 400], 64), [1, 1]);
        assert_eq!(shares(&[7], 64), [1]);
        assert_eq!(shares(&[], 64), [] as [u32; 0]);
        // 1000 : 3 of 16 are 15.95 and 0.05.
        assert_eq!(shares(&[1_000, 3], 16), [16, 1]);
        assert_eq!(shares(&[70, 30, 33], 10), [5, 2, 2]);
    }

    /// Returns the number of times that each port of a switch appears in the entries for a host. Links named in
    /// `slow` have a quarter of their rate.
    fn of(topology: &Topology, switch: &str, dst: u32, slow: &[&str]) -> Vec<(u16, usize)> {
        let slow: Vec<_> = slow.iter().map(|name| topology.link_by_name(name).unwrap()).collect();
        let rate = |port: &PortRef| {
            let whole = topology.egress(port).rate;
            if slow.contains(&port.link) { Rate::from_bps(whole.as_bps() / 4) } else { whole }
        };
        let view = View { topology, alive: &|_| true, rate: &rate };
        let routing = Routing::compute_table(topology, &|_| true);
        let switch = topology.node_by_name(switch).unwrap();
        let hops = routing.next_hops(switch, HostId(dst));
        let entries = Weights::new(&view, 64).entries(&routing, switch, hops, HostId(dst));
        hops.iter().map(|port| (port, entries.iter().filter(|&&entry| entry == port).count())).collect()
    }

    #[test]
    fn a_slow_link_behind_a_spine_counts_as_one_before_it() {
        // Two hosts on each leaf, so uplinks are ports 2 to 4.
        let topology = LeafSpine::new(3, 3, 2).build(Path::new(".")).unwrap();
        assert_eq!(of(&topology, "leaf0", 5, &[]), [(2, 1), (3, 1), (4, 1)]);
        assert_eq!(of(&topology, "leaf0", 5, &["leaf0-spine1"]), [(2, 4), (3, 1), (4, 4)]);
        assert_eq!(of(&topology, "leaf0", 5, &["leaf2-spine1"]), [(2, 4), (3, 1), (4, 4)]);
        // The slow link is not on a route to leaf 1.
        assert_eq!(of(&topology, "leaf0", 3, &["leaf2-spine1"]), [(2, 1), (3, 1), (4, 1)]);
    }

    #[test]
    fn in_three_tiers_capacities_add_up() {
        // In a 4-ary fat tree, host 15 is in the last pod, behind tor7. One of the two core switches of agg0 has a
        // slow link to that pod.
        let topology = FatTree::k_ary(4).build(Path::new(".")).unwrap();
        let routing = Routing::compute_table(&topology, &|_| true);
        let tor = topology.node_by_name("tor0").unwrap();
        let up = routing.next_hops(tor, HostId(15)).iter().collect::<Vec<_>>();
        assert_eq!(of(&topology, "tor0", 15, &[]), [(up[0], 1), (up[1], 1)]);
        let agg = topology.ports(tor)[usize::from(up[0])].peer;
        let core = topology.ports(agg)[usize::from(routing.next_hops(agg, HostId(15)).get(0))].peer;
        let last = topology.ports(core)[usize::from(routing.next_hops(core, HostId(15)).get(0))].peer;
        let name = |node| topology.node_name(node).into_owned();
        let slow = format!("{}-{}", name(last), name(core));
        // One core switch contributes a quarter of the rate, the other all: 5 to 4 * 2. Both are limited by the
        // uplink itself, which is as fast as one of the links above.
        assert_eq!(of(&topology, "tor0", 15, &[&slow]), [(up[0], 1), (up[1], 1)]);
        assert_eq!(of(&topology, &name(agg), 15, &[&slow]).iter().map(|e| e.1).collect::<Vec<_>>(), [1, 4]);
    }
}
