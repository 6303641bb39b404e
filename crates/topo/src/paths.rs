//! Properties of the shortest paths of a pair of hosts: hops, number of paths, capacity, and latency on an idle
//! network.

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};
use crate::host_ports::forwarding_ports;
use crate::routing::{Classes, Routing};

/// Shortest paths from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairPaths {
    /// Number of links on each path.
    pub hops: u32,
    /// Number of paths. Parallel links count as different paths. Saturates.
    pub paths: u64,
    /// Upper bound of the rate of a transfer, however it is spread over the paths: the minimum over h of the summed
    /// rates of the links that are the h-th hop of a path.
    pub capacity: Rate,
    /// Least time, over all paths, from the start of a frame's transmission to the arrival of its last bit, on an
    /// idle network of store-and-forward switches.
    pub latency: Duration,
}

/// Search for the shortest paths of pairs of hosts. Its buffers are reused for each pair. A search visits only the
/// links on the paths.
pub struct PathFinder<'a> {
    topology: &'a Topology,
    routing: &'a Routing,
    reached: Vec<NodeState>,
    search_number: u32,
    frontier: Vec<NodeId>,
    next: Vec<NodeId>,
    levels: Vec<Level>,
}

/// Links that are the h-th hop of the paths of the latest search.
#[derive(Clone, Copy)]
struct Level {
    /// Total rate.
    capacity: Rate,
    /// Shortest propagation delay.
    delay: Duration,
    /// Shortest time of a frame from the start of its transmission to its arrival.
    crossing: Duration,
}

/// State of a node in the current search.
#[derive(Clone, Copy, Default)]
struct NodeState {
    /// Number of the search that wrote this state. The state is invalid in any other search.
    walk: u32,
    paths: u64,
    latency: Duration,
}

impl<'a> PathFinder<'a> {
    /// Creates a finder for paths over `topology` as routed by `routing`.
    pub fn new(topology: &'a Topology, routing: &'a Routing) -> Self {
        let reached = vec![NodeState::default(); topology.nodes() as usize];
        let (frontier, next, levels) = (Vec::new(), Vec::new(), Vec::new());
        PathFinder { topology, routing, reached, search_number: 0, frontier, next, levels }
    }

