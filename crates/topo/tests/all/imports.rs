//! Topologies of htsim and SimAI: real files, compared with values counted by hand, and error texts.

use std::path::Path;

use pathweave_topo::*;
use pathweave_units::{Duration, HostId, Rate};
use proptest::prelude::*;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/topology").join(name)
}

fn htsim(text: &str) -> Result<Topology, String> {
    parse_htsim_topology("t.topo", text).map_err(|why| why.to_string())
}

fn counts(topology: &Topology) -> (u32, usize, usize) {
    (topology.hosts(), topology.switches().len(), topology.links().len())
}

/// Returns the number of links between a lower and an upper kind of node, and the rate and delay of all of them.
fn links_between(topology: &Topology, below: &str, above: &str) -> (usize, Rate, Duration) {
    let is = |node: NodeId, kind: &str| topology.node_name(node).starts_with(kind);
    let links: Vec<&Link> =
        topology.links().iter().filter(|link| is(link.a, below) && is(link.b, above)).collect();
    assert!(links.iter().all(|link| (link.rate, link.delay) == (links[0].rate, links[0].delay)));
    (links.len(), links[0].rate, links[0].delay)
}

#[test]
fn eight_nodes_of_htsim() {
    let topology = HtsimFile { path: data("htsim-8.topo") }.build(Path::new(".")).unwrap();
    // 2 pods of 2 ToRs with 2 hosts each. Each of the 2 aggregation switches of a pod has 4 links up in bundles of 2,
    // and so 2 cores.
    assert_eq!(counts(&topology), (8, 4 + 4 + 4, 8 + 8 + 16));
    let (fast, slow, us) = (Rate::from_gbps(200), Rate::from_gbps(100), Duration::from_us(1));
    assert_eq!(links_between(&topology, "host", "tor"), (8, fast, us));
    assert_eq!(links_between(&topology, "tor", "agg"), (8, fast, us));
    assert_eq!(links_between(&topology, "agg", "core"), (16, slow, us));
    let tiers: Vec<u8> = topology.switches().iter().map(|switch| switch.tier).collect();
    assert_eq!(tiers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    let routing = Routing::all_links_up(&topology);
    assert!(routing.is_arithmetic());
    let mut paths = PathFinder::new(&topology, &routing);
    // Between pods: 2 aggregation switches, each with 2 cores, over 2 links up and 2 links down.
    let far = paths.pair(HostId(0), HostId(7), 0).unwrap();
    assert_eq!((far.hops, far.paths), (6, 2 * 2 * 2 * 2));
    assert_eq!(paths.pair(HostId(0), HostId(2), 0).unwrap().paths, 2);
    assert!(topology.notes().is_empty());
}

const LEAF_SPINE: &str = "\
# Leaf-spine
nodes 32
TIERS 2
Podsize 32

Tier 1
Downlink_speed_Gbps 200
Radix_Down 8
Downlink_Latency_ns 600
Switch_Latency_ns 301
Bundle 2
Queue_Down 88

Tier 0
# leaves
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 4
Oversubscribed 1
Downlink_Latency_ns 500
Switch_Latency_ns 101
";

fn leaf_spine(old: &str, new: &str) -> Result<Topology, String> {
    assert!(LEAF_SPINE.contains(old), "{old}");
    htsim(&LEAF_SPINE.replacen(old, new, 1)).inspect_err(|why| assert!(why.starts_with("t.topo"), "{why}"))
}

#[test]
fn a_leaf_spine_of_htsim_with_latencies_of_switches() {
    let topology = leaf_spine("# leaves", "#leaves").unwrap();
    // 4 leaves with 4 links up in bundles of 2: 2 spines.
    assert_eq!(counts(&topology), (32, 4 + 2, 32 + 16));
    let (hosts, up) = (links_between(&topology, "host", "leaf"), links_between(&topology, "leaf", "spine"));
    assert_eq!(hosts, (32, Rate::from_gbps(100), Duration::from_ps(550_500)));
    assert_eq!(up, (16, Rate::from_gbps(200), Duration::from_ps(801_000)));
    // Host to host over a spine: links of 500, 600, 600 and 500 ns, two leaves of 101 ns and a spine of 301 ns.
    assert_eq!((hosts.2 + up.2 + up.2 + hosts.2).as_ps(), (2200 + 503) * 1_000);
    assert_eq!(topology.notes().len(), 1);
    assert!(topology.notes()[0].starts_with("t.topo: Queue_Up and Queue_Down are not taken over"));
}

#[test]
fn errors_of_htsim_name_the_line() {
    let error = |old: &str, new: &str| leaf_spine(old, new).unwrap_err();
    assert_eq!(error("nodes 32\n", ""), "t.topo: Nodes is missing in the header");
    assert_eq!(error("nodes 32", "nodes 32 hosts"), "t.topo:2: 3 words; expected a name and a number");
    assert_eq!(
        error("nodes 32", "nodes -32"),
        "t.topo:2: nodes = -32: expected a whole number at or above 0"
    );
    assert_eq!(error("nodes 32", "nodes 0"), "t.topo:2: Nodes = 0: expected 1 to 2097152");
    assert!(
        error("nodes 32", "node 32")
            .starts_with("t.topo:2: \"node\" is no name of the header; did you mean \"nodes\"?")
    );
    assert_eq!(error("TIERS 2", "Tiers 4"), "t.topo:3: Tiers = 4: expected 2 to 3");
    assert_eq!(error("TIERS 2", "Tiers 1"), "t.topo:3: Tiers = 1: expected 2 to 3");
    assert_eq!(error("TIERS 2", "Tiers 2\nTiers 2"), "t.topo:4: Tiers is given twice; line 3 has it already");
    assert_eq!(error("TIERS 2", "Tiers 3"), "t.topo:6: Radix_Up of tier 1 is missing");
    assert!(
        error("Podsize 32", "Podsize 16")
            .starts_with("t.topo:4: Podsize = 16 of 32 nodes: expected the same")
    );
    assert!(error("Bundle 2", "Bundel 2").contains("is no name of a tier; did you mean \"bundle\"?"));
    assert_eq!(error("Tier 1", "Tier 3"), "t.topo:6: Tier 3: tiers are 0 to 2");
    assert_eq!(error("Tier 1", "Tier 0"), "t.topo:14: Tier 0: described from line 6 on already");
    assert_eq!(
        error("Radix_Down 8\nDownlink_Latency_ns 600", ""),
        "t.topo:6: Radix_Down of tier 1 is missing"
    );
    assert!(
        error("Bundle 2", "Bundle 3")
            .starts_with("t.topo:14: Radix_Up = 4 in tier 0: no multiple of the Bundle of 3")
    );
    assert_eq!(
        error("Bundle 2", "Bundle 4"),
        "t.topo:6: Radix_Down = 8 in tier 1: expected 16, which is 4 switches below with 4 links each"
    );
    assert_eq!(
        error("Bundle 2", "Radix_Up 2"),
        "t.topo:11: Radix_Up in tier 1: the top tier has no links up"
    );
    assert_eq!(error("Radix_Up 4\n", ""), "t.topo:14: Radix_Up of tier 0 is missing");
    assert_eq!(
        error("Oversubscribed 1", "Oversubscribed 2"),
        "t.topo:19: Oversubscribed = 2: a switch of tier 0 has 800 Gbps down and 800 Gbps up, by its radices and rates"
    );
}

#[test]
fn gpus_and_nvswitches_of_simai() {
    let topology = SimAiTopology { path: data("simai-4gpu.txt") }.build(Path::new(".")).unwrap();
    assert_eq!(counts(&topology), (4, 5, 12));
    let names: Vec<&str> = topology.switches().iter().map(|switch| switch.name.as_str()).collect();
    assert_eq!(names, ["nvswitch4", "nvswitch5", "switch6", "switch7", "switch8"]);
    let tiers: Vec<u8> = topology.switches().iter().map(|switch| switch.tier).collect();
    assert_eq!(tiers, [0, 0, 0, 0, 1]);
    let nvlink = links_between(&topology, "host", "nvswitch");
    assert_eq!(nvlink, (4, Rate::from_gbps(2_400), Duration::from_ns(25)));
    assert_eq!(topology.links()[11].error_rate, 1e-6);
    let routing = Routing::all_links_up(&topology);
    let mut paths = PathFinder::new(&topology, &routing);
    let mut pair =
        |a: u32, b: u32| paths.pair(HostId(a), HostId(b), 0).map(|pair| (pair.hops, pair.paths)).unwrap();
    // Inside a server, over its NVSwitch. To the same GPU of the other server, over their leaf. To another GPU, over
    // the spine.
    assert_eq!([pair(0, 1), pair(0, 2), pair(0, 3)], [(2, 1), (2, 1), (4, 4)]);
    assert!(topology.notes().is_empty());
}

#[test]
fn errors_and_notes_of_simai() {
    let parse = |text: &str| parse_simai_topology("t.txt", text).map_err(|why| why.to_string());
    let error = |text: &str| parse(text).unwrap_err();
    assert!(error("3 1 2\n2\n0 2 1Gbps 1us 0").starts_with(
        "t.txt:1:1: the header has 3 columns, as HPCC's has, kind = \"hpcc\"; expected 6: nodes"
    ));
    assert!(
        error("4 2 1 1 4 8")
            .starts_with("t.txt:1:11: the kind of GPU is \"8\"; expected a name, such as H100")
    );
    assert_eq!(error("4 2 1 1 4 H100\n2 2"), "t.txt:2:3: switch 2 is listed twice");
    assert_eq!(
        error("4 2 1 1 4 H100\n2 9"),
        "t.txt:2:3: the id of switch 1 of 1 is \"9\"; expected a number from 0 to 3"
    );
    assert!(
        error("4 2 4 0 4 H100")
            .starts_with("t.txt:1:1: 4 nodes are fewer than 4 NVSwitches, 0 switches and at least one GPU")
    );
    assert_eq!(
        error("1 8 0 0 1 H100"),
        "t.txt:1:3: 8 GPUs a server, but 1 in all: that is how many of the 1 nodes are left beside 0 NVSwitches and 0 \
         switches"
    );
    assert_eq!(
        error("8 1"),
        "t.txt:1:1: the header has 2 columns; expected 6: nodes gpus_per_server nvswitches switches links gpu_type"
    );
    // Two GPUs at one NVSwitch and at one leaf.
    let both = |gbps: u32| {
        let links = format!("0 2 {gbps}Gbps 1us 0\n1 2 {gbps}Gbps 1us 0\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n");
        parse(&format!("4 2 1 1 4 A100\n2 3\n{links}")).unwrap().notes().to_vec()
    };
    let notes = both(4);
    assert!(
        notes[0].contains("GPUs that share an NVSwitch and a leaf, such as host0 and host1"),
        "{notes:?}"
    );
    assert!(both(5).is_empty(), "the NVSwitch is taken alone");
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let _ = parse_htsim_topology("x", &text);
        let _ = parse_simai_topology("x", &text);
    }

    #[test]
    fn text_close_to_htsim_is_answered(line in 0usize..22, new in "(Tier|Bundle|Radix_Up|Radix_Down|Nodes|Podsize) [0-9]{1,7}") {
        let mut lines: Vec<&str> = LEAF_SPINE.lines().collect();
        let at = line.min(lines.len() - 1);
        lines[at] = &new;
        let _ = parse_htsim_topology("x", &lines.join("\n"));
    }
}
