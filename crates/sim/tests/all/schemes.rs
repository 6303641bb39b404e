//! Every scheme under every load: all flows end, every byte is placed exactly once (checked by the runner's ledger),
//! and no impossible value is reported.

use std::path::Path;

use crate::support::{
    Flow, all_to_all, finish, impair, incast, leaf_spine, lossy, permutation, play, spec, star, with_graph,
};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::{DropReason, EventKind, FlowRecord, FlowStatus, RunResult};
use pathweave_sim::{GroupSpec, Role, SimSpec};
use pathweave_topo::{Build, LeafSpine};
use pathweave_transport::RetransmissionConfig;
use pathweave_units::{Bytes, Duration, Rate};
use pathweave_workload::{RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv};

fn every_scheme(flows: &[Flow], change: impl Fn(&mut SimSpec)) -> Vec<(&'static str, RunResult)> {
    pathweave_policy::schemes()
        .iter()
        .map(|info| {
            let mut spec = spec(leaf_spine(), flows, info.name);
            change(&mut spec);
            (info.name, finish(&spec))
        })
        .collect()
}

fn drops(result: &RunResult, reason: DropReason) -> usize {
    result.events.iter().filter(|e| e.kind == EventKind::Drop && e.reason == Some(reason)).count()
}

fn last_finish(result: &RunResult) -> u64 {
    result.flows.iter().filter_map(|f| f.finish_ps).max().expect("flows finished")
}

#[test]
fn permutation_on_a_lossless_fabric() {
    for (name, result) in every_scheme(&permutation(16, 256_000), |_| {}) {
        let resent: u32 = result.flows.iter().map(|f| f.retransmitted_packets).sum();
        let timeouts: u32 = result.flows.iter().map(|f| f.timeouts).sum();
        assert_eq!(timeouts, 0, "{name}");
        // Go-back-N retransmits only lost packets, and none is lost.
        assert!(resent == 0 || name == "per-message", "{name} sent {resent} packets again");
    }
}

#[test]
fn incast_on_a_lossless_fabric() {
    let network = LeafSpine {
        host_rate: Rate::from_gbps(100),
        host_delay: Duration::from_us(1),
        ..LeafSpine::new(5, 4, 4)
    };
    let sixteen: Vec<Flow> = incast(17, 128_000);
    for info in pathweave_policy::schemes() {
        let topology = network.build(Path::new(".")).expect("a leaf-spine");
        let result = finish(&spec(topology, &sixteen, info.name));
        // The receiver's link alone needs 16 x 128 kB at 100 Gb/s.
        assert!(last_finish(&result) > 16 * 128_000 * 80, "{}", info.name);
        assert_eq!(drops(&result, DropReason::BufferFull), 0);
    }
}

#[test]
fn incast_that_pauses() {
    // The buffer is small enough to pause the senders.
    let results = every_scheme(&incast(16, 500_000), |spec| {
        spec.switch.buffer = Bytes::from_kb(900);
        spec.switch.ecn.enabled = false;
    });
    for (name, result) in results {
        let pauses: u64 = result.links.iter().map(|l| l.pfc_pauses).sum();
        // Schemes that adapt to delay may cause no pauses.
        assert!(pauses > 0 || name.contains("udmp") || name.contains("mprdma"), "{name}");
    }
}

#[test]
fn all_to_all_on_a_lossless_fabric() {
    every_scheme(&all_to_all(16, 20_000), |_| {});
}

#[test]
fn all_to_all_where_ports_drop() {
    every_scheme(&all_to_all(16, 20_000), |spec| *spec = lossy(spec.clone()));
}

#[test]
fn incast_where_ports_drop() {
    let results = every_scheme(&incast(16, 200_000), |spec| {
        spec.switch.pfc.enabled = false;
        spec.switch.buffer = Bytes::from_kb(400);
        spec.switch.ecn.kmin = Bytes::from_kb(20);
        spec.switch.ecn.kmax = Bytes::from_kb(80);
    });
    // The fabric loses enough to test recovery.
    let worst = results.iter().map(|(_, result)| drops(result, DropReason::BufferFull)).max();
    assert!(worst > Some(100), "{worst:?}");
}

