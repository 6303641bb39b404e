//! Routes: sets of equal-cost egress ports by destination.

use std::sync::Arc;

use pathweave_units::{HostId, PathId, mix64};

use super::divisor::Divisor;
use super::pair_routes::PairRoutes;
use crate::packet::PortId;
use crate::source_route::SourceRoutes;

/// Routes of one switch.
#[derive(Clone, Debug)]
pub enum SwitchRoutes {
    /// A switch of a regular Clos. The hosts below it are consecutive, so the route down is computed.
    Interval(IntervalRoutes),
    /// A switch of a regular Clos. The hosts below it are consecutive by their places.
    Placed(PlacedRoutes),
    /// Any other switch.
    Table(TableRoutes),
    /// Next hops of explicit paths, by the pair of a packet's hosts.
    Pairs(Box<PairRoutes>),
    /// Source routing. All switches share the lists of hops, which name ports by their numbers in the whole fabric.
    Source(Arc<SourceRoutes>),
    /// A switch of another part of the fabric.
    Elsewhere,
}

/// Routes of a switch in a regular Clos.
#[derive(Clone, Copy, Debug)]
pub struct IntervalRoutes {
    /// First host below the switch.
    pub first_host: u32,
    /// Number of hosts below each child.
    pub hosts_per_child: Divisor,
    /// Number of children. There are `hosts_per_child * children` hosts below.
    pub children: u32,
    /// First port to the first child.
    pub down_base: PortId,
    /// Number of parallel links to each child; their ports are consecutive.
    pub down_bundle: u32,
    /// First port upwards.
    pub up_base: PortId,
    /// Number of ports upwards, all of equal cost; 0 at the top.
    pub up_count: u32,
}

/// Routes of a switch in a regular Clos that holds the hosts in another order than that of their numbers.
#[derive(Clone, Debug)]
pub struct PlacedRoutes {
    /// Place of each host.
    pub places: Arc<[u32]>,
    /// Routes to hosts by their places.
    pub by_place: IntervalRoutes,
}

/// Routes from a table, indexed by the attachment of the destination host.
#[derive(Clone, Debug)]
pub struct TableRoutes {
    /// Class of each host. Hosts attached to the same switches share one class.
    pub class_of_host: Arc<[u32]>,
    /// Range of `ports` for each class; [`TableRoutes::ATTACHED`] if its hosts are attached to this switch.
    pub groups: Vec<(u32, u32)>,
    /// Hosts of this switch, ascending, each with its range of `ports`.
    pub attached: Vec<(HostId, (u32, u32))>,
    /// Egress ports.
    pub ports: Vec<PortId>,
}

impl TableRoutes {
    /// Marks a class whose ports are in `attached`.
    pub const ATTACHED: (u32, u32) = (u32::MAX, u32::MAX);

    fn group(&self, dst: HostId) -> (u32, u32) {
        let group = self.groups[self.class_of_host[dst.index()] as usize];
        if group != Self::ATTACHED {
            return group;
        }
        self.attached.binary_search_by_key(&dst, |(host, _)| *host).map_or((0, 0), |i| self.attached[i].1)
    }
}

/// Egress ports of equal cost, or numbers of explicit paths. An entry may be listed several times and then gets as
/// many shares.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Candidates<'a> {
    /// Consecutive ports: the first, and their number.
    Range(PortId, u32),
    List(&'a [PortId]),
}

