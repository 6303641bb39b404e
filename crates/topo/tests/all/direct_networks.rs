//! Networks without a hierarchy: sizes and wiring derived by hand, error texts, and published numbers of paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{Duration, HostId, Rate};
use proptest::prelude::*;

fn build(config: impl Build) -> Topology {
    config.build(Path::new(".")).unwrap()
}

fn preset(name: &str) -> Topology {
    presets()
        .iter()
        .find(|preset| preset.name == name)
        .expect("a preset")
        .config
        .build(Path::new("."))
        .unwrap()
}

fn own_paths(topology: &Topology) -> PathSets {
    PathSets::build(&PathSetConfig::default(), topology, Path::new("."), RequestedPairs::All).unwrap()
}

fn counts(topology: &Topology) -> (u32, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links().len())
}

fn linked(topology: &Topology, a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| topology.node_by_name(name).unwrap());
    topology.ports(a).iter().filter(|port| port.peer == b).count()
}

/// Returns the numbers of ports of switches.
fn degrees(topology: &Topology) -> BTreeSet<usize> {
    (0..topology.switches().len()).map(|index| topology.ports(topology.switch_node(index)).len()).collect()
}

#[test]
fn sizes_by_hand() {
    // 144 host links, 9 x 6 within groups, 36 between them.
    assert_eq!(counts(&preset("laps-dragonfly")), (144, 36, 144 + 54 + 36));
    // Three groups of two switches, with two links between every two groups.
    let small = Dragonfly { links_between_groups: 2, ..Dragonfly::new(3, 2, 1) };
    assert_eq!(counts(&build(small)), (6, 6, 6 + 3 + 6));
    // 64 GPUs that forward, 8 scale-up switches, 8 rails.
    assert_eq!(counts(&preset("laps-rail")), (64, 80, 192));
    // A switch of a torus has two links in each dimension of three or more, and one in a dimension of two.
    assert_eq!(counts(&build(Torus::new(vec![4, 3]))), (12, 12, 12 + 24));
    assert_eq!(counts(&build(Torus::new(vec![4, 3, 2]))), (24, 24, 24 + 24 + 24 + 12));
    assert_eq!(counts(&build(Torus::new(vec![5]))), (5, 5, 10));
    let mesh = Torus { ends: TorusEnds::Open, hosts_per_switch: 2, ..Torus::new(vec![4, 3]) };
    assert_eq!(counts(&build(mesh)), (24, 12, 24 + 9 + 8));
    // 8 x 8: 64 switches with 7 links in each of two dimensions.
    assert_eq!(counts(&build(FullMesh::new(vec![8, 8]))), (64, 64, 64 + 64 * 14 / 2));
    assert_eq!(counts(&build(Jellyfish::new(20, 4, 3))), (60, 20, 60 + 40));
    // If the number of ports is odd, one remains free.
    assert_eq!(counts(&build(Jellyfish::new(9, 3, 1))), (9, 9, 9 + 13));
}

#[test]
fn the_dragonfly_of_laps_is_wired_as_published() {
    let topology = preset("laps-dragonfly");
    assert_eq!(degrees(&topology), BTreeSet::from([4 + 3 + 2]));
    for group in 0..9 {
        for distance in 1..9u32 {
            let (from, to) = ((distance - 1) / 2, (8 - distance) / 2);
            let names = [format!("sw{group}.{from}"), format!("sw{}.{to}", (group + distance) % 9)];
            assert_eq!(linked(&topology, &names[0], &names[1]), 1, "{names:?}");
        }
        for pair in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            assert_eq!(
                linked(&topology, &format!("sw{group}.{}", pair.0), &format!("sw{group}.{}", pair.1)),
                1
            );
        }
    }
    assert_eq!(linked(&topology, "host143", "sw8.3"), 1);
    let link = &topology.links()[200];
    assert_eq!((link.rate, link.delay), (Rate::from_gbps(100), Duration::from_us(1)));
}

#[test]
fn rails_have_fast_hosts() {
    let topology = preset("laps-rail");
    let rate = |name: &str| topology.link(topology.link_by_name(name).unwrap()).rate.as_bps() / 1_000_000_000;
    assert_eq!((rate("host13-gpu1.5"), rate("gpu1.5-nvlink1"), rate("gpu1.5-rail5")), (200, 100, 100));
    let uneven = build(Rail { scale_up_rate: Some(Rate::from_gbps(900)), ..Rail::new(2, 2) });
    let rate = |name: &str| uneven.link(uneven.link_by_name(name).unwrap()).rate;
    assert_eq!(rate("host0-gpu0.0"), Rate::from_gbps(1_000));
    assert_eq!(rate("gpu0.0-nvlink0"), Rate::from_gbps(900));
}

