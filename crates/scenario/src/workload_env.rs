//! Environment of workloads: the properties of the network that their generators need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use pathweave_topo::{NodeId, Topology, TopologyConfig};
use pathweave_units::{HostId, Rate};
use pathweave_workload::WorkloadEnv;

/// Returns the environment of workload generators.
pub(crate) fn workload_env(
    config: &TopologyConfig,
    topology: &Arc<Topology>,
    seed: u64,
    base_dir: &Path,
) -> WorkloadEnv {
    let hosts = || (0..topology.hosts()).map(HostId);
    let slowest = hosts().map(|host| topology.scale_out_rate(host)).min().unwrap_or(Rate::ZERO);
    let racks = racks(topology);
    WorkloadEnv {
        racks: racks.of_host,
        pods: racks.pods,
        rack_uplinks: racks.uplinks,
        sites: topology.sites().map(|sites| sites.of_hosts().to_vec()).unwrap_or_default(),
        seed,
        base_dir: base_dir.to_owned(),
        node_ids: node_ids(config, topology),
        topology: Some(topology.clone()),
        gpu: crate::nccl::gpu_of(config),
        ..WorkloadEnv::new(topology.hosts(), slowest)
    }
}

struct Racks {
    of_host: Vec<u32>,
    pods: Vec<u32>,
    uplinks: Option<Rate>,
}

/// Groups hosts into racks: a rack is a switch with the hosts whose first port leads to it, perhaps by a NIC that GPUs
/// share. The links above racks are those of all planes.
fn racks(topology: &Topology) -> Racks {
    let mut number_of: BTreeMap<NodeId, u32> = BTreeMap::new();
    let mut tors: BTreeSet<NodeId> = BTreeSet::new();
    let mut racks = Racks { of_host: Vec::new(), pods: Vec::new(), uplinks: None };
    let place = |node: NodeId| topology.switch_index(node).map(|index| &topology.switches()[index]);
    for host in 0..topology.hosts() {
        let all = attached(topology, HostId(host));
        let next = number_of.len() as u32;
        racks.of_host.push(*number_of.entry(all[0]).or_insert(next));
        racks.pods.push(place(all[0]).and_then(|switch| switch.group).unwrap_or(0));
        let tier = |node: NodeId| place(node).map(|switch| switch.tier);
        tors.extend(all.iter().filter(|&&other| tier(other) == tier(all[0])));
    }
    let inside = |node: NodeId| topology.is_host(node) || is_part(topology, node);
    for &switch in &tors {
        for port in topology.ports(switch).iter().filter(|port| !inside(port.peer)) {
            let sum = racks.uplinks.unwrap_or(Rate::ZERO);
            racks.uplinks = Some(sum.saturating_add(topology.egress(port).rate));
        }
    }
    racks
}

/// Returns the nodes that a host's ports to the network lead to, beyond NICs and PCIe links, in the order of ports. A host
/// whose ports lead to none of them has its first neighbour.
fn attached(topology: &Topology, host: HostId) -> Vec<NodeId> {
    let ports = topology.ports(host.into());
    let mut all = Vec::with_capacity(ports.len());
    for port in ports.iter().filter(|port| !is_chip(topology, port.peer)) {
        if is_part(topology, port.peer) {
            let beyond = topology.ports(port.peer).iter().map(|port| port.peer);
            all.extend(beyond.filter(|&peer| !topology.is_host(peer)));
        } else {
            all.push(port.peer);
        }
    }
    if all.is_empty() {
        all.push(ports[0].peer);
    }
    all
}

/// Returns true if a node is part of a server: a shared NIC, or a PCIe link.
fn is_part(topology: &Topology, node: NodeId) -> bool {
    let index = topology.switch_index(node);
    index.zip(topology.servers()).is_some_and(|(switch, servers)| servers.has_part(switch))
}

/// Returns true if a node belongs to a scale-up network.
fn is_chip(topology: &Topology, node: NodeId) -> bool {
    let index = topology.switch_index(node);
    index.zip(topology.servers()).is_some_and(|(switch, servers)| servers.has_chip(switch))
}

/// Returns the hosts by their node ids in an imported topology, which flow lists for it use. The host names contain
/// the ids.
fn node_ids(config: &TopologyConfig, topology: &Topology) -> Option<BTreeMap<u64, HostId>> {
    if !config.has_node_ids() {
        return None;
    }
    let id_of = |host: u32| topology.node_name(NodeId(host)).strip_prefix("host")?.parse().ok();
    (0..topology.hosts()).map(|host| Some((id_of(host)?, HostId(host)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_topo::FatTree;

    #[test]
    fn racks_and_pods_of_a_fat_tree() {
        let config = TopologyConfig::FatTree(FatTree::k_ary(4));
        let topology = Arc::new(config.build(Path::new("")).unwrap());
        let env = workload_env(&config, &topology, 7, Path::new("x"));
        assert_eq!((env.hosts, env.host_rate, env.seed), (16, Rate::from_gbps(100), 7));
        assert_eq!(env.racks, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
        assert_eq!(env.pods, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        // Eight ToRs with two uplinks each.
        assert_eq!(env.rack_uplinks, Some(Rate::from_gbps(1_600)));
        assert_eq!(env.node_ids, None);
    }
    fn racks_of(config: &str) -> Racks {
        let config: TopologyConfig = toml::from_str(config).unwrap();
        racks(&config.build(Path::new("")).unwrap())
    }

    /// Two planes of two leaves with two spines each: 2 x 2 x 2 links of 100 Gb/s.
    #[test]
    fn uplinks_of_all_planes_count() {
        let racks = racks_of(
            "kind = 'cluster'\nservers = 8\nplanes = true\nattach = 'server'\n\
             server = { gpus = 1, nics = 1, nic_ports = 2, port_rate = '100Gbps' }\n\
             scale_out = { kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 4, host_rate = '100Gbps' }",
        );
        assert_eq!(racks.of_host, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(racks.uplinks, Some(Rate::from_gbps(800)));
    }

    /// The rack of a GPU that shares a NIC is its leaf: two servers of two GPUs. Each leaf has one link up.
    #[test]
    fn a_shared_nic_is_no_rack() {
        let racks = racks_of(
            "kind = 'cluster'\nservers = 4\nattach = 'server'\n\
             server = { gpus = 2, nics = 1, port_rate = '100Gbps' }\n\
             scale_out = { kind = 'leaf-spine', leaves = 2, spines = 1, hosts_per_leaf = 2, host_rate = '100Gbps' }",
        );
        assert_eq!(racks.of_host, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(racks.uplinks, Some(Rate::from_gbps(200)));
    }
}
