//! Datagram queue pairs, shared queue pairs, and NICs beyond their links.

use crate::support::{finish, impair, lossy, play, sourced, spec, star, with_graph};
use pathweave_fabric::config::FaultConfig;
use pathweave_policy::{DatagramConfig, Repair, RttSource, Service};
use pathweave_records::{EndReason, FlowStatus, RunResult};
use pathweave_sim::SimSpec;
use pathweave_sim::nic::{NicConfig, SideRoute};
use pathweave_topo::{Build, FatTree, Topology};
use pathweave_units::{Bytes, Duration, Rate};
use pathweave_workload::{AllToAll, Placement, Traffic, WorkloadConfig, WorkloadEnv};

fn all_to_all(topology: Topology, processes: u32, size: u64, scheme: &str) -> SimSpec {
    let traffic = Traffic::AllToAll(AllToAll {
        size: Bytes::new(size),
        group_size: None,
        processes: Some(processes),
        stagger: Duration::from_ps(1),
        placement: Placement::Consecutive,
        window: None,
        repetitions: 1,
        compute: Duration::ZERO,
    });
    let env = WorkloadEnv::new(topology.hosts(), Rate::from_gbps(100));
    let graph =
        pathweave_workload::build(&[WorkloadConfig::new(traffic)], &env).expect("an all-to-all").graph;
    with_graph(topology, graph, scheme)
}

/// Sets the rule by which receivers request missing packets. Scan rules count in round trips of the idle network, as
/// in the paper.
fn ask_by(spec: &mut SimSpec, repair: Repair) {
    let rtt = if repair == Repair::Overtaken { RttSource::Measured } else { RttSource::Configured };
    let config = DatagramConfig { repair, rtt, ..DatagramConfig::default() };
    spec.schemes[0].scheme.service = Service::Datagram(config);
}

fn erd_16() -> Topology {
    FatTree::erd(2, 2, Rate::from_gbps(100)).build(std::path::Path::new(".")).expect("the network of ERD")
}

fn sum(result: &RunResult, of: impl Fn(&pathweave_records::FlowRecord) -> u64) -> u64 {
    result.flows.iter().map(of).sum()
}

/// A message of one packet, calculated by hand: 1,000 B in 9 + 1,000 -> 1,012 + 94 = 1,106 B, 88.48 ns on each of two
/// links of 1 us. NICs add 2 us before it leaves, 2 us and 1,064 B at 256 Gb/s (33.25 ns) at arrival, and 40 ns of a
/// core.
#[test]
fn one_packet_by_hand() {
    let fct = |nic: Option<NicConfig>| {
        let mut spec = spec(star(2), &[(0, 1, 1_000, 0)], "erd-uncontrolled");
        spec.network.nic = nic;
        finish(&spec).flows[0].fct_ps().expect("it arrives")
    };
    let network = 2 * 88_480 + 2_000_000;
    assert_eq!(fct(None), network);
    assert_eq!(fct(Some(NicConfig::default())), 2_000_000 + network + 2_000_000 + 33_250 + 40_000);
    let slow = NicConfig { packet_cost: Duration::from_us(1), post_crossings: 3, ..NicConfig::default() };
    assert_eq!(fct(Some(slow)), 6_000_000 + network + 2_033_250 + 1_000_000);
}

/// A core handles packets one after another: 100 of them for 1 us each, while the link delivers one every 88 ns.
#[test]
fn a_core_handles_one_packet_at_a_time() {
    let mut spec = spec(star(2), &[(0, 1, 4_087 * 100, 0)], "erd-uncontrolled");
    spec.network.nic = Some(NicConfig { packet_cost: Duration::from_us(1), ..NicConfig::default() });
    let fct = finish(&spec).flows[0].fct_ps().expect("it arrives");
    assert!((104_000_000..108_000_000).contains(&fct), "{fct}");
}

#[test]
fn a_connection_pays_for_the_bus_too() {
    let fct = |nic| {
        let mut spec = spec(star(2), &[(0, 1, 1_000, 0)], "ecmp");
        spec.network.nic = nic;
        finish(&spec).flows[0].fct_ps().expect("it arrives")
    };
    // 64 B at 256 Gb/s are 2 ns.
    assert_eq!(fct(Some(NicConfig::default())), fct(None) + 4_002_000);
}

/// ERD, Fig. 1a: 50 processes on each of two hosts have 2,500 connections, and a NIC whose cache holds 100 is slow.
#[test]
fn contexts_that_do_not_fit_halve_the_rate() {
    let took = |scheme: &str, qp_fits, processes| {
        let mut spec = all_to_all(star(2), processes, 20_000, scheme);
        spec.network.nic = Some(NicConfig { qp_fits, qp_thrash: 4 * qp_fits, ..NicConfig::default() });
        finish(&spec).jobs[0].finish_ps.expect("it is done") as f64
    };
    let slowed = took("ecmp", 100, 100) / took("ecmp", 10_000, 100);
    assert!((1.8..2.1).contains(&slowed), "{slowed}");
    // One queue pair for each process always fits.
    let slowed = took("erd-uncontrolled", 100, 100) / took("erd-uncontrolled", 10_000, 100);
    assert!((0.999..1.001).contains(&slowed), "{slowed}");
}

