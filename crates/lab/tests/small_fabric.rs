//! Fabric of two leaves and two spines on this machine, from creation to removal.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints what is skipped and measured.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;

use common::{TestLab, answers, leftovers, privileged, socket, unique_name, with_echo};
use pathweave_lab::{Lab, LabError, LinkState, Plan, RateScale, Settings};
use pathweave_topo::{Build, FatTree, LeafSpine, NodeId, Topology};
use pathweave_units::HostId;

fn fabric(spines: u32) -> Topology {
    LeafSpine::new(2, spines, 2).build(Path::new(".")).unwrap()
}
fn settings() -> Settings {
    Settings::new("1/1000".parse::<RateScale>().unwrap())
}

/// Returns the number of packets that a node has sent over each of its links.
fn sent(lab: &Lab, node: &str) -> BTreeMap<String, u64> {
    let ports = lab.counters(lab.node(node).unwrap()).unwrap();
    let name = |link| lab.plan().topology().link_name(link);
    ports.iter().map(|port| (name(port.link), port.counters.sent_packets)).collect()
}

#[test]
fn every_host_reaches_every_host_by_the_simulators_routes() {
    if !privileged("every_host_reaches_every_host_by_the_simulators_routes") {
        return;
    }
    let lab = &TestLab::new(fabric(2), settings()).0;
    with_echo(lab, || {
        for from in 0..4 {
            let socket = socket(lab, NodeId(from), 0);
            for to in (0..4).filter(|&to| to != from) {
                assert!(answers(&socket, lab.address(HostId(to)), b"there?"), "host{from} to host{to}");
            }
        }
    });
    // Packets between hosts of one leaf do not reach a spine: 2 of 3 partners are behind the spines, in both
    // directions.
    let up: u64 = sent(lab, "leaf0").iter().filter(|(link, _)| link.contains("spine")).map(|(_, n)| n).sum();
    assert_eq!(up, 2 * 2 + 2 * 2, "questions of two hosts to two hosts, and answers");
}

/// One unconnected socket for each source port, as in the datapath: the port alone determines the spine.
#[test]
fn the_source_port_chooses_the_spine() {
    if !privileged("the_source_port_chooses_the_spine") {
        return;
    }
    const PORTS: u16 = 64;
    const PACKETS: u64 = 5;
    let lab = &TestLab::new(fabric(4), settings()).0;
    let to = lab.address(HostId(2));
    let mut spines = BTreeMap::<String, u32>::new();
    with_echo(lab, || {
        for port in 50_000..50_000 + PORTS {
            let socket = socket(lab, NodeId(0), port);
            let before = sent(lab, "leaf0");
            for _ in 0..PACKETS {
                assert!(answers(&socket, to, b"which way?"), "source port {port}");
            }
            let after = sent(lab, "leaf0");
            let moved = after.iter().filter(|(link, n)| link.contains("spine") && before[*link] < **n);
            let moved: Vec<(&String, u64)> = moved.map(|(link, n)| (link, n - before[link])).collect();
            let [(link, packets)] = moved[..] else { panic!("port {port} took several spines: {moved:?}") };
            assert_eq!(packets, PACKETS, "port {port}");
            *spines.entry(link.clone()).or_default() += 1;
        }
    });
    println!("source ports by spine: {spines:?}");
    // Each of 64 ports is assigned to each of 4 spines with probability 1/4: fewer than 6 has probability 3 in 10,000
    // for a fair hash. The hash has a fixed seed, so the outcome is the same in every run on one kernel.
    assert_eq!(spines.len(), 4, "{spines:?}");
    assert!(spines.values().all(|&ports| ports >= 6), "{spines:?}");
}

#[test]
fn a_broken_link_loses_packets_until_routes_avoid_it() {
    if !privileged("a_broken_link_loses_packets_until_routes_avoid_it") {
        return;
    }
    let mut lab = TestLab::new(fabric(2), settings());
    let to = lab.0.address(HostId(2));
    let ports = 51_000..51_012;
    let alive = |lab: &Lab| {
        let reach = |port: u16| answers(&socket(lab, NodeId(0), port), to, b"alive?");
        with_echo(lab, || ports.clone().filter(|&port| reach(port)).collect::<Vec<u16>>())
    };
    assert_eq!(alive(&lab.0).len(), 12, "all paths");

    let link = lab.0.link("spine0-leaf0").unwrap();
    lab.0.set_link(link, LinkState::Down).unwrap();
    let through_the_other = alive(&lab.0);
    assert!(!through_the_other.is_empty() && through_the_other.len() < 12, "{through_the_other:?}");
    assert_eq!(alive(&lab.0), through_the_other, "a port keeps its path");

    lab.0.reroute().unwrap();
    assert_eq!(alive(&lab.0).len(), 12, "routes avoid the link");
    let before = sent(&lab.0, "leaf0")["leaf0-spine0"];
    assert_eq!(alive(&lab.0).len(), 12);
    assert_eq!(sent(&lab.0, "leaf0")["leaf0-spine0"], before, "nothing tries the broken link");

    // Another process finds the lab in this state.
    let mut found = Lab::open(lab.0.plan().lab()).unwrap();
    assert_eq!(found.down().collect::<Vec<_>>(), [link]);
    assert_eq!(found.plan().nodes(), lab.0.plan().nodes());
    found.set_link(link, LinkState::Up).unwrap();
    found.reroute().unwrap();
    assert_eq!(alive(&found).len(), 12);
    assert!(sent(&found, "leaf0")["leaf0-spine0"] > before, "the link is used again");
}

