//! Routing: both representations agree, every destination is reached, and there are no loops.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{HostId, Rate};
use proptest::prelude::*;

fn build(config: impl Build) -> Topology {
    config.build(Path::new(".")).unwrap()
}

/// Generates small regular Clos networks of every kind.
fn regular() -> impl Strategy<Value = Topology> {
    let links = 1..=3u32;
    prop_oneof![
        (1..=40u32).prop_map(|hosts| build(Star::new(hosts))),
        (1..=9u32, 1..=9u32, links.clone()).prop_map(|(left, right, between)| build(Dumbbell {
            right_hosts: Some(right),
            bottleneck_links: between,
            ..Dumbbell::new(left)
        })),
        (1..=6u32, 1..=5u32, 1..=7u32, links.clone()).prop_map(|(leaves, spines, hosts, bundle)| build(
            LeafSpine { leaf_spine_links: bundle, ..LeafSpine::new(leaves, spines, hosts) }
        )),
        fat_tree(),
        rails(),
        planes(),
    ]
}

/// Generates servers of several GPUs, whose rails interleave the hosts of leaves.
fn rails() -> impl Strategy<Value = Topology> {
    let counts = (1..=4u32, 1..=3u32, 1..=3u32, 1..=3u32);
    (counts, 1..=2u32).prop_map(|((gpus, units, unit, spines), bundle)| {
        let leaves = LeafSpine { leaf_spine_links: bundle, ..LeafSpine::new(units * gpus, spines, unit) };
        let server = Server { gpus: Some(gpus), ..Server::default() };
        let cluster = Cluster::new(units * unit, server, TopologyConfig::LeafSpine(leaves));
        build(Cluster { unit: Some(unit), ..cluster })
    })
}

/// Generates servers with a port in each of several planes, on leaf-spine networks or fat trees.
fn planes() -> impl Strategy<Value = Topology> {
    let counts = (1..=3u32, 1..=3u32, 1..=3u32, 1..=3u32);
    (counts, 2..=3u32, any::<bool>()).prop_map(|((gpus, units, unit, spines), planes, pods)| {
        let scale_out = match pods {
            false => TopologyConfig::LeafSpine(LeafSpine::new(units * gpus, spines, unit)),
            true => TopologyConfig::FatTree(FatTree {
                pods: Some(units),
                tors_per_pod: Some(gpus),
                hosts_per_tor: Some(unit),
                aggs_per_pod: Some(spines),
                cores: Some(2 * spines),
                ..FatTree::default()
            }),
        };
        let server = Server { gpus: Some(gpus), nic_ports: Some(planes), ..Server::default() };
        let cluster = Cluster::new(units * unit, server, scale_out);
        build(Cluster { unit: Some(unit), planes: true, ..cluster })
    })
}

/// Four servers of two GPUs, two a unit, on two planes of four leaves and a spine. Leaf 2 of a plane holds the first
/// GPUs of servers 2 and 3.
#[test]
fn planes_of_rails_by_hand() {
    let server = Server { gpus: Some(2), nic_ports: Some(2), ..Server::default() };
    let cluster = Cluster::new(4, server, TopologyConfig::LeafSpine(LeafSpine::new(4, 1, 2)));
    let topology = build(Cluster { unit: Some(2), planes: true, ..cluster });
    let routing = Routing::all_links_up(&topology);
    assert!(routing.is_arithmetic());
    // Places by leaf: GPUs 0 of servers 0 and 1, GPUs 1 of these, then the same of servers 2 and 3.
    assert_eq!(routing.places().map(|places| places.to_vec()), Some(vec![0, 2, 1, 3, 4, 6, 5, 7]));
    let hops = |node: &str, dst| routing.next_hops(topology.node_by_name(node).unwrap(), HostId(dst));
    // Host 6 is GPU 0 of server 3.
    assert_eq!(hops("p1.leaf2", 6), NextHops::List(&[1]));
    assert_eq!(hops("p1.leaf2", 7), NextHops::List(&[2]));
    assert_eq!(hops("p0.spine0", 7), NextHops::List(&[3]));
    assert_eq!(routing.from_host(HostId(0), HostId(7)), NextHops::List(&[0, 1]));
    assert_same(&topology);
}

