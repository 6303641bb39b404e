//! What a pair of hosts can hope for: hops, equal-cost paths, capacity and latency on an idle network.

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};
use crate::host_ports::onward;
use crate::routing::{Classes, Routing};

/// The shortest paths from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPaths {
    /// Links on each path.
    pub hops: u32,
    /// Number of paths; parallel links count. Saturates.
    pub paths: u64,
    /// No transfer is faster, however it is spread over the paths: the least, over the hops, of the summed
    /// rates of the links that are the paths' h-th hop.
    pub capacity: Rate,
    /// Time of a frame from the start of its transmission to its last bit's arrival, over the path where that
    /// is least, on an idle network of store-and-forward switches.
    pub latency: Duration,
}

/// Walks the shortest paths of pairs of hosts; keeps its scratch memory from pair to pair. A walk touches only
/// the links on the paths.
pub struct PathFinder<'a> {
    topology: &'a Topology,
    routing: &'a Routing,
    reached: Vec<Reached>,
    walk: u32,
    frontier: Vec<NodeId>,
    next: Vec<NodeId>,
    levels: Vec<Level>,
}

/// The links that are the h-th hop of the paths walked last.
#[derive(Clone, Copy)]
struct Level {
    /// Their summed rates.
    capacity: Rate,
    /// The shortest propagation delay.
    delay: Duration,
    /// The shortest time of a frame from the start of its transmission to its arrival.
    crossing: Duration,
}

/// What is known about a node on the current walk.
#[derive(Clone, Copy, Default)]
struct Reached {
    /// The walk that wrote this; others are out of date.
    walk: u32,
    paths: u64,
    latency: Duration,
}

impl<'a> PathFinder<'a> {
    /// For walks over `topology` as routed by `routing`.
    pub fn new(topology: &'a Topology, routing: &'a Routing) -> Self {
        let reached = vec![Reached::default(); topology.nodes() as usize];
        let (frontier, next, levels) = (Vec::new(), Vec::new(), Vec::new());
        PathFinder { topology, routing, reached, walk: 0, frontier, next, levels }
    }

    /// The shortest paths from `src` to `dst`, with the latency of a frame of `frame_bytes`. `None` if there
    /// is no way, or `src` is `dst`.
    pub fn pair(&mut self, src: HostId, dst: HostId, frame_bytes: u64) -> Option<PairPaths> {
        if src == dst {
            return None;
        }
        self.begin(src);
        while self.frontier != [dst.into()] {
            let longest = Duration::MAX;
            let mut level = Level { capacity: Rate::ZERO, delay: longest, crossing: longest };
            for i in 0..self.frontier.len() {
                self.step(self.frontier[i], dst, frame_bytes, &mut level);
            }
            if self.next.is_empty() || self.levels.len() as u32 >= self.topology.nodes() {
                return None;
            }
            self.levels.push(level);
            std::mem::swap(&mut self.frontier, &mut self.next);
            self.next.clear();
        }
        let Reached { paths, latency, .. } = self.reached[dst.index()];
        let capacity = self.levels.iter().map(|level| level.capacity).min()?;
        Some(PairPaths { hops: self.levels.len() as u32, paths, capacity, latency })
    }

    /// A lower bound on the time from the first bit sent to the last bit received of a transfer of
    /// `total_bytes` (as on the wire) in frames of at least `least_frame_bytes`, however it is spread over the
    /// paths. Exact for equal frames on an idle network where one path carries the capacity.
    pub fn transfer_bound(
        &mut self,
        src: HostId,
        dst: HostId,
        total_bytes: u64,
        least_frame_bytes: u64,
    ) -> Option<Duration> {
        let latency = self.pair(src, dst, least_frame_bytes)?.latency;
        // Everything crosses every level. What crosses it first has come to it, and what crosses it last
        // goes on from it, no faster than one least frame could.
        let crossings: u128 = self.levels.iter().map(|level| u128::from(level.crossing.as_ps())).sum();
        let bound = |level: &Level| {
            let elsewhere = crossings - u128::from(level.crossing.as_ps());
            let here = level.capacity.time_for(total_bytes).as_ps();
            elsewhere + u128::from(here) + u128::from(level.delay.as_ps())
        };
        let longest = self.levels.iter().map(bound).max()?;
        Some(latency.max(Duration::from_ps(u64::try_from(longest).unwrap_or(u64::MAX))))
    }

