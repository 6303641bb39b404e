//! Explicit paths: each leads to its destination, arithmetic and search agree, and errors in files are reported.

use std::collections::BTreeSet;
use std::path::Path;

use pathweave_topo::*;
use pathweave_units::HostId;
use proptest::prelude::*;

fn build(config: impl Build) -> Topology {
    config.build(Path::new(".")).unwrap()
}

fn sets(topology: &Topology, config: PathSetConfig) -> PathSets {
    PathSets::build(&config, topology, Path::new("."), RequestedPairs::All).unwrap()
}

fn shortest(max_paths: u32) -> PathSetConfig {
    PathSetConfig::AllShortest(AllShortest { max_paths })
}

fn k_shortest(k: u32, max_extra_hops: u32) -> PathSetConfig {
    PathSetConfig::KShortest(KShortest { k, max_extra_hops })
}

/// Returns the switches of a path, including its first edge.
fn switches(topology: &Topology, from: NodeId, path: &[Hop]) -> Vec<NodeId> {
    [from].into_iter().chain(path.iter().map(|hop| hop.end(topology))).collect()
}

fn all_edges(sets: &PathSets) -> Vec<(u32, u32)> {
    let edges = sets.edges().len() as u32;
    (0..edges * edges).map(|pair| (pair / edges, pair % edges)).collect()
}

/// Returns a limit of three hops beyond the shortest path.
fn lengths_limit(sets: &PathSets, from: u32, to: u32) -> usize {
    sets.between_edges(from, to).map(<[Hop]>::len).min().unwrap() + 3
}

/// Appends the lengths of all paths that visit no switch twice.
fn walk_everywhere(topology: &Topology, dst: NodeId, path: &mut Vec<NodeId>, lengths: &mut Vec<usize>) {
    let at = *path.last().unwrap();
    if at == dst {
        return lengths.push(path.len() - 1);
    }
    let peers: BTreeSet<NodeId> = topology.ports(at).iter().map(|port| port.peer).collect();
    for peer in peers {
        if !topology.is_host(peer) && !path.contains(&peer) {
            path.push(peer);
            walk_everywhere(topology, dst, path, lengths);
            path.pop();
        }
    }
}

/// Checks the invariants of every set of paths.
fn check(topology: &Topology, sets: &PathSets) {
    for (from, to) in all_edges(sets) {
        let mut seen = BTreeSet::new();
        for path in sets.between_edges(from, to) {
            let nodes = switches(topology, sets.edges()[from as usize][0], path);
            for (pair, hop) in nodes.windows(2).zip(path) {
                let link = topology.link(hop.link());
                let ends = if hop.from_a() { [link.a, link.b] } else { [link.b, link.a] };
                assert_eq!(pair, ends, "{}: hops follow each other", topology.name());
            }
            assert_eq!(nodes.last(), Some(&sets.edges()[to as usize][0]), "{}", topology.name());
            assert!(nodes.iter().all(|&node| !topology.is_host(node)));
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len(), "a switch twice: {nodes:?}");
            assert!(seen.insert(path.to_vec()), "a path twice: {nodes:?}");
        }
        assert!(!seen.is_empty());
        assert!(from != to || seen == BTreeSet::from([vec![]]));
    }
}

