//! Routing of a regular Clos by arithmetic.

use pathweave_units::HostId;

use super::NextHops;
use crate::graph::{MAX_NODES, PortRef, Topology};

/// Routes of one switch. The hosts below it form an interval, split evenly over its children. All other hosts are
/// reached by the ports up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// `ceil(2^40 / hosts_per_child)` or one more. Multiplication by it replaces a division.
    reciprocal: u64,
    first_host: u32,
    hosts_per_child: u32,
    /// Number of hosts below the switch.
    span: u32,
    down_base: u16,
    /// Number of ports to each child.
    down_bundle: u16,
    up_base: u16,
    up_count: u16,
}

const RECIPROCAL_BITS: u32 = 42;
// x * reciprocal / 2^42 is x / divisor rounded down while x * divisor < 2^42, and fits 64 bits.
const _: () = assert!(MAX_NODES.ilog2() * 2 <= RECIPROCAL_BITS);

impl Interval {
    #[inline]
    pub(super) fn next_hops(&self, dst: HostId) -> NextHops<'static> {
        let offset = dst.0.wrapping_sub(self.first_host);
        if offset < self.span {
            let child = (u64::from(offset) * self.reciprocal) >> RECIPROCAL_BITS;
            let first = self.down_base + child as u16 * self.down_bundle;
            NextHops::Range { first, count: self.down_bundle }
        } else {
            NextHops::Range { first: self.up_base, count: self.up_count }
        }
    }
}

impl From<&Interval> for super::Arithmetic {
    fn from(interval: &Interval) -> Self {
        super::Arithmetic {
            first_host: interval.first_host,
            hosts_per_child: interval.hosts_per_child,
            children: interval.span / interval.hosts_per_child,
            down_base: interval.down_base,
            down_bundle: interval.down_bundle,
            up_base: interval.up_base,
            up_count: interval.up_count,
        }
    }
}

/// Hosts below a node: the first, and their number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Below {
    first: u32,
    count: u32,
}

/// Returns the routes of every switch, or `None` if some switch does not have the required form. Checks only tiers
/// and port order. The caller must know that the paths up and down are the shortest.
pub(super) fn detect(topology: &Topology) -> Option<Vec<Interval>> {
    let one_port = |host| topology.ports(host).len() == 1;
    if !(0..topology.hosts()).all(|host| one_port(crate::graph::NodeId(host))) {
        return None;
    }
    let mut by_tier: Vec<usize> = (0..topology.switches().len()).collect();
    by_tier.sort_by_key(|&index| topology.switches()[index].tier);
    let mut found: Vec<Option<(Interval, Below)>> = vec![None; by_tier.len()];
    for index in by_tier {
        let tier = topology.switches()[index].tier;
        let below = |port: &PortRef| match topology.switch_index(port.peer) {
            None => Some(Below { first: port.peer.0, count: 1 }),
            Some(peer) if topology.switches()[peer].tier < tier => found[peer].map(|(_, below)| below),
            Some(_) => None,
        };
        let children: Vec<_> = topology.ports(topology.switch_node(index)).iter().map(below).collect();
        found[index] = Some(interval_of(&children)?);
    }
    found.into_iter().map(|entry| entry.map(|(interval, _)| interval)).collect()
}

/// Returns the routes of a switch, from the hosts below each of its ports (`None`: the port leads up).
fn interval_of(children: &[Option<Below>]) -> Option<(Interval, Below)> {
    let down_base = children.iter().position(Option::is_some)?;
    let down_count = children[down_base..].iter().take_while(|child| child.is_some()).count();
    let down_end = down_base + down_count;
    // All ports up are on one side of the ports down.
    let (up_base, up_count) = match (down_base, children.len() - down_end) {
        (0, above) => (down_end, above),
        (before, 0) => (0, before),
        _ => return None,
    };
    if children[up_base..up_base + up_count].iter().any(Option::is_some) {
        return None;
    }
    let down = &children[down_base..down_end];
    let first = down[0]?;
    let bundle = down.iter().take_while(|child| **child == Some(first)).count();
    for (i, child) in down.iter().enumerate() {
        let expected = first.first + (i / bundle) as u32 * first.count;
        if *child != Some(Below { first: expected, count: first.count }) {
            return None;
        }
    }
    if !down.len().is_multiple_of(bundle) {
        return None;
    }
    let span = first.count * (down.len() / bundle) as u32;
    let interval = Interval {
        reciprocal: (1 << RECIPROCAL_BITS) / u64::from(first.count) + 1,
        first_host: first.first,
        hosts_per_child: first.count,
        span,
        down_base: down_base as u16,
        down_bundle: bundle as u16,
        up_base: up_base as u16,
        up_count: up_count as u16,
    };
    Some((interval, Below { first: first.first, count: span }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(first: u32, count: u32) -> Option<Below> {
        Some(Below { first, count })
    }

    #[test]
    fn two_children_with_two_links_each_and_one_uplink() {
        let ports = [below(8, 4), below(8, 4), below(12, 4), below(12, 4), None];
        let (interval, all) = interval_of(&ports).unwrap();
        assert!(all == Below { first: 8, count: 8 });
        assert_eq!(interval.next_hops(HostId(11)), NextHops::Range { first: 0, count: 2 });
        assert_eq!(interval.next_hops(HostId(12)), NextHops::Range { first: 2, count: 2 });
        assert_eq!(interval.next_hops(HostId(7)), NextHops::List(&[4]));
        assert_eq!(interval.next_hops(HostId(16)), NextHops::List(&[4]));
    }

    #[test]
    fn irregular_routes_are_not_intervals() {
        for ports in [
            vec![below(0, 1), None, below(1, 1)],
            vec![below(0, 1), below(2, 1)],
            vec![below(0, 2), below(2, 1)],
            vec![below(0, 1), below(0, 1), below(1, 1)],
            vec![None, None],
            vec![None, below(0, 1), None],
        ] {
            assert!(interval_of(&ports).is_none());
        }
    }

    #[test]
    fn the_reciprocal_divides_exactly() {
        let largest = u64::from(MAX_NODES) - 1;
        for divisor in (1..2_000).chain([65_535, 65_536, 524_287, 1_000_003, largest]) {
            let reciprocal = (1u64 << RECIPROCAL_BITS) / divisor + 1;
            let multiples = (0..).map(|k| k * divisor).take_while(|&x| x <= largest).step_by(7);
            for x in multiples.flat_map(|x| [x.saturating_sub(1), x, x + 1]).chain([largest]) {
                assert_eq!((x.min(largest) * reciprocal) >> RECIPROCAL_BITS, x.min(largest) / divisor);
            }
        }
    }

    #[test]
    fn routes_of_a_switch_fit_half_a_cache_line() {
        assert!(size_of::<Interval>() <= 32, "{}", size_of::<Interval>());
    }
}