impl Candidates<'_> {
    pub(crate) fn len(self) -> u32 {
        match self {
            Candidates::Range(_, count) => count,
            Candidates::List(ports) => ports.len() as u32,
        }
    }

    /// Returns the `i`-th candidate; `i` is below `len`.
    pub(crate) fn get(self, i: u32) -> PortId {
        match self {
            Candidates::Range(first, _) => first + i,
            Candidates::List(ports) => ports[i as usize],
        }
    }

    /// Returns `count` candidates from index `first` on.
    pub(crate) fn part(self, first: u32, count: u32) -> Self {
        match self {
            Candidates::Range(start, _) => Candidates::Range(start + first, count),
            Candidates::List(ports) => Candidates::List(&ports[first as usize..][..count as usize]),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = PortId> {
        (0..self.len()).map(move |i| self.get(i))
    }

    pub(crate) fn contains(self, port: PortId) -> bool {
        match self {
            Candidates::Range(first, count) => port.wrapping_sub(first) < count,
            Candidates::List(ports) => ports.contains(&port),
        }
    }

    /// Returns the port that a hash selects. There must be at least one candidate.
    pub(crate) fn by_hash(self, hash: u64) -> PortId {
        self.get(spread(hash, self.len()))
    }
}

impl IntervalRoutes {
    fn candidates(&self, dst: u32) -> Candidates<'static> {
        let below = dst.wrapping_sub(self.first_host);
        if below < self.hosts_per_child.get() * self.children {
            let child = self.hosts_per_child.divide(below);
            return Candidates::Range(self.down_base + child * self.down_bundle, self.down_bundle);
        }
        Candidates::Range(self.up_base, self.up_count)
    }

    /// Returns the port for a packet, or `None` if its destination is unreachable. The hash is computed only where
    /// there is a choice.
    #[inline(always)]
    pub(crate) fn choose(&self, dst: u32, flow_hash: impl FnOnce() -> u64) -> Option<PortId> {
        let below = dst.wrapping_sub(self.first_host);
        if below < self.hosts_per_child.get() * self.children {
            let base = self.down_base + self.hosts_per_child.divide(below) * self.down_bundle;
            return Some(match self.down_bundle {
                1 => base,
                bundle => base + spread(flow_hash(), bundle),
            });
        }
        (self.up_count > 0).then(|| self.up_base + spread(flow_hash(), self.up_count))
    }
}

impl PlacedRoutes {
    /// Returns the port for a packet, as [`IntervalRoutes::choose`] does.
    #[inline(always)]
    pub(crate) fn choose(&self, dst: HostId, flow_hash: impl FnOnce() -> u64) -> Option<PortId> {
        self.by_place.choose(self.places[dst.index()], flow_hash)
    }
}

/// Reason why no packet is forwarded by a switch of another part.
const HERE_ONLY: &str = "a part forwards the packets of its own switches";

impl SwitchRoutes {
    /// Returns all ports for a packet; none if its destination is unreachable.
    pub(crate) fn candidates(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        match self {
            SwitchRoutes::Interval(routes) => routes.candidates(dst.0),
            SwitchRoutes::Placed(routes) => routes.by_place.candidates(routes.places[dst.index()]),
            SwitchRoutes::Table(routes) => {
                let (start, end) = routes.group(dst);
                Candidates::List(&routes.ports[start as usize..end as usize])
            }
            SwitchRoutes::Pairs(routes) => routes.candidates(src, dst),
            SwitchRoutes::Source(_) => unreachable!("there is nothing to balance where sources choose"),
            SwitchRoutes::Elsewhere => unreachable!("{HERE_ONLY}"),
        }
    }

    /// Returns the port for a packet, or `None` if its destination is unreachable.
    #[inline]
    pub(crate) fn choose(&self, src: HostId, dst: HostId, flow_hash: u64) -> Option<PortId> {
        match self {
            SwitchRoutes::Interval(routes) => routes.choose(dst.0, || flow_hash),
            SwitchRoutes::Placed(routes) => routes.choose(dst, || flow_hash),
            SwitchRoutes::Table(routes) => {
                let (start, end) = routes.group(dst);
                (end > start).then(|| routes.ports[(start + spread(flow_hash, end - start)) as usize])
            }
            SwitchRoutes::Pairs(routes) => {
                let all = routes.candidates(src, dst);
                (all.len() > 0).then(|| all.by_hash(flow_hash))
            }
            SwitchRoutes::Source(_) => unreachable!("nothing is hashed where sources choose"),
            SwitchRoutes::Elsewhere => unreachable!("{HERE_ONLY}"),
        }
    }
}

/// Maps a hash to `0..n` by its high bits.
#[inline]
fn spread(hash: u64, n: u32) -> u32 {
    (((hash >> 32) * u64::from(n)) >> 32) as u32
}

