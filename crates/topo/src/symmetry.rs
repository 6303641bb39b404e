//! Symmetries: permutations of hosts and switches that leave a network unchanged.

use std::collections::BTreeMap;

use pathweave_units::HostId;

use crate::graph::{NodeId, PortRef, Topology};
use crate::scale_up::ScaleUp;

/// Permutation of nodes that maps every link to a link with the same rate, delay and error rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automorphism {
    /// Image of each node.
    image: Vec<NodeId>,
    /// Index in `ports` of the first entry of each node.
    first: Vec<u32>,
    /// Image of each port of each node: a port of the node's image.
    ports: Vec<u16>,
}

/// Properties of a port's link that a symmetry must preserve, out of the port and into it.
fn link_properties(topology: &Topology, port: &PortRef) -> [(u64, u64, u64); 2] {
    [topology.egress(port), topology.ingress(port)]
        .map(|way| (way.rate.as_bps(), way.delay.as_ps(), way.error_rate.to_bits()))
}

impl Automorphism {
    /// Finds the symmetry that maps host `h` to `hosts[h]`. Returns `None` if there is none or if the search finds
    /// none. The search maps switches from the hosts upwards, port by port, which suffices if ports are numbered as
    /// in regular networks. It then checks every link.
    ///
    /// # Panics
    /// Panics unless there is a number for each host.
    pub fn of_hosts(topology: &Topology, hosts: &[u32]) -> Option<Automorphism> {
        assert_eq!(hosts.len(), topology.hosts() as usize, "one for each host");
        if !topology.scale_up().is_none_or(|network| keeps_domains(network, hosts)) {
            return None;
        }
        let image = images(topology, hosts)?;
        let mut first = Vec::with_capacity(image.len());
        let mut ports = Vec::with_capacity(2 * topology.links().len());
        for node in (0..topology.nodes()).map(NodeId) {
            first.push(ports.len() as u32);
            ports.extend(images_of_ports(topology, &image, node)?);
        }
        Some(Automorphism { image, first, ports })
    }

    /// Returns the image of a node.
    pub fn node(&self, node: NodeId) -> NodeId {
        self.image[node.index()]
    }

    /// Returns the image of a host, which is a host.
    pub fn host(&self, host: HostId) -> HostId {
        HostId(self.image[host.index()].0)
    }

    /// Returns the image of a port of `node`, which is a port of [`Automorphism::node`].
    pub fn port(&self, node: NodeId, port: u16) -> u16 {
        self.ports[self.first[node.index()] as usize + usize::from(port)]
    }
}

/// Returns true if a permutation of the hosts maps each scale-up domain to one domain, such that hosts keep their
/// places in it. Where a switch joins hosts at equal rates, all hosts of a domain may move on by one place instead. Then
/// one of them represents the domain, and a link of its own has the traffic of each other one's.
fn keeps_domains(network: &ScaleUp, hosts: &[u32]) -> bool {
    let size = network.domain_size();
    let rate = network.links().first().map(|link| link.rate);
    let alike = network.chips() > 0 && network.links().iter().all(|link| Some(link.rate) == rate);
    hosts.chunks(size as usize).all(|images| {
        let domain = images[0] / size;
        let moved_by = |by: u32| {
            let image = |(place, &host): (u32, &u32)| host == domain * size + (place + by) % size;
            (0..).zip(images).all(image)
        };
        moved_by(0) || alike && moved_by(1)
    })
}

/// Returns the image of each node, if the images form a permutation.
fn images(topology: &Topology, hosts: &[u32]) -> Option<Vec<NodeId>> {
    let mut image: Vec<Option<NodeId>> = vec![None; topology.nodes() as usize];
    let mut taken = vec![false; image.len()];
    let mut known = Vec::with_capacity(image.len());
    for (host, &other) in (0..).map(NodeId).zip(hosts) {
        if other >= topology.hosts() || std::mem::replace(&mut taken[other as usize], true) {
            return None;
        }
        image[host.index()] = Some(NodeId(other));
        known.push(host);
    }
    // Each node determines the images of the switches at its ports. The first node that reaches a switch decides.
    let mut next = 0;
    while let Some(&node) = known.get(next) {
        next += 1;
        let there = image[node.index()].expect("what is known has an image");
        for (here, there) in topology.ports(node).iter().zip(topology.ports(there)) {
            if image[here.peer.index()].is_some() {
                continue;
            }
            if topology.is_host(there.peer) || std::mem::replace(&mut taken[there.peer.index()], true) {
                return None;
            }
            image[here.peer.index()] = Some(there.peer);
            known.push(here.peer);
        }
    }
    image.into_iter().collect()
}

