//! Servers of a network, as an engineer checks them before buying: attachment, hops by rail, ports and cables.

use pathweave_topo::{Cable, NodeId, PathFinder, ScaleUp, Servers, Topology};
use pathweave_units::HostId;
use serde::Serialize;

/// Servers of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerSize {
    /// Number of servers.
    pub servers: u32,
    /// GPUs of a server.
    pub gpus: u32,
    /// NICs of a server.
    pub nics: u32,
    /// Ports of a NIC.
    pub nic_ports: u32,
    /// Planes of the scale-out network; 1 if it is one network.
    pub planes: u32,
    /// Rate of the NIC ports of GPU 0 in Gb/s.
    pub gpu_ports_gbps: f64,
    /// Network that joins the GPUs; absent if only NICs do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUpSize>,
    /// Leaves of the first two servers, in the order of their NICs and ports.
    pub leaves: Vec<Vec<String>>,
    /// Hops between GPUs of different servers.
    pub hops: Vec<ServerHops>,
    /// Parts of servers that are nodes: shared NICs, or PCIe links. They are the switches of tier 0.
    pub nodes: u32,
    /// NIC ports that are attached.
    pub attached_ports: u64,
    /// Switch ports in use.
    pub switch_ports: u64,
    /// Cables between NICs and switches, and between switches.
    pub cables: u64,
}

/// Scale-up network of a server or rack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleUpSize {
    /// GPUs that it joins.
    pub domain: u32,
    /// Usable rate of all links of a GPU in one direction, in Gb/s: the least of all GPUs.
    pub gpu_gbps: f64,
    /// The same of the GPU with the most; absent if all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_gpu_gbps: Option<f64>,
    /// Latency of a message in nanoseconds.
    pub delay_ns: f64,
}

/// Distance from GPU 0 of server 0 to a GPU of another server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerHops {
    /// Name of the GPU.
    pub to: String,
    /// Links on a shortest path.
    pub hops: u32,
    /// Number of shortest paths.
    pub paths: u64,
}

