//! Division of a run among threads: assignment of hosts and switches to shards. The assignment affects no result.
//!
//! Few links should lead from one shard to another, and all shards should have equal work. A host belongs to the
//! switch at its fastest port, so that the GPUs of a server stay together around their NVSwitch. These switches are
//! ordered by their hosts, which keeps pods and racks together, and cut into consecutive groups of equal traffic, one
//! for each shard. In a cluster, the GPUs of a scale-up domain stay together, and so do the servers of a unit, whose
//! leaves then belong to the same shard, unless there are too few units for equal work. Any other switch joins the shard of all its neighbours below if they agree. Otherwise it joins the
//! shard with the least work, which spreads the top tier over all shards.

use std::cmp::Reverse;
use std::sync::Arc;

use pathweave_topo::{NodeId, Topology};
use pathweave_workload::MessageGraph;

/// One shard of the division, and the shards of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct ShardLayout {
    pub(crate) number: u16,
    pub(crate) parts: u16,
    /// Shard of each node: hosts, then switches.
    pub(crate) of_node: Arc<[u16]>,
}

impl ShardLayout {
    /// Returns the only shard of a run that is not divided.
    pub(crate) fn whole() -> Self {
        ShardLayout { number: 0, parts: 1, of_node: Arc::from([]) }
    }

    /// Returns true if there is only one shard.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.parts == 1
    }

    /// Returns true if the node belongs to this shard.
    #[inline]
    pub(crate) fn has(&self, node: u32) -> bool {
        self.is_all() || self.of_node[node as usize] == self.number
    }

    /// Returns the shard of a node.
    #[inline]
    pub(crate) fn part_of(&self, node: u32) -> u16 {
        if self.is_all() { 0 } else { self.of_node[node as usize] }
    }
}

/// Assignment of all nodes to shards.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    parts: u16,
    of_node: Arc<[u16]>,
}

/// Work of a host for a packet, relative to that of a switch.
const HOST_WORK: f64 = 1.5;

impl Partition {
    /// Divides the nodes into `parts` shards, or fewer if too few nodes have traffic.
    pub(crate) fn new(topology: &Topology, graph: &MessageGraph, parts: u16) -> Self {
        if parts <= 1 {
            return Partition { parts: 1, of_node: Arc::from([]) };
        }
        let of_hosts = traffic(topology, graph);
        let mut of_node = vec![u16::MAX; topology.nodes() as usize];
        let mut load = vec![0.0; usize::from(parts)];
        let mut work = vec![0.0; topology.nodes() as usize];
        for host in (0..topology.hosts()).map(NodeId) {
            let own = of_hosts[host.index()];
            work[host.index()] = own * HOST_WORK;
            let ports = topology.ports(host);
            for port in ports {
                work[port.peer.index()] += own / ports.len() as f64;
            }
        }
        let (groups, part_of_group) = divided_groups(topology, &work, parts);
        for (nodes, part) in groups.into_iter().zip(part_of_group) {
            for node in nodes {
                of_node[node.index()] = part;
                load[usize::from(part)] += work[node.index()];
            }
        }
        assign_upper_switches(topology, &mut work, &mut of_node, &mut load);
        let partition = Partition { parts, of_node: of_node.into() };
        partition.without_empty_parts()
    }

    /// Applies a given division of the nodes, in at most `parts` shards. Shards with adjacent numbers are merged if
    /// there are more.
    pub(crate) fn given(of_node: &[u16], parts: u16) -> Self {
        let given = of_node.iter().max().map_or(1, |most| u32::from(*most) + 1);
        let parts = given.min(u32::from(parts));
        let together = |part: &u16| (u32::from(*part) * parts / given) as u16;
        let partition = Partition { parts: parts as u16, of_node: of_node.iter().map(together).collect() };
        partition.without_empty_parts()
    }

    /// Divides the nodes in order of their numbers into shards of equal size, whatever their work. There must be at
    /// least as many nodes as shards.
    pub(crate) fn even(nodes: u32, parts: u16) -> Self {
        let part = |node: u32| (u64::from(node) * u64::from(parts) / u64::from(nodes)) as u16;
        Partition { parts, of_node: (0..nodes).map(part).collect() }
    }

