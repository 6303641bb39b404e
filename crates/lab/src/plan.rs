//! Plan of a lab, computed from a topology without touching the system.
//!
//! Every node is a network namespace with one address on its loopback device. Links have no addresses. A port is a
//! veth device `p0`, `p1`, ... in the order of the topology's ports. Its hardware address follows from its link, so
//! neighbour entries are static and need no resolution. Routes are those of the simulator ([`Routing`]): for each
//! host, the ports on shortest paths, as equal-cost next hops.

use std::net::Ipv4Addr;

use pathweave_topo::{LinkId, NodeId, Routing, Topology};
use pathweave_units::{HostId, Rate};

use crate::error::LabError;
use crate::label::{LinkEnd, LinkLabel, NodeLabel};
use crate::name::LabName;
use crate::settings::{MIN_RATE, Settings};

/// Largest number of hosts and switches of a lab.
pub const MAX_LAB_NODES: usize = 512;
/// Largest number of links of a lab.
pub const MAX_LAB_LINKS: usize = 2_048;

/// Hardware address.
pub(crate) type Mac = [u8; 6];

/// Plan of a lab: all items to create.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    lab: LabName,
    topology: Topology,
    settings: Settings,
    nodes: Vec<NodePlan>,
}

/// Host or switch with its namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePlan {
    /// Name in the topology.
    pub name: String,
    /// Name of the network namespace.
    pub namespace: String,
    /// Role of the node.
    pub role: NodeRole,
    /// Only address of the node, on the loopback device.
    pub address: Ipv4Addr,
    /// Ports in the topology's order.
    pub ports: Vec<PortPlan>,
}

/// Role of a node in forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Forwards nothing.
    Host,
    /// Forwards packets. Chooses among equal-cost routes by a hash with this seed.
    Switch {
        /// Seed, different for each switch. With equal seeds, successive tiers would repeat each other's choice.
        hash_seed: u32,
    },
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPlan {
    /// Name of the device: "p0".
    pub device: String,
    /// Link at the port.
    pub link: LinkId,
    pub(crate) end: LinkEnd,
    pub(crate) mac: Mac,
    /// Node at the other end.
    pub peer: NodeId,
    /// Port at the other end.
    pub peer_port: u16,
    pub(crate) peer_mac: Mac,
    /// Rate of the link in the lab.
    pub rate: Rate,
}

/// Route to a host or to all hosts, over any of a node's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePlan {
    /// Address of the host, or of the subnet of all hosts.
    pub to: Ipv4Addr,
    /// Prefix length: 32 or 16.
    pub prefix: u8,
    /// Ports on shortest paths, in ascending order; empty if the destination is unreachable.
    pub ports: Vec<u16>,
}

impl Plan {
    /// Plans a lab.
    ///
    /// # Errors
    ///
    /// Settings out of range, more than [`MAX_LAB_NODES`] nodes or [`MAX_LAB_LINKS`] links, a node whose name is too
    /// long for a namespace, or a link that would be slower than 100 kb/s.
    pub fn new(lab: LabName, topology: Topology, settings: Settings) -> Result<Plan, LabError> {
        settings.validate()?;
        let sizes = [
            ("hosts and switches", topology.nodes() as usize, MAX_LAB_NODES),
            ("links", topology.links().len(), MAX_LAB_LINKS),
        ];
        if let Some(&(what, found, most)) = sizes.iter().find(|(_, found, most)| found > most) {
            return Err(LabError::TooLarge { what, found, most });
        }
        if let Some(link) = topology.one_way_link() {
            return Err(LabError::Value {
                what: "link",
                value: topology.link_name(link),
                allowed: "links of a lab have the same rate and error rate in both directions".to_owned(),
            });
        }
        let slowest = topology.links().iter().map(|link| link.rate).min().unwrap_or(MIN_RATE);
        if settings.rate_scale.apply(slowest) < MIN_RATE {
            let least = MIN_RATE.as_bps() as f64 / slowest.as_bps() as f64;
            let allowed = format!(
                "the slowest link ({slowest}) would have {}; links need at least {MIN_RATE}, so a scale of {least} or \
                 more",
                settings.rate_scale.apply(slowest)
            );
            return Err(LabError::Value {
                what: "rate scale",
                value: settings.rate_scale.to_string(),
                allowed,
            });
        }
        let nodes = (0..topology.nodes()).map(|node| NodePlan::new(&lab, &topology, &settings, NodeId(node)));
        let nodes = nodes.collect::<Result<_, _>>()?;
        Ok(Plan { lab, topology, settings, nodes })
    }

