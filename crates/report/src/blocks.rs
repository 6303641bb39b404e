//! Aggregation of a large fabric: the nodes of one tier and pod, or consecutive nodes, form a *block*, and all links
//! from one block to another are drawn as one. Where hosts are GPUs, blocks are consecutive servers, and the leaves of
//! one rail and plane.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pathweave_records::{NodeInfo, NodeKind, RunResult};

use crate::servers::Servers;

/// Largest number of blocks for the pods of a tier. With more pods, adjacent pods share a block.
const PODS: usize = 32;
/// Number of blocks of a tier without pods.
const RUNS: usize = 16;

/// A group of nodes drawn as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    pub(crate) tier: u8,
    /// Number of nodes in the block.
    pub(crate) nodes: usize,
}

/// All nodes of a run, grouped into blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub(crate) blocks: Vec<Block>,
    /// Block of each node.
    pub(crate) of_node: Vec<u32>,
}

impl Blocks {
    /// Groups switches by tier and pod, and hosts with the switch of their first link, or by servers if there are any.
    pub(crate) fn from_run(run: &RunResult) -> Blocks {
        if let Some(servers) = Servers::of(run) {
            return Blocks::of_servers(run, &servers);
        }
        let mut out = Blocks { blocks: Vec::new(), of_node: vec![0; run.nodes.len()] };
        let mut tiers: BTreeMap<(NodeKind, u8), Vec<u32>> = BTreeMap::new();
        for node in run.nodes.iter().filter(|node| node.kind != NodeKind::Host) {
            tiers.entry((node.kind, node.tier)).or_default().push(node.node);
        }
        for members in tiers.values() {
            out.add_tier(run, members);
        }
        let mut hosts: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        let switches = switches_of_hosts(run);
        for node in run.nodes.iter().filter(|node| node.kind == NodeKind::Host) {
            let block = switches[node.node as usize].map(|switch| out.of_node[switch as usize]);
            hosts.entry(block).or_default().push(node.node);
        }
        for (block, members) in hosts {
            let at = block.map_or(String::new(), |block| format!(" of {}", out.blocks[block as usize].name));
            out.add(run, &members, format!("hosts{at}"));
        }
        out
    }

    /// Groups leaves by plane and rail, other switches by tier and plane, and hosts by consecutive servers.
    fn of_servers(run: &RunResult, servers: &Servers<'_>) -> Blocks {
        let mut out = Blocks { blocks: Vec::new(), of_node: vec![0; run.nodes.len()] };
        let lanes = lanes_of_switches(run, servers);
        let mut tiers: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for node in run.nodes.iter().filter(|node| node.kind != NodeKind::Host) {
            if servers.server_of(node.node).is_none() {
                tiers.entry(node.tier).or_default().push(node.node);
            }
        }
        for (&tier, members) in &tiers {
            // Plane, and rail of a leaf, of each switch.
            let mut groups: BTreeMap<(u32, Option<u32>), Vec<u32>> = BTreeMap::new();
            for &node in members {
                let (plane, rail) = lanes[node as usize].unwrap_or((0, None));
                groups.entry((plane, rail)).or_default().push(node);
            }
            if groups.len() > PODS {
                let all = std::mem::take(&mut groups);
                all.into_iter()
                    .for_each(|((plane, _), of)| groups.entry((plane, None)).or_default().extend(of));
            }
            if groups.len() == 1 || groups.len() > PODS {
                out.add_tier(run, members);
                continue;
            }
            for ((plane, rail), members) in groups {
                let name = match (rail, servers.info.planes > 1) {
                    (Some(rail), true) => format!("plane {plane}, rail {rail}"),
                    (Some(rail), false) => format!("rail {rail}"),
                    (None, _) => format!("plane {plane}, tier {tier}"),
                };
                out.add(run, &members, name);
            }
        }
        let mut of_server: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for node in &run.nodes {
            if let Some(server) = servers.server_of(node.node) {
                of_server.entry(server).or_default().push(node.node);
            }
        }
        let all: Vec<(u32, Vec<u32>)> = of_server.into_iter().collect();
        for part in parts(all.len(), PODS) {
            let members: Vec<u32> = all[part.clone()].iter().flat_map(|(_, nodes)| nodes).copied().collect();
            out.add(run, &members, Servers::name(all[part.start].0, all[part.end - 1].0));
        }
        out
    }

    /// Returns the numbers of the links between each pair of blocks.
    pub(crate) fn pairs(&self, run: &RunResult) -> BTreeMap<(u32, u32), Vec<usize>> {
        let mut pairs: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (number, link) in run.links.iter().enumerate() {
            let of = |node: u32| self.of_node.get(node as usize).copied().unwrap_or(0);
            pairs.entry((of(link.from_node), of(link.to_node))).or_default().push(number);
        }
        pairs
    }

