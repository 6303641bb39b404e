//! Figures of a summary, computed by hand.

use pathweave_records::*;

/// Creates a flow from group, size, start, completion time (`None`: unfinished) and ideal completion time, in
/// microseconds.
fn flow(group: u16, size_bytes: u64, start_us: u64, fct_us: Option<u64>, ideal_us: u64) -> FlowRecord {
    let ps = |us: u64| us * 1_000_000;
    FlowRecord {
        group,
        size_bytes,
        start_ps: ps(start_us),
        finish_ps: fct_us.map(|f| ps(start_us + f)),
        ideal_fct_ps: ps(ideal_us),
        sent_packets: 10,
        retransmitted_packets: 1,
        ooo_degree_max: fct_us.unwrap_or(0) as u32,
        status: if fct_us.is_some() { FlowStatus::Finished } else { FlowStatus::Unfinished },
        ..FlowRecord::default()
    }
}

fn run() -> RunResult {
    let node =
        |node, tier| NodeInfo { node, name: format!("n{node}"), kind: NodeKind::Host, tier, pod: None };
    let link = |link, from_node, to_node, busy_us: u64| LinkTotals {
        link,
        from_node,
        to_node,
        tier: 0,
        direction: if to_node > from_node { Direction::Up } else { Direction::Down },
        busy_ps: busy_us * 1_000_000,
        dropped_packets: 2,
        pfc_pauses: 3,
        max_queue_bytes: 1_000 + u64::from(link),
        ..LinkTotals::default()
    };
    RunResult {
        info: RunInfo {
            groups: vec!["a".into(), "b".into()],
            schemes: vec!["rps".into()],
            simulated_ps: 100_000_000,
            events: 30,
            packet_hops: 20,
            cpu_s: 4.0,
            ..RunInfo::default()
        },
        flows: vec![
            flow(0, 1_000, 0, Some(10), 5),
            flow(0, 1_001, 10, Some(20), 5),
            flow(1, 1_000_000, 0, Some(80), 80),
            flow(1, 1_000_000, 0, None, 80),
        ],
        nodes: vec![node(0, 0), node(1, 1)],
        links: vec![link(0, 0, 1, 50), link(1, 1, 0, 25)],
        jobs: vec![
            JobRecord {
                finish_ps: Some(5_000),
                start_ps: 2_000,
                compute_ps: 1_000,
                size_bytes: Some(300),
                bus_bytes: Some(600),
                ..JobRecord::default()
            },
            JobRecord { job: 1, ..JobRecord::default() },
        ],
        ..RunResult::default()
    }
}

#[test]
fn counts_and_times() {
    let s = Summary::from_run(&run());
    let all = &s.overall;
    assert_eq!((all.count, all.finished, all.unfinished, all.failed), (4, 3, 1, 0));
    assert_eq!((all.fct_ns.p50, all.fct_ns.max), (20_000.0, 80_000.0));
    assert!((all.fct_ns.mean - 110_000.0 / 3.0).abs() < 1e-6);
    // Slowdowns 2, 4, 1.
    assert_eq!((all.slowdown.min, all.slowdown.p50, all.slowdown.max), (1.0, 2.0, 4.0));
    assert_eq!((all.sent_packets, all.retransmitted_packets), (Some(40), Some(4)));
    assert_eq!((all.ooo_degree_packets.count, all.ooo_degree_packets.max), (4, 80.0));
}

#[test]
fn goodput_and_fairness() {
    let s = Summary::from_run(&run());
    let a = &s.groups[0];
    assert_eq!((a.group.as_str(), a.schemes.as_slice()), ("a", &["rps".to_owned()][..]));
    // 2001 bytes from 0 to 30 us.
    assert!((a.flows.aggregate_goodput_bps - 2_001.0 * 8.0 / 30e-6).abs() < 1.0);
    // 1000 B in 10 us: 800 Mbit/s. 1001 B in 20 us: 400.4 Mbit/s.
    assert!((a.flows.mean_goodput_bps - 600.2e6).abs() < 1.0);
    let expected = (800.0f64 + 400.4).powi(2) / (2.0 * (800.0f64.powi(2) + 400.4f64.powi(2)));
    assert!((a.flows.jain_index.unwrap() - expected).abs() < 1e-12);
}

#[test]
fn size_bins_include_their_upper_edge() {
    let bins: Vec<_> = Summary::from_run(&run())
        .overall
        .by_size
        .iter()
        .map(|b| (b.above_bytes, b.up_to_bytes, b.fct_ns.count))
        .collect();
    assert_eq!(bins, [(0, 1_000, 1), (1_000, 3_000, 1), (300_000, 1_000_000, 1)]);
}

#[test]
fn fabric_jobs_and_cost() {
    let s = Summary::from_run(&run());
    assert_eq!(
        (s.fabric.dropped_packets, s.fabric.pfc_pauses, s.fabric.max_queue_bytes),
        (Some(4), Some(6), Some(1_001))
    );
    let tiers: Vec<_> =
        s.fabric.tiers.iter().map(|t| (t.tier, t.direction, t.utilisation_ratio.mean)).collect();
    assert_eq!(tiers, [(0, "up", 0.5), (0, "down", 0.25)]);
    assert_eq!((s.jobs.count, s.jobs.unfinished, s.jobs.completion_ns.max), (2, 1, 3.0));
    // One job did not finish, so there is no time of all.
    assert_eq!(
        (s.jobs.time_ns, s.jobs.by_group[0].unfinished, s.jobs.longest[0].time_ns),
        (None, 1, Some(3.0))
    );
    assert_eq!(s.spurious_timeouts(), None, "packets were lost");
    // 3 ns, of which 1 ns would pass without a network. 300 bytes in 3 ns are 800 Gb/s, and the bus bandwidth is
    // twice that.
    assert_eq!((s.jobs.exposed_ns.count, s.jobs.exposed_ns.max), (1, 2.0));
    assert_eq!((s.jobs.algorithm_bandwidth_bps.mean, s.jobs.bus_bandwidth_bps.mean), (8e11, 1.6e12));
    assert_eq!((s.run.events_per_packet_hop, s.run.packet_hops_per_cpu_s), (1.5, 5.0));
}

#[test]
fn timeouts_are_spurious_if_no_packet_was_lost() {
    let mut run = run();
    run.links.iter_mut().for_each(|link| link.dropped_packets = 0);
    (run.flows[0].timeouts, run.flows[3].timeouts) = (2, 1);
    assert_eq!(Summary::from_run(&run).spurious_timeouts(), Some(3));
    // A packet that arrived without its payload was lost.
    run.links[1].trimmed_packets = 1;
    assert_eq!(Summary::from_run(&run).spurious_timeouts(), None);
}

#[test]
fn the_order_of_the_records_does_not_matter() {
    let mut turned = run();
    turned.flows.reverse();
    assert_eq!(Summary::from_run(&turned), Summary::from_run(&run()));
}

#[test]
fn an_empty_run_has_a_summary() {
    let s = Summary::from_run(&RunResult::default());
    assert_eq!((s.overall.count, s.overall.jain_index, s.overall.fct_ns.p99), (0, None, 0.0));
}