/// Returns the number of other hosts by the number of paths to them from host 0.
fn paths_from_host_0(sets: &PathSets, hosts: u32) -> BTreeMap<u32, u32> {
    let mut by_count = BTreeMap::new();
    (1..hosts).for_each(|dst| *by_count.entry(sets.count(HostId(0), HostId(dst))).or_insert(0) += 1);
    by_count
}

#[test]
fn the_path_tables_of_laps_have_the_published_sizes() {
    // Table I: 143 destinations and 1,063 paths for each host of the Dragonfly, 63 and 455 in the rail network.
    for (name, destinations, paths, by_count) in [
        ("laps-dragonfly", 143, 1_063, BTreeMap::from([(1, 3), (3, 12), (8, 128)])),
        ("laps-rail", 63, 455, BTreeMap::from([(1, 7), (8, 56)])),
    ] {
        let topology = preset(name);
        let sets = own_paths(&topology);
        assert_eq!(paths_from_host_0(&sets, topology.hosts()), by_count, "{name}");
        for host in (0..topology.hosts()).map(HostId) {
            let reached = (0..topology.hosts()).filter(|&dst| sets.count(host, HostId(dst)) > 0).count();
            assert_eq!((reached, sets.paths_of_host(&topology, host)), (destinations, paths), "{name}");
        }
        assert!(
            sets.memory_bytes() < 1_000_000,
            "{name}: {} bytes for all hosts together",
            sets.memory_bytes()
        );
    }
}

/// Returns the number of paths of host 0 by the number of anchors that pin them.
fn by_anchors(topology: &Topology) -> BTreeMap<u8, u32> {
    let sets = own_paths(topology);
    let anchors = sets.anchors(topology);
    let mut by_anchors = BTreeMap::new();
    for dst in (1..topology.hosts()).map(HostId) {
        for path in 0..sets.count(HostId(0), dst) as u16 {
            let number = sets.number(HostId(0), dst, path).expect("a path of the pair");
            *by_anchors.entry(anchors[number]).or_insert(0) += 1;
        }
        assert_eq!(sets.number(HostId(0), dst, sets.count(HostId(0), dst) as u16), None);
    }
    by_anchors
}

#[test]
fn anchors_by_hand() {
    // Rails: within a cluster (7 pairs) and over the rail of both ends (7), the shortest path is the only one. Any
    // other path consists of two sections that are only shortest paths, joined at its rail switch or at the scale-up
    // switch at its end.
    assert_eq!(by_anchors(&preset("laps-rail")), BTreeMap::from([(0, 14), (1, 441)]));
    // A leaf-spine fabric: the spine.
    assert_eq!(by_anchors(&build(LeafSpine::new(2, 3, 2))), BTreeMap::from([(0, 1), (1, 6)]));
    // Dragonfly: a few of the long paths have many others of equal length.
    let dragonfly = by_anchors(&preset("laps-dragonfly"));
    assert_eq!(dragonfly.values().sum::<u32>(), 1_063);
    assert!(dragonfly.keys().all(|&anchors| anchors <= 4), "{dragonfly:?}");
}

/// Returns the time of a frame of 1,048 bytes over each path, in picoseconds.
fn one_way(topology: &Topology, sets: &PathSets, src: u32, dst: u32) -> Vec<u64> {
    let time =
        |links: LinkProfile| links.iter().map(|(rate, delay)| (rate.time_for(1_048) + *delay).as_ps()).sum();
    sets.profiles(topology, HostId(src), HostId(dst)).map(time).collect()
}

#[test]
fn base_delays_as_in_the_set_up_of_laps() {
    let rail = preset("laps-rail");
    let sets = own_paths(&rail);
    // GPU 3 of cluster 0 to GPU 3 of cluster 5: over rail 3 in 4 links, over each other rail in 8, two of them at
    // 200G.
    let (short, long) = (4_000_000 + 2 * 41_920 + 2 * 83_840, 8_000_000 + 2 * 41_920 + 6 * 83_840);
    let same_index = one_way(&rail, &sets, 3, 5 * 8 + 3);
    assert_eq!((same_index[0], &same_index[1..]), (short, &[long; 7][..]));
    // To GPU 6 of cluster 5: over rails 3 and 6 in 6 links.
    let middle = 6_000_000 + 2 * 41_920 + 4 * 83_840;
    let other_index = one_way(&rail, &sets, 3, 5 * 8 + 6);
    assert_eq!((&other_index[..2], &other_index[2..]), (&[middle; 2][..], &[long; 6][..]));
    // Inside a cluster, over its scale-up switch.
    assert_eq!(one_way(&rail, &sets, 3, 6), [short]);
    // A minimal path of the Dragonfly with a hop inside both groups: 5 links at 100G, 5,419.2 ns.
    let dragonfly = preset("laps-dragonfly");
    let sets = own_paths(&dragonfly);
    let minimal: BTreeSet<u64> = (16..144).map(|dst| one_way(&dragonfly, &sets, 0, dst)[0]).collect();
    assert_eq!(minimal, BTreeSet::from([3_251_520, 4_335_360, 5_419_200]));
}

