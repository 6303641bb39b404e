//! Switches that choose among the next hops of all explicit paths of a packet's pair of hosts, detours included.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Flow, finish, incast, permutation, spec};
use pathweave_fabric::config::{FaultConfig, Forwarding};
use pathweave_records::RunResult;
use pathweave_sim::{NoMonitor, RouteChoice, SimSpec, run};
use pathweave_topo::{Build, Dragonfly, LinkId, PathSetConfig, PathSets, Rail, RequestedPairs, Topology};
use pathweave_units::Duration;

/// Returns 4 clusters of 4 GPUs.
fn rails() -> Topology {
    Rail::new(4, 4).build(Path::new(".")).expect("rails")
}

fn by_next_hops(scheme: &str, topology: Topology, flows: &[Flow]) -> SimSpec {
    let mut spec = spec(topology, flows, scheme);
    let sets =
        PathSets::build(&PathSetConfig::default(), &spec.topology, Path::new("."), RequestedPairs::All)
            .expect("hosts with one port");
    spec.routing = RouteChoice::NextHops(Arc::new(sets));
    spec
}

/// Returns the bytes that links between nodes of these name prefixes have carried.
fn carried(result: &RunResult, from: &str, to: &str) -> u64 {
    let matches =
        |name: &str| name.split_once('>').is_some_and(|(a, b)| a.starts_with(from) && b.starts_with(to));
    result.links.iter().filter(|link| matches(&link.name)).map(|link| link.tx_bytes).sum()
}

#[test]
fn every_byte_arrives() {
    for scheme in ["ecmp", "letflow", "plb", "rps"] {
        let dragonfly = Dragonfly::new(5, 2, 2).build(Path::new(".")).expect("a Dragonfly");
        for (topology, hosts) in [(rails(), 16), (dragonfly, 20)] {
            for flows in [permutation(hosts, 300_000), incast(hosts, 100_000)] {
                finish(&by_next_hops(scheme, topology.clone(), &flows));
            }
        }
    }
}

/// GPU 0 of cluster 0 sends to GPU 0 of cluster 1, over its own rail or over those of its three neighbours. The GPU
/// has two next hops, its rail switch and its cluster switch. Each gets half of the flows, although three of four
/// paths begin with the cluster switch. The cluster switch has three next hops, the neighbours, and each gets a third
/// of its flows.
#[test]
fn a_next_hop_counts_once_however_many_paths_take_it() {
    let flows: Vec<Flow> = (0..600).map(|n| (0, 4, 10_000, n * 4_000)).collect();
    let result = finish(&by_next_hops("ecmp", rails(), &flows));
    let all = carried(&result, "gpu0.0", "rail0") + carried(&result, "gpu0.0", "nvlink0");
    // Acknowledgements that the sender's GPU receives go to its host.
    let share = |from: &str, to: &str, of: u64| carried(&result, from, to) as f64 / of as f64;
    let direct = share("gpu0.0", "rail0", all);
    assert!((0.44..0.56).contains(&direct), "{direct} went over the sender's own rail");
    for neighbour in 1..4 {
        let one = share(&format!("gpu0.{neighbour}"), "rail", all);
        assert!((0.11..0.22).contains(&one), "{one} went over rail {neighbour}");
    }
    // On shortest paths there are no detours.
    assert_eq!(carried(&finish(&spec(rails(), &flows, "ecmp")), "gpu0.0", "nvlink0"), 0);
}

#[test]
fn a_path_with_a_dead_link_is_left_out_once_routing_knows() {
    for scheme in ["ecmp", "letflow"] {
        let mut spec = by_next_hops(scheme, rails(), &permutation(16, 2_000_000));
        spec.switch.reroute_after = Duration::from_us(30);
        let links = (0..spec.topology.links().len()).map(|link| LinkId(link as u32));
        let names: Vec<String> = links.map(|link| spec.topology.link_name(link)).collect();
        let link = names.into_iter().find(|name| name.contains("rail")).expect("a link to a rail switch");
        spec.faults = vec![FaultConfig::LinkDown { link, at: Duration::from_us(50), up_at: None }];
        finish(&spec);
    }
}

#[test]
fn schemes_that_choose_whole_paths_are_refused() {
    for kind in [Forwarding::Conga, Forwarding::ConWeave, Forwarding::Drill, Forwarding::Wcmp] {
        let mut spec = by_next_hops("ecmp", rails(), &permutation(16, 1_000));
        spec.switch.forwarding.kind = Some(kind);
        let Err(error) = run(&spec, &mut NoMonitor) else { panic!("must be refused") };
        let error = error.to_string();
        assert!(error.contains("next-hops") && error.contains(kind.name()), "{error}");
    }
}

/// The paths lead from one edge switch to another over b and then c, or over c and then b. Switches that know only
/// next hops may forward a packet back and forth between b and c.
#[test]
fn circles_are_found() {
    let text = "hosts = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
                switch = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }, { name = \"d\" }]\n\
                link = [\n{ a = \"host0\", b = \"a\" }, { a = \"host1\", b = \"d\" },\n\
                { a = \"a\", b = \"b\" }, { a = \"a\", b = \"c\" }, { a = \"b\", b = \"c\" },\n\
                { a = \"b\", b = \"d\" }, { a = \"c\", b = \"d\" },\n]\n";
    let topology = pathweave_topo::parse_topology_file("t.toml", text).expect("a network");
    let sets = |paths: &str| {
        pathweave_topo::parse_path_file("p.toml", paths, &topology, RequestedPairs::All).expect("its paths")
    };
    let direct = "[[path]]\nvia = [\"a\", \"b\", \"d\"]\n[[path]]\nvia = [\"a\", \"c\", \"d\"]\n";
    assert_eq!(sets(direct).find_next_hop_loop(&topology), None);
    let crossed =
        "[[path]]\nvia = [\"a\", \"b\", \"c\", \"d\"]\n[[path]]\nvia = [\"a\", \"c\", \"b\", \"d\"]\n";
    let (from, to, at) = sets(crossed).find_next_hop_loop(&topology).expect("b and c");
    let name = |node| topology.node_name(node).into_owned();
    assert_eq!([name(from), name(to), name(at)], ["a", "d", "b"]);
    // The paths of rail networks and Dragonflies have no circle.
    for topology in [rails(), Dragonfly::new(5, 2, 2).build(Path::new(".")).expect("a Dragonfly")] {
        let sets = PathSets::build(&PathSetConfig::default(), &topology, Path::new("."), RequestedPairs::All);
        assert_eq!(sets.expect("hosts with one port").find_next_hop_loop(&topology), None);
    }
}
