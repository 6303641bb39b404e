//! Configurations: topologies and their sizes, error texts, and the output of `list`.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{Duration, HostId, Rate};
use proptest::prelude::*;

fn parse(text: &str) -> Result<TopologyConfig, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}
fn build(text: &str) -> Result<Topology, String> {
    parse(text)?.build(Path::new(".")).map_err(|error| error.to_string())
}

#[test]
fn kinds_as_written_in_scenarios() {
    let counts = |text: &str| {
        let topology = build(text).unwrap();
        (topology.hosts(), topology.switches().len(), topology.links().len())
    };
    assert_eq!(counts("kind = 'star'\nhosts = 5"), (5, 1, 5));
    assert_eq!(counts("kind = 'dumbbell'\nleft_hosts = 2\nright_hosts = 3\nbottleneck_links = 2"), (5, 2, 7));
    assert_eq!(counts("kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 8"), (32, 6, 40));
    assert_eq!(counts("kind = 'fat-tree'\nk = 4"), (16, 20, 48));
    // 20 ToRs, 20 aggregation switches, 16 cores; 320 + 20 x 4 + 20 x 4 links.
    assert_eq!(counts("kind = 'preset'\nname = 'udmp-320'"), (320, 56, 480));
    assert_eq!(counts("kind = 'preset'\nname = 'b1-1024'"), (1_024, 320, 3_072));
    assert_eq!(counts("kind = 'preset'\nname = 'b2-8192'"), (8_192, 1_280, 24_576));
    assert_eq!(counts("kind = 'preset'\nname = 'b3-128'"), (128, 80, 384));
    assert_eq!(counts("kind = 'preset'\nname = 'b4-1m'"), (1 << 20, 32_768, 3 << 20));
}

/// The network of the ERD paper, table 1, with two uplinks for each ToR: 256 + 128 + 32 links. An EoR has 10 ports, a
/// ToR 6, a gateway 16. There are 8 paths of 4.72 us between pods.
#[test]
fn the_network_of_the_erd_evaluation() {
    let topology = build("kind = 'preset'\nname = 'erd-256'").unwrap();
    assert_eq!(
        (topology.hosts(), topology.switches().len(), topology.links().len()),
        (256, 64 + 16 + 2, 256 + 128 + 32)
    );
    let node = |name: &str| topology.node_by_name(name).unwrap();
    let ports = |name: &str| topology.ports(node(name)).len();
    assert_eq!((ports("tor63"), ports("agg7.1"), ports("core1")), (6, 10, 16));
    let routing = Routing::all_links_up(&topology);
    let one_way = |src: u32, dst: u32| {
        let (mut at, mut delay, mut ways) = (NodeId(src), Duration::ZERO, 1);
        while at.0 != dst {
            let next = routing.from_node(at, HostId(dst));
            ways *= next.len();
            let port = topology.ports(at)[usize::from(next.get(0))];
            delay += topology.link(port.link).delay;
            at = port.peer;
        }
        (delay.as_ps() / 1_000, ways)
    };
    // .45 .06 .28 | .45 .06 .28 1.01 .28 | .45 .06 .28 1.01 1.12 1.01 .28, each with .06 .45 at the end.
    assert_eq!([one_way(0, 3), one_way(0, 4), one_way(0, 255)], [(1_300, 1), (2_590, 2), (4_720, 8)]);
    for (name, hosts, core_gbps) in [("erd-64", 64, 200), ("erd-16", 16, 100)] {
        let topology = build(&format!("kind = 'preset'\nname = '{name}'")).unwrap();
        assert_eq!(topology.hosts(), hosts);
        let up = topology
            .links()
            .iter()
            .filter(|link| link.rate == Rate::from_gbps(core_gbps) && link.a.0 >= hosts);
        // Half of the total rate of the hosts.
        assert_eq!(up.count() as u64 * core_gbps * 2, u64::from(hosts) * 100, "{name}");
    }
}