#[test]
fn processes_share_what_their_service_shares() {
    for scheme in ["ecmp", "xrc", "rd", "erd-uncontrolled"] {
        let result = finish(&all_to_all(star(4), 12, 10_000, scheme));
        assert_eq!(result.flows.len(), 12 * 9, "{scheme}");
    }
}

/// An end-to-end context carries one message at a time: the second of two messages waits for the acknowledgement of
/// the first. On a connection it does not wait.
#[test]
fn an_end_to_end_context_carries_one_message() {
    let last = |scheme| {
        let result = finish(&spec(star(2), &[(0, 1, 1_000, 0), (0, 1, 1_000, 1)], scheme));
        sum(&result, |flow| flow.finish_ps.expect("it arrives")) / 2
    };
    // Half of the round trip of 4.2 us, as only one of two messages waits.
    let later = last("rd") - last("ecmp");
    assert!((1_900_000..2_300_000).contains(&later), "{later}");
}

/// Many packets overtake others, and none is lost. A packet that packets on all other paths have not overtaken is not
/// requested. The rule of two scans declares a packet lost that waits longer than its period, which happens behind
/// messages of 64 kB.
#[test]
fn without_loss_nothing_is_sent_twice() {
    let sent_again = |repair, size, overtakes: u64| {
        let mut spec = all_to_all(erd_16(), 16, size, "erd-uncontrolled");
        spec.run.verify = true;
        ask_by(&mut spec, repair);
        let result = finish(&spec);
        let late = sum(&result, |flow| flow.ooo_packets.into());
        assert!(late >= overtakes, "{repair:?}, {size} bytes: {late} are late");
        sum(&result, |flow| flow.retransmitted_packets.into())
    };
    for (size, overtakes) in [(10_000, 100), (64_000, 1_000)] {
        assert_eq!(sent_again(Repair::Overtaken, size, overtakes), 0, "{size} bytes");
    }
    assert_eq!(sent_again(Repair::TwoScans, 10_000, 100), 0);
    assert!(sent_again(Repair::TwoScans, 64_000, 1_000) > 0);
}

/// Ports drop and links lose packets: everything arrives exactly once.
#[test]
fn loss_is_repaired() {
    for repair in [Repair::Overtaken, Repair::TwoScans, Repair::Literal] {
        let mut spec = lossy(all_to_all(erd_16(), 32, 64_000, "erd-uncontrolled"));
        spec.switch.buffer = Bytes::from_kb(500);
        spec.network.nic = Some(NicConfig::default());
        spec.run.verify = true;
        ask_by(&mut spec, repair);
        impair(&mut spec, 0.03, false);
        let result = finish(&spec);
        assert!(sum(&result, |flow| flow.retransmitted_packets.into()) > 0);
    }
}

/// Eight hosts send 2 MB each to one host without slowing down. Packets beyond the capacity of link and buffer are
/// dropped and retransmitted. With the paper's rule some packets are requested too often while copies of them wait;
/// with our rule all arrive. With a rate for each destination, switches mark, everything arrives with either rule,
/// and fewer packets are retransmitted.
#[test]
fn rates_of_destinations_follow_marks() {
    let sent_again = |scheme, repair| {
        let flows: Vec<_> = (1..9).map(|src| (src, 0, 2_000_000, 0)).collect();
        let mut spec = lossy(spec(star(9), &flows, scheme));
        spec.switch.buffer = Bytes::from_mb(2);
        ask_by(&mut spec, repair);
        let result = play(&spec);
        let failed = result.flows.iter().filter(|flow| flow.status != FlowStatus::Finished).count();
        (sum(&result, |flow| flow.retransmitted_packets.into()), failed)
    };
    for repair in [Repair::Overtaken, Repair::TwoScans] {
        let (published, controlled) = (sent_again("erd-uncontrolled", repair), sent_again("erd", repair));
        assert_eq!((published.1 > 0, controlled.1), (repair == Repair::TwoScans, 0), "{published:?}");
        assert!(controlled.0 * 2 < published.0, "{repair:?}: {published:?} {controlled:?}");
    }
}

