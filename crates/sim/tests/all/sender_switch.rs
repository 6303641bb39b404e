//! LetFlow, CONGA and ConWeave at the sender's switch, which chooses among whole paths, detours included.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Flow, finish, incast, permutation, spec};
use pathweave_fabric::config::{FaultConfig, Forwarding, ReplyAfter};
use pathweave_policy::cc::{CcConfig, Window};
use pathweave_policy::laps::{LapsConfig, WindowOf};
use pathweave_policy::{Adapt, Awaited, FabricEnv, FullBufferAction, PathView, PolicyConfig};
use pathweave_records::RunResult;
use pathweave_sim::{NoMonitor, RouteChoice, SimSpec, run};
use pathweave_topo::{Build, Dragonfly, PathSetConfig, PathSets, Rail, RequestedPairs, Topology};
use pathweave_units::Duration;

const KINDS: [&str; 3] = ["letflow", "conga", "conweave"];

/// Returns 4 clusters of 4 GPUs.
fn rails() -> Topology {
    Rail::new(4, 4).build(Path::new(".")).expect("rails")
}
/// Returns 5 groups of 2 switches with 2 hosts each.
fn dragonfly() -> Topology {
    Dragonfly::new(5, 2, 2).build(Path::new(".")).expect("a Dragonfly")
}

fn among_all(scheme: &str, topology: Topology, flows: &[Flow]) -> SimSpec {
    let mut spec = spec(topology, flows, scheme);
    let sets =
        PathSets::build(&PathSetConfig::default(), &spec.topology, Path::new("."), RequestedPairs::All)
            .expect("hosts with one port");
    spec.routing = RouteChoice::SenderSwitches(Arc::new(sets));
    spec
}

/// Returns the bytes that links between nodes of these name prefixes have carried.
fn carried(result: &RunResult, from: &str, to: &str) -> u64 {
    let of = |name: &str| name.split('>').map(str::to_owned).collect::<Vec<_>>();
    let matches = |name: &str| matches!(&of(name)[..], [a, b] if a.starts_with(from) && b.starts_with(to));
    result.links.iter().filter(|link| matches(&link.name)).map(|link| link.tx_bytes).sum()
}

#[test]
fn every_byte_arrives_on_paths_of_any_length() {
    for kind in KINDS {
        for (topology, hosts) in [(rails(), 16), (dragonfly(), 20)] {
            for flows in [permutation(hosts, 300_000), incast(hosts, 100_000)] {
                finish(&among_all(kind, topology.clone(), &flows));
            }
        }
    }
}

#[test]
fn detours_are_taken_and_the_way_is_followed_to_its_end() {
    // GPU 0 of cluster 0 to GPU 0 of cluster 1: one path of 4 links over its rail, three of 8 links over other rails
    // and the NVLink switches of both clusters.
    let flows: Vec<Flow> = (0..24).map(|n| (0, 4, 20_000, n * 40_000)).collect();
    for kind in KINDS {
        let shortest = finish(&spec(rails(), &flows, kind));
        assert_eq!(carried(&shortest, "nvlink0", "gpu0."), 0, "{kind}");
        let all = finish(&among_all(kind, rails(), &flows));
        // Acknowledgements that return by detours leave the switch towards GPU 0 itself.
        let detours = carried(&all, "nvlink0", "gpu0.") - carried(&all, "nvlink0", "gpu0.0");
        let direct = carried(&all, "gpu0.0", "rail0");
        assert!(detours > 20_000 && direct > 20_000, "{kind}: {detours} B of detours, {direct} B direct");
        // Packets that leave on a detour also arrive by it.
        assert_eq!(detours, carried(&all, "nvlink1", "gpu1.0"), "{kind}");
    }
}

#[test]
fn a_way_with_a_dead_link_is_left_out_once_routing_knows() {
    for kind in KINDS {
        let mut spec = among_all(kind, rails(), &permutation(16, 2_000_000));
        spec.switch.reroute_after = Duration::from_us(30);
        let links = (0..spec.topology.links().len()).map(|link| pathweave_topo::LinkId(link as u32));
        let names: Vec<String> = links.map(|link| spec.topology.link_name(link)).collect();
        let link = names.into_iter().find(|name| name.contains("rail")).expect("a link to a rail switch");
        spec.faults = vec![FaultConfig::LinkDown { link, at: Duration::from_us(50), up_at: None }];
        finish(&spec);
    }
}