#[test]
fn nothing_is_left_and_names_are_taken_once() {
    if !privileged("nothing_is_left_and_names_are_taken_once") {
        return;
    }
    let lab = TestLab::new(fabric(2), settings());
    let name = lab.0.plan().lab().clone();
    let plan = || Plan::new(name.clone(), fabric(2), settings()).unwrap();
    assert!(matches!(Lab::create(plan(), &|| false), Err(LabError::Exists(_))));
    assert_eq!(leftovers(&name).len(), 8, "the first is untouched");
    let listed = Lab::all().unwrap().into_iter().find(|listing| listing.lab == name).unwrap();
    let summary = listed.state.unwrap();
    assert_eq!((summary.hosts, summary.switches, summary.links), (4, 4, 8));

    assert_eq!(Lab::remove(&name).unwrap().namespaces, 8);
    assert_eq!(leftovers(&name), [""; 0]);
    assert!(matches!(Lab::remove(&name), Err(LabError::Unknown { kind: "lab", .. })));
    assert!(matches!(Lab::open(&name), Err(LabError::Unknown { kind: "lab", .. })));
}

/// Creation is stopped after various numbers of steps. Nothing is left in any case.
#[test]
fn an_interrupted_maker_takes_everything_back() {
    if !privileged("an_interrupted_maker_takes_everything_back") {
        return;
    }
    use std::cell::Cell;
    for steps in [0, 1, 5, 8, 9, 15, 17, 24, 31] {
        let left = Cell::new(steps);
        let plan = Plan::new(unique_name(), fabric(2), settings()).unwrap();
        let name = plan.lab().clone();
        let stop = || left.replace(left.get() - 1) == 0;
        assert!(matches!(Lab::create(plan, &stop), Err(LabError::Interrupted)), "after {steps} steps");
        assert_eq!(leftovers(&name), [""; 0], "after {steps} steps");
    }
}

/// A namespace of the lab exists already: everything created before is removed, and the existing one stays.
#[test]
fn a_name_in_the_way_rolls_back() {
    if !privileged("a_name_in_the_way_rolls_back") {
        return;
    }
    let plan = Plan::new(unique_name(), fabric(2), settings()).unwrap();
    let name = plan.lab().clone();
    let in_the_way = Path::new("/run/netns").join(format!("pw.{name}.leaf1"));
    std::fs::create_dir_all("/run/netns").unwrap();
    std::fs::write(&in_the_way, "").unwrap();
    assert!(matches!(Lab::create(plan, &|| false), Err(LabError::Exists(_))));
    assert_eq!(leftovers(&name), [format!("pw.{name}.leaf1")]);
    let listed = Lab::all().unwrap().into_iter().find(|listing| listing.lab == name).unwrap();
    assert!(listed.state.unwrap_err().contains("is incomplete (node leaf1 has no namespace)"));
    assert_eq!(Lab::remove(&name).unwrap().namespaces, 1);
    assert_eq!(leftovers(&name), [""; 0]);
}

/// With the same hash seed everywhere, an aggregation switch would receive only flows that agree in the bits by which
/// it chooses, and half of the core would never be used.
#[test]
fn successive_tiers_choose_independently() {
    if !privileged("successive_tiers_choose_independently") {
        return;
    }
    let fat_tree = FatTree::k_ary(4).build(Path::new(".")).unwrap();
    let lab = &TestLab::new(fat_tree, settings()).0;
    if let Some(note) = lab.notes().iter().find(|note| note.contains("6.11")) {
        return eprintln!("\n*** SKIPPED: {note} ***\n");
    }
    let to = SocketAddrV4::new(lab.address(HostId(15)), common::PORT);
    let receiver = socket(lab, NodeId(15), common::PORT);
    for port in 54_000..54_064 {
        socket(lab, NodeId(0), port).send_to(b"up and down", to).unwrap();
        assert_eq!(receiver.recv_from(&mut [0; 16]).unwrap().1.port(), port);
    }
    let used: Vec<u64> = (0..4).map(|core| sent(lab, &format!("core{core}")).values().sum()).collect();
    println!("64 source ports by core switch: {used:?}");
    assert_eq!(used.iter().sum::<u64>(), 64);
    assert!(used.iter().all(|&packets| packets >= 6), "{used:?}");
}
