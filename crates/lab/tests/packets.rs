//! Treatment of packets in a lab: routes of connected sockets, rates, marks, losses, sizes.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints what is skipped and measured.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;

use std::net::{SocketAddrV4, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{PORT, TestLab, answers, privileged, programmed, socket, with_echo};
use pathweave_lab::{Lab, LinkState, Marking, Settings, SuperPackets};
use pathweave_topo::{Build, LeafSpine, NodeId, Topology, parse_topology_file};
use pathweave_units::{HostId, Rate};

fn fabric(spines: u32) -> Topology {
    LeafSpine::new(2, spines, 2).build(Path::new(".")).unwrap()
}
fn settings() -> Settings {
    Settings::new("1/1000".parse().unwrap())
}

/// Returns a topology of a fast host, a switch, and a host on a slow link.
fn bottleneck(error_rate: f64) -> Topology {
    let file = format!(
        "hosts = 2\ndelay = \"1us\"\n[[switch]]\nname = \"s\"\n[[link]]\na = \"host0\"\nb = \"s\"\n\
         rate = \"100Gbps\"\nerror_rate = {error_rate:?}\n[[link]]\na = \"s\"\nb = \"host1\"\nrate = \"10Gbps\"\n"
    );
    parse_topology_file("bottleneck.toml", &file).unwrap()
}

/// Packets of a connected socket carry the socket's hash, which the kernel would use on veth instead of the ports.
#[test]
fn the_ports_of_a_connected_socket_choose_its_spine() {
    if !privileged("the_ports_of_a_connected_socket_choose_its_spine") {
        return;
    }
    let lab = &TestLab::new(fabric(4), settings()).0;
    if !programmed(lab) {
        return;
    }
    let spine = |socket: &UdpSocket| {
        let leaf = lab.node("leaf0").unwrap();
        // No program listens, so an ICMP error returns; only packets towards the spines count.
        let up = || lab.counters(leaf).unwrap().split_off(2);
        let before = up();
        socket.send(b"one way").unwrap();
        let after = up();
        let moved =
            before.iter().zip(&after).filter(|(b, a)| b.counters.sent_packets < a.counters.sent_packets);
        let moved: Vec<u16> = moved.map(|(port, _)| port.port).collect();
        assert_eq!(moved.len(), 1, "one packet goes one way: {moved:?}");
        moved[0]
    };
    let to = SocketAddrV4::new(lab.address(HostId(3)), PORT);
    for port in 52_000..52_008 {
        let ways: Vec<u16> = (0..8)
            .map(|_| {
                let socket = socket(lab, NodeId(0), port);
                socket.connect(to).unwrap();
                spine(&socket)
            })
            .collect();
        // Without the program each new socket has a random hash: all 8 on the same of 4 spines has probability 1 in
        // 16,384.
        assert!(ways.iter().all(|way| *way == ways[0]), "source port {port}: {ways:?}");
    }
}

/// Sends `count` packets of `bytes` payload from host 0 to host 1. Returns the number that arrive, and the time from
/// before the first is sent to the last. Measured from the start of sending, so that a late wake-up of the receiver
/// cannot shorten it.
fn blast(lab: &Lab, count: u32, bytes: usize, ecn: i32) -> (u32, Duration) {
    let (sender, receiver) = (socket(lab, NodeId(0), 0), socket(lab, NodeId(1), PORT));
    nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::Ipv4Tos, &ecn).unwrap();
    nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::RcvBuf, &(4 << 20)).unwrap();
    let to = SocketAddrV4::new(lab.address(HostId(1)), PORT);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..count).for_each(|_| assert_eq!(sender.send_to(&vec![7; bytes], to).unwrap(), bytes));
        });
        let mut buffer = vec![0; 65_536];
        let (mut arrived, mut last) = (0, begin);
        while receiver.recv_from(&mut buffer).is_ok() {
            arrived += 1;
            last = Instant::now();
        }
        (arrived, last - begin)
    })
}

/// 10 Gb/s at 1/1000 are 10 Mb/s: 100 packets of 1,250 bytes on the wire take 100 ms. The machine may be late, but
/// the link must not be early.
#[test]
fn a_link_is_no_faster_than_its_rate() {
    if !privileged("a_link_is_no_faster_than_its_rate") {
        return;
    }
    let lab = &TestLab::new(bottleneck(0.0), Settings { mtu_bytes: 1_500, ..settings() }).0;
    const ETHERNET_IP_UDP_AND_WIRE: usize = 14 + 20 + 8 + 24;
    let (arrived, took) = blast(lab, 100, 1_250 - ETHERNET_IP_UDP_AND_WIRE, 0);
    assert_eq!(arrived, 100, "the queue holds them all");
    // The bucket lets 1,862 bytes pass at once: 1,490 us.
    assert!(took >= Duration::from_micros(100_000 - 1_490 - 500), "{took:?}");
}