#[test]
fn conweave_changes_its_way_all_the_time_where_it_expects_answers_as_from_a_shortest_one() {
    let reroutes = |reply_after| {
        // Between GPUs of equal index, the path over their rail is half as long as the others.
        let flows: Vec<Flow> = (0..16).map(|src| (src, (src + 4) % 16, 1_000_000, 0)).collect();
        let mut spec = among_all("conweave", rails(), &flows);
        spec.switch.forwarding.conweave.reply_after = reply_after;
        spec.switch.forwarding.conweave.reply_extra = Duration::from_ns(80);
        // With so little traffic in flight, there is no queueing.
        let PolicyConfig::Split(split) = &mut spec.schemes[0].scheme.policy else { panic!("DCQCN") };
        let CcConfig::Dcqcn(dcqcn) = &mut split.cc else { panic!("DCQCN") };
        dcqcn.window = Some(Window::Packets(4));
        finish(&spec).balancing.reroutes
    };
    let (way, shortest) = (reroutes(ReplyAfter::Way), reroutes(ReplyAfter::Shortest));
    assert!(shortest > 3 * way.max(1), "{way} and {shortest}");
}

#[test]
fn hop_by_hop_balancing_is_refused() {
    for kind in [Forwarding::Ecmp, Forwarding::Drill, Forwarding::Rps] {
        let mut spec = among_all("ecmp", rails(), &permutation(16, 1_000));
        spec.switch.forwarding.kind = Some(kind);
        let Err(error) = run(&spec, &mut NoMonitor) else { panic!("must be refused") };
        let error = error.to_string();
        assert!(error.contains("sender-switch") && error.contains(kind.name()), "{error}");
    }
}

/// The longest path sets the window, so that senders near a receiver get the same share.
#[test]
fn laps_can_take_its_windows_from_the_longest_path_of_the_fabric() {
    assert!(!PolicyConfig::Laps(LapsConfig::default()).uses_longest_path());
    let mut config = PolicyConfig::Laps(LapsConfig { window_of: WindowOf::Fabric, ..LapsConfig::default() });
    let longest = PathView {
        base_one_way: Some(Duration::from_us(9)),
        transmission: Some(Duration::from_us(1)),
        ..PathView::new(pathweave_units::PathId(0), pathweave_policy::PathState::Up)
    };
    let line = pathweave_units::Rate::from_gbps(100);
    assert!(config.uses_longest_path());
    let (when_full, longest_path) = (FullBufferAction::Pause, Some(&longest));
    config.adapt_to_fabric(&FabricEnv {
        when_full,
        longest_path,
        longest_rtt: None,
        line_rate: line,
        port_rate: line,
        nic_ports: 1,
        packet_bytes: 1_250,
        awaited: Awaited::Message,
    });
    let PolicyConfig::Laps(laps) = &config else { panic!("LAPS") };
    // Five packets of 100 ns on all links but the first: 5 * (1 us - 100 ns).
    assert_eq!(laps.fabric_threshold, Duration::from_ns(13_500));
    assert!(!config.uses_longest_path(), "once");

    let last = |window_of, fabric_threshold| {
        let mut spec = spec(rails(), &incast(16, 2_000_000), "laps");
        let sets =
            PathSets::build(&PathSetConfig::default(), &spec.topology, Path::new("."), RequestedPairs::All);
        spec.routing = RouteChoice::Sources(Arc::new(sets.expect("hosts with one port")));
        let PolicyConfig::Laps(config) = &mut spec.schemes[0].scheme.policy else { panic!("LAPS") };
        (config.window_of, config.fabric_threshold) = (window_of, fabric_threshold);
        let result = finish(&spec);
        result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("flows finished")
    };
    let (fabric, own) = (last(WindowOf::Fabric, Duration::ZERO), last(WindowOf::Paths, Duration::ZERO));
    assert!(fabric < own, "{fabric} and {own} ps");
    // A threshold that is configured takes effect.
    assert_ne!(last(WindowOf::Fabric, Duration::from_us(50)), fabric);
}
