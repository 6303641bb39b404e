//! Tests of clusters against counts by hand.

use std::collections::BTreeSet;
use std::path::Path;

use pathweave_units::{Duration, HostId, Rate};

use super::*;
use crate::{LeafSpine, NodeId, PathFinder, Routing, Star, TopologyConfig, leading_ports};

fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32) -> TopologyConfig {
    TopologyConfig::LeafSpine(LeafSpine {
        host_rate: Rate::from_gbps(400),
        ..LeafSpine::new(leaves, spines, hosts_per_leaf)
    })
}

fn server(gpus: u32, nics: u32, nic_ports: u32) -> Server {
    Server { gpus: Some(gpus), nics: Some(nics), nic_ports: Some(nic_ports), ..Server::default() }
}

fn build(cluster: &Cluster) -> Topology {
    cluster.build(Path::new("")).unwrap()
}

fn error(cluster: &Cluster) -> String {
    cluster.build(Path::new("")).unwrap_err().to_string()
}

/// Names of the nodes at the other ends of a node's links.
fn peers(topology: &Topology, name: &str) -> Vec<String> {
    let node = topology.node_by_name(name).unwrap();
    topology.ports(node).iter().map(|port| topology.node_name(port.peer).into_owned()).collect()
}

/// Servers of one GPU with one port are the scale-out network under other names: equal links, routes by arithmetic.
#[test]
fn servers_of_one_gpu_are_the_bare_network() {
    let bare = leaf_spine(4, 4, 4).build(Path::new("")).unwrap();
    let cluster = build(&Cluster::new(16, server(1, 1, 1), leaf_spine(4, 4, 4)));
    assert_eq!(cluster.links(), bare.links());
    assert_eq!(cluster.switches(), bare.switches());
    assert_eq!(cluster.node_name(NodeId(5)), "srv5.gpu0");
    assert!(Routing::all_links_up(&cluster).is_arithmetic());
}

/// Two units of four servers with two GPUs: the leaves of a unit hold one rail each.
#[test]
fn a_leaf_holds_one_rail_of_one_unit() {
    let cluster = Cluster { unit: Some(4), ..Cluster::new(8, server(2, 2, 1), leaf_spine(4, 2, 4)) };
    let topology = build(&cluster);
    assert_eq!(peers(&topology, "srv0.gpu0"), ["leaf0"]);
    assert_eq!(peers(&topology, "srv3.gpu1"), ["leaf1"]);
    assert_eq!(peers(&topology, "srv4.gpu0"), ["leaf2"]);
    assert_eq!(peers(&topology, "srv7.gpu1"), ["leaf3"]);
    let routing = Routing::all_links_up(&topology);
    let mut finder = PathFinder::new(&topology, &routing);
    let mut hops = |a, b| {
        let [a, b] = [a, b].map(|name| topology.as_host(topology.node_by_name(name).unwrap()).unwrap());
        let pair = finder.pair(a, b, 0).unwrap();
        (pair.hops, pair.paths)
    };
    assert_eq!(hops("srv0.gpu0", "srv3.gpu0"), (2, 1), "on the rail");
    assert_eq!(hops("srv0.gpu0", "srv3.gpu1"), (4, 2), "off the rail");
    assert_eq!(hops("srv0.gpu0", "srv4.gpu0"), (4, 2), "another unit");
}

/// All NICs of a server at one leaf, two servers a leaf.
#[test]
fn servers_can_be_attached_whole() {
    let attach = Attach::Rule(AttachRule::Server);
    let topology = build(&Cluster { attach, ..Cluster::new(4, server(2, 2, 1), leaf_spine(2, 2, 4)) });
    assert_eq!(peers(&topology, "leaf0")[..4], ["srv0.gpu0", "srv0.gpu1", "srv1.gpu0", "srv1.gpu1"]);
    assert_eq!(peers(&topology, "srv3.gpu1"), ["leaf1"]);
}