/// Returns the ECMP hash of a switch with this seed. It is the same for all packets of (source, destination, path).
#[inline]
pub(crate) fn ecmp_hash(seed: u64, src: HostId, dst: HostId, path: PathId) -> u64 {
    let tuple =
        (u64::from(src.0) << 32 | u64::from(dst.0)) ^ u64::from(path.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix64(tuple ^ seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(path: u16, seed: u64) -> u64 {
        ecmp_hash(seed, HostId(3), HostId(77), PathId(path))
    }

    #[test]
    fn interval_routes_by_hand() {
        // A top-of-rack switch with hosts 8..12 on ports 100..104 and four uplinks 104..108.
        let routes = SwitchRoutes::Interval(IntervalRoutes {
            first_host: 8,
            hosts_per_child: Divisor::new(1),
            children: 4,
            down_base: 100,
            down_bundle: 1,
            up_base: 104,
            up_count: 4,
        });
        assert_eq!(routes.choose(HostId(5), HostId(8), hash(0, 1)), Some(100));
        assert_eq!(routes.choose(HostId(5), HostId(11), hash(0, 1)), Some(103));
        for path in 0..64 {
            assert!((104..108).contains(&routes.choose(HostId(5), HostId(12), hash(path, 1)).unwrap()));
            assert!((104..108).contains(&routes.choose(HostId(5), HostId(7), hash(path, 1)).unwrap()));
        }
    }

    /// A leaf of the second of two rails: hosts 1, 3 and 5 of servers of two, at places 3 to 5.
    #[test]
    fn routes_by_place_by_hand() {
        let by_place = IntervalRoutes {
            first_host: 3,
            hosts_per_child: Divisor::new(1),
            children: 3,
            down_base: 20,
            down_bundle: 1,
            up_base: 23,
            up_count: 1,
        };
        let places = Arc::from([0, 3, 1, 4, 2, 5]);
        let routes = SwitchRoutes::Placed(PlacedRoutes { places, by_place });
        let port = |dst| routes.choose(HostId(0), HostId(dst), hash(0, 1));
        assert_eq!([1, 3, 5, 2, 4].map(port), [Some(20), Some(21), Some(22), Some(23), Some(23)]);
        assert_eq!(routes.candidates(HostId(0), HostId(5)).iter().collect::<Vec<_>>(), [22]);
    }

    #[test]
    fn the_choice_is_one_of_the_candidates_and_the_one_the_hash_says() {
        let table = TableRoutes {
            class_of_host: Arc::from([0, 1, 2]),
            groups: vec![(0, 3), TableRoutes::ATTACHED, (3, 3)],
            attached: vec![(HostId(1), (3, 4))],
            ports: vec![7, 9, 11, 4],
        };
        let routes =
            SwitchRoutes::Table(TableRoutes { groups: vec![(0, 3), TableRoutes::ATTACHED, (4, 4)], ..table });
        let all = routes.candidates(HostId(5), HostId(0));
        assert_eq!(all.iter().collect::<Vec<_>>(), [7, 9, 11]);
        assert!(all.contains(9) && !all.contains(8) && !all.contains(4));
        assert_eq!(routes.candidates(HostId(5), HostId(1)).iter().collect::<Vec<_>>(), [4]);
        assert_eq!(routes.candidates(HostId(5), HostId(2)).len(), 0);
        for path in 0..64 {
            assert_eq!(routes.choose(HostId(5), HostId(0), hash(path, 1)), Some(all.by_hash(hash(path, 1))));
        }
        let range = Candidates::Range(10, 4);
        assert!(range.contains(13) && !range.contains(14) && !range.contains(9));
    }

    #[test]
    fn bundles_and_the_top() {
        let routes = SwitchRoutes::Interval(IntervalRoutes {
            first_host: 0,
            hosts_per_child: Divisor::new(16),
            children: 4,
            down_base: 10,
            down_bundle: 2,
            up_base: 18,
            up_count: 0,
        });
        for path in 0..64 {
            assert!((14..16).contains(&routes.choose(HostId(5), HostId(40), hash(path, 9)).unwrap()));
        }
        assert_eq!(routes.choose(HostId(5), HostId(64), hash(0, 9)), None);
    }

    #[test]
    fn hash_spreads_evenly_over_uplinks() {
        let mut count = [0u32; 16];
        for path in 0..16_000 {
            count[spread(hash(path, 42), 16) as usize] += 1;
        }
        assert!(count.iter().all(|&n| (900..1100).contains(&n)), "{count:?}");
    }

    #[test]
    fn switches_with_equal_seeds_repeat_each_other() {
        assert!((0..100).all(|p| hash(p, 5) == hash(p, 5)));
        assert!((0..100).any(|p| spread(hash(p, 5), 4) != spread(hash(p, 6), 4)));
    }
}