impl ServerSize {
    /// Returns the servers of a topology, if it has any.
    pub(crate) fn new(topology: &Topology, finder: &mut PathFinder<'_>) -> Option<ServerSize> {
        let servers = topology.servers()?;
        let scale_up = servers.any_scale_up().map(scale_up_size);
        let sum =
            |ports: fn(&Cable<'_>) -> u32| topology.cables().map(|cable| u64::from(ports(&cable))).sum();
        Some(ServerSize {
            servers: servers.count(),
            gpus: servers.gpus(),
            nics: servers.nics(),
            nic_ports: servers.nic_ports(),
            planes: servers.planes(),
            gpu_ports_gbps: gbps(topology.scale_out_rate(HostId(0)).as_bps()),
            scale_up,
            leaves: (0..servers.count().min(2)).map(|server| leaves(topology, servers, server)).collect(),
            hops: hops(topology, servers, finder),
            nodes: servers.parts(),
            attached_ports: sum(|cable| cable.host_ports),
            switch_ports: sum(|cable| cable.switch_ports),
            cables: topology.cables().count() as u64,
        })
    }
}

fn scale_up_size(network: &ScaleUp) -> ScaleUpSize {
    let rates = || (0..network.domain_size()).map(|gpu| network.rate_of(HostId(gpu)).as_bps());
    let (least, most) = (rates().min().unwrap_or(0), rates().max().unwrap_or(0));
    ScaleUpSize {
        domain: network.domain_size(),
        gpu_gbps: gbps(least),
        most_gpu_gbps: (most > least).then(|| gbps(most)),
        delay_ns: network.delay().as_ps() as f64 / 1e3,
    }
}

fn gbps(bps: u64) -> f64 {
    bps as f64 / 1e9
}

/// Returns the names of the leaves of a server, each once.
fn leaves(topology: &Topology, servers: &Servers, server: u32) -> Vec<String> {
    let mut leaves = Vec::new();
    let mut add = |node: NodeId| {
        let name = topology.node_name(node).into_owned();
        if !leaves.contains(&name) {
            leaves.push(name);
        }
    };
    for host in server * servers.gpus()..(server + 1) * servers.gpus() {
        for port in topology.ports(NodeId(host)) {
            if topology.is_network_switch(port.peer) {
                add(port.peer);
            } else if !topology.is_host(port.peer) {
                let beyond = topology.ports(port.peer).iter().map(|port| port.peer);
                beyond.filter(|node| topology.is_network_switch(*node)).for_each(&mut add);
            }
        }
    }
    leaves
}

/// Returns the distances from GPU 0 to the GPUs of the next server outside its scale-up domain: GPU 0 (on its rail)
/// and the first with another NIC (off it), and to GPU 0 of the last server.
fn hops(topology: &Topology, servers: &Servers, finder: &mut PathFinder<'_>) -> Vec<ServerHops> {
    let next = servers.any_scale_up().map_or(servers.gpus(), ScaleUp::domain_size);
    let last = (servers.count() - 1) * servers.gpus();
    let mut targets = vec![next, last];
    targets.extend(off_rail(topology, servers).map(|gpu| next + gpu));
    targets.retain(|&target| target >= next && target < topology.hosts());
    targets.sort_unstable();
    targets.dedup();
    let of = |target: u32| {
        let pair = finder.pair(HostId(0), HostId(target), 0)?;
        let to = topology.node_name(NodeId(target)).into_owned();
        Some(ServerHops { to, hops: pair.hops, paths: pair.paths })
    };
    targets.into_iter().filter_map(of).collect()
}

/// Returns the first GPU of a server that does not share the NIC of GPU 0, if there is one.
fn off_rail(topology: &Topology, servers: &Servers) -> Option<u32> {
    let nic = |gpu: u32| topology.shared_nic(HostId(gpu)).map(|(nic, _)| nic);
    (1..servers.gpus()).find(|&gpu| nic(gpu).is_none() || nic(gpu) != nic(0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_topo::{
        Build, Cluster, LeafSpine, LinkList, ListedLink, Routing, ScaleUpConfig, Server, Star, TopologyConfig,
    };
    use pathweave_units::{Duration, Rate};

    use super::*;

    /// Returns the GPUs and hops from GPU 0 of four servers with two units of two, whose leaves hold a rail each.
    fn hops_of(server: Server) -> Vec<(String, u32)> {
        let nics = server.nics.unwrap();
        let scale_out = TopologyConfig::LeafSpine(LeafSpine::new(2 * nics, 2, 2));
        let cluster = Cluster { unit: Some(2), ..Cluster::new(4, server, scale_out) };
        let topology = cluster.build(Path::new("")).unwrap();
        let routing = Routing::all_links_up(&topology);
        let size = ServerSize::new(&topology, &mut PathFinder::new(&topology, &routing)).unwrap();
        size.hops.into_iter().map(|to| (to.to, to.hops)).collect()
    }

    fn server(gpus: u32, nics: u32) -> Server {
        Server { gpus: Some(gpus), nics: Some(nics), ..Server::default() }
    }

    /// GPU 1 is off the rail of GPU 0, unless both share a NIC: then the first GPU with another NIC is, if there is one.
    /// A NIC that is shared is a node, which adds a link at each end.
    #[test]
    fn hops_on_and_off_the_rail() {
        let all =
            |hops: &[(&str, u32)]| hops.iter().map(|&(to, hops)| (to.to_owned(), hops)).collect::<Vec<_>>();
        assert_eq!(hops_of(server(4, 4)), all(&[("srv1.gpu0", 2), ("srv1.gpu1", 4), ("srv3.gpu0", 4)]));
        assert_eq!(hops_of(server(4, 2)), all(&[("srv1.gpu0", 4), ("srv1.gpu2", 6), ("srv3.gpu0", 6)]));
        assert_eq!(hops_of(server(4, 1)), all(&[("srv1.gpu0", 4), ("srv3.gpu0", 6)]));
        let swapped = Server { nic_of_gpu: Some(vec![0, 1, 1, 0]), ..server(4, 2) };
        assert_eq!(hops_of(swapped)[1], ("srv1.gpu1".to_owned(), 6));
    }

    /// A chain of three GPUs: the one in the middle has two links of 100 Gb/s, in a ring each has two.
    #[test]
    fn gpus_with_unequal_links_have_a_range_of_rates() {
        let link = |a, b| ListedLink { gpus: [a, b], rate: Rate::from_gbps(100) };
        let (delay, efficiency, packets) = (Duration::from_ns(250), 1.0, false);
        let chain = |links| ScaleUpConfig::List(LinkList { links, delay, efficiency, packets });
        let rates = |links| {
            let server = Server { scale_up: Some(chain(links)), ..server(3, 1) };
            let cluster = Cluster::new(1, server, TopologyConfig::Star(Star::new(1)));
            let topology = cluster.build(Path::new("")).unwrap();
            let size = scale_up_size(topology.scale_up().unwrap());
            (size.gpu_gbps, size.most_gpu_gbps)
        };
        assert_eq!(rates(vec![link(0, 1), link(1, 2)]), (100.0, Some(200.0)));
        assert_eq!(rates(vec![link(0, 1), link(1, 2), link(0, 2)]), (200.0, None));
    }
}