/// Port q of each NIC is in plane q, and planes share no switch.
#[test]
fn planes_are_copies() {
    let cluster =
        Cluster { planes: true, unit: Some(4), ..Cluster::new(4, server(2, 2, 2), leaf_spine(2, 3, 4)) };
    let topology = build(&cluster);
    assert_eq!((topology.hosts(), topology.switches().len()), (8, 2 * (2 + 3)));
    assert_eq!(topology.links().len(), 2 * (8 + 2 * 3));
    assert_eq!(peers(&topology, "srv2.gpu1"), ["p0.leaf1", "p1.leaf1"]);
    assert!(topology.link_by_name("p0.leaf0-p1.spine0").is_err());
    assert_eq!(topology.servers().unwrap().planes(), 2);
}

/// Without planes, the two ports of a NIC are at two leaves side by side: two ToRs.
#[test]
fn ports_of_a_nic_reach_two_leaves() {
    let topology = build(&Cluster { unit: Some(2), ..Cluster::new(2, server(2, 2, 2), leaf_spine(4, 2, 2)) });
    assert_eq!(peers(&topology, "srv0.gpu0"), ["leaf0", "leaf1"]);
    assert_eq!(peers(&topology, "srv1.gpu1"), ["leaf2", "leaf3"]);
}

/// Two servers share two ToRs: port q of all their NICs is at one of them.
#[test]
fn ports_of_a_unit_of_servers_reach_two_tors() {
    let attach = Attach::Rule(AttachRule::Server);
    let cluster = Cluster { attach, unit: Some(2), ..Cluster::new(3, server(2, 2, 2), leaf_spine(4, 2, 4)) };
    let topology = build(&cluster);
    assert_eq!(peers(&topology, "srv0.gpu1"), ["leaf0", "leaf1"]);
    assert_eq!(peers(&topology, "leaf1")[..4], ["srv0.gpu0", "srv0.gpu1", "srv1.gpu0", "srv1.gpu1"]);
    assert_eq!(peers(&topology, "srv2.gpu0"), ["leaf2", "leaf3"]);
}

/// Eight GPUs share four NICs, each pair of GPUs one.
#[test]
fn gpus_share_nics() {
    let server = Server { pcie_rate: Some(Rate::from_gbps(126)), ..server(8, 4, 1) };
    let topology = build(&Cluster { unit: Some(2), ..Cluster::new(2, server, leaf_spine(4, 2, 2)) });
    assert_eq!(peers(&topology, "srv1.gpu3"), ["srv1.nic1"]);
    assert_eq!(peers(&topology, "srv1.nic1"), ["srv1.gpu2", "srv1.gpu3", "leaf1"]);
    let (nic, rate) = topology.shared_nic(HostId(3)).unwrap();
    assert_eq!(topology.node_name(topology.switch_node(nic)), "srv0.nic1");
    assert_eq!(rate, Rate::from_gbps(400));
    assert_eq!(topology.scale_out_rate(HostId(0)), Rate::from_gbps(126));
    let tiers: Vec<_> = topology.tiers().iter().map(|tier| tier.switches).collect();
    assert_eq!(tiers, [8, 4, 2]);
}

/// A PCIe link below the rate of the ports limits its GPU; a faster one is no node.
#[test]
fn pcie_limits_only_below_the_ports() {
    let with = |gbps| {
        let server = Server { pcie_rate: Some(Rate::from_gbps(gbps)), ..server(2, 2, 2) };
        build(&Cluster { planes: true, ..Cluster::new(2, server, leaf_spine(2, 1, 2)) })
    };
    assert_eq!(with(800).switches().len(), 6);
    let limited = with(504);
    assert_eq!(limited.scale_out_rate(HostId(0)), Rate::from_gbps(504));
    assert_eq!(limited.shared_nic(HostId(0)), None);
    assert_eq!(peers(&limited, "srv1.pcie0"), ["srv1.gpu0", "p0.leaf0", "p1.leaf0"]);
}

