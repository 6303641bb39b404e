//! LAPS with paths of different lengths, in rail networks and in a Dragonfly, on the paths that the topology provides
//! for sources.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Flow, all_to_all, fat_tree, finish, impair, incast, lossy, permutation, spec};
use pathweave_fabric::config::FaultConfig;
use pathweave_policy::laps::Limit;
use pathweave_policy::{PathRto, PolicyConfig, Recovery, RingScope};
use pathweave_records::{DropReason, EventKind, RunResult};
use pathweave_sim::{RouteChoice, SimSpec};
use pathweave_topo::{Build, Dragonfly, PathSetConfig, PathSets, Rail, RequestedPairs, Topology};
use pathweave_units::Duration;

/// Returns 4 clusters of 4 GPUs.
fn rails() -> Topology {
    Rail::new(4, 4).build(Path::new(".")).expect("rails")
}
/// Returns 5 groups of 2 switches with 2 hosts each.
fn dragonfly() -> Topology {
    Dragonfly::new(5, 2, 2).build(Path::new(".")).expect("a Dragonfly")
}

fn laps(topology: Topology, flows: &[Flow]) -> SimSpec {
    of_scheme("laps", topology, flows)
}
fn of_scheme(scheme: &str, topology: Topology, flows: &[Flow]) -> SimSpec {
    let mut spec = spec(topology, flows, scheme);
    let sets =
        PathSets::build(&PathSetConfig::default(), &spec.topology, Path::new("."), RequestedPairs::All)
            .expect("hosts with one port");
    spec.routing = RouteChoice::Sources(Arc::new(sets));
    spec
}

/// Uses the recovery of the paper, and timers that include queueing.
fn by_path_order(mut spec: SimSpec) -> SimSpec {
    spec.schemes[0].scheme.recovery = Recovery::PathOrder {
        window_packets: Some(4_096),
        scope: RingScope::Host,
        rto: PathRto::Guarded,
        rto_min: Duration::from_ms(1),
        rto_slack: Duration::from_us(10),
    };
    spec
}

fn resent(result: &RunResult) -> u32 {
    result.flows.iter().map(|flow| flow.retransmitted_packets).sum()
}
fn last_finish(result: &RunResult) -> u64 {
    result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("flows finished")
}

#[test]
fn paths_that_differ_cause_no_retransmission_by_their_order_and_few_by_time() {
    for (topology, hosts) in [(rails(), 16), (dragonfly(), 20)] {
        for flows in [permutation(hosts, 1_000_000), incast(hosts, 400_000), all_to_all(hosts, 30_000)] {
            let spec = laps(topology.clone(), &flows);
            let result = finish(&by_path_order(spec.clone()));
            let out_of_order: u64 = result.flows.iter().map(|flow| u64::from(flow.ooo_packets)).sum();
            assert!(out_of_order > 100, "packets overtake each other: {out_of_order}");
            assert_eq!(resent(&result), 0);
            // Recovery by time is inexact, and messages of few packets end before it has adapted: 19 % of
            // retransmissions at most here.
            let timed = finish(&spec);
            let sent: u64 = timed.flows.iter().map(|flow| u64::from(flow.sent_packets)).sum();
            assert!(u64::from(resent(&timed)) < sent / 4, "{} of {sent}", resent(&timed));
        }
    }
}

#[test]
fn losses_by_path_order_are_retransmitted_once() {
    for topology in [rails(), dragonfly()] {
        let mut spec = laps(topology, &permutation(16, 2_000_000));
        impair(&mut spec, 1e-3, true);
        let timeouts = |result: &RunResult| result.flows.iter().map(|flow| flow.timeouts).sum::<u32>();
        assert_eq!(timeouts(&finish(&spec)), 0, "by time nothing waits for the timeout");
        let result = finish(&by_path_order(spec));
        // A lost acknowledgement may cause a retransmission of data that arrived.
        let lost = result.events.iter().filter(|event| event.kind == EventKind::Drop).count();
        let resent = resent(&result) as usize;
        assert!(lost > 30 && resent <= lost, "{lost} lost, {resent} sent again");
        // Only the last packets on a path have to wait for a timer.
        assert!(timeouts(&result) <= 16, "{} timeouts", timeouts(&result));
    }
}