fn any_network() -> impl Strategy<Value = Topology> {
    prop_oneof![
        (2..6u32, 1..5u32, 1..3u32, 1..3u32).prop_map(|(g, s, h, between)| build(Dragonfly {
            links_between_groups: if s == 1 { 1 } else { between },
            ..Dragonfly::new(g, s, h)
        })),
        (1..5u32, 1..5u32).prop_map(|(c, g)| build(Rail::new(c, g))),
        (1..5u32, 1..4u32, 2..4u32, any::<bool>()).prop_map(|(a, b, c, open)| build(Torus {
            ends: if open { TorusEnds::Open } else { TorusEnds::Joined },
            ..Torus::new(vec![a, b, c])
        })),
        (1..5u32, 2..5u32).prop_map(|(a, b)| build(FullMesh::new(vec![a, b]))),
        (5..14u32, 3..5u32, any::<u64>())
            .prop_map(|(n, d, wiring_seed)| build(Jellyfish { wiring_seed, ..Jellyfish::new(n, d, 1) })),
        (1..4u32, 1..4u32, 1..3u32)
            .prop_map(|(l, s, b)| build(LeafSpine { leaf_spine_links: b, ..LeafSpine::new(l, s, 2) })),
        Just(build(FatTree::k_ary(4))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_path_leads_where_it_should(topology in any_network(), max in 1..9u32) {
        check(&topology, &sets(&topology, PathSetConfig::default()));
        check(&topology, &sets(&topology, shortest(max)));
        check(&topology, &sets(&topology, k_shortest(max, 2)));
        check(&topology, &sets(&topology, PathSetConfig::Own(OwnPathsConfig { max_paths: max })));
    }

    /// The number and the lengths of paths agree with routing.
    #[test]
    fn all_shortest_paths_are_those_of_routing(topology in any_network()) {
        let sets = sets(&topology, shortest(65_535));
        let routing = Routing::all_links_up(&topology);
        let mut finder = PathFinder::new(&topology, &routing);
        for src in 0..topology.hosts() {
            for dst in (0..topology.hosts()).filter(|&dst| dst != src) {
                let pair = finder.pair(HostId(src), HostId(dst), 0).unwrap();
                let hops: Vec<u32> = sets.between(HostId(src), HostId(dst)).map(|path| path.len() as u32 + 2).collect();
                prop_assert_eq!(hops.len() as u64, pair.paths);
                prop_assert!(hops.iter().all(|&hops| hops == pair.hops));
            }
        }
    }

    /// The lengths are the smallest of all paths, found by exhaustive search.
    #[test]
    fn k_shortest_paths_are_the_shortest_there_are(topology in any_network(), k in 1..40u32) {
        prop_assume!(topology.switches().len() <= 12);
        let some = sets(&topology, k_shortest(k, 3));
        for (from, to) in all_edges(&some).into_iter().filter(|(from, to)| from != to) {
            let mut lengths = Vec::new();
            let [src, dst] = [from, to].map(|edge| some.edges()[edge as usize][0]);
            walk_everywhere(&topology, dst, &mut vec![src], &mut lengths);
            lengths.sort_unstable();
            lengths.retain(|&length| length <= lengths_limit(&some, from, to));
            lengths.truncate(k as usize);
            let found: Vec<usize> = some.between_edges(from, to).map(<[Hop]>::len).collect();
            prop_assert_eq!(&found, &lengths, "{}", topology.name());
        }
    }

    /// The first of the topology's own paths is a shortest one.
    #[test]
    fn own_paths_begin_with_a_shortest_one(topology in any_network()) {
        let (own, all) = (sets(&topology, PathSetConfig::default()), sets(&topology, shortest(65_535)));
        for (from, to) in all_edges(&own) {
            let first = own.between_edges(from, to).next().unwrap();
            prop_assert!(all.between_edges(from, to).any(|path| path == first), "{}", topology.name());
        }
    }
}

/// Returns the names of the switches on the paths of a set between these two.
fn named(topology: &Topology, sets: &PathSets, from: &str, to: &str) -> Vec<Vec<String>> {
    let edge = |name: &str| {
        let node = topology.node_by_name(name).unwrap();
        sets.edges().iter().position(|edge| edge[0] == node).unwrap() as u32
    };
    let start = sets.edges()[edge(from) as usize][0];
    let names = |path: &[Hop]| {
        switches(topology, start, path).iter().map(|&node| topology.node_name(node).into_owned()).collect()
    };
    sets.between_edges(edge(from), edge(to)).map(names).collect()
}

/// Returns the groups that a path of a Dragonfly visits.
fn groups(path: &[String]) -> Vec<String> {
    let mut groups: Vec<String> =
        path.iter().map(|name| name.split('.').next().unwrap().to_owned()).collect();
    groups.dedup();
    groups
}

#[test]
fn detours_of_a_dragonfly_are_what_search_finds() {
    // The expected paths, found by search, are the shortest over each group, from all paths over at most one other
    // group.
    let topology = build(Dragonfly::new(5, 2, 1));
    let (own, all) = (sets(&topology, PathSetConfig::default()), sets(&topology, k_shortest(256, 4)));
    for (from, to) in [("sw0.0", "sw3.1"), ("sw1.1", "sw0.0"), ("sw4.0", "sw2.0")] {
        let mut best: Vec<Vec<String>> = Vec::new();
        for path in named(&topology, &all, from, to) {
            if groups(&path).len() <= 3 && best.iter().all(|known| groups(known) != groups(&path)) {
                best.push(path);
            }
        }
        let own: BTreeSet<_> = named(&topology, &own, from, to).into_iter().collect();
        assert_eq!((own.len(), own), (4, best.into_iter().collect()), "{from} to {to}");
    }
    // In one group: all paths of at most two hops.
    let topology = build(Dragonfly::new(2, 5, 1));
    let (own, all) = (sets(&topology, PathSetConfig::default()), sets(&topology, k_shortest(4, 1)));
    assert_eq!(named(&topology, &own, "sw0.1", "sw0.4"), named(&topology, &all, "sw0.1", "sw0.4"));
}

#[test]
fn paths_over_rails_are_what_search_finds() {
    let topology = build(Rail::new(3, 3));
    let (own, all) = (sets(&topology, PathSetConfig::default()), sets(&topology, k_shortest(256, 4)));
    for (from, to) in [("gpu0.0", "gpu2.0"), ("gpu1.2", "gpu0.1"), ("gpu2.1", "gpu2.0")] {
        let over = |path: &[String]| {
            path.iter().filter(|name| name.starts_with("rail")).cloned().collect::<Vec<_>>()
        };
        let one_cluster = from[..4] == to[..4];
        let mut best: Vec<Vec<String>> = Vec::new();
        for path in named(&topology, &all, from, to) {
            let rails = over(&path);
            if rails.len() == usize::from(!one_cluster) && best.iter().all(|known| over(known) != rails) {
                best.push(path);
            }
        }
        let own: BTreeSet<_> = named(&topology, &own, from, to).into_iter().collect();
        assert_eq!(own, best.into_iter().collect(), "{from} to {to}");
    }
}

#[test]
fn fewer_paths_are_spread_evenly() {
    let topology = build(LeafSpine::new(2, 8, 1));
    let some = sets(&topology, shortest(4));
    let spines: Vec<String> =
        named(&topology, &some, "leaf0", "leaf1").into_iter().map(|path| path[1].clone()).collect();
    assert_eq!(spines, ["spine0", "spine2", "spine4", "spine6"]);
    let error = |config| {
        PathSets::build(&config, &topology, Path::new("."), RequestedPairs::All).unwrap_err().to_string()
    };
    assert!(error(shortest(0)).contains("`max_paths` = 0: must be 1 to 65535"));
    assert!(error(k_shortest(0, 1)).contains("`k` = 0: must be 1 to 256"));
    assert!(error(k_shortest(8, 63)).contains("`max_extra_hops` = 63: must be 0 to 62"));
}

#[test]
fn only_what_is_wanted_is_found() {
    let topology = build(LeafSpine::new(4, 2, 2));
    let pairs = [(HostId(0), HostId(7)), (HostId(2), HostId(3))];
    let some =
        PathSets::build(&PathSetConfig::default(), &topology, Path::new("."), RequestedPairs::Pairs(&pairs))
            .unwrap();
    let count = |src, dst| some.count(HostId(src), HostId(dst));
    // Other hosts at the same switches have the same paths, and so does the reverse direction.
    assert_eq!([count(0, 7), count(7, 0), count(1, 6), count(2, 3)], [2, 2, 2, 1]);
    assert_eq!([count(0, 2), count(2, 7), count(5, 5)], [0, 0, 0]);
}

#[test]
fn networks_without_a_choice_are_refused() {
    let back_to_back = "hosts = 2\nrate = '1Gbps'\ndelay = '1us'\n[[link]]\na = 'host0'\nb = 'host1'\n";
    let topology = parse_topology_file("file", back_to_back).unwrap();
    let error = PathSets::build(&PathSetConfig::default(), &topology, Path::new("."), RequestedPairs::All)
        .unwrap_err();
    assert!(error.to_string().contains("host0 and host1 are linked without a switch"), "{error}");
}

/// Two hosts at switches a and b, another at b and c. Two spines join all three switches.
const DUAL: &str = "hosts = 3\nrate = '1Gbps'\ndelay = '1us'\n\
    [[switch]]\nname = 'a'\n[[switch]]\nname = 'b'\n[[switch]]\nname = 'c'\n[[switch]]\nname = 's'\n[[switch]]\nname = 't'\n\
    [[link]]\na = 'host0'\nb = 'a'\n[[link]]\na = 'host0'\nb = 'b'\n\
    [[link]]\na = 'host1'\nb = 'b'\n[[link]]\na = 'host1'\nb = 'a'\n\
    [[link]]\na = 'host2'\nb = 'c'\n\
    [[link]]\na = 'a'\nb = 's'\n[[link]]\na = 'a'\nb = 't'\n[[link]]\na = 'b'\nb = 's'\n[[link]]\na = 'c'\nb = 's'\n[[link]]\na = 'c'\nb = 't'\n";

#[test]
fn paths_leave_by_the_ports_of_a_host_in_turn() {
    let topology = parse_topology_file("file", DUAL).unwrap();
    for config in [shortest(256), k_shortest(8, 0), PathSetConfig::default()] {
        let sets = PathSets::build(&config, &topology, Path::new("."), RequestedPairs::All).unwrap();
        let paths = |src, dst| {
            let links = sets.links(&topology, HostId(src), HostId(dst));
            let names = |links: Vec<LinkId>| {
                let ends = links.iter().map(|link| (topology.link(*link).a, topology.link(*link).b));
                ends.map(|(a, b)| format!("{}{}", topology.node_name(a), topology.node_name(b)))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            links.map(names).collect::<Vec<_>>()
        };
        // Over the switches they share: port 0 of one, port 1 of the other.
        assert_eq!(paths(0, 1), ["host0a host1a", "host0b host1b"]);
        assert_eq!(
            [sets.arrival_port(HostId(0), HostId(1), 0), sets.arrival_port(HostId(0), HostId(1), 1)],
            [Some(1), Some(0)]
        );
        // Switch a has two paths to c and switch b one, which is therefore listed twice.
        assert_eq!(
            paths(0, 2),
            ["host0a as cs host2c", "host0b bs cs host2c", "host0a at ct host2c", "host0b bs cs host2c"]
        );
        assert_eq!(
            (sets.leading_ports(HostId(0), HostId(2)), sets.leading_ports(HostId(2), HostId(0))),
            (0b11, 0b01)
        );
        assert_eq!(paths(2, 0).len(), 3);
        let alive = sets.alive(&topology, HostId(0), HostId(2), |link| {
            topology.link(link).a != NodeId(0) || topology.link(link).b != NodeId(3)
        });
        assert_eq!(alive.collect::<Vec<_>>(), [false, true, false, true], "without the link from host0 to a");
    }
}

fn from_file(text: &str) -> Result<PathSets, String> {
    let topology = build(LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(3, 2, 1) });
    let pairs = [(HostId(0), HostId(1))];
    parse_path_file("paths.toml", text, &topology, RequestedPairs::Pairs(&pairs))
        .map_err(|error| error.to_string())
}

#[test]
fn a_file_of_paths() {
    let topology = build(LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(3, 2, 1) });
    let text = r#"
        [[path]]
        via = ["leaf0", "spine1#1", "leaf1"]
        id = 1
        [[path]]
        via = ["leaf0", "spine0", "leaf2", "spine1", "leaf1#1"]
        id = 0
    "#;
    let sets = from_file(text).unwrap();
    let links = |src, dst| {
        let paths = sets.between(HostId(src), HostId(dst));
        let name = |hop: &Hop| topology.link_name(hop.link());
        paths.map(|path| path.iter().map(name).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let long = ["leaf0-spine0", "leaf2-spine0", "leaf2-spine1", "leaf1-spine1#1"];
    let short = ["leaf0-spine1#1", "leaf1-spine1"];
    assert_eq!(links(0, 1), [&long[..], &short[..]]);
    let back = |path: &[&'static str]| path.iter().rev().copied().collect::<Vec<_>>();
    assert_eq!(links(1, 0), [back(&long), back(&short)]);
    // In one direction only: the other direction needs paths of its own.
    let one_way = "[[path]]\nvia = ['leaf0', 'spine0', 'leaf1']\nboth_ways = false\n";
    assert!(from_file(one_way).unwrap_err().contains("no path from leaf1 to leaf0"));
    let other = "[[path]]\nvia = ['leaf1', 'spine1', 'leaf0']\nboth_ways = false\n";
    assert!(from_file(&format!("{one_way}{other}")).is_ok());
}

#[test]
fn errors_in_a_file_are_named() {
    let path = |via: &str| format!("[[path]]\nvia = [{via}]\n");
    let good = path("'leaf0', 'spine0', 'leaf1'");
    let twice = |id: &str| format!("{good}id = 0\n{}id = {id}\n", path("'leaf0', 'spine1', 'leaf1'"));
    let cases = [
        (
            path("'leaf0', 'spin0', 'leaf1'"),
            "paths.toml:2:17: no node is named \"spin0\"; did you mean \"spine0\"?",
        ),
        (
            path("'host0', 'leaf0', 'spine0'"),
            "paths.toml:2:8: \"host0\" is a host; a path lists the switches",
        ),
        (path("'leaf0', 'leaf1'"), "paths.toml:2:17: no link from \"leaf0\" to \"leaf1\""),
        (
            path("'leaf0', 'spine0#2', 'leaf1'"),
            "paths.toml:2:17: \"spine0#2\": there are 2 links there, numbered from 0",
        ),
        (path("'leaf0', 'spine0#x', 'leaf1'"), "paths.toml:2:17: \"spine0#x\": there are 2 links there"),
        (path("'leaf0', 'spine0', 'leaf0'"), "paths.toml:2:27: the path visits \"leaf0\" twice"),
        (path("'leaf0', 'spine0'"), "paths.toml:2:17: \"spine0\" has no hosts; a path begins and ends"),
        (path("'leaf0'"), "paths.toml:2:7: field `via`: 1 switches; a path has 2 to 64"),
        (
            path("'leaf0', 'spine0', 'leaf2'"),
            "paths.toml:1:1: it has no path from leaf0 to leaf1, whose hosts",
        ),
        (twice("7"), "field `id`: 7 is out of range: the 2 paths from leaf0 to leaf1 are numbered from 0"),
        (twice("0"), "field `id`: 0 is the id of two paths from leaf0 to leaf1"),
        (
            format!("{good}id = 0\n{good}"),
            "of the 2 paths from leaf0 to leaf1, 1 have an `id`; give all or none",
        ),
        (format!("{good}color = 3\n"), "paths.toml:3:1: unknown field `color`"),
        ("[[path]]\n".to_owned(), "paths.toml:1:1: missing field `via`"),
    ];
    for (text, expected) in cases {
        let error = from_file(&text).unwrap_err();
        assert!(error.contains(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}
