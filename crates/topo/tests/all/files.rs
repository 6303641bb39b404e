//! Topology files: real ones are read, and errors state what is wrong, where, and what is allowed.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{Duration, HostId, Rate};
use proptest::prelude::*;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/topology").join(name)
}
fn hpcc(name: &str) -> Topology {
    HpccFile { path: data(name) }.build(Path::new(".")).unwrap()
}
fn counts(topology: &Topology) -> (u32, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links().len())
}

#[test]
fn the_fat_tree_of_hpcc_is_ours() {
    let theirs = hpcc("hpcc-fat-320.txt");
    let ours = FatTree::udmp_320(16, Rate::from_gbps(400)).build(Path::new(".")).unwrap();
    assert_eq!(theirs.links(), ours.links());
    let (a, b) = (Routing::all_links_up(&theirs), Routing::all_links_up(&ours));
    assert!(a.is_arithmetic(), "found by comparison with the table");
    let tiers = |t: &Topology| t.switches().iter().map(|s| s.tier).collect::<Vec<_>>();
    assert_eq!(tiers(&theirs), tiers(&ours));
    for switch in (320..376).map(NodeId) {
        for dst in (0..320).map(HostId) {
            assert_eq!(a.next_hops(switch, dst), b.next_hops(switch, dst));
        }
    }
}

#[test]
fn hosts_of_other_numbers_keep_them_as_names() {
    let topology = hpcc("hpcc-star-65.txt");
    assert_eq!(counts(&topology), (65, 1, 65));
    // Node 0 of the file is the switch, node 1 the first host.
    assert_eq!(topology.node_name(NodeId(0)), "host1");
    assert_eq!(topology.node_by_name("host65"), Ok(NodeId(64)));
    assert_eq!(topology.node_by_name("switch0"), Ok(NodeId(65)));
    assert_eq!(topology.links()[0].delay, Duration::from_us(1));
}

#[test]
fn topologies_of_conweave() {
    let leaf_spine = hpcc("conweave-leaf-spine-128.txt");
    assert_eq!(counts(&leaf_spine), (128, 16, 192));
    assert_eq!(leaf_spine.tiers()[0].oversubscription(), Some(2.0));
    let fat = hpcc("conweave-fat-k8.txt");
    assert_eq!(counts(&fat), (256, 80, 512));
    assert!(Routing::all_links_up(&fat).is_arithmetic());
    let routing = Routing::all_links_up(&fat);
    let pair = PathFinder::new(&fat, &routing).pair(HostId(0), HostId(255), 0).unwrap();
    assert_eq!((pair.hops, pair.paths), (6, 16));
}

#[test]
fn our_own_example() {
    let config = TopologyFile { path: "two-racks.toml".into() };
    let topology = config.build(&data("")).unwrap();
    assert_eq!((topology.name(), counts(&topology)), ("two racks", (4, 4, 10)));
    let slow = topology.link_by_name("spine1-tor1").unwrap();
    let link = topology.link(slow);
    assert_eq!((link.rate, link.delay), (Rate::from_gbps(40), Duration::from_us(5)));
    assert_eq!(link.error_rate, 1e-6);
    assert_eq!(topology.node_by_name("tor1").map(|node| topology.ports(node).len()), Ok(5));
    let documented = std::fs::read_to_string(data("../../../docs/topology-file.md")).unwrap();
    let example = std::fs::read_to_string(data("two-racks.toml")).unwrap();
    assert!(documented.contains(&example), "the documentation shows another example");
}

#[test]
fn several_ports_and_names_of_hosts() {
    let text = "
        host_names = ['a', 'b-b']
        rate = '1Gbps'
        delay = '0s'
        switch = [{ name = 'left', group = 7 }, { name = 'right', tier = 3 }]
        link = [
          { a = 'a', b = 'left' }, { a = 'a', b = 'right', count = 2 },
          { a = 'left', b = 'b-b' }, { a = 'b-b', b = 'right' },
        ]";
    let topology = parse_topology_file("x", text).unwrap();
    let routing = Routing::all_links_up(&topology);
    assert_eq!(routing.from_host(HostId(0), HostId(1)), NextHops::List(&[0, 1, 2]));
    assert_eq!(routing.next_hops(NodeId(3), HostId(0)), NextHops::List(&[0, 1]));
    assert_eq!(topology.link_by_name("right-b-b"), Ok(LinkId(4)));
    assert_eq!((topology.switches()[0].group, topology.switches()[1].tier), (Some(7), 3));
    // Without its links to the left, everything goes to the right.
    let alive = |link: LinkId| link.0 != 0;
    let routing = Routing::compute(&topology, &alive);
    assert_eq!(routing.from_host(HostId(0), HostId(1)), NextHops::List(&[1, 2]));
    assert_eq!(routing.unreachable_pair(), None);
    assert!(Routing::compute(&topology, &|link| link.0 > 2).unreachable_pair().is_some());
}