fn fat_tree() -> impl Strategy<Value = Topology> {
    let counts = (1..=4u32, 1..=4u32, 1..=4u32, 1..=3u32, 1..=3u32);
    (counts, 1..=2u32, 1..=2u32, any::<bool>()).prop_map(|((p, t, h, a, c), up, core, mesh)| {
        build(FatTree {
            pods: Some(p),
            tors_per_pod: Some(t),
            hosts_per_tor: Some(h),
            aggs_per_pod: Some(a),
            cores: Some(if mesh { c } else { a * c }),
            core_wiring: if mesh { CoreWiring::FullMesh } else { CoreWiring::Planes },
            tor_agg_links: up,
            agg_core_links: core,
            ..FatTree::default()
        })
    })
}

fn assert_same(topology: &Topology) {
    let arithmetic = Routing::all_links_up(topology);
    assert!(arithmetic.is_arithmetic(), "{} is regular", topology.name());
    let table = Routing::compute_table(topology, &|_| true);
    for dst in (0..topology.hosts()).map(HostId) {
        for node in (0..topology.nodes()).map(NodeId).filter(|&node| node != dst.into()) {
            assert_eq!(
                arithmetic.from_node(node, dst),
                table.from_node(node, dst),
                "{}: {} to host{dst}",
                topology.name(),
                topology.node_name(node)
            );
        }
    }
}

#[test]
fn the_udmp_fat_tree_by_hand() {
    let t = build(FatTree::udmp_320(16, Rate::from_gbps(400)));
    let r = Routing::all_links_up(&t);
    // Host 37 is the 5th of ToR 2 of pod 0. ToR 2 sends to host 40 directly, and to hosts elsewhere over its 4
    // uplinks.
    let tor2 = t.node_by_name("tor2").unwrap();
    assert_eq!(r.next_hops(tor2, HostId(40)), NextHops::List(&[8]));
    assert_eq!(r.next_hops(tor2, HostId(64)), NextHops::List(&[16, 17, 18, 19]));
    // Aggregation switch 1 of pod 1 has hosts 64 to 127 below. ToR 5 (80 to 95) is at its second port.
    let agg = t.node_by_name("agg1.1").unwrap();
    assert_eq!(r.next_hops(agg, HostId(80)), NextHops::List(&[1]));
    assert_eq!(r.next_hops(agg, HostId(319)), NextHops::List(&[4, 5, 6, 7]));
    // Core 5 belongs to plane 1 and has one port for each pod.
    let core = t.node_by_name("core5").unwrap();
    assert_eq!(t.ports(core).len(), 5);
    assert_eq!(t.node_name(t.ports(core)[3].peer), "agg3.1");
    assert_eq!(r.next_hops(core, HostId(319)), NextHops::List(&[4]));
    assert_same(&t);
}

/// Pod 0 of this fat tree has three ToRs and two aggregation switches, which share a core. ToR 0 has lost one of the two
/// and ToR 1 the other. Over the core and over ToR 2 there are equally many hops, and ToR 2 serves its own hosts only.
#[test]
fn traffic_does_not_pass_a_third_tor_below_a_core() {
    let t = build(FatTree {
        pods: Some(2),
        tors_per_pod: Some(3),
        hosts_per_tor: Some(2),
        aggs_per_pod: Some(2),
        cores: Some(1),
        core_wiring: CoreWiring::FullMesh,
        ..FatTree::default()
    });
    let node = |name: &str| t.node_by_name(name).unwrap();
    let dead = [["tor0", "agg0.1"], ["tor1", "agg0.0"]].map(|ends| ends.map(node));
    let alive = |id: LinkId| !dead.contains(&[t.link(id).a, t.link(id).b]);
    let routing = Routing::compute(&t, &alive);
    let peers = |name: &str| -> Vec<String> {
        let ports = routing.next_hops(node(name), HostId(2)).iter();
        ports.map(|port| t.node_name(t.ports(node(name))[usize::from(port)].peer).into_owned()).collect()
    };
    assert_eq!(peers("tor0"), ["agg0.0"]);
    assert_eq!(peers("agg0.0"), ["core0"]);
    assert_eq!(peers("tor2"), ["agg0.1"], "its own hosts");
    assert_exact(&t, &alive);
}

