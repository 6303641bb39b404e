//! Topologies and paths of LAPS's simulator: the authors' files, compared with pathweave's topologies, which follow
//! the paper.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{Duration, HostId, Rate};
use proptest::prelude::*;

fn imported(name: &str) -> Topology {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/topology").join(name);
    LapsTopology { path }.build(Path::new(".")).unwrap()
}

fn preset(name: &str) -> Topology {
    PresetName { name: name.to_owned() }.build(Path::new(".")).unwrap()
}

/// Returns the links in order, with the names of their nodes in pathweave's topology, rate and delay.
fn links(topology: &Topology, ours: impl Fn(NodeId) -> String) -> Vec<(String, String, Rate, Duration)> {
    let of = |link: &Link| {
        let (a, b) = (ours(link.a), ours(link.b));
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        (a, b, link.rate, link.delay)
    };
    let mut all: Vec<_> = topology.links().iter().map(of).collect();
    all.sort();
    all
}

fn id(topology: &Topology, node: NodeId) -> u32 {
    let name = topology.node_name(node).into_owned();
    name.trim_start_matches(|c: char| c.is_alphabetic()).parse().unwrap()
}

/// Returns pathweave's name of a node in the authors' file: rail switches 0 to 7, GPUs 8 to 71, scale-up switches 72
/// to 79, hosts from 80 on.
fn rail_name(id: u32) -> String {
    match id {
        0..8 => format!("rail{id}"),
        8..72 => format!("gpu{}.{}", (id - 8) / 8, (id - 8) % 8),
        72..80 => format!("nvlink{}", id - 72),
        _ => format!("host{}", id - 80),
    }
}

/// Returns pathweave's name of a node: switch 4g + s is switch s of group g; hosts follow.
fn dragonfly_name(id: u32) -> String {
    if id < 36 { format!("sw{}.{}", id / 4, id % 4) } else { format!("host{}", id - 36) }
}

#[test]
fn the_authors_networks_are_ours() {
    for (file, ours, name) in [
        ("laps-rail.txt", "laps-rail", rail_name as fn(u32) -> String),
        ("laps-dragonfly.txt", "laps-dragonfly", dragonfly_name),
    ] {
        let (theirs, ours) = (imported(file), preset(ours));
        assert_eq!(
            (theirs.hosts(), theirs.switches().len()),
            (ours.hosts(), ours.switches().len()),
            "{file}"
        );
        let renamed = links(&theirs, |node| name(id(&theirs, node)));
        assert_eq!(renamed, links(&ours, |node| ours.node_name(node).into_owned()), "{file}");
    }
}

#[test]
fn nodes_keep_their_ids_and_hosts_come_first() {
    let rail = imported("laps-rail.txt");
    assert_eq!(rail.node_name(NodeId(0)), "host80");
    assert_eq!(rail.node_by_name("switch8"), Ok(NodeId(64 + 8)));
    let link = rail.link(rail.link_by_name("host80-switch8").unwrap());
    assert_eq!((link.rate, link.delay), (Rate::from_gbps(200), Duration::from_us(1)));
}

/// Lines of the authors' file for the hosts of index 0 of the first two clusters, in both directions.
const PATHS: &str = "\
0 -1 1 1 2 3 80 8 0 16 88
1 -1 1 2 2 1 2 2 1 3 80 8 72 9 1 17 73 16 88
2 -1 1 2 3 1 2 2 1 3 80 8 72 10 2 18 73 16 88
3 -1 1 2 4 1 2 2 1 3 80 8 72 11 3 19 73 16 88
4 -1 1 2 5 1 2 2 1 3 80 8 72 12 4 20 73 16 88
5 -1 1 2 6 1 2 2 1 3 80 8 72 13 5 21 73 16 88
6 -1 1 2 7 1 2 2 1 3 80 8 72 14 6 22 73 16 88
7 -1 1 2 8 1 2 2 1 3 80 8 72 15 7 23 73 16 88

3584 -1 1 1 1 3 88 16 0 8 80
3585 -1 1 2 2 1 1 2 1 3 88 16 73 17 1 9 72 8 80
3586 -1 1 2 3 1 1 2 1 3 88 16 73 18 2 10 72 8 80
3587 -1 1 2 4 1 1 2 1 3 88 16 73 19 3 11 72 8 80
3588 -1 1 2 5 1 1 2 1 3 88 16 73 20 4 12 72 8 80
3589 -1 1 2 6 1 1 2 1 3 88 16 73 21 5 13 72 8 80
3590 -1 1 2 7 1 1 2 1 3 88 16 73 22 6 14 72 8 80
3591 -1 1 2 8 1 1 2 1 3 88 16 73 23 7 15 72 8 80
";

/// Returns the switches of each path, by pathweave's names.
fn switches(
    topology: &Topology,
    sets: &PathSets,
    ends: (u32, u32),
    name: impl Fn(NodeId) -> String,
) -> Vec<Vec<String>> {
    let path = |hops: &[Hop]| hops.iter().map(|hop| name(hop.end(topology))).collect();
    sets.between(HostId(ends.0), HostId(ends.1)).map(path).collect()
}

#[test]
fn the_authors_paths_are_ours() {
    let (theirs, ours) = (imported("laps-rail.txt"), preset("laps-rail"));
    let wanted = [(HostId(0), HostId(8))];
    let sets = parse_laps_paths("p.txt", PATHS, &theirs, RequestedPairs::Pairs(&wanted)).unwrap();
    let own = PathSets::build(&PathSetConfig::default(), &ours, Path::new("."), RequestedPairs::All).unwrap();
    for ends in [(0, 8), (8, 0)] {
        let read = switches(&theirs, &sets, ends, |node| rail_name(id(&theirs, node)));
        assert_eq!(read, switches(&ours, &own, ends, |node| ours.node_name(node).into_owned()));
        assert_eq!(read.len(), 8);
    }
    assert_eq!(sets.find_next_hop_loop(&theirs), None);
}