/// Returns the image of each port of a node. Parallel links keep their order. Returns `None` if a link has no image.
fn images_of_ports(topology: &Topology, image: &[NodeId], node: NodeId) -> Option<Vec<u16>> {
    let there = topology.ports(image[node.index()]);
    if there.len() != topology.ports(node).len() {
        return None;
    }
    let key = |peer: NodeId, port: &PortRef| (peer, link_properties(topology, port));
    let mut left: BTreeMap<_, Vec<u16>> = BTreeMap::new();
    for (number, port) in (0u16..).zip(there).collect::<Vec<_>>().into_iter().rev() {
        left.entry(key(port.peer, port)).or_default().push(number);
    }
    let of = |port: &PortRef| left.get_mut(&key(image[port.peer.index()], port))?.pop();
    topology.ports(node).iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{FatTree, TopologyConfig};

    fn leaves() -> Topology {
        let config: TopologyConfig = serde_json::from_value(serde_json::json!({
            "kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4
        }))
        .unwrap();
        config.build(Path::new("")).unwrap()
    }

    /// Checks that every link has an image between the images of its ends, at the ports that the symmetry states.
    fn check(topology: &Topology, symmetry: &Automorphism) {
        for node in (0..topology.nodes()).map(NodeId) {
            for (number, port) in (0..).zip(topology.ports(node)) {
                let image = topology.ports(symmetry.node(node))[usize::from(symmetry.port(node, number))];
                assert_eq!(image.peer, symmetry.node(port.peer));
                assert_eq!(image.peer_port, symmetry.port(port.peer, port.peer_port));
                assert_eq!(link_properties(topology, &image), link_properties(topology, port));
            }
        }
    }

    #[test]
    fn leaves_and_hosts_of_a_leaf_change_places() {
        let topology = leaves();
        let leaf_on: Vec<u32> = (0..16).map(|host| (host + 4) % 16).collect();
        let symmetry = Automorphism::of_hosts(&topology, &leaf_on).expect("leaves are alike");
        check(&topology, &symmetry);
        assert_eq!(symmetry.host(HostId(15)), HostId(3));
        assert_eq!(symmetry.node(topology.switch_node(3)), topology.switch_node(0));
        // Hosts at the same leaf, in pairs.
        let swapped: Vec<u32> = (0..16).map(|host| host ^ 1).collect();
        let symmetry = Automorphism::of_hosts(&topology, &swapped).expect("hosts of a leaf are alike");
        check(&topology, &symmetry);
        assert_eq!(symmetry.node(topology.switch_node(2)), topology.switch_node(2));
    }

    #[test]
    fn a_permutation_that_splits_a_leaf_is_no_symmetry() {
        let topology = leaves();
        let by_one: Vec<u32> = (0..16).map(|host| (host + 1) % 16).collect();
        assert_eq!(Automorphism::of_hosts(&topology, &by_one), None);
        let twice: Vec<u32> = (0..16).map(|host| host / 2).collect();
        assert_eq!(Automorphism::of_hosts(&topology, &twice), None);
    }

    #[test]
    fn pods_of_a_fat_tree_change_places_whole() {
        let topology = TopologyConfig::FatTree(FatTree::k_ary(4)).build(Path::new("")).unwrap();
        let by = |shift: u32| (0..16).map(|host| (host + shift) % 16).collect::<Vec<u32>>();
        check(&topology, &Automorphism::of_hosts(&topology, &by(4)).expect("pods are alike"));
        // Some hosts would stay in their pod and some would not.
        assert_eq!(Automorphism::of_hosts(&topology, &by(2)), None);
    }

    /// Two servers of four GPUs at one switch: they change places, and the GPUs of all servers move on by one.
    #[test]
    fn scale_up_domains_stay_together() {
        let of = |scale_up: serde_json::Value| {
            let config: TopologyConfig = serde_json::from_value(serde_json::json!({
                "kind": "cluster", "servers": 2, "attach": "server",
                "server": { "gpus": 4, "nics": 4, "port_rate": "400Gbps", "scale_up": scale_up },
                "scale_out": { "kind": "star", "hosts": 8, "rate": "400Gbps" }
            }))
            .unwrap();
            config.build(Path::new("")).unwrap()
        };
        let switch = of(serde_json::json!({ "kind": "switch", "rate": "3600Gbps" }));
        let found = |topology: &Topology, image: [u32; 8]| Automorphism::of_hosts(topology, &image).is_some();
        assert!(found(&switch, [4, 5, 6, 7, 0, 1, 2, 3]));
        assert!(found(&switch, [1, 2, 3, 0, 5, 6, 7, 4]));
        assert!(found(&switch, [5, 6, 7, 4, 0, 1, 2, 3]));
        assert!(!found(&switch, [2, 3, 0, 1, 6, 7, 4, 5]), "two GPUs would represent a domain");
        assert!(!found(&switch, [1, 2, 3, 4, 5, 6, 7, 0]), "a server would be torn apart");
        let mesh = of(serde_json::json!({ "kind": "full-mesh", "rate": "400Gbps" }));
        assert!(found(&mesh, [4, 5, 6, 7, 0, 1, 2, 3]) && !found(&mesh, [1, 2, 3, 0, 5, 6, 7, 4]));
    }

    #[test]
    fn a_slow_link_has_no_other_to_take_its_place() {
        let topology = leaves();
        let mut links = topology.links().to_vec();
        let uplink = links.iter().position(|link| !topology.is_host(link.a) && !topology.is_host(link.b));
        links[uplink.expect("leaves have uplinks")].rate = pathweave_units::Rate::from_gbps(1);
        let topology = Topology::new("slow", 16, topology.switches().to_vec(), links).unwrap();
        let leaf_on: Vec<u32> = (0..16).map(|host| (host + 4) % 16).collect();
        assert_eq!(Automorphism::of_hosts(&topology, &leaf_on), None);
    }
}