/// Leaf 0 and leaf 1 of this network share no spine. Their traffic passes leaf 2, because nothing else joins them.
#[test]
fn traffic_passes_a_third_leaf_if_nothing_else_is_left() {
    let t = build(LeafSpine::new(3, 2, 1));
    let node = |name: &str| t.node_by_name(name).unwrap();
    let dead = [["leaf0", "spine0"], ["leaf1", "spine1"]].map(|ends| ends.map(node));
    let alive = |id: LinkId| !dead.contains(&[t.link(id).a, t.link(id).b]);
    let routing = Routing::compute(&t, &alive);
    let mut path = vec!["leaf0".to_owned()];
    while path.last().unwrap() != "leaf1" {
        let here = node(path.last().unwrap());
        let ports: Vec<u16> = routing.next_hops(here, HostId(1)).iter().collect();
        assert_eq!(ports.len(), 1, "{path:?}");
        path.push(t.node_name(t.ports(here)[usize::from(ports[0])].peer).into_owned());
    }
    assert_eq!(path, ["leaf0", "spine1", "leaf2", "spine0", "leaf1"]);
}

/// Generates any connected network: hosts with one or two ports at random switches, and switches linked at random.
fn irregular() -> impl Strategy<Value = Topology> {
    let sizes = (1..=8u32, 1..=7u32);
    let draws = proptest::collection::vec((any::<u32>(), any::<u32>()), 0..20);
    (sizes, draws, any::<u64>()).prop_map(|((hosts, switches), extra, seed)| {
        let mut rng = pathweave_units::Rng::for_component(seed, "test", 0);
        let link = |a, b| Link {
            a: NodeId(a),
            b: NodeId(b),
            rate: Rate::from_gbps(1),
            delay: pathweave_units::Duration::ZERO,
            error_rate: 0.0,
        };
        // In some networks the last host is attached to another host. No traffic may be routed through that host.
        let mut at = |host| if host == 7 { 6 } else { hosts + rng.below(switches) };
        let mut links: Vec<_> = (0..hosts).map(|host| link(host, at(host))).collect();
        links.extend((1..switches).map(|switch| link(hosts + switch, hosts + rng.below(switch))));
        let nodes = hosts + switches;
        let extra = extra.into_iter().map(|(a, b)| (a % nodes, b % nodes)).filter(|(a, b)| a != b);
        links.extend(extra.map(|(a, b)| link(a, b)));
        let tier = |i: u32| (seed >> (2 * i) & 3) as u8;
        let names =
            (0..switches).map(|i| Switch { name: format!("s{i}"), tier: tier(i), group: None }).collect();
        Topology::new("random", hosts, names, links).unwrap()
    })
}

/// Returns the hops from every node to `dst`, computed by relaxing every link until there are no changes.
fn brute_force_hops(topology: &Topology, dst: HostId, alive: &dyn Fn(LinkId) -> bool) -> Vec<Option<u32>> {
    let mut hops = vec![None; topology.nodes() as usize];
    hops[dst.index()] = Some(0);
    loop {
        let before = hops.clone();
        for (_, link) in (0..).map(LinkId).zip(topology.links()).filter(|&(id, _)| alive(id)) {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let forwards = !topology.is_host(to) || to == dst.into();
                if let (Some(far), true) = (hops[to.index()], forwards) {
                    let known = hops[from.index()].unwrap_or(u32::MAX);
                    hops[from.index()] = Some(known.min(far + 1));
                }
            }
        }
        if hops == before {
            return hops;
        }
    }
}

/// Returns true if a shortest path from `node` goes up or across at first and then only down. `down` is true if it went
/// down before.
fn turns_once(
    topology: &Topology,
    (node, dst): (NodeId, HostId),
    hops: &[Option<u32>],
    alive: &dyn Fn(LinkId) -> bool,
    down: bool,
) -> bool {
    let height = |node: NodeId| topology.switch_index(node).map(|index| topology.switches()[index].tier);
    node == dst.into()
        || topology.ports(node).iter().any(|port| {
            let descends = height(port.peer) < height(node);
            is_nearer(topology, (node, dst), hops, alive, port)
                && (descends || !down)
                && turns_once(topology, (port.peer, dst), hops, alive, descends)
        })
}

/// Returns true if a port of `node` is up and its peer is a hop nearer to `dst`.
fn is_nearer(
    topology: &Topology,
    (node, dst): (NodeId, HostId),
    hops: &[Option<u32>],
    alive: &dyn Fn(LinkId) -> bool,
    port: &PortRef,
) -> bool {
    let forwards = !topology.is_host(port.peer) || port.peer == dst.into();
    let here = hops[node.index()];
    let far = hops[port.peer.index()];
    alive(port.link) && forwards && here.is_some() && far.map(|hops| hops + 1) == here
}

