//! Cables of a network: the links outside servers, and the switches that they join.

use crate::graph::{Link, NodeId, Topology};

/// Cable of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cable<'a> {
    /// Link over the cable.
    pub link: &'a Link,
    /// Number of ends at switches of the network, 0 to 2.
    pub switch_ports: u32,
    /// Number of ends at hosts or at their NICs: the others.
    pub host_ports: u32,
}

impl Topology {
    /// Returns true if a node is a switch of the network. Shared NICs, PCIe links, and the chips and routers of scale-up
    /// networks are nodes that are parts of servers instead.
    pub fn is_network_switch(&self, node: NodeId) -> bool {
        let in_server = |switch| self.servers().is_some_and(|of| of.has_part(switch) || of.has_chip(switch));
        self.switch_index(node).is_some_and(|switch| !in_server(switch))
    }

    /// Returns the number of switches of the network, without parts of servers.
    pub fn network_switches(&self) -> u32 {
        (self.hosts()..self.nodes()).filter(|&node| self.is_network_switch(NodeId(node))).count() as u32
    }

    /// Iterates over the cables: all links but those inside servers, which are PCIe links and links of scale-up
    /// networks.
    pub fn cables(&self) -> impl Iterator<Item = Cable<'_>> {
        let links = match self.servers() {
            Some(servers) => &self.links()[servers.cables.clone()],
            None => self.links(),
        };
        links.iter().map(|link| {
            let switches = [link.a, link.b].into_iter().filter(|&node| self.is_network_switch(node));
            let switch_ports = switches.count() as u32;
            Cable { link, switch_ports, host_ports: 2 - switch_ports }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pathweave_units::{Duration, Rate};

    use crate::build::{
        Build, Cluster, FatTree, LeafSpine, LinkList, ListedLink, ScaleUpConfig, Server, TopologyConfig,
    };
    use crate::graph::Topology;

    /// Returns the numbers of switches, cables, switch ports and host ports.
    fn counts(topology: &Topology) -> [u32; 4] {
        let sum = |ports: fn(&super::Cable<'_>) -> u32| topology.cables().map(|cable| ports(&cable)).sum();
        let cables = topology.cables().count() as u32;
        [topology.network_switches(), cables, sum(|cable| cable.switch_ports), sum(|cable| cable.host_ports)]
    }

    fn cluster(server: Server, scale_out: TopologyConfig) -> Topology {
        Cluster::new(4, server, scale_out).build(Path::new("")).unwrap()
    }

    fn server(gpus: u32, nics: u32) -> Server {
        Server { gpus: Some(gpus), nics: Some(nics), ..Server::default() }
    }

    fn rails(leaves: u32) -> TopologyConfig {
        TopologyConfig::LeafSpine(LeafSpine::new(leaves, 4, 4))
    }

    /// Four servers on L leaves of four hosts and four spines have 4 L cables to NICs and 4 L between switches, with
    /// 3 ports of switches for each two of these. The nodes of NICs and PCIe links are no switches, and the links to them
    /// no cables.
    #[test]
    fn parts_of_servers_are_neither_switches_nor_cables() {
        assert_eq!(counts(&cluster(server(8, 4), rails(4))), [8, 32, 48, 16], "shared NICs");
        assert_eq!(counts(&cluster(server(8, 8), rails(8))), [12, 64, 96, 32], "own NICs");
        let slow = Server { pcie_rate: Some(Rate::from_gbps(50)), ..server(4, 4) };
        let slow = cluster(slow, rails(4));
        assert_eq!((slow.links().len(), counts(&slow)), (48, [8, 32, 48, 16]), "PCIe links");
    }

    /// A link of two GPUs inside each server carries packets. It joins them without a switch, or, in a chain of three, by
    /// their routers.
    #[test]
    fn scale_up_links_of_packets_are_no_cables() {
        let link = |a, b| ListedLink { gpus: [a, b], rate: Rate::from_gbps(900) };
        let list = |links| {
            let (delay, efficiency, packets) = (Duration::from_ns(250), 1.0, true);
            Some(ScaleUpConfig::List(LinkList { links, delay, efficiency, packets }))
        };
        for (gpus, links) in [(2, vec![link(0, 1)]), (3, vec![link(0, 1), link(1, 2)])] {
            let server = Server { scale_up: list(links), ..server(gpus, gpus) };
            let topology = cluster(server, rails(gpus));
            assert!(topology.links().len() as u32 > 8 * gpus);
            assert_eq!(counts(&topology), [4 + gpus, 8 * gpus, 12 * gpus, 4 * gpus]);
        }
    }

    /// Each of two ports of 16 NICs has a cable, in one network or in two planes. Parallel links are cables each.
    #[test]
    fn ports_planes_and_parallel_links_have_cables_of_their_own() {
        let dual = || Server { nic_ports: Some(2), ..server(4, 4) };
        assert_eq!(counts(&cluster(dual(), rails(8))), [12, 64, 96, 32]);
        let planes = Cluster { planes: true, ..Cluster::new(4, dual(), rails(4)) };
        assert_eq!(counts(&planes.build(Path::new("")).unwrap()), [16, 64, 96, 32]);
        let parallel = LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(4, 4, 4) };
        assert_eq!(counts(&cluster(server(4, 4), TopologyConfig::LeafSpine(parallel))), [8, 48, 80, 16]);
    }

    /// A fat tree of k = 4 has 20 switches with four ports each, of which 16 lead to hosts.
    #[test]
    fn all_links_of_a_network_without_servers_are_cables() {
        assert_eq!(counts(&FatTree::k_ary(4).build(Path::new("")).unwrap()), [20, 48, 80, 16]);
    }
}
