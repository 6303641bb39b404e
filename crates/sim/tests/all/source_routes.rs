//! Routes that the source chooses: packets follow them link by link, acknowledgements return on the same links, and
//! broken routes lose packets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::support::{
    Flow, all_to_all, fat_tree, finish, incast, leaf_spine, lossy, permutation, play, sourced, spec,
};
use pathweave_fabric::config::FaultConfig;
use pathweave_policy::Forwarding;
use pathweave_records::{DropReason, EndReason, EventKind, FlowStatus};
use pathweave_sim::{NoMonitor, RouteChoice, SimSpec, run};
use pathweave_topo::{
    Build, Dragonfly, FullMesh, Jellyfish, LinkId, NodeId, OwnPathsConfig, PathSetConfig, PathSets, Rail,
    RequestedPairs, Torus, parse_path_file,
};
use pathweave_units::{Bytes, Duration, HostId};
use pathweave_wire::RouteBytes;

/// Returns all schemes but those that leave the choice of routes to switches.
fn schemes() -> impl Iterator<Item = &'static pathweave_policy::SchemeInfo> {
    pathweave_policy::schemes()
        .iter()
        .filter(|info| (info.make)().forwarding.is_none_or(|kind| kind == Forwarding::Ecmp))
}

#[test]
fn schemes_that_need_switches_to_choose_are_refused() {
    let spec = sourced(spec(leaf_spine(), &[(0, 5, 1_000, 0)], "conga"));
    let error = run(&spec, &mut NoMonitor).expect_err("nothing to balance").to_string();
    assert!(
        error.contains(
            "needs switches that do \"conga\", which is impossible where routing.kind is \"source\""
        ),
        "{error}"
    );
}

fn every_scheme(flows: &[Flow], change: impl Fn(&mut SimSpec)) {
    for info in schemes() {
        for topology in [leaf_spine(), fat_tree()] {
            let mut spec = sourced(spec(topology, flows, info.name));
            change(&mut spec);
            finish(&spec);
        }
    }
}

#[test]
fn every_scheme_runs_on_explicit_paths() {
    every_scheme(&permutation(16, 200_000), |_| {});
    every_scheme(&incast(16, 64_000), |_| {});
    every_scheme(&all_to_all(16, 8_000), |spec| *spec = lossy(spec.clone()));
}

/// Returns the links that carried packets, one for each direction, as pairs of nodes.
fn used(spec: &SimSpec) -> BTreeSet<(u32, u32)> {
    let result = finish(spec);
    let used = result.links.iter().filter(|link| link.tx_bytes > 0);
    used.map(|link| (link.from_node, link.to_node)).collect()
}

fn link_of(spec: &SimSpec, (from, to): (u32, u32)) -> LinkId {
    let ports = spec.topology.ports(NodeId(from));
    ports.iter().find(|port| port.peer == NodeId(to)).expect("neighbours").link
}

#[test]
fn data_takes_the_links_of_its_path_and_acknowledgements_the_same_links_back() {
    // Each queue pair uses one path. Only the links of the path it draws are used, in both directions.
    let mut seen = BTreeSet::new();
    for seed in 0..20 {
        let spec = SimSpec { seed, ..sourced(spec(fat_tree(), &[(0, 13, 100_000, 0)], "ecmp")) };
        let RouteChoice::Sources(sets) = &spec.routing else { unreachable!("made above") };
        let links = |hops: &[pathweave_topo::Hop]| {
            let ends = [HostId(0), HostId(13)].map(|host| spec.topology.ports(host.into())[0].link);
            hops.iter().map(|hop| hop.link()).chain(ends).collect::<BTreeSet<LinkId>>()
        };
        let used = used(&spec);
        let touched: BTreeSet<LinkId> = used.iter().map(|&ends| link_of(&spec, ends)).collect();
        assert_eq!(used.len(), 12, "six links, both ways: {used:?}");
        let path = sets.between(HostId(0), HostId(13)).position(|hops| links(hops) == touched);
        seen.insert(path.expect("the links of one of the paths"));
    }
    assert_eq!(seen.len(), 4, "of the four paths each is drawn some time");
}