#[test]
fn errors_of_topologies_name_line_and_what_is_allowed() {
    let cases = [
        ("", "t.txt:1:1: the file ends where a header with the numbers of switches and servers is expected"),
        // A vertical tab counts as white space.
        ("\u{b}\n1 2 3\n", "t.txt:2:1: the header has 3 columns; expected 2: switches servers"),
        ("1 2 3\n", "t.txt:1:1: the header has 3 columns; expected 2: switches servers"),
        ("1 x\n", "t.txt:1:3: the number of servers is \"x\"; expected a number from 1 to 2097151"),
        ("1 2\n", "t.txt:2:1: the file ends where link 0 is expected"),
        (
            "1 2\n0 1 0 100\n1 2 0 100 1\n",
            "t.txt:2:1: link 0 has 4 columns; expected 5: link node_a node_b rate_gbps",
        ),
        ("1 2\n0 1 0 100 1 7\n", "t.txt:2:1: link 0 has 6 columns; expected 5"),
        (
            "1 2\n0 1 0 100 1\n2 2 0 100 1\n",
            "t.txt:3:1: the number of the link is 2; expected 1, one after the other",
        ),
        (
            "1 2\n0 1 3 100 1\n",
            "t.txt:2:5: the second node of link 0 is \"3\"; expected a number from 0 to 2",
        ),
        ("1 2\n0 1 1 100 1\n", "t.txt:2:5: link 0 connects node 1 to itself"),
        (
            "1 2\n0 1 0 100Gbps 1\n",
            "t.txt:2:7: the rate of link 0 is \"100Gbps\"; expected a number of Gbps, without",
        ),
        ("1 2\n0 1 0 0 1\n", "t.txt:2:7: the rate of link 0 is 0; rates must be above 0"),
        (
            "1 2\n0 1 0 100 -1\n",
            "t.txt:2:11: the delay of link 0 is \"-1\"; expected a number of us, without the unit",
        ),
        ("1 2\n0 1 0 100 1\n", "t.txt: host2 has no links"),
    ];
    for (text, expected) in cases {
        let error = parse_laps_topology("t.txt", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn errors_of_paths_name_line_and_what_is_allowed() {
    let rail = imported("laps-rail.txt");
    let wanted = [(HostId(0), HostId(8))];
    let error = |text: &str| {
        parse_laps_paths("p.txt", text, &rail, RequestedPairs::Pairs(&wanted)).unwrap_err().to_string()
    };
    let cases = [
        ("", "p.txt: it has no path from switch8 to switch16, whose hosts communicate"),
        ("0 -1 1 1 2 3 80 8 0 16", "p.txt:1: 10 columns; expected 2h + 3 for a path of h links, 2 at least"),
        ("0 -1 80", "p.txt:1: 3 columns; expected 2h + 3"),
        ("x -1 1 1 2 3 80 8 0 16 88", "p.txt:1: path = x: expected a whole number at or above 0"),
        ("0 up 1 1 2 3 80 8 0 16 88", "p.txt:1: priority = up: expected a whole number"),
        (
            "0 -1 1 1 2 3 80 8 999 16 88",
            "p.txt:1: node 2 of path 0 = 999: the topology has no node of this id",
        ),
        ("0 -1 1 1 2 3 80 8 0 8 88", "p.txt:1: path 0 visits node 8 twice"),
        (
            "0 -1 1 1 2 3 80 8 0 81 88",
            "p.txt:1: node 3 of path 0 = 81: it is a host; switches are expected there",
        ),
        (
            "0 -1 1 1 2 3 80 8 0 16 17",
            "p.txt:1: node 4 of path 0 = 17: it is a switch; hosts are expected there",
        ),
        ("0 -1 1 4 2 3 80 8 0 16 88", "p.txt:1: port 1 of path 0 = 4: switch8 has 3 ports, numbered from 1"),
        ("0 -1 1 0 2 3 80 8 0 16 88", "p.txt:1: port 1 of path 0 = 0: switch8 has 3 ports, numbered from 1"),
        (
            "0 -1 1 2 2 3 80 8 0 16 88",
            "p.txt:1: port 1 of path 0 = 2: it leads from switch8 to switch72, not to switch0",
        ),
        ("0 -1 1 1 2 3 80 8 0 16 88\n0 -1 1 1 1 3 88 16 0 8 80", "p.txt:2: path 0 is that of line 1 already"),
        (
            "0 -1 1 1 2 3 80 8 0 16 88\n1 -1 1 1 2 3 80 8 0 16 88",
            "p.txt:2: path 1 has the links of another path",
        ),
        (
            "0 -1 1 1 2 3 80 8 0 16 88\n",
            "p.txt: it has no path from switch16 to switch8, whose hosts communicate",
        ),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
    let other =
        parse_laps_paths("p.txt", PATHS, &preset("laps-rail"), RequestedPairs::Pairs(&wanted)).unwrap_err();
    assert!(other.to_string().contains("expected a topology of kind = \"laps\""), "{other}");
    // A line is read only up to the length of the longest path.
    let long = error(&format!("0 -1{}", " 1".repeat(1 << 20)));
    assert_eq!(long, "p.txt:1: more than 133 columns; a path visits 64 switches at most");
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "([0-9. -]{0,30}\n){0,6}") {
        let _ = parse_laps_topology("x", &text);
        let _ = parse_laps_paths("x", &text, &preset("laps-dragonfly"), RequestedPairs::All);
    }
}