#[test]
fn a_queue_that_is_full_drops_and_a_deep_one_marks_whoever_understands() {
    if !privileged("a_queue_that_is_full_drops_and_a_deep_one_marks_whoever_understands") {
        return;
    }
    let marking = Marking { kmin_bytes: 20_000, kmax_bytes: 60_000, pmax_ppm: 500_000, reference: None };
    let settings = Settings { queue_bytes: 100_000, marking: Some(marking), mtu_bytes: 1_500, ..settings() };
    let lab = &TestLab::new(bottleneck(0.0), settings).0;
    let switch = lab.node("s").unwrap();
    let to_host1 = 1;
    let dropped = || lab.counters(switch).unwrap()[to_host1].dropped_packets;

    // 15 packets of 1,000 bytes stay below the lower threshold.
    const ECT: i32 = 2;
    assert_eq!(blast(lab, 15, 1_000, ECT).0, 15);
    assert_eq!((dropped(), lab.marked(switch).unwrap()[to_host1]), (0, 0));

    // 200 packets arrive at ten times the rate at which they leave: about 90 fit, and twenty or more leave unmarked.
    let (arrived, _) = blast(lab, 200, 1_000, ECT);
    assert!((90..190).contains(&arrived), "{arrived} of 200");
    assert_eq!(dropped(), u64::from(200 - arrived));
    let marked = lab.marked(switch).unwrap()[to_host1];
    println!("arrived {arrived} of 200, marked {marked}");
    if programmed(lab) {
        assert!((30..=u64::from(arrived) - 15).contains(&marked), "{marked} of {arrived}");
    }

    // A sender without ECN support gets no marks.
    blast(lab, 200, 1_000, 0);
    assert_eq!(lab.marked(switch).unwrap()[to_host1], marked);
}

#[test]
fn links_lose_packets_at_random() {
    if !privileged("links_lose_packets_at_random") {
        return;
    }
    let lab = &TestLab::new(bottleneck(0.25), Settings { mtu_bytes: 1_500, ..settings() }).0;
    if !programmed(lab) {
        return;
    }
    // Within five standard deviations of 750 of 1,000.
    let (arrived, _) = blast(lab, 1_000, 100, 0);
    assert!((681..=819).contains(&arrived), "{arrived} of 1000");
    let link = lab.link("host0-s").unwrap();
    lab.set_loss(link, 0.0).unwrap();
    assert_eq!(blast(lab, 100, 100, 0).0, 100);
    lab.set_loss(link, 1.0).unwrap();
    assert_eq!(blast(lab, 100, 100, 0).0, 0);
    assert!(lab.set_loss(link, 1.5).is_err());
}

/// Eight segments in one send: one packet on a link with super-packets, eight without.
#[test]
fn super_packets_are_cut_unless_they_are_wanted() {
    if !privileged("super_packets_are_cut_unless_they_are_wanted") {
        return;
    }
    for (super_packets, expected) in [(SuperPackets::Off, 8), (SuperPackets::On, 1)] {
        let settings = Settings { super_packets, mtu_bytes: 1_500, ..settings() };
        let lab = &TestLab::new(bottleneck(0.0), settings).0;
        let sender = socket(lab, NodeId(0), 0);
        nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::UdpGsoSegment, &1_000).unwrap();
        let receiver = socket(lab, NodeId(1), PORT);
        sender.send_to(&[1; 8_000], SocketAddrV4::new(lab.address(HostId(1)), PORT)).unwrap();
        let mut arrived = 0;
        while arrived < 8_000 {
            arrived += receiver.recv_from(&mut [0; 9_000]).unwrap().0;
        }
        let switch = lab.counters(lab.node("s").unwrap()).unwrap();
        let packets = (switch[0].counters.received_packets, switch[1].counters.sent_packets);
        assert_eq!(packets, (expected, expected), "{super_packets:?}");
    }
}

/// Losses of a link that is down are counted, and the count survives its repair.
#[test]
fn losses_of_a_broken_link_are_counted() {
    if !privileged("losses_of_a_broken_link_are_counted") {
        return;
    }
    let mut lab = TestLab::new(bottleneck(0.0), Settings { mtu_bytes: 1_500, ..settings() });
    let link = lab.0.link("s-host1").unwrap();
    let switch = lab.0.node("s").unwrap();
    for round in 1..=2 {
        lab.0.set_link(link, LinkState::Down).unwrap();
        assert_eq!(blast(&lab.0, 10, 100, 0).0, 0);
        lab.0.set_link(link, LinkState::Up).unwrap();
        assert_eq!(lab.0.counters(switch).unwrap()[1].dropped_packets, 10 * round);
        assert_eq!(blast(&lab.0, 10, 100, 0).0, 10);
    }
}

/// A link that goes down and up repeatedly ends in its initial state.
#[test]
fn flapping_leaves_no_trace() {
    if !privileged("flapping_leaves_no_trace") {
        return;
    }
    let mut lab = TestLab::new(fabric(2), settings());
    let link = lab.0.link("leaf0-spine1").unwrap();
    for _ in 0..20 {
        lab.0.set_link(link, LinkState::Down).unwrap();
        lab.0.reroute().unwrap();
        lab.0.set_link(link, LinkState::Up).unwrap();
        lab.0.reroute().unwrap();
    }
    let lab = &lab.0;
    let to = lab.address(HostId(3));
    let reached = with_echo(lab, || {
        (53_000..53_016).filter(|&port| answers(&socket(lab, NodeId(1), port), to, b"x")).count()
    });
    assert_eq!(reached, 16);
    let ports = lab.counters(lab.node("leaf0").unwrap()).unwrap();
    assert!(
        ports.iter().filter(|port| port.port >= 2).all(|port| port.counters.sent_packets > 0),
        "{ports:?}"
    );
    assert_eq!(lab.plan().settings().rate_scale.apply(Rate::from_gbps(100)), Rate::from_mbps(100));
}