/// Settings that a cluster does not use are noted, each once.
#[test]
fn settings_without_effect_are_noted() {
    let delay = Some(Duration::from_us(1));
    let server = Server {
        pcie_rate: Some(Rate::from_gbps(800)),
        pcie_delay: delay,
        domain: Some(4),
        ..server(2, 2, 1)
    };
    let cluster = Cluster { planes: true, ..Cluster::new(2, server.clone(), leaf_spine(2, 1, 2)) };
    let notes = build(&cluster).notes().to_vec();
    let of = |field: &str| notes.iter().filter(|note| note.contains(field)).count();
    let fields = ["planes", "server.pcie_rate", "server.pcie_delay", "server.domain"];
    assert_eq!(fields.map(|field| of(&format!("topology.{field} has no effect: "))), [1; 4], "{notes:?}");
    assert_eq!(notes.len(), 4);
    // PCIe below the rate of a port.
    let slow = Server { pcie_rate: Some(Rate::from_gbps(100)), domain: None, ..server };
    let notes = build(&Cluster::new(2, slow, leaf_spine(2, 1, 2))).notes().to_vec();
    assert_eq!(notes, [""; 0]);
}

/// Every model of server can be attached, and each port once.
#[test]
fn attachment_is_a_bijection_for_every_model() {
    for (name, points) in [("dgx-h100", 8), ("dgx-1", 4), ("p5", 32), ("gb200-nvl72", 4), ("mi300x", 8)] {
        let server = Server { preset: Some(name.into()), ..Server::default() };
        let servers = 36;
        let fabric = leaf_spine(points, 2, servers);
        let topology = build(&Cluster::new(servers, server, fabric));
        let at_leaves: BTreeSet<_> = topology
            .links()
            .iter()
            .filter(|link| {
                topology.node_name(link.b).starts_with("leaf")
                    && !topology.node_name(link.a).starts_with("spine")
            })
            .filter(|link| !topology.node_name(link.a).starts_with("leaf"))
            .map(|link| (link.a, link.b))
            .collect();
        assert_eq!(at_leaves.len() as u32, points * servers, "{name}");
        assert!(Routing::all_links_up(&topology).unreachable_pair().is_none(), "{name}");
    }
}

/// Trays of a rack without NVLink: the 72 GPUs of the preset's domain need not fill it, and GPUs of a tray have their
/// NICs only.
#[test]
fn a_preset_may_go_without_its_scale_up_network() {
    let server: Server = toml::from_str("preset = \"gb200-nvl72\"\nscale_up = { kind = \"none\" }").unwrap();
    let topology = build(&Cluster::new(2, server, leaf_spine(4, 2, 2)));
    let servers = topology.servers().unwrap();
    assert_eq!((topology.hosts(), servers.any_scale_up()), (8, None));
    let without = Server { preset: Some("gb200-nvl72".to_owned()), ..Server::default() };
    assert!(error(&Cluster::new(2, without, leaf_spine(4, 2, 2))).contains("multiple of 18"));
}

/// A switch of two chips whose messages are packets: each GPU has a port of half the rate to each chip, and uses these
/// for its server although its leaf is as near.
#[test]
fn scale_up_networks_may_carry_packets() {
    let scale_up = SwitchLinks { chips: 2, packets: true, ..SwitchLinks::new(Rate::from_gbps(1_600)) };
    let server = Server { scale_up: Some(ScaleUpConfig::Switch(scale_up)), ..server(4, 4, 1) };
    let attach = Attach::Rule(AttachRule::Server);
    let topology = build(&Cluster { attach, ..Cluster::new(2, server, leaf_spine(2, 2, 4)) });
    assert_eq!(peers(&topology, "srv1.gpu0"), ["leaf1", "srv1.chip0", "srv1.chip1"]);
    assert_eq!(peers(&topology, "srv1.chip1"), ["srv1.gpu0", "srv1.gpu1", "srv1.gpu2", "srv1.gpu3"]);
    let link = topology.link(topology.link_by_name("srv1.gpu2-srv1.chip1").unwrap());
    assert_eq!((link.rate, link.delay), (Rate::from_gbps(800), Duration::from_ns(125)));
    assert!(topology.scale_up().is_none(), "nothing is fluid");
    let tiers: Vec<_> = topology.tiers().iter().map(|tier| tier.switches).collect();
    assert_eq!(tiers, [2, 2]);
    assert_eq!(topology.scale_out_rate(HostId(0)), Rate::from_gbps(400));
    let routing = Routing::all_links_up(&topology);
    let ports = |to| leading_ports(&topology, &routing, HostId(0), HostId(to));
    assert_eq!((ports(1), ports(4)), (0b110, 0b001));
}

