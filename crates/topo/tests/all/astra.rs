//! Networks of ASTRA-sim, compared with values derived by hand: nodes, links and their properties.

use pathweave_topo::{NodeId, Topology, parse_astra_network};
use pathweave_units::{Duration, Rate};

fn read(text: &str) -> Topology {
    parse_astra_network("network.yml", text).unwrap()
}

fn error(text: &str) -> String {
    parse_astra_network("network.yml", text).unwrap_err().to_string()
}

/// Returns the names of both ends of each link.
fn links(topology: &Topology) -> Vec<(String, String)> {
    let name = |node: NodeId| topology.node_name(node).to_string();
    topology.links().iter().map(|link| (name(link.a), name(link.b))).collect()
}

/// The HGX of ASTRA-sim's examples: 8 NPUs at one switch, 400 GB/s, 936.25 ns.
#[test]
fn npus_at_a_switch() {
    let hgx = read(
        "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]  # GB/s\nlatency: [ 936.25 ]  # ns\n",
    );
    assert_eq!((hgx.hosts(), hgx.switches().len(), hgx.links().len()), (8, 1, 8));
    let link = &hgx.links()[3];
    // 400 x 2^30 bytes.
    assert_eq!((link.rate, link.delay), (Rate::from_bps(3_435_973_836_800), Duration::from_ps(936_250)));
}

#[test]
fn a_ring_of_four_and_one_of_two() {
    let ring = |npus: u32| {
        read(&format!("topology: [Ring]\nnpus_count: [{npus}]\nbandwidth: [50]\nlatency: [500]\n"))
    };
    let four = links(&ring(4));
    assert_eq!(four[0], ("host0".to_owned(), "npu0".to_owned()));
    let around = [("npu0", "npu1"), ("npu1", "npu2"), ("npu2", "npu3"), ("npu3", "npu0")];
    assert_eq!(four[4..], around.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let rates = |topology: &Topology| {
        (topology.links()[0].rate.as_bps(), topology.links().last().unwrap().rate.as_bps())
    };
    // The link to the host is as fast as the links to both neighbours together.
    assert_eq!(rates(&ring(4)), (2 * 429_496_729_600, 429_496_729_600));
    assert_eq!((links(&ring(2)).len(), rates(&ring(2)).0), (3, 429_496_729_600));
}

/// Ring of 2, full mesh of 8, switch of 4, as in an example of ASTRA-sim: NPU n has the coordinates n % 2, n / 2 % 8,
/// n / 16.
#[test]
fn three_dimensions() {
    let all = read(
        "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 2, 8, 4 ]\nbandwidth: [ 200.0, 100.0, 50.0 ]\nlatency: [ 50.0, 500.0, 2000.0 ]\n",
    );
    // 64 switches of NPUs, and one for each of 2 x 8 groups of four.
    assert_eq!((all.hosts(), all.switches().len()), (64, 64 + 16));
    let links = links(&all);
    // 64 links to hosts, 32 rings of one link, 8 meshes of 28 links, 64 links to switches.
    assert_eq!(links.len(), 64 + 32 + 8 * 28 + 64);
    let has = |a: &str, b: &str| links.contains(&(a.to_owned(), b.to_owned()));
    assert!(has("npu6", "npu7") && has("npu1", "npu15") && !has("npu1", "npu2") && !has("npu0", "npu16"));
    let group: Vec<&str> = links.iter().filter(|(_, b)| b == "dim2.5").map(|(a, _)| &**a).collect();
    assert_eq!(group, ["npu5", "npu21", "npu37", "npu53"]);
    let gib = 8 << 30;
    assert_eq!(all.links()[0].rate.as_bps(), (200 + 7 * 100 + 50) * gib);
}

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    let with = |field: &str, value: &str| {
        let fields = [
            ("topology", "[Ring, Switch]"),
            ("npus_count", "[4, 2]"),
            ("bandwidth", "[50, 25]"),
            ("latency", "[500, 1]"),
        ];
        let lines = fields.map(|(name, of)| format!("{name}: {}\n", if name == field { value } else { of }));
        error(&lines.concat())
    };
    assert_eq!(
        with("npus_count", "[4]"),
        "network.yml:2: npus_count has 1 entries, topology 2; expected one a dimension"
    );
    assert_eq!(
        with("topology", "[Ring, Torus]"),
        "network.yml:1:18: topology = Torus: expected Ring, FullyConnected or Switch"
    );
    assert_eq!(with("npus_count", "[4, 1]"), "network.yml:2:17: npus_count = 1: expected 2 or more");
    assert_eq!(with("bandwidth", "[50, 0]"), "network.yml:3:17: bandwidth = 0: expected GB/s above 0");
    assert_eq!(with("latency", "[-1, 0]"), "network.yml:4:11: latency = -1: expected ns, 0 or more");
    // Placeholders as in unfinished inputs of ASTRA-sim.
    assert!(
        with("bandwidth", "[tbd, 25]").starts_with("network.yml:3:13: "),
        "{}",
        with("bandwidth", "[tbd, 25]")
    );
    assert!(
        with("npus_count", "[4000, 4000]").contains("16000000 NPUs"),
        "{}",
        with("npus_count", "[4000, 4000]")
    );
    assert!(
        error("topology: [Ring]\n")
            .contains("expected the lists topology, npus_count, bandwidth and latency")
    );
    assert!(
        error("topology: [Ring]\nnpus_count: [2]\nbandwidth: [1]\nlatency: [1]\nlinks: 3\n")
            .contains("links")
    );
    assert!(error("").contains("expected the lists"));
    assert!(error("topology: [[[[").contains("network.yml"));
}
