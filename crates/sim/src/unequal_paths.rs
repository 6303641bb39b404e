//! Shortest paths between two hosts whose links are not alike: those that may be the fastest for some message.

use std::collections::BTreeMap;

use pathweave_topo::{NodeId, Routing, Topology, max_flow};
use pathweave_units::{Duration, HostId, Rate};

use crate::paths::{MAX_LINKS_OF_A_WAY, PacketOrder};

/// Path that may be the fastest, and the rate of all paths that are used together with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) hops: Vec<(Rate, Duration)>,
    pub(crate) most: Rate,
    pub(crate) mean_delay: Option<Duration>,
    pub(crate) order: PacketOrder,
    pub(crate) to_edge: Option<u8>,
}

/// Largest number of paths to a node that are compared. In most networks there are one or two.
const MAX_COMPARED: usize = 32;

/// Largest number of delays by which paths are told apart. Longer ones count as the last of these.
const MAX_DELAYS: usize = 16;

/// Frame by which paths are ordered.
const FRAME_BYTES: u64 = 4_096;

/// Path from the source to a node. The order of fields ranks paths of equal delay without the numbers of nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Partial {
    delay: Duration,
    hops: Vec<(Rate, Duration)>,
    to_edge: Option<u8>,
}

impl Partial {
    /// Returns true if no message is slower on this path than on the other, which has as many hops.
    fn is_no_slower(&self, other: &Partial) -> bool {
        self.delay <= other.delay
            && self.hops.iter().zip(&other.hops).all(|((own, _), (others, _))| own >= others)
    }

    fn narrowest(&self) -> Rate {
        self.hops.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::ZERO)
    }

    fn one_way(&self) -> Duration {
        self.delay + self.hops.iter().map(|(rate, _)| rate.time_for(FRAME_BYTES)).sum()
    }
}

/// Directed link on a shortest path, with the number of links before it.
struct Step {
    level: usize,
    from: NodeId,
    to: NodeId,
    rate: Rate,
    delay: Duration,
}

/// Returns the paths from these ports of `src` to `dst` that may be the fastest for some message, the nearest first.
/// `ends` is the rate of the ends' ports. For the paths that are used together there is a choice of the delay up to which
/// they are used: longer ones add rate.
pub(crate) fn alternatives(
    topology: &Topology,
    routing: &Routing,
    (src, dst): (HostId, HostId),
    out: u64,
    ends: Rate,
) -> Vec<Alternative> {
    let (steps, mut paths) = search(topology, routing, (src, dst), out);
    paths.sort_by_cached_key(|path| (path.one_way(), path.clone()));
    let Some(shortest) = paths.iter().map(|path| path.delay).min() else { return Vec::new() };
    let order = if steps.len() > paths[0].hops.len() { PacketOrder::Free } else { PacketOrder::Kept };
    let alternative = |path: &Partial, most, mean_delay| {
        let Partial { hops, to_edge, .. } = path.clone();
        Alternative { hops, most, mean_delay, order, to_edge }
    };
    if paths.iter().any(|path| path.delay == shortest && path.narrowest() >= ends) {
        return paths.iter().map(|path| alternative(path, ends, None)).collect();
    }
    let sums = sums_of_paths(&steps, (src, dst));
    let most = sums.last().map_or(Rate::ZERO, |sum| sum.rate);
    let mut found = Vec::new();
    for path in &paths {
        let before = found.len();
        for sum in sums.iter().filter(|sum| sum.longest >= path.delay) {
            found.push(alternative(path, sum.rate, (sum.mean != path.delay).then_some(sum.mean)));
        }
        if found.len() == before {
            found.push(alternative(path, most, None));
        }
    }
    found
}

/// Returns the links of all paths, and the paths of which none is faster than another for all messages.
fn search(
    topology: &Topology,
    routing: &Routing,
    (src, dst): (HostId, HostId),
    out: u64,
) -> (Vec<Step>, Vec<Partial>) {
    let start = Partial { delay: Duration::ZERO, hops: Vec::new(), to_edge: None };
    let mut here = BTreeMap::from([(NodeId(src.0), vec![start])]);
    let (mut steps, mut arrived) = (Vec::new(), Vec::new());
    for level in 0..MAX_LINKS_OF_A_WAY {
        let mut next: BTreeMap<NodeId, Vec<Partial>> = BTreeMap::new();
        for (node, paths) in here {
            let ports = routing.from_node(node, dst).iter().filter(|port| level > 0 || out >> port & 1 == 1);
            for port in ports.map(|port| topology.ports(node)[usize::from(port)]) {
                let link = topology.egress(&port);
                let (rate, delay) = (link.rate, link.delay);
                steps.push(Step { level, from: node, to: port.peer, rate, delay });
                let is_wan = topology.sites().is_some_and(|sites| sites.is_wan(port.link));
                let there = next.entry(port.peer).or_default();
                for path in &paths {
                    let edge = if is_wan { u8::try_from(level).ok() } else { None };
                    let mut hops = path.hops.clone();
                    hops.push((rate, delay));
                    let to_edge = path.to_edge.or(edge);
                    keep(there, Partial { delay: path.delay + delay, hops, to_edge });
                }
            }
        }
        arrived.extend(next.remove(&NodeId(dst.0)).into_iter().flatten());
        here = next;
        if here.is_empty() {
            break;
        }
    }
    (steps, arrived)
}