    /// Returns two hosts of a scale-up domain that are in different shards, if there are any.
    pub(crate) fn divided_domain(&self, topology: &Topology) -> Option<(NodeId, NodeId)> {
        domains(topology).find_map(|mut hosts| {
            let first = hosts.next()?;
            let apart = |host: &NodeId| self.of_node[host.index()] != self.of_node[first.index()];
            hosts.find(|host| self.parts > 1 && apart(host)).map(|other| (first, other))
        })
    }

    /// Moves the hosts of each scale-up domain to the shard of the first of them.
    pub(crate) fn unite_domains(&mut self, topology: &Topology) {
        if self.divided_domain(topology).is_none() {
            return;
        }
        let mut of_node = self.of_node.to_vec();
        for mut hosts in domains(topology) {
            let first = hosts.next().map_or(0, |first| of_node[first.index()]);
            hosts.for_each(|host| of_node[host.index()] = first);
        }
        self.of_node = of_node.into();
    }

    /// Creates any division, with shards numbered from 0.
    #[cfg(test)]
    pub(crate) fn of_nodes(of_node: Vec<u16>) -> Self {
        let parts = of_node.iter().max().map_or(1, |most| most + 1);
        Partition { parts, of_node: of_node.into() }
    }

    fn without_empty_parts(self) -> Self {
        let mut numbers = vec![None; usize::from(self.parts)];
        let mut parts = 0;
        let mut number = |&part: &u16| {
            *numbers[usize::from(part)].get_or_insert_with(|| {
                parts += 1;
                parts - 1
            })
        };
        let of_node: Arc<[u16]> = self.of_node.iter().map(&mut number).collect();
        Partition { parts, of_node }
    }

    /// Number of shards.
    pub(crate) fn shard_count(&self) -> u16 {
        self.parts
    }

    /// Iterates over all shards.
    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardLayout> {
        let Partition { parts, of_node } = self;
        (0..*parts).map(|number| ShardLayout { number, parts: *parts, of_node: of_node.clone() })
    }
}

/// Returns the bytes that each host sends and receives, plus a small constant, so that hosts without traffic are
/// spread too.
fn traffic(topology: &Topology, graph: &MessageGraph) -> Vec<f64> {
    let mut bytes = vec![0.0; topology.hosts() as usize];
    for message in graph.messages() {
        for host in [message.src, message.dst] {
            bytes[host.index()] += message.size.get() as f64 + 1.0;
        }
    }
    let little = bytes.iter().sum::<f64>() / bytes.len() as f64 / 1e3 + 1.0;
    bytes.iter_mut().for_each(|bytes| *bytes += little);
    bytes
}

/// Largest work of a shard, relative to an equal share, for which units stay whole.
const MOST_UNEVEN: f64 = 1.1;

/// Returns the groups of nodes that stay together, and the shard of each: whole units of servers if these divide the
/// work evenly enough, otherwise smaller groups.
fn divided_groups(topology: &Topology, work: &[f64], parts: u16) -> (Vec<Vec<NodeId>>, Vec<u16>) {
    if let Some(units) = units(topology) {
        let (part_of_unit, most) = cut(&units, work, parts);
        if most <= MOST_UNEVEN {
            return (units, part_of_unit);
        }
    }
    let groups = hosts_by_switch(topology);
    let (part_of_group, _) = cut(&groups, work, parts);
    (groups, part_of_group)
}

