//! Environment of workloads: the properties of the network that their generators need.

use std::collections::BTreeMap;
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

/// Groups hosts into racks: a rack is a switch with the hosts whose first port leads to it.
fn racks(topology: &Topology) -> Racks {
    let mut number_of: BTreeMap<NodeId, u32> = BTreeMap::new();
    let mut racks = Racks { of_host: Vec::new(), pods: Vec::new(), uplinks: None };
    for host in 0..topology.hosts() {
        let switch = topology.ports(NodeId(host))[0].peer;
        let next = number_of.len() as u32;
        racks.of_host.push(*number_of.entry(switch).or_insert(next));
        let group = topology.switch_index(switch).and_then(|index| topology.switches()[index].group);
        racks.pods.push(group.unwrap_or(0));
    }
    for &switch in number_of.keys() {
        let up = topology.ports(switch).iter().filter(|port| !topology.is_host(port.peer));
        for port in up {
            let sum = racks.uplinks.unwrap_or(Rate::ZERO);
            racks.uplinks = Some(sum.saturating_add(topology.egress(port).rate));
        }
    }
    racks
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
}