#[test]
fn a_torus_goes_both_ways_around() {
    let topology = build(Torus::new(vec![4, 5]));
    let sets = own_paths(&topology);
    let hops = |src: &str, dst: &str| {
        let [src, dst] = [src, dst].map(|name| topology.node_by_name(name).unwrap());
        let host =
            |node: NodeId| topology.ports(node).iter().find_map(|port| topology.as_host(port.peer)).unwrap();
        let paths = sets.between(host(src), host(dst));
        paths.map(<[Hop]>::len).collect::<Vec<_>>()
    };
    // One step, or three steps in the other direction.
    assert_eq!(hops("sw0.0", "sw1.0"), [1, 3]);
    // Two of four: both directions are equally long.
    assert_eq!(hops("sw0.0", "sw2.0"), [2, 2]);
    // (1 or 3) + (2 or 3) steps, each combination in two orders.
    assert_eq!(hops("sw0.0", "sw1.2"), [3, 3, 4, 4, 5, 5, 6, 6]);
    let mesh = build(Torus { ends: TorusEnds::Open, ..Torus::new(vec![4, 5]) });
    let sets = own_paths(&mesh);
    let lengths: Vec<usize> = sets.between(HostId(0), HostId(19)).map(<[Hop]>::len).collect();
    assert_eq!(lengths, [7, 7]);
    // The first path takes the dimensions in order.
    let first = sets.between(HostId(0), HostId(6)).next().unwrap();
    let ends: Vec<String> = first.iter().map(|hop| mesh.node_name(hop.end(&mesh)).into_owned()).collect();
    assert_eq!(ends, ["sw1.0", "sw1.1"]);
}

#[test]
fn a_full_mesh_detours_once() {
    let topology = build(FullMesh::new(vec![4, 3]));
    let sets = own_paths(&topology);
    let lengths = |dst: u32| sets.between(HostId(0), HostId(dst)).map(<[Hop]>::len).collect::<Vec<_>>();
    // One dimension of four: directly, or over one of two others. One dimension of three: directly, or over one
    // other.
    assert_eq!(lengths(3), [1, 2, 2]);
    assert_eq!(lengths(1), [1, 2]);
    // Both dimensions: two orders, and three detours in either order.
    assert_eq!(lengths(4), [2, 2, 3, 3, 3, 3, 3, 3]);
    assert_eq!(degrees(&topology), BTreeSet::from([1 + 3 + 2]));
}

#[test]
fn a_jellyfish_is_regular_random_and_repeatable() {
    let topology = build(Jellyfish::new(50, 6, 2));
    assert_eq!(degrees(&topology), BTreeSet::from([8]));
    let pairs = |seed| {
        let topology = build(Jellyfish { wiring_seed: seed, ..Jellyfish::new(50, 6, 2) });
        topology.links().iter().skip(100).map(|link| (link.a, link.b)).collect::<BTreeSet<_>>()
    };
    assert_eq!(pairs(1), pairs(1));
    assert_eq!(pairs(1).len(), 150, "no two links between the same switches");
    let shared = pairs(1).intersection(&pairs(2)).count();
    // 150 of 1,225 pairs: two random graphs share 18 on average.
    assert!((4..40).contains(&shared), "{shared}");
    // Dense graphs and odd numbers of ports can be built, too.
    assert_eq!(degrees(&build(Jellyfish::new(20, 19, 1))), BTreeSet::from([20]));
    let odd = build(Jellyfish::new(21, 5, 1));
    assert_eq!(odd.links().len(), 21 + 52);
}