/// Runs a permutation of 100 kB messages with these loss rates.
fn through_loss(probability: f64, corrupt: bool) {
    let results = every_scheme(&permutation(16, 100_000), |spec| {
        spec.switch.pfc.enabled = false;
        impair(spec, probability, corrupt);
    });
    for (name, result) in results {
        let reason = if corrupt { DropReason::Corrupted } else { DropReason::RandomLoss };
        assert!(probability < 0.01 || drops(&result, reason) > 0, "{name}");
        let lost: u32 = result.flows.iter().map(|f| f.dropped_packets).sum();
        let resent: u32 = result.flows.iter().map(|f| f.retransmitted_packets).sum();
        assert!(resent >= lost, "{name}: {lost} lost, {resent} sent again");
    }
}

#[test]
fn loss_of_a_thousandth() {
    through_loss(1e-3, false);
}

#[test]
fn loss_of_a_hundredth() {
    through_loss(1e-2, false);
}

#[test]
fn loss_of_a_tenth() {
    through_loss(1e-1, false);
}

#[test]
fn corruption_of_a_hundredth() {
    through_loss(1e-2, true);
}

#[test]
fn loss_with_pausing_on() {
    every_scheme(&incast(16, 100_000), |spec| {
        spec.switch.buffer = Bytes::from_kb(900);
        impair(spec, 0.01, false);
    });
}

#[test]
fn a_link_flaps_in_the_middle() {
    let results = every_scheme(&permutation(16, 500_000), |spec| {
        spec.faults.push(FaultConfig::LinkFlap {
            link: "leaf0-spine1".into(),
            at: Duration::from_us(10),
            down_for: Duration::from_us(20),
            up_for: Duration::from_us(15),
            times: 3,
        });
    });
    let lost = results.iter().filter(|(_, result)| drops(result, DropReason::LinkDown) > 0).count();
    assert!(lost * 2 > results.len(), "the fault was felt");
}

#[test]
fn a_spine_dies_for_good_and_routing_notices() {
    every_scheme(&permutation(16, 500_000), |spec| {
        spec.switch.reroute_after = Duration::from_us(300);
        let (at, up_at) = (Duration::from_us(15), None);
        spec.faults.push(FaultConfig::SwitchDown { switch: "spine2".into(), at, up_at });
    });
}

#[test]
fn slow_links_and_long_links() {
    every_scheme(&permutation(16, 200_000), |spec| {
        let (at, until) = (Duration::from_us(5), Some(Duration::from_us(60)));
        spec.faults.push(FaultConfig::LinkRate {
            link: "leaf0-spine0".into(),
            at,
            rate: Rate::from_gbps(10),
            until,
        });
        spec.faults.push(FaultConfig::LinkDelay {
            link: "leaf1-spine1".into(),
            at,
            delay: Duration::from_us(30),
            until,
        });
    });
}

#[test]
fn when_all_paths_are_dead_flows_end_with_an_error() {
    for info in pathweave_policy::schemes() {
        // Host 0's only link fails permanently while the host sends and receives. Routing detects it after a second.
        let mut spec =
            spec(leaf_spine(), &[(0, 5, 1_000_000, 0), (6, 0, 1_000_000, 0), (1, 2, 10_000, 0)], info.name);
        spec.switch.reroute_after = Duration::from_ms(1_000);
        spec.faults.push(FaultConfig::LinkDown {
            link: "host0-leaf0".into(),
            at: Duration::from_us(20),
            up_at: None,
        });
        let result = play(&spec);
        let status = |src| result.flows.iter().find(|f| f.src_host == src).expect("declared").status;
        assert_eq!(status(0), FlowStatus::RetriesExceeded, "{}", info.name);
        assert_eq!(status(6), FlowStatus::RetriesExceeded, "{}", info.name);
        assert_eq!(status(1), FlowStatus::Finished, "{}", info.name);
    }
}