#[test]
fn routes_take_the_bytes_of_their_headers_on_every_link() {
    // Three switches on the path, one of which pins it: the spine.
    for (counted, header) in [
        (RouteBytes::None, 0),
        (RouteBytes::Anchors, 8 + 4),
        (RouteBytes::Hops, 8 + 3 * 2 + 2),
        (RouteBytes::Segments, 8 + 16),
    ] {
        let mut spec = sourced(spec(leaf_spine(), &[(0, 5, 100_000, 0)], "rps"));
        spec.network.source_route = Some(counted);
        let result = finish(&spec);
        let links = |from_host: bool| {
            let of = |link: &&pathweave_records::LinkTotals| link.from_node == if from_host { 0 } else { 5 };
            result.links.iter().find(of).map(|link| (link.tx_packets, link.tx_bytes)).expect("a link")
        };
        // 24 full WRITE packets and one of 1,696 bytes. The first has a RETH.
        let data = 24 * (4_096 + 82) + 1_696 + 82 + 16;
        assert_eq!(links(true), (25, data + 25 * header), "{counted:?}");
        let (answers, bytes) = links(false);
        assert_eq!(bytes, answers * (86 + header), "acknowledgements carry the way back: {counted:?}");
        let sent: u64 = result.links.iter().map(|link| link.tx_bytes).sum();
        assert_eq!(sent, 4 * (data + 25 * header + bytes), "four links each way: {counted:?}");
    }
}

#[test]
fn a_packet_alone_takes_its_ideal_time_header_and_all() {
    let mut spec = sourced(spec(leaf_spine(), &[(0, 5, 4_096, 0)], "ecmp"));
    let mut fct = |counted| {
        spec.network.source_route = Some(counted);
        let flow = finish(&spec).flows[0];
        assert_eq!(flow.fct_ps(), Some(flow.ideal_fct_ps), "{counted:?}");
        flow.ideal_fct_ps
    };
    // 16 bytes more on each of four links of 100 Gb/s.
    let (plain, routed) = (fct(RouteBytes::None), fct(RouteBytes::Hops));
    assert_eq!(routed - plain, 4 * 16 * 80);
}

#[test]
fn paths_from_a_file_are_the_only_ones_used() {
    let mut spec = spec(leaf_spine(), &[(0, 5, 400_000, 0), (6, 1, 400_000, 0)], "rps");
    let text = r#"
        [[path]]
        via = ["leaf0", "spine3", "leaf1"]
        [[path]]
        via = ["leaf0", "spine1", "leaf2", "spine0", "leaf1"]
    "#;
    let pairs = [(HostId(0), HostId(5)), (HostId(6), HostId(1))];
    let sets =
        parse_path_file("paths", text, &spec.topology, RequestedPairs::Pairs(&pairs)).expect("a good file");
    spec.routing = RouteChoice::Sources(Arc::new(sets));
    let names: BTreeSet<String> =
        used(&spec).into_iter().map(|ends| spec.topology.link_name(link_of(&spec, ends))).collect();
    let fabric =
        ["leaf0-spine3", "leaf1-spine3", "leaf0-spine1", "leaf2-spine1", "leaf2-spine0", "leaf1-spine0"];
    let hosts = ["host0-leaf0", "host1-leaf0", "host5-leaf1", "host6-leaf1"];
    assert_eq!(names, fabric.iter().chain(&hosts).map(ToString::to_string).collect());
}

#[test]
fn a_broken_path_loses_packets_until_its_sources_are_told() {
    for scheme in ["rps", "ecmp-sr", "udmp", "reps"] {
        let mut spec = sourced(spec(leaf_spine(), &permutation(16, 4_000_000), scheme));
        spec.switch.reroute_after = Duration::from_us(30);
        let (link, at) = ("leaf1-spine2".into(), Duration::from_us(50));
        spec.faults = vec![FaultConfig::LinkDown { link, at, up_at: None }];
        let result = finish(&spec);
        let lost: Vec<u64> = result
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Drop && event.reason == Some(DropReason::LinkDown))
            .map(|event| event.time_ps)
            .collect();
        assert!(!lost.is_empty(), "{scheme}: the fault was felt");
        // Packets that had already left their source are still lost, and so are the last acknowledgements of a path.
        let told = Duration::from_us(50 + 30 + 12).as_ps();
        let late = lost.iter().filter(|&&at| at > told).count();
        // Recovery by time sends a few more probes for these.
        assert!(
            late * 10 < lost.len(),
            "{scheme}: {late} of {} packets lost after the sources knew",
            lost.len()
        );
    }
}