#[test]
fn rates_and_delays_are_inherited_upwards() {
    let text =
        "kind = 'fat-tree'\nk = 2\nhost_rate = '50Gbps'\ntor_agg_rate = '200Gbps'\nagg_core_delay = '7us'";
    let topology = build(text).unwrap();
    let link = |name: &str| topology.link(topology.link_by_name(name).unwrap()).clone();
    let (up, core) = (link("tor0-agg0.0"), link("agg1.0-core0"));
    assert_eq!(link("host1-tor1").rate, Rate::from_gbps(50));
    assert_eq!((up.rate, up.delay), (Rate::from_gbps(200), Duration::from_us(1)));
    assert_eq!((core.rate, core.delay), (Rate::from_gbps(200), Duration::from_us(7)));
}

#[test]
fn invalid_settings_are_refused_with_reasons() {
    let cases = [
        ("kind = 'fattree'", "unknown variant `fattree`, expected one of `star`, `dumbbell`, `leaf-spine`"),
        ("kind = 'star'\nhosts = 3\nhost = 4", "unknown field `host`, expected one of `hosts`, `rate`"),
        ("kind = 'star'", "missing field `hosts`"),
        ("kind = 'star'\nhosts = 0", "topology field `hosts` = 0: must be at least 1"),
        (
            "kind = 'star'\nhosts = 70000",
            "topology \"star of 70000 hosts\": switch0 has 70000 ports; at most 65535",
        ),
        (
            "kind = 'star'\nhosts = 4294967295",
            "topology \"star\": at least 4294967296 hosts and switches; at most 2097152 are",
        ),
        ("kind = 'star'\nhosts = 2\nrate = '0bps'", "topology field `rate` = 0bps: must be above 0"),
        ("kind = 'star'\nhosts = 2\nrate = '-1Gbps'", "\"-1Gbps\": expected a number at or above 0"),
        (
            "kind = 'star'\nhosts = 2\nerror_rate = 2.0",
            "topology field `error_rate` = 2: must be from 0.0 to 1.0",
        ),
        ("kind = 'fat-tree'\nk = 5", "topology field `k` = 5: must be even, from 2 to 256"),
        ("kind = 'fat-tree'\nk = 4\npods = 4", "topology field `pods` = 4: already set by `k`"),
        (
            "kind = 'fat-tree'\npods = 4",
            "topology field `tors_per_pod` = (missing): required unless `k` is given",
        ),
        ("kind = 'fat-tree'\nk = 256", "topology \"fat-tree\": at least 4276224 hosts and switches"),
        (
            "kind = 'fat-tree'\npods = 2\ntors_per_pod = 2\nhosts_per_tor = 1\naggs_per_pod = 2\ncores = 3",
            "topology field `cores` = 3: must be a multiple of `aggs_per_pod` = 2, or `core_wiring` be \"full-mesh\"",
        ),
        (
            "kind = 'fat-tree'\nk = 4\noversubscription = 0.5",
            "topology field `oversubscription` = 0.5: must be at least 1",
        ),
        (
            "kind = 'fat-tree'\nk = 4\noversubscription = 2.0\nagg_core_rate = '1Gbps'",
            "topology field `oversubscription` = 2: already set by `agg_core_rate`",
        ),
        (
            "kind = 'leaf-spine'\nleaves = 4294967295\nspines = 4294967295\nhosts_per_leaf = 4294967295",
            "topology \"leaf-spine\": at least 12884901885 hosts and switches; at most 2097152 are allowed",
        ),
        (
            "kind = 'preset'\nname = 'udmp-32'",
            "no topology preset is named \"udmp-32\"; did you mean \"udmp-320\"?",
        ),
    ];
    for (text, expected) in cases {
        let error = build(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn lists_say_all_that_is_needed() {
    let kinds: Vec<_> = topologies().iter().map(|kind| kind.name).collect();
    assert_eq!(
        kinds,
        [
            "star",
            "dumbbell",
            "leaf-spine",
            "fat-tree",
            "cross-dc",
            "cluster",
            "dragonfly",
            "rail",
            "torus",
            "full-mesh",
            "jellyfish",
            "bcube",
            "file",
            "hpcc",
            "simai",
            "htsim",
            "laps",
            "astra",
            "preset"
        ]
    );
    for kind in topologies() {
        assert!(!kind.help.is_empty(), "{} has no help", kind.name);
        for field in &kind.fields {
            assert!(!field.help.is_empty(), "{}.{} has no help", kind.name, field.name);
        }
    }
    let fat_tree = topologies().iter().find(|kind| kind.name == "fat-tree").unwrap();
    let field = |name: &str| fat_tree.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!(field("host_rate").default.as_deref(), Some("\"100Gbps\""));
    assert_eq!(field("core_wiring").default.as_deref(), Some("\"planes\""));
    assert_eq!((field("k").default.as_deref(), field("k").required), (None, false));
    let star = topologies().iter().find(|kind| kind.name == "star").unwrap();
    assert!(star.fields.iter().any(|field| field.name == "hosts" && field.required));
}

#[test]
fn presets_survive_a_scenario_file() {
    for preset in presets() {
        let text = toml::to_string(&preset.config).unwrap();
        assert_eq!(parse(&text).as_ref(), Ok(&preset.config), "{}", preset.name);
        assert!(!preset.help.is_empty());
    }
}

#[test]
fn the_largest_benchmark_needs_no_tables() {
    let topology = build("kind = 'preset'\nname = 'b2-8192'").unwrap();
    let routing = Routing::all_links_up(&topology);
    assert!(routing.is_arithmetic());
    assert!(routing.memory_bytes() <= 32 * 1_280);
    let far = PathFinder::new(&topology, &routing).pair(HostId(0), HostId(8_191), 0).unwrap();
    assert_eq!((far.hops, far.paths), (6, 256));
    // One failed link: 1,280 switches by 512 ToRs, 4 bytes each, and 20 bytes for each host.
    let broken = Routing::compute(&topology, &|link| link != LinkId(20_000));
    assert!(!broken.is_arithmetic() && broken.memory_bytes() < 4_000_000, "{}", broken.memory_bytes());
    assert_eq!(broken.unreachable_pair(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn link_counts_follow_the_formula(
        (p, t, h, a, c) in (1..=4u32, 1..=4u32, 1..=4u32, 1..=3u32, 1..=3u32),
        (up, core) in (1..=3u32, 1..=3u32),
        mesh: bool,
    ) {
        let config = FatTree {
            pods: Some(p), tors_per_pod: Some(t), hosts_per_tor: Some(h), aggs_per_pod: Some(a),
            cores: Some(a * c),
            core_wiring: if mesh { CoreWiring::FullMesh } else { CoreWiring::Planes },
            tor_agg_links: up, agg_core_links: core,
            ..FatTree::default()
        };
        let topology = config.build(Path::new(".")).unwrap();
        let cores_per_agg = if mesh { a * c } else { c };
        let links = p * t * h + p * t * a * up + p * a * cores_per_agg * core;
        prop_assert_eq!(topology.links().len() as u32, links);
        prop_assert_eq!(topology.switches().len() as u32, p * (t + a) + a * c);
        prop_assert!(topology.tiers().len() == 3);
    }

    /// Any sizes are either built or refused, without allocating memory for refused ones.
    #[test]
    fn any_counts_are_answered(n in proptest::collection::vec(prop_oneof![0..4u32, any::<u32>()], 7)) {
        let _ = LeafSpine { leaf_spine_links: n[0] % 9, ..LeafSpine::new(n[1], n[2], n[3]) }.build(Path::new("."));
        let _ = Dumbbell { bottleneck_links: n[4], ..Dumbbell::new(n[5]) }.build(Path::new("."));
        let fat_tree = FatTree {
            pods: Some(n[0]), tors_per_pod: Some(n[1]), hosts_per_tor: Some(n[2]), aggs_per_pod: Some(n[3]),
            cores: Some(n[4]), tor_agg_links: n[5], agg_core_links: n[6],
            ..FatTree::default()
        };
        let _ = fat_tree.build(Path::new("."));
    }
}

/// A host has at most 64 ports; a switch may have any number.
#[test]
fn a_host_has_at_most_64_ports() {
    let with = |ports: usize| {
        let (rate, delay) = (Rate::from_gbps(100), Duration::ZERO);
        let link = |host| Link { a: NodeId(host), b: NodeId(2), rate, delay, error_rate: 0.0 };
        let links = [vec![link(0); ports], vec![link(1)]].concat();
        Topology::new("wide", 2, vec![Switch { name: "s".into(), tier: 0, group: None }], links)
    };
    assert_eq!(with(64).unwrap().ports(NodeId(0)).len(), 64);
    let error = with(65).unwrap_err().to_string();
    assert_eq!(error, "topology \"wide\": host host0 has 65 ports; at most 64 are allowed");
}