#[test]
fn unreachable_hosts_are_reported() {
    let mut spec =
        spec(star(3), &[(0, 1, 10_000, 5_000_000), (2, 1, 10_000, 5_000_000), (0, 2, 10_000, 0)], "ecmp");
    let name = |n| spec.topology.node_name(pathweave_topo::NodeId(n)).into_owned();
    let link = format!("{}-{}", name(1), name(3));
    spec.faults = vec![FaultConfig::LinkDown { link, at: Duration::from_us(100), up_at: None }];
    let result = play(&spec);
    let statuses: Vec<FlowStatus> = result.flows.iter().map(|f| f.status).collect();
    let unreachable = statuses.iter().filter(|s| **s == FlowStatus::Unreachable).count();
    assert_eq!(unreachable, 2, "{statuses:?}");
}

#[test]
fn a_message_posted_while_its_receiver_is_cut_off_arrives_once_the_link_is_back() {
    let mut spec = spec(star(3), &[(0, 1, 10_000, 5_000_000), (0, 2, 10_000, 0)], "ecmp");
    let name = |n| spec.topology.node_name(pathweave_topo::NodeId(n)).into_owned();
    let (link, up_at) = (format!("{}-{}", name(1), name(3)), Some(Duration::from_ms(20)));
    spec.faults = vec![FaultConfig::LinkDown { link, at: Duration::from_us(100), up_at }];
    spec.network.retransmission = RetransmissionConfig::default();
    let result = play(&spec);
    let flow = result.flows.iter().find(|flow| flow.dst_host == 1).expect("declared");
    assert_eq!((flow.status, flow.start_ps), (FlowStatus::Finished, 5_000_000_000));
    // It is tried every 4 ms.
    let finish = flow.finish_ps.expect("it arrived");
    assert!((20_000_000_000..24_100_000_000).contains(&finish), "{finish}");
}

#[test]
fn ring_all_reduce_on_one_switch() {
    // Eight hosts, 800,000 B: 14 steps of 100,000 B around the ring, each of which waits for the one before. A single
    // step takes 24 x 334.24 ns (the first packet 1.28 ns more), 141.92 ns for the last packet of 1,696 B with
    // padding, once more 334.24 and 1.28 ns on the second hop, and 2 us: 10,525,760 ps in all. 14 steps take 147.36
    // us. Acknowledgements share the links: 25 of 86 B in each step, 172 ns at most.
    let traffic = RingAllReduce {
        size: Bytes::new(800_000),
        group_size: None,
        placement: Default::default(),
        repetitions: 1,
        compute: Duration::ZERO,
    };
    let env = WorkloadEnv::new(8, Rate::from_gbps(100));
    for info in pathweave_policy::schemes() {
        let config = WorkloadConfig::new(Traffic::RingAllReduce(traffic.clone()));
        let graph = pathweave_workload::build(&[config], &env).expect("a ring").graph;
        let result = finish(&with_graph(star(8), graph, info.name));
        assert_eq!((result.jobs.len(), result.flows.len()), (1, 8 * 14));
        let took = result.jobs[0].finish_ps.expect("the job is done");
        assert_eq!(took, last_finish(&result));
        let step = 25 * 334_240 + 2 * 1_280 + 142_240 + 2_000_000;
        // Steps of the ring are short, so window growth and queue pairs that take turns cost visible time. An
        // end-to-end context waits for the acknowledgement of one message before it sends the next.
        let alone = (info.make)().service == pathweave_policy::Service::EndToEnd;
        let at_line_rate = (info.make)().queue_pairs == 1 && (info.make)().dcqcn().is_some() && !alone;
        let most = if at_line_rate { step + 400_000 } else { step * 3 / 2 };
        assert!(took < 14 * most, "{}: {took} of {}", info.name, 14 * step);
        assert!(took >= 14 * step || (info.make)().queue_pairs > 1, "{}: {took} of {}", info.name, 14 * step);
    }
}

