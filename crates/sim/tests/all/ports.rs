//! Hosts with several NIC ports: selection of the port by which packets leave.

use pathweave_fabric::config::FaultConfig;
use pathweave_records::RunResult;
use pathweave_sim::SimSpec;
use pathweave_sim::nic::SideRoute;
use pathweave_topo::{Link, NodeId, Switch, Topology};
use pathweave_units::{Duration, Rate};

use crate::support::{all_to_all, play, sourced, spec};

/// Schemes that spread the packets of a message. The last two need some time to find their rate.
const SPREAD: [&str; 10] = ["rps", "reps", "udmp", "weave", "laps", "uet", "mrc", "erd", "mprdma", "strack"];

fn link(a: u32, b: u32, gbps: u64) -> Link {
    Link {
        a: NodeId(a),
        b: NodeId(b),
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_us(1),
        error_rate: 0.0,
    }
}

fn switch(name: String, tier: u8) -> Switch {
    Switch { name, tier, group: None }
}

/// Returns four hosts, each with a port of this rate in each plane. A plane is a single switch, such as "plane0".
fn planes(count: u32, gbps: u64) -> Topology {
    let switches = (0..count).map(|plane| switch(format!("plane{plane}"), 0)).collect();
    let links = (0..4).flat_map(|host| (0..count).map(move |plane| link(host, 4 + plane, gbps))).collect();
    Topology::new("planes", 4, switches, links).expect("planes")
}

/// Returns two servers of four GPUs. Each server has an NVSwitch of 1,800 Gb/s, and each GPU a NIC of 200 Gb/s. A
/// leaf serves two rails, below a spine.
fn servers() -> Topology {
    let mut switches: Vec<Switch> = (0..2).map(|server| switch(format!("nvswitch{server}"), 0)).collect();
    switches.extend((0..2).map(|leaf| switch(format!("leaf{leaf}"), 0)));
    switches.push(switch("spine".to_owned(), 1));
    let mut links = Vec::new();
    for gpu in 0..8 {
        links.extend([link(gpu, 8 + gpu / 4, 1_800), link(gpu, 10 + gpu % 4 / 2, 200)]);
    }
    links.extend([link(10, 12, 400), link(11, 12, 400)]);
    Topology::new("servers", 8, switches, links).expect("two servers")
}

/// Returns two hosts at two switches each, which two more switches connect. The hosts number their ports in different
/// order.
fn crossed() -> Topology {
    let switches = ["left", "right", "spine0", "spine1"]
        .map(|name| switch(name.to_owned(), name.starts_with('s').into()));
    let ports = [(0, 2), (0, 3), (1, 3), (1, 2)];
    let up = [(2, 4), (2, 5), (3, 4), (3, 5)];
    let links = ports.into_iter().chain(up).map(|(a, b)| link(a, b, 100)).collect();
    Topology::new("crossed", 2, switches.into(), links).expect("two switches a host")
}

