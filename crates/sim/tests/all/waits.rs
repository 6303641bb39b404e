//! Attribution of the time of flows, and records of faults, compared with values calculated by hand.

use std::collections::BTreeMap;

use crate::support::{incast, play, spec, star};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::{EventKind, RunResult, WaitKind, WaitRecord};
use pathweave_sim::SimSpec;
use pathweave_units::{Duration, Rate};

fn sampled(mut spec: SimSpec) -> SimSpec {
    spec.observe.interval = Duration::from_us(5);
    spec
}

/// Returns the link between two nodes.
fn link(result: &RunResult, from: u32, to: u32) -> u32 {
    result.links.iter().find(|link| (link.from_node, link.to_node) == (from, to)).expect("a link").link
}

fn by_flow(result: &RunResult) -> BTreeMap<u32, Vec<WaitRecord>> {
    let mut flows: BTreeMap<u32, Vec<WaitRecord>> = BTreeMap::new();
    result.waits.iter().for_each(|wait| flows.entry(wait.flow).or_default().push(*wait));
    flows
}

/// Eight hosts send 500 KB each to host 0, whose link takes 331 us for all. Each flow alone would need 41 us. Without
/// congestion control everything is sent within that time, so flows spend most of their time in the queue of that
/// link.
#[test]
fn the_time_of_an_incast_goes_to_the_link_of_the_receiver() {
    let result = play(&sampled(spec(star(9), &incast(9, 500_000), "rps-nocc")));
    let flows = by_flow(&result);
    assert_eq!(flows.len(), 8);
    let at_receiver = link(&result, 9, 0);
    let (mut all, mut there) = (0, 0);
    for (flow, parts) in flows {
        let record = &result.flows[flow as usize];
        let took = record.fct_ps().expect("it finished");
        let sum: u64 = parts.iter().map(|part| part.time_ps).sum();
        assert!(sum.abs_diff(took) <= parts.len() as u64, "parts add up: {sum} of {took}");
        assert!(parts.iter().all(|part| part.flow_ps == took && part.ideal_fct_ps == record.ideal_fct_ps));
        all += took;
        let waits = |part: &&WaitRecord| matches!(part.kind, WaitKind::Queue | WaitKind::Full);
        let at = parts.iter().filter(|part| part.link == Some(at_receiver)).filter(waits);
        there += at.map(|part| part.time_ps).sum::<u64>();
        let known =
            parts.iter().find(|part| part.link == Some(at_receiver)).expect("its packets were seen there");
        assert_eq!((known.link_senders, known.link_group_share), (Some(8), Some(1.0)));
    }
    assert!(there * 2 > all, "{there} of {all}");
}

/// A flow alone spends its time on sending and on links.
#[test]
fn a_flow_alone_waits_for_its_own_link() {
    let result = play(&sampled(spec(star(4), &[(1, 2, 1_000_000, 0)], "weave")));
    let own = link(&result, 1, 4);
    assert!(!result.waits.is_empty());
    for wait in &result.waits {
        let is_own = wait.link == Some(own);
        let on_the_way =
            matches!(wait.kind, WaitKind::Travel | WaitKind::Queue) && wait.time_ps * 5 < wait.flow_ps;
        assert!(is_own || on_the_way, "{wait:?}");
    }
}

/// The records do not depend on the division into three threads or three ranks.
#[test]
fn waits_do_not_depend_on_threads() {
    let mut one = sampled(spec(star(9), &incast(9, 200_000), "rps"));
    let alone = play(&one).waits;
    one.threads = std::num::NonZeroU16::new(3);
    assert_eq!(alone, play(&one).waits);
    assert!(!alone.is_empty());
}

/// A fault is recorded on its link. A slow link is busy for longer with the same bytes: 1 MB at 10 Gb/s takes 0.8 ms.
#[test]
fn faults_have_their_link_and_links_are_busy_at_the_rate_in_force() {
    let mut slow = sampled(spec(star(4), &[(1, 2, 1_000_000, 0)], "ecmp"));
    slow.faults.push(FaultConfig::LinkRate {
        link: "host2-switch".to_owned(),
        at: Duration::ZERO,
        rate: Rate::from_gbps(10),
        until: Some(Duration::from_ms(2)),
    });
    // A second message keeps the run going until the link has recovered.
    let later = spec(star(4), &[(1, 2, 1_000_000, 0), (0, 3, 1_000, 2_100_000)], "ecmp");
    slow.graph = later.graph;
    slow.topology = later.topology;
    let name = slow.topology.node_name(pathweave_topo::NodeId(4)).into_owned();
    if let Some(FaultConfig::LinkRate { link, .. }) = slow.faults.first_mut() {
        *link = format!("host2-{name}");
    }
    let result = play(&slow);
    let ends: Vec<u32> = vec![link(&result, 2, 4), link(&result, 4, 2)];
    for kind in [EventKind::Fault, EventKind::Repair] {
        let event = result.events.iter().find(|event| event.kind == kind).expect("it is recorded");
        assert!(event.link.is_some_and(|link| ends.contains(&link)), "{event:?}");
    }
    let to_receiver = &result.links[link(&result, 4, 2) as usize];
    let expected_ps = to_receiver.tx_bytes * 8 * 100;
    assert!(to_receiver.busy_ps.abs_diff(expected_ps) < expected_ps / 100, "{to_receiver:?}");
}