#[test]
fn dcqcn_drops_less_than_line_rate_for_ever() {
    let run = |scheme| {
        let mut spec = lossy(spec(leaf_spine(), &incast(16, 2_000_000), scheme));
        spec.switch.buffer = Bytes::from_mb(2);
        spec.switch.ecn.kmin = Bytes::from_kb(40);
        spec.switch.ecn.kmax = Bytes::from_kb(160);
        finish(&spec)
    };
    let (with, without) = (run("rps"), run("rps-nocc"));
    let (few, many) = (drops(&with, DropReason::BufferFull), drops(&without, DropReason::BufferFull));
    assert!(few * 2 < many, "{few} with DCQCN, {many} without");
    let marked: u64 = with.links.iter().map(|l| l.ecn_marked_packets).sum();
    assert!(marked > 0);
}

#[test]
fn two_groups_in_two_classes() {
    // Weights 1 and 3, with one sender of each class to one receiver, and both schemes in one run.
    let mut builder = pathweave_workload::GraphBuilder::new(3);
    for (src, name) in [(0, "light"), (1, "heavy")] {
        let group = builder.group(name, None).expect("two groups");
        let message = pathweave_workload::NewMessage {
            src: pathweave_units::HostId(src),
            dst: pathweave_units::HostId(2),
            size: Bytes::new(3_000_000),
            start: pathweave_units::Time::ZERO,
            group,
            stream: pathweave_workload::Stream::Own,
            job: None,
        };
        builder.message(message).expect("hosts exist");
    }
    let graph = builder.finish().expect("no cycles");
    let mut spec = with_graph(star(3), graph, "rps-nocc");
    spec.switch.weights = vec![1, 3];
    let names: Vec<String> = spec.graph.groups().iter().map(|g| g.name.clone()).collect();
    let class = |name: &String| if name == "heavy" { 2 } else { 1 };
    spec.groups = names.iter().map(|name| GroupSpec { class: class(name), ..GroupSpec::new(0) }).collect();
    let result = finish(&spec);
    let fct = |name: &str| {
        let group = names.iter().position(|n| n == name).expect("declared") as u16;
        result.flows.iter().find(|f| f.group == group).and_then(FlowRecord::fct_ps).expect("finished")
    };
    // The heavy class has 3/4 of the link, so 4 MB pass until its 3 MB are complete. The light class ends after all 6
    // MB.
    let (heavy, light) = (fct("heavy") as f64 / 80e6, fct("light") as f64 / 80e6);
    assert!((heavy - 4.1).abs() < 0.15, "{heavy} MB");
    assert!((light - 6.15).abs() < 0.15, "{light} MB");
}

#[test]
fn tasks_after_a_completion_begin_with_the_last_acknowledgement() {
    use pathweave_workload::Moment;
    let mut builder = pathweave_workload::GraphBuilder::new(4);
    let group = builder.group("ring", None).expect("the first group");
    let mut message = |src, dst| {
        let new = pathweave_workload::NewMessage {
            src: pathweave_units::HostId(src),
            dst: pathweave_units::HostId(dst),
            size: Bytes::from_kb(500),
            start: pathweave_units::Time::ZERO,
            group,
            stream: pathweave_workload::Stream::Own,
            job: None,
        };
        builder.message(new).expect("hosts exist")
    };
    let (first, early, late) = (message(0, 1), message(1, 2), message(2, 3));
    let (a, b, any) = (message(3, 0), message(3, 1), message(1, 3));
    builder.after_moment(early, first, Moment::Delivery).expect("no cycle");
    builder.after_moment(late, first, Moment::Completion).expect("no cycle");
    // The task waits for the first of two messages that is complete.
    [a, b].iter().for_each(|&on| builder.after_moment(any, on, Moment::Completion).expect("no cycle"));
    builder.needs(any, 1);
    let result = play(&with_graph(star(4), builder.finish().expect("no cycles"), "rps-nocc"));
    assert_eq!(result.info.ended, pathweave_records::EndReason::Completed);
    let of = |src: u32, dst: u32| {
        result.flows.iter().find(|flow| (flow.src_host, flow.dst_host) == (src, dst)).expect("it is there")
    };
    let first = of(0, 1);
    let notified = |at: Option<u64>| at.map(|ps| ps + Duration::from_us(1).as_ps());
    assert_eq!(Some(of(1, 2).start_ps), first.finish_ps, "a receiver knows at once");
    assert_eq!(Some(of(2, 3).start_ps), notified(first.acked_ps), "a third host is told");
    assert!(first.acked_ps > first.finish_ps);
    let first_of_two = of(3, 0).acked_ps.min(of(3, 1).acked_ps);
    assert_eq!(Some(of(1, 3).start_ps), notified(first_of_two));
}