/// Returns the spec twice: with switches that choose routes, and with sources that choose.
fn both(spec: SimSpec) -> [(&'static str, SimSpec); 2] {
    [("switches choose", spec.clone()), ("sources choose", sourced(spec))]
}

fn last_us(result: &RunResult) -> f64 {
    let last = result.flows.iter().map(|flow| flow.finish_ps.expect("every flow finishes")).max();
    last.expect("there are flows") as f64 * 1e-6
}

fn down(link: &str, at: Duration) -> FaultConfig {
    FaultConfig::LinkDown { link: link.to_owned(), at, up_at: None }
}

#[test]
fn packets_leave_by_ports_that_lead_to_the_receiver() {
    // Destinations inside a server, on another server at the same leaf, and at another leaf.
    for to in [1, 4, 7] {
        for scheme in SPREAD.into_iter().chain(["ecmp", "dctcp"]) {
            for (who, spec) in both(spec(servers(), &[(0, to, 1_000_000, 0)], scheme)) {
                let result = play(&spec);
                let flow = &result.flows[0];
                assert_eq!(flow.dropped_packets, 0, "{scheme} to {to}, {who}: {flow:?}");
                let slowdown = flow.fct_ps().expect("it finishes") as f64 / flow.ideal_fct_ps as f64;
                assert!((0.999..1.02).contains(&slowdown), "{scheme} to {to}, {who}: {slowdown}");
                // 1 MB is 1,024,000 B on the wire with headers: 4.6 us at 1,800 Gb/s, 41 us at 200 Gb/s.
                let fastest = if to == 1 { 6.5 } else { 42.0 };
                assert!(
                    (fastest..1.1 * fastest + 2.0).contains(&last_us(&result)),
                    "{scheme} to {to}, {who}: {result:?}"
                );
            }
        }
    }
}

#[test]
fn several_ports_do_what_one_port_of_their_sum_does() {
    for (pattern, flows) in [
        ("permutation", (0..4).map(|host| (host, (host + 2) % 4, 8_000_000, 0)).collect()),
        ("all-to-all", all_to_all(4, 4_000_000)),
    ] {
        for scheme in &SPREAD[..8] {
            let one = last_us(&play(&spec(planes(1, 400), &flows, scheme)));
            for (count, gbps) in [(2, 200), (8, 50)] {
                for (who, spec) in both(spec(planes(count, gbps), &flows, scheme)) {
                    let several = last_us(&play(&spec));
                    // The last packets wait for a slower port. `pathweave validate law-planes` uses messages for
                    // which this is negligible.
                    assert!(
                        several < 1.06 * one + 5.0,
                        "{scheme}, {pattern}, {count} ports, {who}: {several} {one}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_dead_port_leaves_its_traffic_to_the_others() {
    let flows = [(0, 1, 8_000_000, 0), (2, 3, 8_000_000, 0)];
    for scheme in SPREAD {
        let whole = last_us(&play(&spec(planes(8, 50), &flows, scheme)));
        for (who, mut cut) in both(spec(planes(8, 50), &flows, scheme)) {
            cut.faults.push(down("host0-plane3", Duration::ZERO));
            let result = play(&cut);
            // Seven of eight ports remain.
            let time = last_us(&result);
            assert!((1.1..1.2).contains(&(time / whole)), "{scheme}, {who}: {time} {whole}");
        }
    }
}

#[test]
fn routing_tells_of_the_dead_port_of_a_peer() {
    let flows = [(0, 1, 8_000_000, 0), (2, 3, 8_000_000, 0)];
    for scheme in SPREAD.into_iter().chain(["ecmp", "swift"]) {
        for link in ["host1-plane3", "host0-plane3"] {
            for (who, mut cut) in both(spec(planes(4, 100), &flows, scheme)) {
                cut.switch.reroute_after = Duration::from_us(50);
                cut.faults.push(down(link, Duration::from_us(40)));
                let result = play(&cut);
                // 170 us with four ports. Until routing detects the fault, a quarter of the packets is lost.
                // Retransmissions may wait for a timer of some milliseconds.
                assert!(last_us(&result) < 12_000.0, "{scheme} {link}, {who}: {:?}", result.flows);
            }
        }
    }
}

/// Ports at the same switch have different numbers at the other host. Replies leave by the port at which their path
/// arrives.
#[test]
fn answers_leave_by_the_port_of_their_path() {
    for scheme in SPREAD {
        for (who, spec) in both(spec(crossed(), &[(0, 1, 8_000_000, 0), (1, 0, 8_000_000, 0)], scheme)) {
            let result = play(&spec);
            // 8.17 MB over two ports of 100 Gb/s.
            let time = last_us(&result);
            assert!((326.0..350.0).contains(&time), "{scheme}, {who}: {time}");
            assert_eq!(
                result.flows.iter().map(|flow| flow.dropped_packets).sum::<u32>(),
                0,
                "{scheme}, {who}"
            );
        }
    }
}

/// Requests of datagrams to another server cross the NICs, and none of them the NVSwitches, which are nodes 8 and 9.
#[test]
fn side_channels_leave_by_ports_that_lead_to_the_receiver() {
    let pairs = (4..8).flat_map(|far| [(0, far, 100_000, 0), (far, 0, 100_000, 0)]);
    let flows: Vec<(u32, u32, u64, u64)> = pairs.collect();
    for (who, mut spec) in both(spec(servers(), &flows, "erd")) {
        spec.network.side_channel.via = SideRoute::Fabric;
        let result = play(&spec);
        let inside = result.links.iter().filter(|link| [8, 9].contains(&link.to_node));
        let stray: u64 = inside.map(|link| link.tx_bytes).sum();
        assert_eq!(stray, 0, "{who}");
        // Four messages in each direction take 16 us on the links of the NICs.
        assert!(last_us(&result) < 60.0, "{who}: {}", last_us(&result));
    }
}