/// Cuts the groups into consecutive parts of about equal work. Returns the part of each group, and the most work of a
/// part, relative to an equal share.
fn cut(groups: &[Vec<NodeId>], work: &[f64], parts: u16) -> (Vec<u16>, f64) {
    let work_of = |nodes: &Vec<NodeId>| nodes.iter().map(|node| work[node.index()]).sum::<f64>();
    let all = groups.iter().map(work_of).sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut done, mut load) = (0.0, vec![0.0; usize::from(parts)]);
    let place = |nodes: &Vec<NodeId>| {
        let own = work_of(nodes);
        let middle = (done + own / 2.0) / all;
        let part = ((middle * f64::from(parts)) as u16).min(parts - 1);
        done += own;
        load[usize::from(part)] += own;
        part
    };
    let part_of_group = groups.iter().map(place).collect();
    let most = load.iter().copied().fold(0.0, f64::max) * f64::from(parts) / all;
    (part_of_group, most)
}

/// Returns the hosts of each unit of servers, if there are units that divide no scale-up domain.
fn units(topology: &Topology) -> Option<Vec<Vec<NodeId>>> {
    let servers = topology.servers()?;
    let hosts_of_unit = servers.unit()?.checked_mul(servers.gpus())?;
    let domain = topology.scale_up()?.domain_size();
    if !hosts_of_unit.is_multiple_of(domain) {
        return None;
    }
    let hosts = topology.hosts();
    let unit = |first: u32| (first..hosts.min(first.saturating_add(hosts_of_unit))).map(NodeId).collect();
    Some((0..hosts).step_by(hosts_of_unit as usize).map(unit).collect())
}

/// Groups hosts that stay together, ordered by first host: the domains of the scale-up network, if there is one, or
/// the hosts of a switch with the switch. A host without either forms its own group.
fn hosts_by_switch(topology: &Topology) -> Vec<Vec<NodeId>> {
    if topology.scale_up().is_some() {
        return domains(topology).map(Iterator::collect).collect();
    }
    let mut number_of = vec![None; topology.nodes() as usize];
    let mut homes: Vec<Vec<NodeId>> = Vec::new();
    for host in (0..topology.hosts()).map(NodeId) {
        let Some(switch) = switch_of_host(topology, host) else {
            homes.push(vec![host]);
            continue;
        };
        let number = *number_of[switch.index()].get_or_insert_with(|| {
            homes.push(vec![switch]);
            homes.len() - 1
        });
        homes[number].push(host);
    }
    homes
}

/// Iterates over the hosts of each scale-up domain.
fn domains(topology: &Topology) -> impl Iterator<Item = impl Iterator<Item = NodeId> + use<>> {
    let size = topology.scale_up().map_or(u32::MAX, pathweave_topo::ScaleUp::domain_size);
    let hosts = if size == u32::MAX { 0 } else { topology.hosts() };
    (0..hosts).step_by(size as usize).map(move |first| (first..hosts.min(first + size)).map(NodeId))
}

/// Returns the switch at the fastest port of a host: of equally fast ones the nearest, then the first.
fn switch_of_host(topology: &Topology, host: NodeId) -> Option<NodeId> {
    let to_switches = topology.ports(host).iter().filter(|port| !topology.is_host(port.peer));
    let fastest = to_switches.min_by_key(|port| {
        let link = topology.link(port.link);
        (Reverse(link.rate), link.delay)
    });
    fastest.map(|port| port.peer)
}

/// Assigns all other switches to shards, tier by tier away from the hosts.
fn assign_upper_switches(topology: &Topology, work: &mut [f64], of_node: &mut [u16], load: &mut [f64]) {
    let mut tier: Vec<NodeId> = placed(topology, of_node);
    loop {
        let mut next: Vec<NodeId> = Vec::new();
        for &node in &tier {
            let above = || {
                topology.ports(node).iter().map(|port| port.peer).filter(|up| of_node[up.index()] == u16::MAX)
            };
            // The work that hosts cause at their switches is already counted.
            let passed_on = if topology.is_host(node) { 0.0 } else { work[node.index()] };
            let each = passed_on / above().count().max(1) as f64;
            let ups: Vec<NodeId> = above().collect();
            for up in ups {
                work[up.index()] += each;
                next.push(up);
            }
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            break;
        }
        // Switches whose neighbours below share one shard come first. The others then even out the load.
        let below = |node: NodeId, of_node: &[u16]| {
            let mut parts = topology.ports(node).iter().map(|port| of_node[port.peer.index()]);
            let parts: Vec<u16> = parts.by_ref().filter(|&part| part != u16::MAX).collect();
            parts.iter().all(|part| *part == parts[0]).then(|| parts[0])
        };
        let agreed: Vec<(NodeId, Option<u16>)> =
            next.iter().map(|&node| (node, below(node, of_node))).collect();
        let (alike, mixed): (Vec<_>, Vec<_>) = agreed.into_iter().partition(|(_, part)| part.is_some());
        for (node, part) in alike.into_iter().chain(mixed) {
            let least = (0..load.len()).min_by(|&a, &b| load[a].total_cmp(&load[b])).unwrap_or(0);
            let part = part.map_or(least, usize::from);
            of_node[node.index()] = part as u16;
            load[part] += work[node.index()];
        }
        tier = next;
    }
    // Switches that are connected with no host.
    of_node.iter_mut().filter(|part| **part == u16::MAX).for_each(|part| *part = 0);
}