#[test]
fn the_background_lasts_as_long_as_the_foreground() {
    // Two messages in sequence in the foreground, and 4 GiB of cross traffic, which would take a third of a second.
    let mut builder = pathweave_workload::GraphBuilder::new(3);
    let foreground = builder.group("ring", None).expect("the first group");
    let background = builder.group("elephant", None).expect("the second");
    let mut message = |src, size, group| {
        let new = pathweave_workload::NewMessage {
            src: pathweave_units::HostId(src),
            dst: pathweave_units::HostId(2),
            size,
            start: pathweave_units::Time::ZERO,
            group,
            stream: pathweave_workload::Stream::Own,
            job: None,
        };
        builder.message(new).expect("hosts exist")
    };
    let first = message(0, Bytes::from_kb(500), foreground);
    let second = message(0, Bytes::from_kb(500), foreground);
    message(1, pathweave_workload::MAX_MESSAGE_SIZE, background);
    builder.after(second, first).expect("no cycle");
    let graph = builder.finish().expect("no cycles");
    let mut spec = with_graph(star(3), graph, "rps-nocc");
    let elephant = |name: &str| if name == "elephant" { Role::Background } else { Role::Foreground };
    let groups = spec.graph.groups().iter();
    spec.groups = groups.map(|g| GroupSpec { role: elephant(&g.name), ..GroupSpec::new(0) }).collect();
    let result = play(&spec);
    assert_eq!(result.info.ended, pathweave_records::EndReason::Completed);
    assert!(result.foreground().all(|flow| flow.status == FlowStatus::Finished));
    let last = result.foreground().filter_map(|flow| flow.acked_ps).max().expect("finished");
    assert_eq!(last, result.info.simulated_ps, "the run ends when the sender knows of its last message");
    let cut = result.flows.iter().find(|f| f.size_bytes > 1 << 30).expect("the background");
    assert_eq!(cut.status, FlowStatus::Unfinished);
    assert!(cut.sent_packets > 100, "it was there all the time: {} packets", cut.sent_packets);
    let summary = pathweave_records::Summary::from_run(&result);
    assert_eq!((summary.measured().count, summary.measured().unfinished, summary.overall.count), (2, 0, 3));
    let table = pathweave_report::summary_table(&summary);
    assert!(table.contains("elephant (background, rps-nocc)") && !table.contains("all flows"), "{table}");
}

#[test]
fn a_pause_storm_ends_the_run_with_an_explanation() {
    let mut spec = spec(star(3), &[(0, 2, 50_000_000, 0), (1, 2, 50_000_000, 0)], "ecmp");
    spec.switch.pfc.storm_after = Duration::from_ms(2);
    spec.network.retransmission.timeout = Duration::from_ms(100);
    spec.faults.push(FaultConfig::PauseStorm {
        host: "host2".into(),
        at: Duration::from_us(50),
        until: None,
    });
    let result = play(&spec);
    assert_eq!(result.info.ended, pathweave_records::EndReason::PfcStorm);
    assert!(result.info.ended_detail.contains("-> host2"), "{}", result.info.ended_detail);
}