    fn begin(&mut self, src: HostId) {
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.reached.fill(Reached::default());
            self.walk = 1;
        }
        self.frontier.clear();
        self.next.clear();
        self.levels.clear();
        self.frontier.push(src.into());
        self.reached[src.index()] = Reached { walk: self.walk, paths: 1, latency: Duration::ZERO };
    }

    /// Goes from `node` one hop on towards `dst` and adds the links taken to `level`.
    fn step(&mut self, node: NodeId, dst: HostId, frame_bytes: u64, level: &mut Level) {
        let here = self.reached[node.index()];
        for port in onward(self.topology, self.routing, node, dst) {
            let port = self.topology.ports(node)[port as usize];
            if self.topology.is_host(port.peer) && port.peer != dst.into() {
                continue; // The only port of a host that is linked to a host.
            }
            let link = self.topology.link(port.link);
            let crossing = saturating_sum(link.delay, link.rate.time_for(frame_bytes));
            level.capacity = level.capacity.saturating_add(link.rate);
            level.delay = level.delay.min(link.delay);
            level.crossing = level.crossing.min(crossing);
            let latency = saturating_sum(here.latency, crossing);
            let there = &mut self.reached[port.peer.index()];
            if there.walk == self.walk {
                there.paths = there.paths.saturating_add(here.paths);
                there.latency = there.latency.min(latency);
            } else {
                *there = Reached { walk: self.walk, paths: here.paths, latency };
                self.next.push(port.peer);
            }
        }
    }

    /// The first of the shortest paths from `src` to `dst`: the port taken at each node, with the node.
    /// `None` if there is no way, or `src` is `dst`.
    pub fn first_path(&self, src: HostId, dst: HostId) -> Option<Vec<(NodeId, PortRef)>> {
        let mut path = Vec::new();
        let mut node = NodeId::from(src);
        while node != dst.into() {
            let first = onward(self.topology, self.routing, node, dst).next()?;
            if path.len() as u32 > self.topology.nodes() {
                return None;
            }
            let port = self.topology.ports(node)[first as usize];
            if self.topology.is_host(port.peer) && port.peer != dst.into() {
                return None;
            }
            path.push((node, port));
            node = port.peer;
        }
        (!path.is_empty()).then_some(path)
    }

    /// Rate and propagation delay of each link of [`PathFinder::first_path`].
    pub fn profile(&self, src: HostId, dst: HostId) -> Option<Vec<(Rate, Duration)>> {
        let links = self.first_path(src, dst)?.into_iter().map(|(_, port)| self.topology.link(port.link));
        Some(links.map(|link| (link.rate, link.delay)).collect())
    }

    /// Round trip of a data frame and its acknowledgement on an idle network.
    pub fn base_rtt(
        &mut self,
        src: HostId,
        dst: HostId,
        data_bytes: u64,
        ack_bytes: u64,
    ) -> Option<Duration> {
        let there = self.pair(src, dst, data_bytes)?.latency;
        let back = self.pair(dst, src, ack_bytes)?.latency;
        Some(saturating_sum(there, back))
    }

    /// How many ordered pairs of hosts have how many hops and paths. Looks at one pair for each pair of
    /// classes of hosts (those attached to the same switches); beyond `most_walks` of these, at every n-th
    /// destination only, and says so.
    pub fn distribution(&mut self, most_walks: u64) -> PathDistribution {
        let classes = Classes::by_attachment(self.topology, &|_| true);
        let mut members: Vec<Vec<HostId>> = vec![Vec::new(); classes.members.len()];
        for (host, &class) in (0..).map(HostId).zip(&classes.class_of) {
            members[class as usize].push(host);
        }
        let all = members.len() as u64;
        let stride = (all * all).div_ceil(most_walks.max(1)).clamp(1, all);
        let mut groups = BTreeMap::new();
        for dsts in members.iter().step_by(stride as usize) {
            for srcs in &members {
                let (src, pairs) = match srcs.first() == dsts.first() {
                    true => (srcs.last(), dsts.len() as u64 * (dsts.len() as u64 - 1)),
                    false => (srcs.first(), srcs.len() as u64 * dsts.len() as u64),
                };
                if let (Some(&src), Some(&dst)) = (src, dsts.first())
                    && let Some(pair) = self.pair(src, dst, 0)
                {
                    *groups.entry((pair.hops, pair.paths)).or_insert(0) += pairs;
                }
            }
        }
        let groups = groups.into_iter().map(|((hops, paths), pairs)| PathGroup { hops, paths, pairs });
        PathDistribution { groups: groups.collect(), sampled: stride > 1 }
    }
}

fn saturating_sum(a: Duration, b: Duration) -> Duration {
    Duration::from_ps(a.as_ps().saturating_add(b.as_ps()))
}