#[test]
fn invalid_settings_are_refused_with_reasons() {
    let cases = [
        (
            "kind = 'dragonfly'\ngroups = 1\nswitches_per_group = 2\nhosts_per_switch = 1",
            "`groups` = 1: must be at least 2",
        ),
        (
            "kind = 'dragonfly'\ngroups = 3\nswitches_per_group = 0\nhosts_per_switch = 1",
            "`switches_per_group` = 0: must",
        ),
        (
            "kind = 'dragonfly'\ngroups = 3\nswitches_per_group = 2\nhosts_per_switch = 0",
            "`hosts_per_switch` = 0: must",
        ),
        (
            "kind = 'dragonfly'\ngroups = 3\nswitches_per_group = 2\nhosts_per_switch = 1\nlinks_between_groups = 0",
            "`links_between_groups` = 0: must",
        ),
        (
            "kind = 'dragonfly'\ngroups = 3\nswitches_per_group = 2\nhosts_per_switch = 1\nglobal_rate = '0bps'",
            "`global_rate` = 0bps: must be above 0",
        ),
        (
            "kind = 'dragonfly'\ngroups = 60000\nswitches_per_group = 9\nhosts_per_switch = 1",
            "topology \"dragonfly\": at least",
        ),
        ("kind = 'rail'\nclusters = 0\ngpus_per_cluster = 8", "`clusters` = 0: must be at least 1"),
        ("kind = 'rail'\nclusters = 8\ngpus_per_cluster = 0", "`gpus_per_cluster` = 0: must be at least 1"),
        (
            "kind = 'rail'\nclusters = 8\ngpus_per_cluster = 8\nrail_rate = '0bps'",
            "`rail_rate` = 0bps: must be above 0",
        ),
        ("kind = 'torus'\nsize = []", "`size` = []: must be one to three numbers above 0"),
        ("kind = 'torus'\nsize = [2, 2, 2, 2]", "`size` = [2, 2, 2, 2]: must be one to three"),
        ("kind = 'torus'\nsize = [4, 0]", "`size` = [4, 0]: must be one to three numbers above 0"),
        ("kind = 'torus'\nsize = [4]\nhosts_per_switch = 0", "`hosts_per_switch` = 0: must be at least 1"),
        ("kind = 'torus'\nsize = [4]\nswitch_rate = '0bps'", "`switch_rate` = 0bps: must be above 0"),
        (
            "kind = 'full-mesh'\nsize = [1, 1]",
            "`size` = [1, 1]: must be one to three numbers above 0, from 2 to",
        ),
        ("kind = 'full-mesh'\nsize = [9000]", "topology \"full mesh\": at least"),
        (
            "kind = 'jellyfish'\nswitches = 1\nlinks_per_switch = 3\nhosts_per_switch = 1",
            "`switches` = 1: must be at least 2",
        ),
        (
            "kind = 'jellyfish'\nswitches = 9\nlinks_per_switch = 9\nhosts_per_switch = 1",
            "`links_per_switch` = 9: must be 3 to 8",
        ),
        (
            "kind = 'jellyfish'\nswitches = 9\nlinks_per_switch = 2\nhosts_per_switch = 1",
            "`links_per_switch` = 2: must be 3 to 8",
        ),
        (
            "kind = 'jellyfish'\nswitches = 9\nlinks_per_switch = 3\nhosts_per_switch = 0",
            "`hosts_per_switch` = 0: must be at",
        ),
        (
            "kind = 'jellyfish'\nswitches = 9\nlinks_per_switch = 3\nhosts_per_switch = 1\nerror_rate = 3.0",
            "`error_rate` = 3: must be from 0.0 to 1.0",
        ),
    ];
    for (text, expected) in cases {
        let config: TopologyConfig = toml::from_str(text).unwrap();
        let error = config.build(Path::new(".")).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every two groups have the requested number of links, and the links are spread evenly over the switches of a
    /// group.
    #[test]
    fn groups_are_linked_evenly(groups in 2..9u32, switches in 1..6u32, between in 1..4u32) {
        let topology = build(Dragonfly { links_between_groups: between, ..Dragonfly::new(groups, switches, 1) });
        let group = |node: NodeId| topology.switch_index(node).and_then(|index| topology.switches()[index].group);
        let mut links: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut of_switch: BTreeMap<NodeId, u32> = BTreeMap::new();
        for link in topology.links() {
            if let (Some(a), Some(b)) = (group(link.a), group(link.b)) && a != b {
                *links.entry((a.min(b), a.max(b))).or_default() += 1;
                for end in [link.a, link.b] { *of_switch.entry(end).or_default() += 1; }
            }
        }
        prop_assert_eq!(links.len() as u32, groups * (groups - 1) / 2);
        prop_assert!(links.values().all(|&count| count == between));
        let most = (between * (groups - 1)).div_ceil(switches);
        prop_assert!(of_switch.values().all(|&count| count <= most));
    }

    /// Any sizes are either built or refused, without memory or time for refused ones.
    #[test]
    fn any_counts_are_answered(n in proptest::collection::vec(prop_oneof![0..6u32, any::<u32>()], 4)) {
        let _ = Dragonfly { links_between_groups: n[3], ..Dragonfly::new(n[0], n[1], n[2]) }.build(Path::new("."));
        let _ = Rail::new(n[0], n[1]).build(Path::new("."));
        let _ = Torus { hosts_per_switch: n[3], ..Torus::new(n[..3].to_vec()) }.build(Path::new("."));
        let _ = FullMesh { hosts_per_switch: n[3], ..FullMesh::new(n[..2].to_vec()) }.build(Path::new("."));
        let _ = Jellyfish::new(n[0], n[1], n[2]).build(Path::new("."));
    }
}
