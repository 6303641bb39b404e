//! NICs beside GPUs, in the graph of a topology.

use std::collections::BTreeSet;

use pathweave_topo::{ScaleUp, Servers, Topology};
use pathweave_units::{HostId, Rate};

/// NICs of the servers of a topology, by the GPUs that they are beside.
#[derive(Clone, Copy)]
pub(super) struct LocalNics<'a> {
    topology: &'a Topology,
    servers: &'a Servers,
}

impl<'a> LocalNics<'a> {
    pub(super) fn new(topology: &'a Topology, servers: &'a Servers) -> Self {
        LocalNics { topology, servers }
    }

    /// Returns the part of the server between a GPU and the network, by the index of its switch: a NIC that GPUs share,
    /// or a PCIe link. `None` if the ports of the NICs are the GPU's own.
    fn part(self, gpu: HostId) -> Option<usize> {
        let mut peers = self.topology.ports(gpu.into()).iter().map(|port| port.peer);
        peers
            .find_map(|peer| self.topology.switch_index(peer).filter(|&switch| self.servers.has_part(switch)))
    }

    /// Returns the ports of a part of a server that lead to the network.
    fn ports_beyond(self, part: usize) -> impl Iterator<Item = Rate> + 'a {
        let topology = self.topology;
        let ports = topology.ports(topology.switch_node(part)).iter();
        ports.filter(move |port| !topology.is_host(port.peer)).map(move |port| topology.link(port.link).rate)
    }

    /// Returns the number of NICs beside a GPU.
    fn beside(self, gpu: HostId) -> usize {
        match self.part(gpu) {
            Some(part) => (self.ports_beyond(part).count() / self.servers.nic_ports() as usize).max(1),
            None => (self.servers.nics() / self.servers.gpus()) as usize,
        }
    }

    /// Returns the number, in its scale-up domain or server, of what leads a GPU to the network. GPUs of a domain with the
    /// same number share a NIC, and those of two domains are on one rail.
    pub(super) fn rail(self, gpu: HostId) -> usize {
        let domain = self.servers.any_scale_up().map_or(self.servers.gpus(), ScaleUp::domain_size);
        let domains = self.topology.hosts() / domain;
        match self.part(gpu) {
            Some(part) => part % (self.servers.parts() / domains) as usize,
            None => (gpu.0 % domain) as usize,
        }
    }

    /// Returns the GPU beside each NIC, by its place among `gpus`, which belong to one domain. A NIC that several share
    /// has the first of them. The first NICs of all GPUs precede the second ones, so that few channels use many GPUs.
    pub(super) fn entries(self, gpus: &[HostId]) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let mut of_nic = Vec::new();
        for (place, &gpu) in gpus.iter().enumerate() {
            if seen.insert(self.rail(gpu)) {
                of_nic.push((place, self.beside(gpu)));
            }
        }
        let most = of_nic.iter().map(|&(_, nics)| nics).max().unwrap_or(0);
        let with_more = |round: usize| of_nic.iter().filter(move |&&(_, nics)| nics > round);
        (0..most).flat_map(with_more).map(|&(place, _)| place).collect()
    }

    /// Returns the rate of a NIC, all its ports together.
    pub(super) fn rate(self) -> Rate {
        let first = HostId(0);
        match self.part(first) {
            // GPUs that share a NIC reach it over PCIe links of their own.
            Some(part) if self.servers.nics() < self.servers.gpus() => {
                self.ports_beyond(part).fold(Rate::ZERO, Rate::saturating_add)
            }
            _ => Rate::from_bps(self.topology.scale_out_rate(first).as_bps() / self.beside(first) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_topo::TopologyConfig;
    use serde_json::{Value, json};

    use super::*;

    /// Returns entries of some GPUs of two servers, the rails of all GPUs of the second one, and the rate of a NIC in
    /// Gb/s.
    fn of(server: Value, points: u32, gpus: &[u32]) -> (Vec<usize>, Vec<usize>, u64) {
        let config: TopologyConfig = serde_json::from_value(json!({
            "kind": "cluster", "servers": 2, "attach": "server", "server": server,
            "scale_out": {"kind": "star", "hosts": points, "rate": "100Gbps"}
        }))
        .unwrap();
        let topology = config.build(Path::new("")).unwrap();
        let servers = topology.servers().unwrap();
        let local = LocalNics::new(&topology, servers);
        let gpus: Vec<HostId> = gpus.iter().copied().map(HostId).collect();
        let rails = (servers.gpus()..2 * servers.gpus()).map(|gpu| local.rail(HostId(gpu))).collect();
        (local.entries(&gpus), rails, local.rate().as_bps() / 1_000_000_000)
    }

    /// GPUs 0 and 1 share NIC 0, GPUs 4 and 5 NIC 2: both 0 and 4 reach two NICs, and 0 and 1 reach one.
    #[test]
    fn gpus_of_a_server_share_nics() {
        let server = || json!({"gpus": 8, "nics": 4, "port_rate": "100Gbps", "pcie_rate": "252Gbps"});
        let rails = vec![0, 0, 1, 1, 2, 2, 3, 3];
        assert_eq!(of(server(), 8, &[0, 4]), (vec![0, 1], rails.clone(), 100));
        assert_eq!(of(server(), 8, &[8, 9]), (vec![0], rails.clone(), 100));
        assert_eq!(of(server(), 8, &[9, 10, 11, 13]).0, [0, 1, 3]);
        assert_eq!(of(server(), 8, &[0, 1, 2, 3, 4, 5, 6, 7]).0, [0, 2, 4, 6]);
        let mut given = server();
        given["nic_of_gpu"] = json!([3, 2, 1, 0, 0, 1, 2, 3]);
        assert_eq!(of(given, 8, &[0, 3, 4, 7]), (vec![0, 1], vec![3, 2, 1, 0, 0, 1, 2, 3], 100));
    }

    /// GPUs with NICs of their own, two each, of two ports of 50 Gb/s. A slow PCIe link bounds both together.
    #[test]
    fn gpus_have_nics_of_their_own() {
        let server = || json!({"gpus": 4, "nics": 8, "nic_ports": 2, "port_rate": "50Gbps"});
        let expected = vec![0, 1, 0, 1];
        assert_eq!(of(server(), 32, &[1, 3]), (expected.clone(), vec![0, 1, 2, 3], 100));
        let mut slow = server();
        slow["pcie_rate"] = json!("128Gbps");
        assert_eq!(of(slow, 32, &[1, 3]), (expected, vec![0, 1, 2, 3], 64));
    }
}
