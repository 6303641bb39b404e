//! Datagram endpoints on a network: many peers of one endpoint, and congestion marks that reach the sender.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints what is skipped and measured.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;
#[path = "../../datapath/tests/support/crowd.rs"]
mod crowd;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use common::{TestLab, privileged, programmed};
use crowd::{Leaf, descriptors_for, meet, of_hub, of_leaf, weigh};
use pathweave_datapath::rdm::{RdmConfig, RdmEndpoint, RdmStats};
use pathweave_datapath::secure::{ClusterKey, OsRandom};
use pathweave_datapath::{Region, Waiting};
use pathweave_lab::{Lab, Marking, Settings};
use pathweave_topo::{Build, LeafSpine, NodeId, parse_topology_file};
use pathweave_units::{HostId, Rate};

/// Returns the configuration of an endpoint on a host, on any port.
fn on(lab: &Lab, host: u32) -> RdmConfig {
    let mut config = RdmConfig::new(SocketAddr::from((lab.address(HostId(host)), 0)));
    config.device.waiting = Waiting::Blocking { spin: Duration::ZERO };
    config
}

/// Opens an endpoint with its own loop on a host.
fn open(lab: &Lab, host: u32, config: RdmConfig) -> RdmEndpoint {
    lab.inside(NodeId(host), || RdmEndpoint::open(config)).expect("its network").expect("an endpoint")
}

/// Runs `see` with one endpoint on the eighth host and `count` peers of it on seven hosts, over two leaves and two
/// spines.
fn peers_on_a_network(count: usize, see: impl FnOnce(RdmEndpoint, &[Leaf]) + Send) {
    let fabric = LeafSpine::new(2, 2, 4).build(Path::new(".")).expect("a small fabric");
    let lab = &TestLab::new(fabric, Settings::new("1/100".parse().expect("a scale"))).0;
    let key = ClusterKey::generate(&mut OsRandom).expect("random bytes");
    let leaves: Vec<Leaf> = (0..descriptors_for(count) as u32)
        .map(|n| 1 + n % 7)
        .map(|host| Leaf::new(open(lab, host, of_leaf(on(lab, host), &key))))
        .collect();
    let hub = of_hub(on(lab, 0), &key, 4);
    let seen = std::thread::scope(|scope| {
        let work = || {
            // The thread that drives an endpoint makes its TCP connections, so it must be in the same network.
            lab.enter(NodeId(0)).expect("its network");
            see(RdmEndpoint::open(hub).expect("an endpoint"), &leaves);
        };
        scope.spawn(work).join()
    });
    assert!(seen.is_ok(), "it has been said why");
}

#[test]
fn peers_on_a_network_get_every_byte() {
    if privileged("peers_on_a_network_get_every_byte") {
        peers_on_a_network(200, meet);
    }
}

/// A thousand loops compete for the cores: a machine with two busy cores takes minutes.
#[test]
#[ignore = "minutes; `make soak` runs it"]
fn a_thousand_peers_on_a_network_cost_what_is_declared() {
    assert!(privileged("a_thousand_peers_on_a_network_cost_what_is_declared"), "needs root");
    peers_on_a_network(1_000, |hub, leaves| {
        weigh(hub, leaves);
    });
}

/// Sends 800 KB from a host at 100 Mb/s over a link of 10 Mb/s.
fn over_a_bottleneck(scheme: &str) -> Option<[RdmStats; 2]> {
    let file = "hosts = 2\ndelay = \"1us\"\n[[switch]]\nname = \"s\"\n[[link]]\na = \"host0\"\nb = \"s\"\n\
                rate = \"100Gbps\"\n[[link]]\na = \"s\"\nb = \"host1\"\nrate = \"10Gbps\"\n";
    let topology = parse_topology_file("bottleneck.toml", file).expect("a topology");
    // Every packet is marked, because the length of the queue depends on the scheduling of the sender.
    let marking = Marking { kmin_bytes: 0, kmax_bytes: 0, pmax_ppm: 1_000_000, reference: None };
    let settings = Settings {
        queue_bytes: 200_000,
        marking: Some(marking),
        mtu_bytes: 1_500,
        ..Settings::new("1/1000".parse().expect("a scale"))
    };
    let lab = &TestLab::new(topology, settings).0;
    if !programmed(lab) {
        return None;
    }
    let key = ClusterKey::generate(&mut OsRandom).expect("random bytes");
    let ends = [0, 1].map(|host| {
        let mut config = on(lab, host);
        config.device.fit_link(1_500).expect("it fits");
        config.device.key = Some(key.clone());
        config.device.scheme = scheme.into();
        config.device.line_rate = Rate::from_mbps(100);
        config.device.peer_timeout = Duration::from_secs(30);
        open(lab, host, config)
    });
    let to = ends[0].insert(ends[1].local_addr()).expect("room");
    let (len, messages) = (200_000, 4);
    let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let message = Region::from_bytes(&bytes).expect("memory");
    let rooms: Vec<Region> = (0..messages).map(|_| Region::zeroed(len).expect("memory")).collect();
    for (wr_id, room) in (0..).zip(&rooms) {
        ends[1].recv(wr_id, room.all()).expect("room");
        ends[0].send(wr_id, to, message.all()).expect("room");
    }
    for end in &ends {
        for _ in 0..messages {
            let done = end.wait(Duration::from_secs(120)).expect("a completion");
            assert_eq!(done.result(), Ok(len as u64), "{:?}", end.stats());
        }
    }
    assert!(rooms.iter().all(|room| room.to_vec(0..len).expect("all of it") == bytes));
    Some(ends.map(|end| end.stats().expect("its loop runs")))
}

/// A sender ten times as fast as the bottleneck loses packets again and again without congestion control. With it the
/// switch marks, the receiver reports, and the sender slows down. The benefit depends on scheduling, so it is printed
/// and not asserted; `transport/tests/rd/congestion.rs` asserts it in simulated time.
#[test]
fn senders_are_notified_of_marks() {
    if !privileged("senders_are_notified_of_marks") {
        return;
    }
    let Some([deaf, _]) = over_a_bottleneck("erd-uncontrolled") else { return };
    let Some([near, far]) = over_a_bottleneck("erd") else { return };
    let share = |stats: &RdmStats| stats.counters.retransmitted as f64 / stats.counters.data_sent as f64;
    println!(
        "sent again: {:.3} of packets without, {:.3} with congestion control; {} of {} packets marked, {} told, \
         {} heard, at last {:?}",
        share(&deaf),
        share(&near),
        far.counters.marked_received,
        far.counters.data_received,
        far.counters.cnps_sent,
        near.counters.cnps_received,
        near.slowest
    );
    assert!(near.counters.cnps_received > 0 && far.counters.cnps_sent >= near.counters.cnps_received);
    assert!(far.counters.marked_received >= far.counters.cnps_sent);
    assert_eq!(deaf.counters.cnps_received, 0);
}