/// See [`PathFinder::distribution`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathDistribution {
    /// By hops, then paths.
    pub groups: Vec<PathGroup>,
    /// Whether only some destinations were looked at; then the pairs do not add up to all.
    pub sampled: bool,
}

/// Pairs of hosts that have the same number of hops and paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathGroup {
    /// Links on each path.
    pub hops: u32,
    /// Paths of each pair.
    pub paths: u64,
    /// Ordered pairs of hosts.
    pub pairs: u64,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Build, Dumbbell, FatTree, LeafSpine, Star};

    fn with<R>(config: impl Build, check: impl FnOnce(&mut PathFinder<'_>) -> R) -> R {
        let topology = config.build(Path::new(".")).unwrap();
        let routing = Routing::whole(&topology);
        check(&mut PathFinder::new(&topology, &routing))
    }

    #[test]
    fn two_hops_through_a_star() {
        // 1,000 B at 100 Gbps take 80 ns; a hop 1 us more.
        let pair = with(Star::new(3), |finder| finder.pair(HostId(0), HostId(2), 1_000)).unwrap();
        let (paths, capacity) = (1, Rate::from_gbps(100));
        assert_eq!(pair, PairPaths { hops: 2, paths, capacity, latency: Duration::from_ns(2_160) });
        let bound = with(Star::new(3), |finder| finder.transfer_bound(HostId(0), HostId(2), 11_000, 1_000));
        assert_eq!(bound, Some(Duration::from_ns(2_960)));
        assert_eq!(with(Star::new(3), |finder| finder.pair(HostId(1), HostId(1), 1)), None);
    }

    #[test]
    fn the_bottleneck_of_a_dumbbell_is_the_sum_of_its_links() {
        let config = Dumbbell {
            bottleneck_rate: Some(Rate::from_gbps(10)),
            bottleneck_delay: Some(Duration::from_us(5)),
            bottleneck_links: 3,
            ..Dumbbell::new(2)
        };
        with(config, |finder| {
            let across = finder.pair(HostId(0), HostId(2), 0).unwrap();
            assert_eq!((across.hops, across.paths), (3, 3));
            assert_eq!(across.capacity, Rate::from_gbps(30));
            assert_eq!(finder.profile(HostId(0), HostId(3)).unwrap()[1].0, Rate::from_gbps(10));
            // 1,250 B: 100 ns, 1 us, 100 ns and 7 us there; the same back with 125 B: 10, 100, 10 ns and 7 us.
            let rtt = finder.base_rtt(HostId(0), HostId(2), 1_250, 125);
            assert_eq!(rtt, Some(Duration::from_ns(1_200 + 7_000 + 120 + 7_000)));
            // One frame takes one of the three links: nothing is gained from the others.
            let bound = |finder: &mut PathFinder<'_>, n: u64| {
                finder.transfer_bound(HostId(0), HostId(2), n * 1_250, 1_250).unwrap()
            };
            assert_eq!(bound(finder, 1), Duration::from_ns(1_200 + 7_000));
            // 30 take 10 us of all three, one takes 100 ns of each host link.
            assert_eq!(bound(finder, 30), Duration::from_ns(10_000 + 200 + 7_000));
        });
    }

    #[test]
    fn paths_of_the_udmp_fat_tree() {
        with(FatTree::udmp_320(16, Rate::from_gbps(400)), |finder| {
            let distribution = finder.distribution(1 << 20);
            let group = |hops, paths, pairs| PathGroup { hops, paths, pairs };
            // One ToR: 320 x 15. One pod: 320 x 48 over 4 aggregation switches. Else 320 x 256 over 16 cores.
            let expected = [group(2, 1, 4_800), group(4, 4, 15_360), group(6, 16, 81_920)];
            assert_eq!(distribution, PathDistribution { groups: expected.into(), sampled: false });
            assert!(finder.distribution(10).sampled);
            let far = finder.pair(HostId(0), HostId(319), 1_448).unwrap();
            // Two links of 115.84 ns, four of 28.96 ns, six of 1 us.
            assert_eq!(far.latency, Duration::from_ps(2 * 115_840 + 4 * 28_960 + 6_000_000));
            assert_eq!(far.capacity, Rate::from_gbps(100));
        });
    }

    #[test]
    fn parallel_links_multiply_paths() {
        let config = LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(2, 3, 1) };
        let pair = with(config, |finder| finder.pair(HostId(0), HostId(1), 0)).unwrap();
        assert_eq!((pair.hops, pair.paths), (4, 3 * 2 * 2));
    }
}