    /// Returns the lab's name.
    pub fn lab(&self) -> &LabName {
        &self.lab
    }
    /// Returns the network that the lab represents.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
    /// Returns the settings of the lab.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// Returns the hosts and switches in the topology's order.
    pub fn nodes(&self) -> &[NodePlan] {
        &self.nodes
    }
    /// Returns a node.
    pub fn node(&self, node: NodeId) -> &NodePlan {
        &self.nodes[node.index()]
    }

    /// Returns both ends of a link as node and port, beginning with the topology's `a`.
    pub fn ends(&self, link: LinkId) -> [(NodeId, u16); 2] {
        let a = self.topology.link(link).a;
        let ports = self.node(a).ports.iter().zip(0..);
        let (port, number) = ports
            .into_iter()
            .find(|(port, _)| port.link == link && port.end == LinkEnd::A)
            .expect("the topology gave node a of a link a port to it");
        [(a, number), (port.peer, port.peer_port)]
    }

    /// Returns the routes of a node to every other host. A host with one port has a single route to all.
    pub fn routes(&self, routing: &Routing, node: NodeId) -> Vec<RoutePlan> {
        if self.topology.is_host(node) && self.node(node).ports.len() == 1 {
            return vec![RoutePlan { to: HOSTS, prefix: HOSTS_PREFIX, ports: vec![0] }];
        }
        let hosts = (0..self.topology.hosts()).map(HostId).filter(|host| host.0 != node.0);
        hosts
            .map(|host| RoutePlan {
                to: self.node(host.into()).address,
                prefix: 32,
                ports: routing.from_node(node, host).iter().collect(),
            })
            .collect()
    }

    pub(crate) fn node_label(&self, node: NodeId) -> NodeLabel {
        NodeLabel {
            node: node.0,
            hosts: self.topology.hosts(),
            nodes: self.topology.nodes(),
            // At most MAX_LAB_LINKS.
            links: self.topology.links().len() as u32,
            settings: self.settings.clone(),
            topology: self.topology.name().to_owned(),
        }
    }
    pub(crate) fn link_label(&self, port: &PortPlan) -> LinkLabel {
        LinkLabel::new(port.link, port.end, self.topology.link(port.link))
    }
}

impl NodePlan {
    fn new(
        lab: &LabName,
        topology: &Topology,
        settings: &Settings,
        node: NodeId,
    ) -> Result<NodePlan, LabError> {
        let name = topology.node_name(node).into_owned();
        let ports = topology.ports(node).iter().enumerate().map(|(number, port)| {
            let end = if port.is_a { LinkEnd::A } else { LinkEnd::B };
            let other = if port.is_a { LinkEnd::B } else { LinkEnd::A };
            PortPlan {
                device: format!("p{number}"),
                link: port.link,
                end,
                mac: mac(port.link, end),
                peer: port.peer,
                peer_port: port.peer_port,
                peer_mac: mac(port.link, other),
                rate: settings.rate_scale.apply(topology.link(port.link).rate),
            }
        });
        Ok(NodePlan {
            namespace: lab.namespace(&name)?,
            role: match topology.switch_index(node) {
                None => NodeRole::Host,
                Some(index) => NodeRole::Switch { hash_seed: hash_seed(index as u32) },
            },
            address: address(topology, node),
            ports: ports.collect(),
            name,
        })
    }
}

/// Subnet of all hosts.
const HOSTS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 0);
/// Prefix length of the subnet of all hosts.
pub(crate) const HOSTS_PREFIX: u8 = 16;