/// A mesh of packets has a direct link for each pair.
#[test]
fn a_mesh_may_carry_packets() {
    let mesh = EqualLinks { packets: true, ..EqualLinks::new(Rate::from_gbps(512)) };
    let server = Server { scale_up: Some(ScaleUpConfig::FullMesh(mesh)), ..server(4, 4, 1) };
    let cluster = Cluster { unit: Some(2), ..Cluster::new(2, server, leaf_spine(4, 2, 2)) };
    let topology = build(&cluster);
    assert_eq!(peers(&topology, "srv1.gpu1"), ["leaf1", "srv1.gpu0", "srv1.gpu2", "srv1.gpu3"]);
    let routing = Routing::all_links_up(&topology);
    let ports = |to| leading_ports(&topology, &routing, HostId(0), HostId(to));
    assert_eq!((ports(2), ports(4), ports(5)), (0b0100, 0b0001, 0b0001));
}

/// Names of the nodes on the first path between two GPUs.
fn first_path(topology: &Topology, routing: &Routing, (src, dst): (u32, u32)) -> Vec<String> {
    let path = PathFinder::new(topology, routing).first_path(HostId(src), HostId(dst)).unwrap();
    path.iter().map(|(_, port)| topology.node_name(port.peer).into_owned()).collect()
}

/// A ring of six whose messages are packets: each GPU forwards by a router of its own, with both links of the ring.
/// GPUs of the server use the ring although the leaf of all is nearer, also around a link that is down, and their leaf
/// if the ring is in two parts.
#[test]
fn gpus_of_a_ring_forward() {
    let ring = EqualLinks { packets: true, ..EqualLinks::new(Rate::from_gbps(800)) };
    let server = Server { scale_up: Some(ScaleUpConfig::Ring(ring)), ..server(6, 6, 1) };
    let attach = Attach::Rule(AttachRule::Server);
    let topology = build(&Cluster { attach, ..Cluster::new(2, server, leaf_spine(2, 2, 6)) });
    assert_eq!(peers(&topology, "srv1.gpu2"), ["leaf1", "srv1.router2"]);
    assert_eq!(peers(&topology, "srv1.router5"), ["srv1.gpu5", "srv1.router0", "srv1.router4"]);
    assert_eq!(topology.egress(&topology.ports(NodeId(8))[1]).rate, Rate::from_gbps(1_600));
    let routing = Routing::all_links_up(&topology);
    let mut finder = PathFinder::new(&topology, &routing);
    let mut pair = |to| finder.pair(HostId(0), HostId(to), 0).map(|pair| (pair.hops, pair.paths)).unwrap();
    assert_eq!(pair(1), (3, 1), "one link of the ring, between two routers");
    assert_eq!(pair(3), (5, 2), "three links, either way");
    assert_eq!(pair(6), (4, 2), "another server: leaf, spine, leaf");
    assert_eq!(topology.tiers().len(), 2, "routers are no tier");
    // 2 x 6 NICs and 2 x 2 links between leaves and spines; a server has six links to routers and six of the ring.
    assert_eq!(topology.links().len(), 12 + 4 + 2 * 12);

    let cut = ["srv0.router0-srv0.router1", "srv0.router3-srv0.router4"]
        .map(|name| topology.link_by_name(name).unwrap());
    let around = Routing::compute(&topology, &|link| link != cut[0]);
    let ring = ["srv0.router0", "srv0.router5", "srv0.router4", "srv0.router3", "srv0.router2", "srv0.gpu2"];
    assert_eq!(first_path(&topology, &around, (0, 2)), ring);
    let apart = Routing::compute(&topology, &|link| !cut.contains(&link));
    assert_eq!(first_path(&topology, &apart, (0, 2)), ["leaf0", "srv0.gpu2"]);
    assert_eq!(first_path(&topology, &apart, (0, 4))[0], "srv0.router0");
    assert_eq!(
        topology.link_by_name("srv0.gpu3-srv0.gpu4").unwrap_err().to_string(),
        "no link is named \"srv0.gpu3-srv0.gpu4\"; did you mean \"srv0.router3-srv0.router4\"?"
    );
}