#[test]
fn a_tcp_like_mode_finds_losses_by_sack_on_paths_of_any_length() {
    // In the fat tree all paths have equal length; in rail networks and the Dragonfly lengths differ.
    for (topology, hosts) in [(rails(), 16), (dragonfly(), 20), (fat_tree(), 16)] {
        let mut spec = of_scheme("laps-tcp", topology, &permutation(hosts, 8_000_000));
        let whole = finish(&spec);
        assert_eq!(resent(&whole), 0, "nothing is lost");
        // PFC is off, and every link loses one packet in a thousand.
        spec = lossy(spec);
        impair(&mut spec, 1e-3, false);
        let result = finish(&spec);
        let lost = result.events.iter().filter(|event| event.kind == EventKind::Drop).count();
        let timeouts: u32 = result.flows.iter().map(|flow| flow.timeouts).sum();
        assert!(lost > 20 && resent(&result) > 0, "{lost} lost, {} sent again", resent(&result));
        // Selective acknowledgements reveal most losses. The rest are at the end of a message.
        assert!((timeouts as usize) < lost, "{timeouts} timeouts for {lost} losses");
    }
}

/// With the window alone, which is the limit where a step is awaited. With windows that shrink with the delay it ends a fifth
/// later.
#[test]
fn an_incast_ends_close_to_what_the_receivers_link_takes() {
    let senders = 15;
    let mut spec = laps(rails(), &incast(16, 4_000_000));
    let PolicyConfig::Laps(config) = &mut spec.schemes[0].scheme.policy else { panic!("LAPS") };
    config.limit = Limit::Window;
    let result = finish(&spec);
    // 200 Gb/s of payload over two links, of which one is idle at times.
    let bound = senders * 4_000_000 * 40;
    let took = last_finish(&result);
    assert!(took >= bound && took < bound * 125 / 100, "{took} ps, {bound} ps at least");
}

#[test]
fn the_window_alone_limits_messages_where_switches_pause_and_the_rate_too_where_they_drop() {
    let limited_by = |drops: bool, limit: Option<Limit>| {
        let mut spec = laps(rails(), &incast(16, 400_000));
        let PolicyConfig::Laps(config) = &mut spec.schemes[0].scheme.policy else { panic!("LAPS") };
        assert_eq!(config.limit, Limit::Auto);
        config.limit = limit.unwrap_or(config.limit);
        finish(&if drops { lossy(spec) } else { spec }).info.digest
    };
    let [window, rate] = [Limit::DelayWindow, Limit::RateAndWindow].map(Some);
    assert_eq!(limited_by(false, None), limited_by(false, window));
    assert_eq!(limited_by(true, None), limited_by(true, rate));
    assert_ne!(limited_by(true, rate), limited_by(true, window));
}

#[test]
fn a_dead_rail_is_left_and_what_was_on_it_is_sent_again() {
    let mut spec = laps(rails(), &permutation(16, 4_000_000));
    spec.switch.reroute_after = Duration::from_us(30);
    let links: Vec<String> = (0..spec.topology.links().len())
        .map(|link| spec.topology.link_name(pathweave_topo::LinkId(link as u32)))
        .filter(|name| name.contains("rail"))
        .collect();
    let link = links.first().expect("a link to a rail switch").clone();
    spec.faults = vec![FaultConfig::LinkDown { link, at: Duration::from_us(50), up_at: None }];
    let result = finish(&spec);
    let lost = result
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Drop && event.reason == Some(DropReason::LinkDown))
        .count();
    assert!(lost > 0 && resent(&result) > 0, "{lost} packets lost on the dead link");
    // No flow waits for a timer of 8 ms.
    assert!(last_finish(&result) < Duration::from_ms(5).as_ps(), "{}", last_finish(&result));
}