    /// Returns the shortest paths from `src` to `dst`, with the latency of a frame of `frame_bytes`. Returns `None`
    /// if there is no route, or if `src` is `dst`.
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
        let NodeState { paths, latency, .. } = self.reached[dst.index()];
        let capacity = self.levels.iter().map(|level| level.capacity).min()?;
        Some(PairPaths { hops: self.levels.len() as u32, paths, capacity, latency })
    }

    /// Returns a lower bound on the time of a transfer, from the first bit sent to the last bit received, however it
    /// is spread over the paths. The transfer has `total_bytes` (on the wire) in frames of at least
    /// `least_frame_bytes`. The bound is exact for equal frames on an idle network if one path carries the capacity.
    pub fn transfer_bound(
        &mut self,
        src: HostId,
        dst: HostId,
        total_bytes: u64,
        least_frame_bytes: u64,
    ) -> Option<Duration> {
        let latency = self.pair(src, dst, least_frame_bytes)?.latency;
        // All bytes cross every level. The first frame needs at least the crossing times of the levels before this
        // one, the last frame those of the levels after it.
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
        self.search_number = self.search_number.wrapping_add(1);
        if self.search_number == 0 {
            self.reached.fill(NodeState::default());
            self.search_number = 1;
        }
        self.frontier.clear();
        self.next.clear();
        self.levels.clear();
        self.frontier.push(src.into());
        self.reached[src.index()] = NodeState { walk: self.search_number, paths: 1, latency: Duration::ZERO };
    }

    /// Advances one hop from `node` towards `dst` and adds the links used to `level`.
    fn step(&mut self, node: NodeId, dst: HostId, frame_bytes: u64, level: &mut Level) {
        let here = self.reached[node.index()];
        for port in forwarding_ports(self.topology, self.routing, node, dst) {
            let port = self.topology.ports(node)[port as usize];
            if self.topology.is_host(port.peer) && port.peer != dst.into() {
                continue; // The only port of a host, which is linked to another host.
            }
            let link = self.topology.egress(&port);
            let crossing = saturating_sum(link.delay, link.rate.time_for(frame_bytes));
            level.capacity = level.capacity.saturating_add(link.rate);
            level.delay = level.delay.min(link.delay);
            level.crossing = level.crossing.min(crossing);
            let latency = saturating_sum(here.latency, crossing);
            let there = &mut self.reached[port.peer.index()];
            if there.walk == self.search_number {
                there.paths = there.paths.saturating_add(here.paths);
                there.latency = there.latency.min(latency);
            } else {
                *there = NodeState { walk: self.search_number, paths: here.paths, latency };
                self.next.push(port.peer);
            }
        }
    }

    /// Returns the first of the shortest paths from `src` to `dst`: each node with the port taken there. Returns
    /// `None` if there is no route, or if `src` is `dst`.
    pub fn first_path(&self, src: HostId, dst: HostId) -> Option<Vec<(NodeId, PortRef)>> {
        let mut path = Vec::new();
        let mut node = NodeId::from(src);
        while node != dst.into() {
            let first = forwarding_ports(self.topology, self.routing, node, dst).next()?;
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

    /// Returns the rate and propagation delay of each link of [`PathFinder::first_path`].
    pub fn profile(&self, src: HostId, dst: HostId) -> Option<Vec<(Rate, Duration)>> {
        let links = self.first_path(src, dst)?.into_iter().map(|(_, port)| self.topology.egress(&port));
        Some(links.map(|link| (link.rate, link.delay)).collect())
    }

    /// Returns the round-trip time of a data frame and its acknowledgement on an idle network.
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

    /// Returns the number of ordered pairs of hosts by their numbers of hops and paths. The search visits one pair
    /// for each pair of classes of hosts (hosts attached to the same switches). Beyond `most_walks` of these it
    /// visits only every n-th destination and sets `sampled`.
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

/// Result of [`PathFinder::distribution`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathDistribution {
    /// Groups ordered by hops, then by paths.
    pub groups: Vec<PathGroup>,
    /// True if only some destinations were visited. The pairs then do not add up to all.
    pub sampled: bool,
}

/// Pairs of hosts with equal numbers of hops and paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathGroup {
    /// Number of links on each path.
    pub hops: u32,
    /// Number of paths of each pair.
    pub paths: u64,
    /// Number of ordered pairs of hosts.
    pub pairs: u64,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Build, Dumbbell, FatTree, LeafSpine, Star};

    fn with<R>(config: impl Build, check: impl FnOnce(&mut PathFinder<'_>) -> R) -> R {
        let topology = config.build(Path::new(".")).unwrap();
        let routing = Routing::all_links_up(&topology);
        check(&mut PathFinder::new(&topology, &routing))
    }

    #[test]
    fn two_hops_through_a_star() {
        // 1,000 B at 100 Gb/s take 80 ns, and each hop 1 us more.
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
            // 1,250 B forward: 100 ns, 1 us, 100 ns and 7 us. 125 B back: 10, 100, 10 ns and 7 us.
            let rtt = finder.base_rtt(HostId(0), HostId(2), 1_250, 125);
            assert_eq!(rtt, Some(Duration::from_ns(1_200 + 7_000 + 120 + 7_000)));
            // A single frame takes one of the three links and gains nothing from the others.
            let bound = |finder: &mut PathFinder<'_>, n: u64| {
                finder.transfer_bound(HostId(0), HostId(2), n * 1_250, 1_250).unwrap()
            };
            assert_eq!(bound(finder, 1), Duration::from_ns(1_200 + 7_000));
            // 30 frames take 10 us on all three links together, and one takes 100 ns on each host link.
            assert_eq!(bound(finder, 30), Duration::from_ns(10_000 + 200 + 7_000));
        });
    }

    #[test]
    fn paths_of_the_udmp_fat_tree() {
        with(FatTree::udmp_320(16, Rate::from_gbps(400)), |finder| {
            let distribution = finder.distribution(1 << 20);
            let group = |hops, paths, pairs| PathGroup { hops, paths, pairs };
            // Same ToR: 320 x 15. Same pod: 320 x 48 over 4 aggregation switches. Otherwise 320 x 256 over 16 cores.
            let expected = [group(2, 1, 4_800), group(4, 4, 15_360), group(6, 16, 81_920)];
            assert_eq!(distribution, PathDistribution { groups: expected.into(), sampled: false });
            assert!(finder.distribution(10).sampled);
            let far = finder.pair(HostId(0), HostId(319), 1_448).unwrap();
            // Two links of 115.84 ns, four of 28.96 ns, and six delays of 1 us.
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