/// A domain of two servers: a torus of 4 x 2, in which a dimension of two has one link. The farthest GPUs are two links
/// of one dimension and one of the other apart: three orders in each direction of the ring.
#[test]
fn a_torus_may_span_servers() {
    let EqualLinks { rate, delay, efficiency, .. } = EqualLinks::new(Rate::from_gbps(800));
    let torus = TorusLinks { dims: vec![4, 2], rate, delay, efficiency, packets: true };
    let server = Server { scale_up: Some(ScaleUpConfig::Torus(torus)), domain: Some(8), ..server(4, 1, 1) };
    let topology = build(&Cluster::new(4, server, TopologyConfig::Star(Star::new(4))));
    assert_eq!(
        peers(&topology, "srv3.router1"),
        ["srv3.gpu1", "srv2.router1", "srv3.router0", "srv3.router2"]
    );
    let routing = Routing::all_links_up(&topology);
    let mut finder = PathFinder::new(&topology, &routing);
    let pair = finder.pair(HostId(0), HostId(6), 0).unwrap();
    assert_eq!((pair.hops, pair.paths), (2 + 3, 6));
    assert_eq!(
        topology.diameter_bound(),
        8,
        "twice the four links from a router to the farthest GPU of its torus"
    );
}

/// A hybrid cube mesh and a list of links forward, too; a ring of three is a mesh, which needs no routers.
#[test]
fn all_networks_can_carry_packets() {
    let equal = EqualLinks { packets: true, ..EqualLinks::new(Rate::from_gbps(200)) };
    let link = |a, b| ListedLink { gpus: [a, b], rate: Rate::from_gbps(200) };
    let (delay, efficiency) = (equal.delay, 1.0);
    let list = LinkList { links: vec![link(0, 1), link(1, 2)], delay, efficiency, packets: true };
    for (gpus, routers, scale_up) in [
        (8, 8, ScaleUpConfig::HybridCubeMesh(equal.clone())),
        (3, 3, ScaleUpConfig::List(list)),
        (3, 0, ScaleUpConfig::Ring(equal.clone())),
        (5, 5, ScaleUpConfig::Ring(equal)),
    ] {
        let server = Server { scale_up: Some(scale_up), ..server(gpus, 1, 1) };
        let topology = build(&Cluster::new(1, server, TopologyConfig::Star(Star::new(1))));
        let named = topology.switches().iter().filter(|switch| switch.name.contains("router")).count();
        assert_eq!(named as u32, routers);
        assert!(Routing::all_links_up(&topology).unreachable_pair().is_none());
    }
}