/// Returns the address of a node: 10.1.0.1 and so on for hosts, 10.2.0.1 and so on for switches, 250 in each block.
/// Each lab is a separate network, so addresses of different labs do not conflict.
fn address(topology: &Topology, node: NodeId) -> Ipv4Addr {
    /// Number of addresses in a block, with last bytes 1 to 250.
    const BLOCK: u32 = 250;
    let (net, number) = match topology.switch_index(node) {
        None => (1, node.0),
        Some(index) => (2, index as u32),
    };
    // The block number is far below 256 because of MAX_LAB_NODES.
    Ipv4Addr::new(10, net, (number / BLOCK) as u8, (number % BLOCK + 1) as u8)
}

/// Returns a locally administered hardware address: the link's number, then the end.
fn mac(link: LinkId, end: LinkEnd) -> Mac {
    let [_, b1, b2, b3] = link.0.to_be_bytes();
    [0x02, 0x70, b1, b2, b3, if end == LinkEnd::A { 0x0a } else { 0x0b }]
}

/// Returns the hash seed of a switch by multiplicative hashing (Knuth): seeds of consecutive switches are not
/// correlated. Never 0, which means "any" to the kernel.
fn hash_seed(switch: u32) -> u32 {
    (switch + 1).wrapping_mul(0x9e37_79b1) | 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::settings::RateScale;
    use pathweave_topo::{Build, FatTree, LeafSpine, Star, parse_topology_file};
    use proptest::prelude::*;

    fn plan(topology: Topology) -> Plan {
        Plan::new("t".parse().unwrap(), topology, Settings::new("1/1000".parse().unwrap())).unwrap()
    }
    fn leaf_spine(spines: u32) -> Topology {
        LeafSpine::new(2, spines, 2).build(Path::new(".")).unwrap()
    }

    /// Two leaves, two spines, two hosts a leaf: complete plan, computed by hand.
    #[test]
    fn a_small_leaf_spine() {
        let plan = plan(leaf_spine(2));
        let routing = Routing::all_links_up(plan.topology());
        let mut text = String::new();
        for (node, id) in plan.nodes().iter().zip((0..).map(NodeId)) {
            text += &format!("{} {}", node.namespace, node.address);
            for port in &node.ports {
                text += &format!(" {}:{}@{}", port.device, plan.node(port.peer).name, port.rate);
            }
            for route in plan.routes(&routing, id) {
                text += &format!(" {}/{}>{:?}", route.to, route.prefix, route.ports);
            }
            text += "\n";
        }
        assert_eq!(
            text,
            "pw.t.host0 10.1.0.1 p0:leaf0@100Mbps 10.1.0.0/16>[0]\n\
             pw.t.host1 10.1.0.2 p0:leaf0@100Mbps 10.1.0.0/16>[0]\n\
             pw.t.host2 10.1.0.3 p0:leaf1@100Mbps 10.1.0.0/16>[0]\n\
             pw.t.host3 10.1.0.4 p0:leaf1@100Mbps 10.1.0.0/16>[0]\n\
             pw.t.leaf0 10.2.0.1 p0:host0@100Mbps p1:host1@100Mbps p2:spine0@100Mbps p3:spine1@100Mbps \
             10.1.0.1/32>[0] 10.1.0.2/32>[1] 10.1.0.3/32>[2, 3] 10.1.0.4/32>[2, 3]\n\
             pw.t.leaf1 10.2.0.2 p0:host2@100Mbps p1:host3@100Mbps p2:spine0@100Mbps p3:spine1@100Mbps \
             10.1.0.1/32>[2, 3] 10.1.0.2/32>[2, 3] 10.1.0.3/32>[0] 10.1.0.4/32>[1]\n\
             pw.t.spine0 10.2.0.3 p0:leaf0@100Mbps p1:leaf1@100Mbps \
             10.1.0.1/32>[0] 10.1.0.2/32>[0] 10.1.0.3/32>[1] 10.1.0.4/32>[1]\n\
             pw.t.spine1 10.2.0.4 p0:leaf0@100Mbps p1:leaf1@100Mbps \
             10.1.0.1/32>[0] 10.1.0.2/32>[0] 10.1.0.3/32>[1] 10.1.0.4/32>[1]\n"
        );
    }

    /// For every topology: both ends of a link agree, and addresses, seeds and hardware addresses are distinct.
    fn check(plan: &Plan) {
        let mut seen = BTreeSet::new();
        for (node, id) in plan.nodes().iter().zip((0..).map(NodeId)) {
            assert!(seen.insert(node.namespace.clone()) && seen.insert(node.address.to_string()));
            if let NodeRole::Switch { hash_seed } = node.role {
                assert!(hash_seed != 0 && seen.insert(format!("seed {hash_seed}")));
            }
            for (port, number) in node.ports.iter().zip(0u16..) {
                assert!(seen.insert(format!("{:?}", port.mac)));
                let other = &plan.node(port.peer).ports[usize::from(port.peer_port)];
                assert_eq!((other.peer, other.peer_port, other.link), (id, number, port.link));
                assert_eq!((other.peer_mac, other.mac), (port.mac, port.peer_mac));
                assert!(plan.ends(port.link).contains(&(id, number)));
            }
        }
    }

    proptest! {
        #[test]
        fn ends_agree_and_names_differ(leaves in 1u32..5, spines in 1u32..5, hosts in 1u32..8, bundle in 1u32..4) {
            let config = LeafSpine { leaf_spine_links: bundle, ..LeafSpine::new(leaves, spines, hosts) };
            check(&plan(config.build(Path::new(".")).unwrap()));
        }
    }

    #[test]
    fn other_kinds_are_planned_too() {
        check(&plan(FatTree::k_ary(4).build(Path::new(".")).unwrap()));
        check(&plan(FatTree::k_ary(8).build(Path::new(".")).unwrap()));
        let file = "host_names = [\"gpu/0\", \"gpu/1\"]\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
            [[switch]]\nname = \"s\"\n[[link]]\na = \"gpu/0\"\nb = \"s\"\ncount = 2\n[[link]]\na = \"gpu/1\"\nb = \"s\"\n";
        let two_ports = plan(parse_topology_file("f.toml", file).unwrap());
        check(&two_ports);
        let routing = Routing::all_links_up(two_ports.topology());
        assert_eq!(two_ports.routes(&routing, NodeId(0))[0].ports, [0, 1]);
        assert_eq!(two_ports.node(NodeId(0)).namespace, "pw.t.gpu%2F0");
    }

    #[test]
    fn routes_without_a_link_avoid_it() {
        let plan = plan(leaf_spine(2));
        let dead = plan.topology().link_by_name("leaf1-spine0").unwrap();
        let routing = Routing::compute(plan.topology(), &|link| link != dead);
        let leaf0 = plan.topology().node_by_name("leaf0").unwrap();
        let to_host2 = &plan.routes(&routing, leaf0)[2];
        assert_eq!((to_host2.to, &to_host2.ports[..]), (Ipv4Addr::new(10, 1, 0, 3), &[3][..]));
    }

    #[test]
    fn addresses_of_many_hosts_end_between_1_and_250() {
        let star = Star::new(510).build(Path::new(".")).unwrap();
        let plan = plan(star);
        check(&plan);
        assert_eq!(plan.node(NodeId(249)).address, Ipv4Addr::new(10, 1, 0, 250));
        assert_eq!(plan.node(NodeId(250)).address, Ipv4Addr::new(10, 1, 1, 1));
    }

    #[test]
    fn too_large_and_too_slow_are_refused() {
        let lab = || "t".parse::<LabName>().unwrap();
        let large = FatTree::k_ary(16).build(Path::new(".")).unwrap();
        let error = Plan::new(lab(), large, Settings::new(RateScale::FULL)).unwrap_err().to_string();
        assert_eq!(error, "1344 hosts and switches; a lab may have at most 512: choose a smaller topology");
        let slow = Settings::new("1/10000000".parse().unwrap());
        let error = Plan::new(lab(), leaf_spine(2), slow).unwrap_err().to_string();
        assert!(error.contains("(100Gbps) would have 10Kbps; links need at least 100Kbps"), "{error}");
        assert!(error.contains("a scale of 0.000001 or more"), "{error}");
    }
}
