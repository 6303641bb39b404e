//! Longest of the paths between two hosts, for which windows and targets of some schemes are made.

use std::collections::BTreeMap;

use pathweave_topo::{NodeId, Routing, Topology, leading_ports};
use pathweave_units::{Duration, HostId};

use crate::chosen_routes::ChosenRoutes;
use crate::paths::{MAX_LINKS_OF_A_WAY, PathProfile};

/// Wire bytes of a full packet and of an acknowledgement.
pub(crate) type FullAndAck = (u32, u32);

impl ChosenRoutes {
    /// Returns the longest round trip of a full packet and its acknowledgement on idle paths between two hosts. `profiles`
    /// are those of [`ChosenRoutes::profiles`]. `None` if there is no route.
    pub(crate) fn longest_round_trip(
        &self,
        topology: &Topology,
        (src, dst): (HostId, HostId),
        profiles: &[PathProfile],
        (full, ack): FullAndAck,
    ) -> Option<Duration> {
        let of_profiles = profiles.iter().map(|path| path.round_trip(full, ack)).max()?;
        let ChosenRoutes::Switches(routing) = self else { return Some(of_profiles) };
        let out = leading_ports(topology, routing, src, dst);
        if topology.has_alike_paths(routing, (src, dst), out) {
            return Some(of_profiles);
        }
        Some(longest(topology, routing, (src, dst), out, (full, ack)).unwrap_or(of_profiles))
    }
}

/// Returns the longest round trip over the paths of fewest links from these ports of `src`.
fn longest(
    topology: &Topology,
    routing: &Routing,
    (src, dst): (HostId, HostId),
    out: u64,
    (full, ack): FullAndAck,
) -> Option<Duration> {
    let mut here = BTreeMap::from([(NodeId::from(src), Duration::ZERO)]);
    let mut longest = None;
    for level in 0..MAX_LINKS_OF_A_WAY {
        let mut next: BTreeMap<NodeId, Duration> = BTreeMap::new();
        for (node, taken) in here {
            let ports = routing.from_node(node, dst).iter().filter(|port| level > 0 || out >> port & 1 == 1);
            for port in ports.map(|port| topology.ports(node)[usize::from(port)]) {
                let link = topology.egress(&port);
                let transmission = link.rate.time_for(u64::from(full)) + link.rate.time_for(u64::from(ack));
                let there = next.entry(port.peer).or_default();
                *there = (*there).max(taken + transmission + link.delay * 2);
            }
        }
        longest = longest.max(next.remove(&NodeId::from(dst)));
        here = next;
        if here.is_empty() {
            break;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use pathweave_topo::{Link, Switch};
    use pathweave_units::Rate;

    use super::*;
    use crate::config::NetworkConfig;
    use crate::spec::RouteChoice;

    /// Two hosts behind leaves, joined by spines of 100 Gb/s with these delays in microseconds, and by one of 40 Gb/s and 1 us.
    fn fabric(delays_us: &[u64]) -> Topology {
        let link = |a, b, gbps, us| Link {
            a: NodeId(a),
            b: NodeId(b),
            rate: Rate::from_gbps(gbps),
            delay: Duration::from_us(us),
            error_rate: 0.0,
        };
        let spines: Vec<(u64, u64)> = delays_us.iter().map(|us| (100, *us)).chain([(40, 1)]).collect();
        let switch = |tier| Switch { name: format!("tier{tier}"), tier, group: None };
        let name = |(index, switch): (usize, Switch)| Switch { name: format!("s{index}"), ..switch };
        let switches = [0, 0].into_iter().chain(spines.iter().map(|_| 1)).map(switch).enumerate().map(name);
        let hosts = [link(0, 2, 100, 1), link(1, 3, 100, 1)];
        let up = (2..4)
            .flat_map(|leaf| (4..).zip(&spines).map(move |(spine, &(gbps, us))| link(leaf, spine, gbps, us)));
        Topology::new("unequal", 2, switches.collect(), hosts.into_iter().chain(up).collect())
            .expect("a leaf-spine")
    }

    fn longest_ps(delays_us: &[u64]) -> u64 {
        let topology = fabric(delays_us);
        let routes = ChosenRoutes::whole(&topology, &RouteChoice::Switches, &NetworkConfig::default());
        let pair = (HostId(0), HostId(1));
        let profiles = routes.profiles(&topology, pair.0, pair.1);
        let rtt = routes.longest_round_trip(&topology, pair, &profiles, (4_000, 100));
        rtt.expect("a route").as_ps()
    }

    /// A packet of 4,000 bytes and its acknowledgement of 100 take 328 ns a link of 100 Gb/s, 820 ns one of 40 Gb/s.
    #[test]
    fn the_longest_path_counts_whether_its_links_are_far_or_slow() {
        // 2 x (1 + 4 + 4 + 1) us, and four links of 328 ns.
        assert_eq!(longest_ps(&[1, 4]), 20_000_000 + 4 * 328_000);
        assert_eq!(longest_ps(&[4, 1]), longest_ps(&[1, 4]));
        // The spine of 40 Gb/s: 2 x 4 us, two links of 328 ns and two of 820 ns.
        assert_eq!(longest_ps(&[1, 1]), 8_000_000 + 2 * 328_000 + 2 * 820_000);
    }
}