/// A NIC that puts datagrams in order loses nothing if its buffer holds all that overtake. With a small buffer some
/// are lost and retransmitted. Software that places datagrams needs no buffer.
#[test]
fn a_nic_that_puts_in_order_needs_room() {
    let lost = |buffer: Bytes| {
        let mut spec = all_to_all(erd_16(), 16, 64_000, "erd-uncontrolled");
        spec.network.nic = Some(NicConfig { reorder_buffer: buffer, ..NicConfig::default() });
        spec.run.verify = true;
        sum(&finish(&spec), |flow| flow.dropped_packets.into())
    };
    assert_eq!([Bytes::ZERO, Bytes::from_mb(16)].map(lost), [0, 0]);
    let [some, more] = [Bytes::from_kb(64), Bytes::from_kb(8)].map(lost);
    assert!(some > 0 && more > some, "{some} {more}");
}

/// Without repair, lost packets stay lost, and the run still ends.
#[test]
fn raw_datagrams_end_where_they_end() {
    let mut spec = lossy(all_to_all(erd_16(), 16, 3_000, "erd-uncontrolled"));
    let raw = DatagramConfig { repair: Repair::Never, ..DatagramConfig::default() };
    spec.schemes[0].scheme.service = Service::Datagram(raw);
    impair(&mut spec, 0.1, false);
    let result = play(&spec);
    assert_eq!(result.info.ended, EndReason::Completed);
    let lost = result.flows.iter().filter(|flow| flow.status == FlowStatus::Unfinished).count();
    assert!((30..200).contains(&lost), "{lost} of 240");
    assert!(result.flows.iter().all(|flow| (flow.finish_ps.is_none()) == (flow.dropped_packets == 1)));
}

/// Datagrams and connections take turns on one NIC.
#[test]
fn two_services_share_a_nic() {
    let mut spec = spec(star(3), &[(0, 1, 1_000_000, 0), (0, 2, 1_000_000, 1)], "erd-uncontrolled");
    let mut other = spec.schemes[0].clone();
    other.name = "ecmp".into();
    other.scheme = (pathweave_policy::find_scheme("ecmp").expect("a scheme").make)();
    spec.schemes.push(other);
    let mut graph = pathweave_workload::GraphBuilder::new(3);
    for (name, to) in [("a", 1), ("b", 2)] {
        let group = graph.group(name, None).expect("room");
        let message = pathweave_workload::NewMessage {
            src: pathweave_units::HostId(0),
            dst: pathweave_units::HostId(to),
            size: Bytes::new(1_000_000),
            start: pathweave_units::Time::ZERO,
            group,
            stream: pathweave_workload::Stream::Shared(0),
            job: None,
        };
        graph.message(message).expect("a message");
    }
    spec.graph = std::sync::Arc::new(graph.finish().expect("no cycle"));
    spec.groups = vec![pathweave_sim::GroupSpec::new(0), pathweave_sim::GroupSpec::new(1)];
    let result = finish(&spec);
    let ends: Vec<u64> = result.flows.iter().map(|flow| flow.finish_ps.expect("it arrives")).collect();
    // 2 MB at 100 Gb/s take 160 us plus headers. Both flows end then.
    assert!(ends.iter().all(|end| (160_000_000..172_000_000).contains(end)), "{ends:?}");
}

/// Requests that cross the fabric are lost and queue like all else there. All messages arrive nevertheless, and they
/// load the links that they share with data.
#[test]
fn requests_can_cross_the_fabric() {
    let run = |via: SideRoute, loss: f64| {
        let mut spec = all_to_all(erd_16(), 16, 100_000, "erd-uncontrolled");
        spec.network.side_channel.via = via;
        spec.network.retransmission.timeout = Duration::from_us(500);
        if loss > 0.0 {
            impair(&mut spec, loss, false);
        }
        finish(&spec)
    };
    let sent = |result: &RunResult| result.links.iter().map(|link| link.tx_bytes).sum::<u64>();
    let (beside, across) = (run(SideRoute::Beside, 0.0), run(SideRoute::Fabric, 0.0));
    assert!(sent(&across) > sent(&beside), "{} and {} bytes", sent(&across), sent(&beside));
    let lost = run(SideRoute::Fabric, 0.02);
    assert!(lost.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
    assert!(sum(&lost, |flow| u64::from(flow.retransmitted_packets)) > 0);
}

/// Sources choose paths, and a link fails for good. Side channels that used it are told, as connections are, and take
/// another path.
#[test]
fn requests_on_the_fabric_leave_a_path_that_failed() {
    let mut spec = sourced(all_to_all(erd_16(), 16, 200_000, "erd-uncontrolled"));
    spec.network.side_channel.via = SideRoute::Fabric;
    spec.network.retransmission.timeout = Duration::from_us(100);
    spec.network.retransmission.retry_limit = 2;
    let link = spec.topology.link_name(pathweave_topo::LinkId(spec.topology.links().len() as u32 - 1));
    let down = FaultConfig::LinkDown { link: link.to_string(), at: Duration::from_us(30), up_at: None };
    spec.faults = vec![down];
    let result = finish(&spec);
    assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
}