/// Returns the nodes that have a shard.
fn placed(topology: &Topology, of_node: &[u16]) -> Vec<NodeId> {
    (0..topology.nodes()).map(NodeId).filter(|node| of_node[node.index()] != u16::MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_topo::{
        Build, Cluster, FatTree, LeafSpine, Link, ScaleUpConfig, Server, Switch, SwitchLinks, TopologyConfig,
    };
    use pathweave_units::{Bytes, Duration, HostId, Rate, Time};
    use pathweave_workload::{GraphBuilder, NewMessage, Stream};

    use super::*;

    fn shift(hosts: u32, by: u32) -> MessageGraph {
        let mut builder = GraphBuilder::new(hosts);
        let group = builder.group("test", None).expect("the first group");
        for src in 0..hosts {
            let message = NewMessage {
                src: HostId(src),
                dst: HostId((src + by) % hosts),
                size: Bytes::new(100_000),
                start: Time::ZERO,
                group,
                stream: Stream::Own,
                job: None,
            };
            builder.message(message).expect("hosts exist and differ");
        }
        builder.finish().expect("no cycles")
    }

    fn parts_of(partition: &Partition, nodes: std::ops::Range<u32>) -> Vec<u16> {
        nodes.map(|node| partition.of_node[node as usize]).collect()
    }

    /// Four pods, each with two edge switches, two aggregation switches and four hosts, and four core switches. Each
    /// of two shards gets two pods and two core switches.
    #[test]
    fn pods_stay_together_and_the_core_is_shared() {
        let topology = FatTree::k_ary(4).build(Path::new(".")).expect("a fat tree");
        let partition = Partition::new(&topology, &shift(16, 5), 2);
        assert_eq!(partition.shard_count(), 2);
        assert_eq!(parts_of(&partition, 0..16), [[0; 8], [1; 8]].concat());
        for part in [0, 1] {
            let switches = topology.switches().iter().zip(16..);
            let of = |pods: bool| {
                let of_part = |node: &u32| partition.of_node[*node as usize] == part;
                switches
                    .clone()
                    .filter(|(at, _)| at.group.is_some() == pods)
                    .map(|(_, node)| node)
                    .filter(of_part)
                    .count()
            };
            assert_eq!((of(true), of(false)), (8, 2), "part {part}");
        }
    }

    /// Four servers of two GPUs, with NVSwitches at 3.6 Tb/s inside, and two rails of 400 Gb/s between the servers,
    /// whose NIC ports come first. Each shard has two whole servers and one rail.
    #[test]
    fn the_gpus_of_a_server_stay_together() {
        let (rails, servers) = ([8, 9], [10, 11, 12, 13]);
        let link = |a: u32, b: u32, gbps: u64| Link {
            a: NodeId(a),
            b: NodeId(b),
            rate: Rate::from_gbps(gbps),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        let nics = (0..8).map(|gpu| link(gpu, rails[gpu as usize % 2], 400));
        let nvlinks = (0..8).map(|gpu| link(gpu, servers[gpu as usize / 2], 3_600));
        let switch = |number| Switch { name: format!("switch{number}"), tier: 0, group: None };
        let switches = (0..6).map(switch).collect();
        let topology = Topology::new("rails", 8, switches, nics.chain(nvlinks).collect()).expect("rails");
        let partition = Partition::new(&topology, &shift(8, 3), 2);
        assert_eq!(parts_of(&partition, 0..8), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(parts_of(&partition, 10..14), [0, 0, 1, 1]);
        let mut of_rails = parts_of(&partition, 8..10);
        of_rails.sort_unstable();
        assert_eq!(of_rails, [0, 1]);
    }

    /// Servers of two GPUs with NVLink and a NIC each, in units of two servers. A unit has a leaf for each of two rails.
    fn rails(servers: u32) -> Topology {
        let nvlink = ScaleUpConfig::Switch(SwitchLinks::new(Rate::from_gbps(3_600)));
        let server = Server { gpus: Some(2), scale_up: Some(nvlink), ..Server::default() };
        let scale_out = TopologyConfig::LeafSpine(LeafSpine::new(servers, 2, 2));
        let cluster = Cluster { unit: Some(2), ..Cluster::new(servers, server, scale_out) };
        cluster.build(Path::new(".")).expect("it fits")
    }

    /// Four units of four GPUs for two shards: each has two units with their four leaves and one of two spines.
    #[test]
    fn units_stay_together() {
        let topology = rails(8);
        let partition = Partition::new(&topology, &shift(16, 5), 2);
        assert_eq!(parts_of(&partition, 0..16), [[0; 8], [1; 8]].concat());
        assert_eq!(parts_of(&partition, 16..24), [0, 0, 0, 0, 1, 1, 1, 1]);
        let mut spines = parts_of(&partition, 24..26);
        spines.sort_unstable();
        assert_eq!(spines, [0, 1]);
    }

    /// Three shards of two units would have work for one, one and none. Servers are divided instead: 1, 2, 1.
    #[test]
    fn servers_are_divided_where_units_are_too_few() {
        let topology = rails(4);
        let partition = Partition::new(&topology, &shift(8, 3), 3);
        let parts = parts_of(&partition, 0..8);
        assert!(parts.chunks(2).all(|server| server[0] == server[1]), "{parts:?}");
        assert_eq!(partition.shard_count(), 3);
        let even = Partition::new(&topology, &shift(8, 3), 4);
        assert_eq!(parts_of(&even, 0..8), [0, 0, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn parts_that_somebody_names_are_numbered_anew_and_put_together() {
        let of = |of_node: &[u16], parts| {
            let partition = Partition::given(of_node, parts);
            (partition.shard_count(), partition.of_node.to_vec())
        };
        assert_eq!(of(&[0, 2, 2, 9], 16), (3, vec![0, 1, 1, 2]));
        assert_eq!(of(&[0, 1, 2, 3], 2), (2, vec![0, 0, 1, 1]));
        assert_eq!(of(&[65_535, 0, 40_000], 2), (2, vec![0, 1, 0]));
        assert_eq!(of(&[3, 3], 1), (1, vec![0, 0]));
    }

    #[test]
    fn no_more_parts_than_there_is_work_for() {
        let topology = LeafSpine::new(2, 1, 1).build(Path::new(".")).expect("two leaves and a spine");
        let partition = Partition::new(&topology, &shift(2, 1), 64);
        assert!((2..=3).contains(&partition.shard_count()), "{partition:?}");
        assert!(partition.of_node.iter().all(|part| *part < partition.shard_count()));
        let link = Link {
            a: NodeId(0),
            b: NodeId(1),
            rate: Rate::from_gbps(100),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        let pair = Topology::new("pair", 2, vec![], vec![link]).expect("two hosts and a cable");
        assert_eq!(parts_of(&Partition::new(&pair, &shift(2, 1), 2), 0..2), [0, 1]);
        assert!(Partition::new(&pair, &shift(2, 1), 1).shards().all(|place| place.is_all() && place.has(1)));
    }
}