#[test]
fn paths_that_come_back_are_used_again() {
    let mut spec = sourced(spec(leaf_spine(), &[(0, 5, 8_000_000, 0)], "rps"));
    spec.switch.reroute_after = Duration::from_us(10);
    let down = |spine: u32| FaultConfig::LinkDown {
        link: format!("leaf0-spine{spine}"),
        at: Duration::from_us(5),
        up_at: Some(Duration::from_us(200)),
    };
    // All paths but one are down for a while.
    spec.faults = (0..3).map(down).collect();
    let result = finish(&spec);
    let node = |name: &str| spec.topology.node_by_name(name).expect("a node").0;
    let carried = |spine: &str| {
        let ends = (node("leaf0"), node(spine));
        result.links.iter().find(|link| (link.from_node, link.to_node) == ends).expect("a link").tx_bytes
    };
    // 8 MB take 680 us at 100 Gb/s: 195 us of them over spine 3 alone, the rest over all four.
    let (alone, other) = (carried("spine3"), carried("spine0"));
    assert!(other > 1_000_000 && alone > other + 1_500_000, "{alone} and {other} bytes");
}

/// Five switches in a ring. Each host sends two switches further in the same direction, so that the offered load of
/// every link is twice its rate.
fn around_the_ring() -> SimSpec {
    let ring = Torus::new(vec![5]).build(Path::new(".")).expect("a ring");
    let flows: Vec<Flow> = (0..5).map(|host| (host, (host + 2) % 5, 1_000_000, 0)).collect();
    let config = PathSetConfig::Own(OwnPathsConfig { max_paths: 1 });
    let sets =
        PathSets::build(&config, &ring, Path::new("."), RequestedPairs::All).expect("hosts with one port");
    let mut spec = spec(ring, &flows, "rps-nocc");
    spec.routing = RouteChoice::Sources(Arc::new(sets));
    spec.switch.buffer = Bytes::new(400_000);
    spec
}

#[test]
fn a_ring_of_pauses_is_named() {
    let result = play(&around_the_ring());
    assert_eq!(result.info.ended, EndReason::PfcDeadlock, "{}", result.info.ended_detail);
    for link in ["sw0 -> sw1", "sw1 -> sw2", "sw2 -> sw3", "sw3 -> sw4", "sw4 -> sw0"] {
        assert!(result.info.ended_detail.contains(link), "{}", result.info.ended_detail);
    }
    // Without PFC there is no deadlock.
    finish(&lossy(around_the_ring()));
}

#[test]
fn every_network_without_tiers_carries_every_scheme_on_its_own_paths() {
    let networks = [
        Dragonfly::new(5, 2, 2).build(Path::new(".")),
        Rail::new(4, 4).build(Path::new(".")),
        Torus::new(vec![4, 4]).build(Path::new(".")),
        FullMesh::new(vec![4, 4]).build(Path::new(".")),
        Jellyfish::new(8, 3, 2).build(Path::new(".")),
    ];
    for topology in networks.map(|built| built.expect("a network")) {
        let flows = permutation(topology.hosts().min(16), 100_000);
        let sets = PathSets::build(&PathSetConfig::default(), &topology, Path::new("."), RequestedPairs::All);
        let choice = RouteChoice::Sources(Arc::new(sets.expect("hosts with one port")));
        for info in schemes() {
            let mut spec = lossy(spec(topology.clone(), &flows, info.name));
            spec.routing = choice.clone();
            finish(&spec);
        }
    }
}

#[test]
fn where_all_paths_are_known_to_be_dead_a_host_is_unreachable() {
    let mut spec =
        sourced(spec(leaf_spine(), &[(0, 5, 10_000, 5_000_000), (1, 2, 10_000, 5_000_000)], "rps"));
    let at = Duration::from_us(100);
    spec.faults = vec![FaultConfig::LinkDown { link: "host5-leaf1".into(), at, up_at: None }];
    let result = play(&spec);
    let status = |src| result.flows.iter().find(|flow| flow.src_host == src).expect("declared").status;
    assert_eq!((status(0), status(1)), (FlowStatus::Unreachable, FlowStatus::Finished));
}