fn own(text: &str) -> String {
    parse_topology_file("net.toml", text).unwrap_err().to_string()
}

#[test]
fn errors_of_our_own_format() {
    let two = "hosts = 2\nrate = '1Gbps'\ndelay = '1us'\n";
    let cases = [
        ("hosts = 2\nlinks = []", "net.toml:2:1: unknown field `links`, expected one of"),
        ("hosts = -2", "net.toml:1:9: field `hosts`: invalid value: integer `-2`"),
        ("hosts = 4000000000", "net.toml:1:9: field `hosts`: 4000000000 hosts; expected 1 to 2097152"),
        ("", "net.toml:1:1: field `hosts` (their number) or `host_names` (a list) is missing"),
        ("hosts = 1\nhost_names = ['x']", "net.toml:1:9: field `hosts`: give `hosts` or `host_names`"),
        ("hosts = 2\nrate = '10Gb'", "net.toml:2:8: field `rate`: \"10Gb\": unknown or missing unit"),
        ("hosts = 2\nrate = 10", "net.toml:2:8: field `rate`: invalid type: integer `10`"),
        ("hosts = 2\nhosts = 3", "net.toml:2:1: duplicate key"),
        ("hosts = 2\nlink = [{ a = 'host0' }]", "net.toml:2:9: missing field `b`"),
        ("hosts = 2\nswitch = [{ name = 'a b' }]", "net.toml:2:20: field `name`: a name is 1 to 64"),
        (
            "hosts = 2\nswitch = [{ name = 'host1' }]",
            "net.toml:2:20: field `name`: \"host1\" is the name of two nodes",
        ),
        (
            &format!("{two}link = [{{ a = 'host0', b = 'hots1' }}]"),
            "net.toml:4:28: field `b`: no node is named \"hots1\"; did you mean \"host1\"?",
        ),
        (
            &format!("{two}link = [{{ a = 'host0', b = 'host0' }}]"),
            "net.toml:4:28: field `b`: a link cannot connect a node to itself",
        ),
        (
            &format!("{two}link = [{{ a = 'host0', b = 'host1', rate = '0bps' }}]"),
            "net.toml:4:44: field `rate`: rates must be above 0",
        ),
        (
            &format!("{two}link = [{{ a = 'host0', b = 'host1', error_rate = 1.5 }}]"),
            "net.toml:4:50: field `error_rate`: expected a probability from 0.0 to 1.0",
        ),
        (
            &format!("{two}link = [{{ a = 'host0', b = 'host1', count = 4294967295 }}]"),
            "net.toml:4:45: field `count`: expected at least 1, and at most 4194304 links in all",
        ),
        (
            "hosts = 2\nlink = [{ a = 'host0', b = 'host1', delay = '1us' }]",
            "net.toml:2:15: field `a`: its link has no `rate`",
        ),
        ("hosts = 2", "net.toml: host0 has no links"),
        (
            "hosts = 3\nrate = '1Gbps'\ndelay = '1us'\nlink = [\n{ a = 'host0', b = 'host1' },\n{ a = 'host1', b = 'host2' }]",
            "net.toml: there is no path from host2 to host0: hosts forward nothing",
        ),
    ];
    for (text, expected) in cases {
        let error = own(text);
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn errors_of_the_hpcc_format() {
    let cases = [
        (
            "",
            "t.txt:1:1: the file ends where a header with the numbers of nodes, switches and links is expected",
        ),
        ("4 1\n3\n", "t.txt:1:1: the header has 2 columns; expected 3: nodes switches links"),
        ("x", "t.txt:1:1: the number of nodes is \"x\"; expected a number from 1 to 2097152"),
        ("4000000000 1 1", "t.txt:1:1: the number of nodes is \"4000000000\"; expected a number from 1 to"),
        ("3 3 2", "t.txt:1:3: the number of switches is \"3\"; expected a number from 0 to 2"),
        ("3 1 2\n3", "t.txt:2:1: the id of switch 1 of 1 is \"3\"; expected a number from 0 to 2"),
        ("4 2 2\n3 3", "t.txt:2:3: switch 3 is listed twice"),
        ("3 1 2\n2\n0 2 1Gbps 1us 0\n", "t.txt:4:1: the file ends where link 2 of 2 is expected"),
        (
            "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps",
            "t.txt:4:1: link 2 of 2 has 3 columns; expected 5: src dst rate delay error_rate",
        ),
        // The error refers to the line with the missing column, not to the line after it.
        (
            "3 1 2\n2\n0 2 1Gbps 0\n1 2 1Gbps 1us 0\n",
            "t.txt:3:1: link 1 of 2 has 4 columns; expected 5: src dst rate delay error_rate",
        ),
        ("3 1 2\r\n2\r\n0 2 1Gbps 1us 0 7\r\n", "t.txt:3:1: link 1 of 2 has 6 columns; expected 5"),
        (
            "5 3 2\n2 3\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n",
            "t.txt:2: 2 ids of switches, and then a link; the header announces 3",
        ),
        ("3 1 2\n0 2 1Gbps 1us 0\n", "t.txt:2: 0 ids of switches, and then a link; the header announces 1"),
        ("4 1 2\n2 3\n", "t.txt:2:3: here is a further id of a switch, but the header announces 1"),
        ("3 1 2\n2\n0 5 1Gbps 1us 0", "t.txt:3:3: the second end of link 1 of 2 is \"5\"; expected a number"),
        ("3 1 2\n2\n0 0 1Gbps 1us 0", "t.txt:3:3: link 1 of 2 connects node 0 to itself"),
        ("3 1 2\n2\n0 2 -1Gbps 1us 0", "t.txt:3:5: the rate of link 1 of 2 is \"-1Gbps\": expected a number"),
        (
            "3 1 2\n2\n0 2 0Gbps 1us 0",
            "t.txt:3:5: the rate of link 1 of 2 is \"0Gbps\": rates must be above 0",
        ),
        ("3 1 2\n2\n0 2 1Gbps 1 0", "t.txt:3:11: the delay of link 1 of 2 is \"1\": unknown or missing unit"),
        ("3 1 2\n2\n0 2 1Gbps 1us NaN", "t.txt:3:15: the error rate of link 1 of 2 is \"NaN\"; expected"),
        (
            "3 1 1\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0",
            "t.txt:4:1: here is a further link, but the header announces 1",
        ),
        ("3 1 1\n2\n0 2 1Gbps 1us 0\nprose", "t.txt: host1 has no links"),
        (
            "8 8 0 1 8 H100",
            "t.txt:1:11: the header has 6 words and ends in \"H100\": this is SimAI's variant of the format, kind = \"simai\"",
        ),
    ];
    for (text, expected) in cases {
        let error = parse_hpcc_topology("t.txt", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n  gives    {error}\n  expected {expected}");
    }
}

#[test]
fn rates_in_bytes_and_with_a_slash() {
    let text = "3 1 2\n2\n0 2 10GBps 1us 0\n1 2 80Gb/s 1us 0.5\nprose at the end";
    let topology = parse_hpcc_topology("t.txt", text).unwrap();
    assert!(topology.links().iter().all(|link| link.rate == Rate::from_gbps(80)));
    assert_eq!(topology.links()[1].error_rate, 0.5);
}

#[test]
fn a_file_that_is_not_there() {
    let error = HpccFile { path: "nowhere.txt".into() }.build(Path::new("dir")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read file dir/nowhere.txt: No such file"));
}

/// Generates texts close to the grammar of `topology.txt`.
fn nearly_hpcc() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => (0u32..6).prop_map(|n| n.to_string()),
        4 => Just("1Gbps".to_owned()),
        4 => Just("1us".to_owned()),
        1 => "\\PC{0,6}",
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let _ = parse_topology_file("x", &text);
        let _ = parse_hpcc_topology("x", &text);
    }

    #[test]
    fn text_close_to_hpcc_is_answered(text in nearly_hpcc()) {
        let _ = parse_hpcc_topology("x", &text);
    }

    #[test]
    fn a_damaged_file_is_answered(cut in 0usize..900, at in 0usize..900, byte in "[ -~\n]") {
        let text = std::fs::read_to_string(data("two-racks.toml")).unwrap();
        let _ = parse_topology_file("x", text.get(..cut.min(text.len())).unwrap_or(&text));
        let mut damaged = text.clone();
        let at = at.min(text.len() - 1);
        damaged.replace_range(at..=at, &byte);
        let _ = parse_topology_file("x", &damaged);
    }

    /// A real file that is truncated at any link is an error, never a smaller network.
    #[test]
    fn a_truncated_file_is_refused(keep in 0usize..206) {
        let text = std::fs::read_to_string(data("conweave-leaf-spine-128.txt")).unwrap();
        let lines: Vec<_> = text.lines().take(keep.min(193)).collect();
        prop_assert!(parse_hpcc_topology("x", &lines.join("\n")).is_err());
    }
}