#[test]
fn what_is_wrong_is_named() {
    let fabric = || leaf_spine(4, 2, 4);
    let base = || Cluster { unit: Some(4), ..Cluster::new(8, server(2, 2, 1), fabric()) };
    assert_eq!(
        error(&Cluster { server: server(8, 3, 1), ..base() }),
        "topology field `server.nics` = 3: must be a multiple or a divisor of `server.gpus` = 8, such as 2, or needs \
         `server.nic_of_gpu`"
    );
    assert_eq!(
        error(&Cluster { servers: 9, ..base() }),
        "topology field `servers` = 9: 9 servers are 3 units of 4 and need 24 attachment points, 2 a server; \
         `scale_out` has 16 hosts, for 2 units, which are 8 servers"
    );
    assert_eq!(
        error(&Cluster { unit: Some(3), ..base() }),
        "topology field `unit` = 3: 8 servers are 3 units of 3 and need 18 attachment points, 2 a server; \
         `scale_out` has 16 hosts, for 2 units; `unit` = 4 fits"
    );
    assert!(error(&Cluster { unit: Some(2), ..base() }).contains("leaf0 would hold rails 0 and 1 of a unit"));
    assert!(
        error(&Cluster { attach: Attach::List(vec![0, 1]), unit: None, ..base() })
            .contains("must have 16 points")
    );
    let twice = Attach::List((0..15).chain([0]).collect());
    assert!(
        error(&Cluster { attach: twice, unit: None, ..base() }).contains("is the point of NIC 0 of server 0")
    );
    assert!(
        error(&Cluster { attach: Attach::Rule(AttachRule::Server), ..base() })
            .contains("several ports in one network only")
    );
    let list = || Attach::List((0..16).collect());
    assert!(error(&Cluster { attach: list(), ..base() }).contains("attach = \"rail\" and \"server\" only"));
    let two_ports = Cluster { server: server(2, 2, 2), servers: 4, ..base() };
    let whole = Cluster { attach: Attach::Rule(AttachRule::Server), unit: Some(1), ..two_ports };
    assert_eq!(
        error(&whole),
        "topology field `unit` = 1: leaf0 would hold ports 0 and 1 of a NIC; its 4 hosts fit `unit` = 2"
    );
    // One switch holds all rails, whatever the unit: advice to set one would go round in a circle.
    let star =
        |unit| Cluster { unit, ..Cluster::new(2, server(4, 4, 1), TopologyConfig::Star(Star::new(8))) };
    let needs_none = "topology field `attach` = \"rail\": switch0 would hold rails 0 and 1 of a unit of 2 servers; attach = \
                      \"server\" has no rails";
    assert_eq!([error(&star(None)), error(&star(Some(2)))], [needs_none, needs_none]);
    assert_eq!(
        error(&star(Some(8))),
        "topology field `unit` = 8: 2 servers are 1 unit of 8 and need 32 attachment points, 4 a server; `scale_out` has 8 \
         hosts, for 0 units; no other fits, and attach = \"server\" needs none"
    );
    build(&Cluster { attach: Attach::Rule(AttachRule::Server), ..star(None) });
    let unknown = Server { preset: Some("dgx-h10".into()), ..Server::default() };
    let unknown = error(&Cluster { server: unknown, ..base() });
    assert!(
        unknown.starts_with("topology field `server.preset` = \"dgx-h10\": must be one of dgx-1, "),
        "{unknown}"
    );
    assert!(unknown.ends_with("did you mean \"dgx-h100\"?"), "{unknown}");
    let nested =
        TopologyConfig::Cluster(Cluster::new(2, server(1, 1, 1), TopologyConfig::Star(Star::new(2))));
    assert!(error(&Cluster { scale_out: Box::new(nested), ..base() }).contains("without servers"));
    let rack = Server { preset: Some("gb200-nvl72".into()), ..Server::default() };
    assert!(error(&Cluster { servers: 20, server: rack, ..base() }).contains("a multiple of 18"));
}

/// The configuration as a scenario writes it.
#[test]
fn a_cluster_in_toml() {
    let text = "
        kind = 'cluster'
        servers = 4
        unit = 4
        server = { gpus = 4, nics = 4, scale_up = { kind = 'full-mesh', rate = '512Gbps', efficiency = 0.75 } }
        scale_out = { kind = 'leaf-spine', leaves = 4, spines = 2, hosts_per_leaf = 4, host_rate = '400Gbps' }
    ";
    let config: TopologyConfig = toml::from_str(text).unwrap();
    let topology = config.build(Path::new("")).unwrap();
    let scale_up = topology.scale_up().unwrap();
    assert_eq!(scale_up.alone(HostId(4), HostId(7)), Rate::from_gbps(384));
    let again: TopologyConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let wrong = |from: &str, to: &str| {
        toml::from_str::<TopologyConfig>(&text.replace(from, to)).unwrap_err().to_string()
    };
    assert!(wrong("efficiency", "effort").contains("effort"), "{}", wrong("efficiency", "effort"));
    assert!(wrong("'full-mesh'", "'mesh'").contains("full-mesh"), "{}", wrong("'full-mesh'", "'mesh'"));
    assert!(wrong("unit", "units").contains("units"));
    assert!(
        wrong("unit = 4", "attach = 'rails'").contains("rail"),
        "{}",
        wrong("unit = 4", "attach = 'rails'")
    );
}
