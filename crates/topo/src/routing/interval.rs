//! Routing of a regular Clos by arithmetic.

use std::sync::Arc;

use pathweave_units::HostId;

use super::NextHops;
use crate::graph::{MAX_NODES, NodeId, PortRef, Topology};

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

/// Routes of all switches of a network that is one regular Clos, or several alike (planes), to each of which every host
/// has a port.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    each: Vec<Interval>,
    /// Place of each host in the order in which switches hold the hosts. Empty if that is the order of their numbers.
    places: Arc<[u32]>,
    /// Number of ports of a host. Each leads to all other hosts over equally many links.
    host_ports: u16,
}

impl Intervals {
    /// Returns the routes of a network, or `None` if some switch does not have the required form. Checks only tiers,
    /// port order and planes. The caller must know that the paths up and down are the shortest.
    pub(super) fn detect(topology: &Topology) -> Option<Self> {
        let planes = Planes::detect(topology)?;
        let host_ports = planes.count;
        for places in [Arc::from([]), places_by_switch(topology, &planes)] {
            if let Some(each) = detect(topology, &places)
                && planes.are_alike(topology, &each)
            {
                return Some(Intervals { each, places, host_ports });
            }
        }
        None
    }

    #[inline]
    pub(super) fn next_hops(&self, switch: usize, dst: HostId) -> NextHops<'static> {
        self.each[switch].next_hops(HostId(place(&self.places, dst.0)))
    }

    pub(super) fn next_hops_of_hosts(&self) -> NextHops<'static> {
        NextHops::Range { first: 0, count: self.host_ports }
    }

    pub(super) fn arithmetic(&self, switch: usize) -> super::Arithmetic {
        (&self.each[switch]).into()
    }

    pub(super) fn places(&self) -> Option<&Arc<[u32]>> {
        Some(&self.places).filter(|places| !places.is_empty())
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (size_of_val(&self.each[..]) + size_of_val(&self.places[..])) as u64
    }
}

/// Returns the place of a host, where an empty list means that hosts are in the order of their numbers.
#[inline]
fn place(places: &[u32], host: u32) -> u32 {
    places.get(host as usize).copied().unwrap_or(host)
}

/// Planes: networks of switches that only hosts join.
struct Planes {
    count: u16,
    /// Plane of each switch.
    of_switch: Vec<u16>,
}

impl Planes {
    /// Returns the planes if port p of every host leads to plane p, and every switch belongs to a plane.
    fn detect(topology: &Topology) -> Option<Self> {
        const NONE: u16 = u16::MAX;
        let first = topology.ports(NodeId(0));
        let mut of_switch = vec![NONE; topology.switches().len()];
        for (plane, port) in (0..).zip(first) {
            let begin = topology.switch_index(port.peer)?;
            if of_switch[begin] != NONE {
                return None;
            }
            of_switch[begin] = plane;
            let mut open = vec![begin];
            while let Some(switch) = open.pop() {
                let peers = topology.ports(topology.switch_node(switch)).iter();
                for peer in peers.filter_map(|port| topology.switch_index(port.peer)) {
                    if of_switch[peer] == NONE {
                        of_switch[peer] = plane;
                        open.push(peer);
                    }
                }
            }
        }
        let planes = Planes { count: first.len() as u16, of_switch };
        let attached = |host: u32| {
            let ports = topology.ports(NodeId(host));
            let plane =
                |port: &PortRef| topology.switch_index(port.peer).map(|switch| planes.of_switch[switch]);
            ports.iter().map(plane).eq((0..planes.count).map(Some))
        };
        let complete = planes.of_switch.iter().all(|plane| *plane != NONE);
        (complete && (0..topology.hosts()).all(attached)).then_some(planes)
    }

    /// Returns true if all planes have the same routes, so that all have equally long paths.
    fn are_alike(&self, topology: &Topology, each: &[Interval]) -> bool {
        let of_plane = |plane: u16| {
            let switches = topology.switches().iter().zip(each).zip(&self.of_switch);
            let own = switches.filter(move |(_, of)| **of == plane);
            own.map(|((switch, interval), _)| (switch.tier, *interval))
        };
        (1..self.count).all(|plane| of_plane(plane).eq(of_plane(0)))
    }
}

/// Returns the places of hosts that follow the switches of the first plane, and their ports.
fn places_by_switch(topology: &Topology, planes: &Planes) -> Arc<[u32]> {
    let mut places = vec![u32::MAX; topology.hosts() as usize];
    let mut next = 0;
    for switch in (0..planes.of_switch.len()).filter(|&switch| planes.of_switch[switch] == 0) {
        let peers = topology.ports(topology.switch_node(switch)).iter().map(|port| port.peer);
        for host in peers.filter_map(|peer| topology.as_host(peer)) {
            let place = &mut places[host.index()];
            if *place == u32::MAX {
                *place = next;
                next += 1;
            }
        }
    }
    places.into()
}

/// Hosts below a node: the place of the first, and their number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Below {
    first: u32,
    count: u32,
}

/// Returns the routes of every switch for this order of the hosts, or `None` if some switch does not have the required
/// form.
fn detect(topology: &Topology, places: &[u32]) -> Option<Vec<Interval>> {
    let mut by_tier: Vec<usize> = (0..topology.switches().len()).collect();
    by_tier.sort_by_key(|&index| topology.switches()[index].tier);
    let mut found: Vec<Option<(Interval, Below)>> = vec![None; by_tier.len()];
    for index in by_tier {
        let tier = topology.switches()[index].tier;
        let below = |port: &PortRef| match topology.switch_index(port.peer) {
            None => Some(Below { first: place(places, port.peer.0), count: 1 }),
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