/// Checks that every next hop is one hop nearer over a link that is up, and that every such port is a next hop, except
/// those of paths that go down and up again if there are others. This implies that every reachable destination is
/// reached on shortest paths without loops.
fn assert_exact(topology: &Topology, alive: &dyn Fn(LinkId) -> bool) {
    let routing = Routing::compute(topology, alive);
    let mut all_reach = true;
    for dst in (0..topology.hosts()).map(HostId) {
        let hops = brute_force_hops(topology, dst, alive);
        all_reach &= hops[..topology.hosts() as usize].iter().all(Option::is_some);
        for node in (0..topology.nodes()).map(NodeId).filter(|&node| node != dst.into()) {
            let ports = topology.ports(node);
            if topology.is_host(node) && ports.len() == 1 {
                continue;
            }
            let nearer = |port: &PortRef| is_nearer(topology, (node, dst), &hops, alive, port);
            let mut expected: Vec<u16> =
                (0..).zip(ports).filter(|(_, port)| nearer(port)).map(|(index, _)| index).collect();
            let height =
                |node: NodeId| topology.switch_index(node).map(|index| topology.switches()[index].tier);
            let is_straight = |index: &u16| {
                let peer = ports[usize::from(*index)].peer;
                turns_once(topology, (peer, dst), &hops, alive, height(peer) < height(node))
            };
            if expected.iter().any(is_straight) {
                expected.retain(is_straight);
            }
            let found: Vec<u16> = routing.from_node(node, dst).iter().collect();
            assert_eq!(found, expected, "{} to host{dst}", topology.node_name(node));
        }
    }
    match routing.unreachable_pair() {
        None => assert!(all_reach),
        Some((src, dst)) => assert_eq!(brute_force_hops(topology, dst, alive)[src.index()], None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arithmetic_and_table_agree(topology in regular()) {
        assert_same(&topology);
    }

    #[test]
    fn routes_of_regular_topologies_are_the_shortest(topology in regular(), dead in any::<[bool; 8]>()) {
        assert_exact(&topology, &|_| true);
        assert_exact(&topology, &|link| !dead[link.index() % 8]);
    }

    #[test]
    fn routes_of_any_topology_are_the_shortest(topology in irregular(), dead in any::<[bool; 8]>()) {
        assert_exact(&topology, &|_| true);
        assert_exact(&topology, &|link| !dead[link.index() % 8]);
    }

    #[test]
    fn paths_are_counted_and_walked(topology in irregular()) {
        let routing = Routing::all_links_up(&topology);
        let mut finder = PathFinder::new(&topology, &routing);
        for (src, dst) in (0..topology.hosts()).flat_map(|s| (0..topology.hosts()).map(move |d| (HostId(s), HostId(d)))) {
            let hops = brute_force_hops(&topology, dst, &|_| true)[src.index()].filter(|&hops| hops > 0);
            let pair = finder.pair(src, dst, 100);
            prop_assert_eq!(pair.map(|pair| pair.hops), hops);
            let path = finder.first_path(src, dst);
            prop_assert_eq!(path.as_ref().map(|path| path.len() as u32), pair.map(|pair| pair.hops));
            prop_assert_eq!(pair.map(|_| count_paths(&topology, &routing, src.into(), dst)), pair.map(|p| p.paths));
        }
    }

    #[test]
    fn ports_are_symmetric(topology in prop_oneof![regular(), irregular()]) {
        let mut ends = 0;
        for node in (0..topology.nodes()).map(NodeId) {
            for (p, port) in (0u16..).zip(topology.ports(node)) {
                let back = topology.ports(port.peer)[usize::from(port.peer_port)];
                prop_assert_eq!((back.link, back.peer, back.peer_port), (port.link, node, p));
                prop_assert_ne!(back.is_a, port.is_a);
                let link = topology.link(port.link);
                prop_assert_eq!((link.a, link.b), if port.is_a { (node, port.peer) } else { (port.peer, node) });
                ends += 1;
            }
        }
        prop_assert_eq!(ends, 2 * topology.links().len());
    }
}

/// Returns the number of paths, counted by exhaustive search.
fn count_paths(topology: &Topology, routing: &Routing, node: NodeId, dst: HostId) -> u64 {
    if node == dst.into() {
        return 1;
    }
    let ports = routing.from_node(node, dst).iter();
    ports.map(|p| count_paths(topology, routing, topology.ports(node)[usize::from(p)].peer, dst)).sum()
}