/// Adds a path to those to a node, unless one of them is no slower. Removes those that are slower.
fn keep(paths: &mut Vec<Partial>, path: Partial) {
    let is_better =
        |known: &Partial| known.is_no_slower(&path) && (!path.is_no_slower(known) || *known <= path);
    if paths.iter().any(is_better) {
        return;
    }
    paths.retain(|known| !path.is_no_slower(known));
    let at = paths.partition_point(|known| *known < path);
    paths.insert(at, path);
    paths.truncate(MAX_COMPARED);
}

/// Paths up to a delay, used together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    longest: Duration,
    rate: Rate,
    /// Mean delay of the packets.
    mean: Duration,
}

/// Returns the rates of all paths up to each delay at which longer paths add some.
fn sums_of_paths(steps: &[Step], (src, dst): (HostId, HostId)) -> Vec<Sum> {
    let delays = delays_through(steps, (src, dst));
    let mut distinct = delays.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let most = distinct.last().copied().unwrap_or_default();
    distinct.truncate(MAX_DELAYS);
    let mut sums: Vec<Sum> = Vec::new();
    let mut weighted = 0;
    for (index, &longest) in distinct.iter().enumerate() {
        let limit = if index + 1 == MAX_DELAYS { most } else { longest };
        let used = steps.iter().zip(&delays).filter(|(_, delay)| **delay <= limit);
        let links = used.map(|(step, _)| (step.from, step.to, step.rate));
        let rate = max_flow(links, src.into(), dst.into());
        let before = sums.last().map_or(0, |sum| sum.rate.as_bps());
        if rate.as_bps() > before {
            weighted += u128::from(rate.as_bps() - before) * u128::from(longest.as_ps());
            let mean = Duration::from_ps((weighted / u128::from(rate.as_bps())) as u64);
            sums.push(Sum { longest, rate, mean });
        }
    }
    sums
}

/// Returns for each link the delay of the shortest path over it.
fn delays_through(steps: &[Step], (src, dst): (HostId, HostId)) -> Vec<Duration> {
    type Delays = BTreeMap<(usize, NodeId), Duration>;
    let shorten = |known: &mut Delays, at, delay: Duration| {
        known.entry(at).and_modify(|known| *known = delay.min(*known)).or_insert(delay);
    };
    let mut there: Delays = BTreeMap::from([((0, src.into()), Duration::ZERO)]);
    for step in steps {
        let delay = there[&(step.level, step.from)] + step.delay;
        shorten(&mut there, (step.level + 1, step.to), delay);
    }
    let mut back: Delays = BTreeMap::new();
    let left = |back: &Delays, step: &Step| {
        if step.to == NodeId::from(dst) {
            return Some(step.delay);
        }
        back.get(&(step.level + 1, step.to)).map(|left| *left + step.delay)
    };
    for step in steps.iter().rev() {
        if let Some(delay) = left(&back, step) {
            shorten(&mut back, (step.level, step.from), delay);
        }
    }
    let through =
        |step: &Step| left(&back, step).map_or(Duration::MAX, |left| there[&(step.level, step.from)] + left);
    steps.iter().map(through).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_topo::{Build, FatTree, LeafSpine, leading_ports, presets, rate_of_ports};

    use super::*;
    use crate::paths::profiles;

    /// The first path stands for all in regular networks, where the search finds the same.
    #[test]
    fn alike_paths_are_one() {
        let fat_tree = FatTree { agg_core_rate: Some(Rate::from_gbps(40)), ..FatTree::k_ary(4) };
        let two_sites = presets().iter().find(|preset| preset.name == "reflex-32").expect("a preset");
        let topologies = [
            LeafSpine::new(3, 4, 2).build(Path::new(".")).expect("a leaf-spine"),
            fat_tree.build(Path::new(".")).expect("a fat tree"),
            two_sites.config.build(Path::new(".")).expect("two sites"),
        ];
        for topology in topologies {
            let routing = Routing::all_links_up(&topology);
            let last = HostId(topology.hosts() - 1);
            for (src, dst) in [(HostId(0), HostId(1)), (HostId(0), last), (last, HostId(1))] {
                let out = leading_ports(&topology, &routing, src, dst);
                let back = leading_ports(&topology, &routing, dst, src);
                assert!(topology.has_alike_paths(&routing, (src, dst), out), "{}", topology.name());
                let ends = rate_of_ports(&topology, src, out).min(rate_of_ports(&topology, dst, back));
                let found = alternatives(&topology, &routing, (src, dst), out, ends);
                let known = profiles(&topology, &routing, src, dst).into_iter();
                let known = known.map(|path| Alternative {
                    hops: path.hops,
                    most: path.most,
                    mean_delay: path.mean_delay,
                    order: path.order,
                    to_edge: path.to_edge,
                });
                assert_eq!(found, known.collect::<Vec<_>>(), "{} {src} {dst}", topology.name());
            }
        }
    }
}