    fn add_tier(&mut self, run: &RunResult, members: &[u32]) {
        let node = |number: u32| &run.nodes[number as usize];
        let pods: Vec<u32> =
            members.iter().filter_map(|&n| node(n).pod).collect::<BTreeSet<_>>().into_iter().collect();
        if pods.len() < 2 {
            let name = |part: &[u32]| names(node(part[0]), node(part[part.len() - 1]));
            for part in parts(members.len(), RUNS) {
                self.add(run, &members[part.clone()], name(&members[part]));
            }
            return;
        }
        let tier = node(members[0]).tier;
        for part in parts(pods.len(), PODS) {
            let (first, last) = (pods[part.start], pods[part.end - 1]);
            let among = |n: &u32| node(*n).pod.is_some_and(|pod| (first..=last).contains(&pod));
            let of: Vec<u32> = members.iter().copied().filter(among).collect();
            let pods = if first == last { format!("pod {first}") } else { format!("pods {first} to {last}") };
            self.add(run, &of, format!("{pods}, tier {tier}"));
        }
        let others: Vec<u32> = members.iter().copied().filter(|&n| node(n).pod.is_none()).collect();
        if !others.is_empty() {
            self.add(run, &others, format!("no pod, tier {tier}"));
        }
    }

    fn add(&mut self, run: &RunResult, members: &[u32], name: String) {
        let first = &run.nodes[members[0] as usize];
        let block = self.blocks.len() as u32;
        self.blocks.push(Block { name, kind: first.kind, tier: first.tier, nodes: members.len() });
        members.iter().for_each(|&node| self.of_node[node as usize] = block);
    }
}

/// Returns the plane of each switch, and for the leaf of one rail its rail. `None` for nodes of servers, and for switches
/// that no server reaches.
fn lanes_of_switches(run: &RunResult, servers: &Servers<'_>) -> Vec<Option<(u32, Option<u32>)>> {
    let mut lanes: Vec<Option<(u32, Option<u32>)>> = vec![None; run.nodes.len()];
    for (number, link) in run.links.iter().enumerate() {
        let Some((_, lane)) = servers.lane_of(number) else { continue };
        let leaf = if servers.server_of(link.from_node).is_some() { link.to_node } else { link.from_node };
        let rail = servers.has_rails().then(|| servers.nic(lane));
        let known = lanes[leaf as usize].get_or_insert((servers.plane(lane), rail));
        known.1 = known.1.filter(|known| Some(*known) == rail);
    }
    // Switches above leaves are in the plane of a neighbour.
    let mut found = true;
    while found {
        found = false;
        for link in &run.links {
            let (from, to) = (link.from_node as usize, link.to_node as usize);
            let outside =
                servers.server_of(link.from_node).is_none() && servers.server_of(link.to_node).is_none();
            if let (true, Some((plane, _)), None) = (outside, lanes[from], lanes[to]) {
                lanes[to] = Some((plane, None));
                found = true;
            }
        }
    }
    lanes
}

/// Splits `0..count` into at most `most` ranges of nearly equal length.
fn parts(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = count.min(most);
    (0..parts).map(move |part| part * count / parts..(part + 1) * count / parts)
}

fn names(first: &NodeInfo, last: &NodeInfo) -> String {
    if first.node == last.node { first.name.clone() } else { format!("{} to {}", first.name, last.name) }
}

/// Returns the switch of each host's first link, or `None` for other nodes.
fn switches_of_hosts(run: &RunResult) -> Vec<Option<u32>> {
    let mut switches = vec![None; run.nodes.len()];
    let is = |node: u32, host: bool| {
        run.nodes.get(node as usize).is_some_and(|node| (node.kind == NodeKind::Host) == host)
    };
    for link in run.links.iter().filter(|link| is(link.from_node, true) && is(link.to_node, false)) {
        switches[link.from_node as usize].get_or_insert(link.to_node);
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::LinkTotals;

    /// A run with hosts below ToRs, in pods given by `pod`, and one switch above.
    fn run(tors: u32, pod: impl Fn(u32) -> Option<u32>) -> RunResult {
        let mut run = RunResult::default();
        let mut node = |node: u32, name: String, kind, tier, pod| {
            run.nodes.push(NodeInfo { node, name, kind, tier, pod });
        };
        for host in 0..2 * tors {
            node(host, format!("h{host}"), NodeKind::Host, 0, None);
        }
        for tor in 0..tors {
            node(2 * tors + tor, format!("tor{tor}"), NodeKind::Switch, 0, pod(tor));
        }
        node(3 * tors, "top".to_owned(), NodeKind::Switch, 1, None);
        let ends = (0..2 * tors)
            .map(|host| (host, 2 * tors + host / 2))
            .chain((0..tors).map(|tor| (2 * tors + tor, 3 * tors)));
        for (from, to) in ends.flat_map(|(a, b)| [(a, b), (b, a)]) {
            let link = run.links.len() as u32;
            run.links.push(LinkTotals { link, from_node: from, to_node: to, ..LinkTotals::default() });
        }
        run
    }

    fn told(blocks: &Blocks) -> Vec<(&str, usize)> {
        blocks.blocks.iter().map(|block| (block.name.as_str(), block.nodes)).collect()
    }

    #[test]
    fn pods_are_blocks_and_hosts_go_with_their_switches() {
        let run = run(6, |tor| Some(tor / 3));
        let blocks = Blocks::from_run(&run);
        assert_eq!(
            told(&blocks),
            [
                ("pod 0, tier 0", 3),
                ("pod 1, tier 0", 3),
                ("top", 1),
                ("hosts of pod 0, tier 0", 6),
                ("hosts of pod 1, tier 0", 6)
            ]
        );
        let pairs = blocks.pairs(&run);
        assert_eq!(pairs.len(), 8);
        assert_eq!(pairs[&(0, 2)].len(), 3);
        assert_eq!(pairs[&(3, 0)].len(), 6);
        assert_eq!(pairs.values().map(Vec::len).sum::<usize>(), run.links.len());
    }

    #[test]
    fn without_pods_neighbours_share_a_block_and_many_pods_share_blocks() {
        let blocks = Blocks::from_run(&run(40, |_| None));
        assert_eq!(blocks.blocks[0].name, "tor0 to tor1");
        assert_eq!(blocks.blocks.iter().filter(|b| b.kind == NodeKind::Switch && b.tier == 0).count(), RUNS);
        assert_eq!(blocks.blocks.iter().map(|b| b.nodes).sum::<usize>(), 121);
        let blocks = Blocks::from_run(&run(100, Some));
        assert_eq!(blocks.blocks[0].name, "pods 0 to 2, tier 0");
        assert_eq!(blocks.blocks.iter().filter(|b| b.kind == NodeKind::Switch && b.tier == 0).count(), PODS);
        // Some switches of the tier have a pod and others have none.
        let blocks = Blocks::from_run(&run(4, |tor| (tor > 0).then_some(tor)));
        assert_eq!(blocks.blocks[3].name, "no pod, tier 0");
    }

    /// Eight servers of two GPUs, two planes of two rails with a leaf each and a spine a plane.
    #[test]
    fn servers_rails_and_planes_are_blocks() {
        let mut run = RunResult::default();
        run.info.servers = Some(pathweave_records::ServersInfo {
            servers: 40,
            gpus: 2,
            nics: 2,
            nic_ports: 2,
            planes: 2,
            parts: 0,
            domain: None,
            scale_up_bps: 0,
        });
        let hosts = 80;
        for node in 0..hosts + 6 {
            let switch = node >= hosts;
            let tier = u8::from(switch && (node - hosts) % 3 == 2);
            let kind = if switch { NodeKind::Switch } else { NodeKind::Host };
            run.nodes.push(NodeInfo { node, name: format!("n{node}"), kind, tier, pod: None });
        }
        for plane in 0..2 {
            let leaf = |rail: u32| hosts + 3 * plane + rail;
            let of_hosts = (0..hosts).map(|host| (host, leaf(host % 2)));
            for (from_node, to_node) in of_hosts.chain((0..2).map(|rail| (leaf(rail), leaf(2)))) {
                let link = run.links.len() as u32;
                run.links.push(LinkTotals { link, from_node, to_node, ..LinkTotals::default() });
            }
        }
        let blocks = Blocks::from_run(&run);
        let told = told(&blocks);
        assert_eq!(told[..2], [("plane 0, rail 0", 1), ("plane 0, rail 1", 1)]);
        assert_eq!(told[4..6], [("plane 0, tier 1", 1), ("plane 1, tier 1", 1)]);
        assert_eq!(told[6], ("srv0", 2));
        assert_eq!(told[9], ("srv3 to srv4", 4));
        assert_eq!(told.len(), 6 + PODS);
        assert_eq!(told[6..].iter().map(|(_, nodes)| nodes).sum::<usize>(), 80);
    }

    #[test]
    fn a_run_without_nodes_has_no_blocks() {
        let blocks = Blocks::from_run(&RunResult::default());
        assert!(blocks.blocks.is_empty() && blocks.pairs(&RunResult::default()).is_empty());
    }
}
