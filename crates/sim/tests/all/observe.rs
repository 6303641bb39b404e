//! Records of a run: samples over time, and events.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Flow, back_to_back, impair, incast, leaf_spine, lossy, permutation, play, spec, star};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::{DropReason, EventKind, EventRecord, FlowRecord, FlowSink, RunResult, SeriesKind};
use pathweave_sim::{Monitor, MonitorDecision, ObserveConfig, Simulation, Snapshot};
use pathweave_units::{Bytes, Duration, Rate};

/// Nanoseconds between flows: longer than any sampling interval below.
const APART: u64 = 1_500_000;

/// Runs three flows of 1 MB on a star of 16 hosts, 1.5 ms apart: 80 us of traffic each, and none in between.
fn three_flows(max_samples: u32) -> RunResult {
    let messages: Vec<_> = (0..3).map(|i| (i, i + 8, 1_000_000, u64::from(i) * APART)).collect();
    let mut spec = spec(star(16), &messages, "ecmp");
    let interval = Duration::from_us(5);
    spec.observe = ObserveConfig { interval, max_samples, flows: 3, ..ObserveConfig::default() };
    play(&spec)
}

/// Returns the samples of an entity by instant, in nanoseconds.
fn of(result: &RunResult, kind: SeriesKind, entity: u32) -> BTreeMap<u64, f64> {
    let chosen = result.series.iter().filter(|s| (s.kind, s.entity) == (kind, entity));
    chosen.map(|s| (s.time_ps / 1_000, s.value)).collect()
}

#[test]
fn instants_at_which_nothing_moves_are_instants() {
    let result = three_flows(10_000);
    let instants: Vec<u64> = of(&result, SeriesKind::Interval, 0).into_keys().collect();
    // 3.08 ms in steps of 5 us, without a gap.
    assert!(instants.len() > 610, "{}", instants.len());
    assert!(instants.iter().zip(1..).all(|(&at, n)| at == n * 5_000));
    let received = of(&result, SeriesKind::HostRateBps, 8);
    assert!(received.keys().all(|&at| at < 100_000), "{received:?}");
    // A flow has samples only while it is in progress, and then without a gap.
    let inflight = of(&result, SeriesKind::InflightBytes, 1);
    assert!(inflight.keys().all(|&at| (APART..APART + 100_000).contains(&at)), "{inflight:?}");
    assert!(inflight.len() > 15);
}

#[test]
fn fewer_samples_say_the_same_in_the_mean() {
    let fine = three_flows(10_000);
    for max_samples in [2, 15, 16, 77, 256] {
        let coarse = three_flows(max_samples);
        let spans = of(&coarse, SeriesKind::Interval, 0);
        assert!(spans.len() <= max_samples as usize, "{} of {max_samples}", spans.len());
        let end = *spans.keys().next_back().unwrap();
        let each = *spans.values().next().unwrap();
        assert!(spans.values().all(|&span| span == each), "equally far apart: {spans:?}");
        // A packet counts at the start of its transmission, and the utilisation of a link is at most 1.
        for (kind, off) in [(SeriesKind::HostRateBps, 1e-9), (SeriesKind::LinkUtilisation, 0.01)] {
            for entity in 0..32 {
                let carried = |result: &RunResult| -> f64 {
                    let spans = of(result, SeriesKind::Interval, 0);
                    let until = of(result, kind, entity).into_iter().filter(|(at, _)| *at <= end);
                    until.map(|(at, value)| value * spans[&at]).sum()
                };
                let (fine, coarse) = (carried(&fine), carried(&coarse));
                let close = (fine - coarse).abs() <= off * fine;
                assert!(close, "{max_samples}: {kind} of {entity}: {coarse}, really {fine}");
            }
        }
        // Shares of arrived packets sum to 1 at every instant at which any arrived.
        for flow in 0..3 {
            let shares = of(&coarse, SeriesKind::PathShare, flow);
            assert!(shares.values().all(|share| (share - 1.0).abs() < 1e-9), "{shares:?}");
        }
    }
}

/// A link that is always busy is busy at each sample, however short the interval and whatever its rate: 1 MB over 10 Gb/s,
/// of which a packet takes 3.3 us.
#[test]
fn the_series_of_a_busy_link_says_so_at_any_interval() {
    for interval in [100, 500, 1_000, 2_000, 5_000, 20_000].map(Duration::from_ns) {
        let mut slow = spec(
            back_to_back(Rate::from_gbps(10), Duration::from_us(1)),
            &[(0, 1, 1_000_000, 0)],
            "rps-nocc",
        );
        slow.observe = ObserveConfig { interval, max_samples: 100_000, ..ObserveConfig::default() };
        let result = play(&slow);
        let busy: Vec<f64> = of(&result, SeriesKind::LinkUtilisation, 0).into_values().collect();
        let full = busy.iter().filter(|share| (**share - 1.0).abs() < 1e-9).count();
        assert!(full + 2 >= busy.len(), "{interval}: {full} of {}", busy.len());
        let carried = busy.iter().sum::<f64>() * interval.as_ps() as f64;
        let total = result.links[0].busy_ps as f64;
        assert!((carried - total).abs() <= interval.as_ps() as f64, "{interval}: {carried} of {total}");
    }
}

/// Ten messages on one connection over lossy links: each has its own packets, and those of its own that were lost.
#[test]
fn packets_sent_again_count_for_the_message_that_they_belong_to() {
    let messages: Vec<Flow> = (0..10).map(|_| (0, 5, 100_000, 0)).collect();
    let mut spec = lossy(spec(leaf_spine(), &messages, "rps"));
    impair(&mut spec, 0.02, false);
    let result = play(&spec);
    let again = |flow: &FlowRecord| {
        let of_flow =
            |event: &&EventRecord| event.kind == EventKind::Retransmit && event.flow == Some(flow.flow);
        result.events.iter().filter(of_flow).count() as u32
    };
    assert!(result.flows.iter().filter(|flow| again(flow) > 0).count() > 3);
    for flow in &result.flows {
        assert_eq!(flow.retransmitted_packets, again(flow), "{flow:?}");
        assert_eq!(flow.sent_packets, 100_000_u32.div_ceil(4_096) + again(flow), "{flow:?}");
    }
}

/// Returns the number of events of a kind.
fn count(result: &RunResult, kind: EventKind) -> u64 {
    result.events.iter().filter(|event| event.kind == kind).count() as u64
}

fn sum(result: &RunResult, of: fn(&FlowRecord) -> u32) -> u64 {
    result.flows.iter().map(|flow| u64::from(of(flow))).sum()
}

/// Runs an incast into switches that drop, with a fault: lost packets are retransmitted, some of them after a
/// timeout.
fn lossy_incast(scheme: &str, max_events: u32) -> RunResult {
    let mut spec = lossy(spec(leaf_spine(), &incast(16, 300_000), scheme));
    spec.switch.buffer = Bytes::new(400_000);
    impair(&mut spec, 0.02, false);
    spec.network.retransmission.timeout = Duration::from_us(100);
    spec.observe = ObserveConfig { max_events, ..ObserveConfig::default() };
    play(&spec)
}

#[test]
fn retransmissions_and_timeouts_are_events_as_many_as_are_counted() {
    for scheme in ["ecmp", "rps", "udmp", "qp16", "laps", "dlbf", "erd-uncontrolled"] {
        let result = lossy_incast(scheme, 1_000_000);
        assert!(result.events_not_recorded.is_empty());
        let again = sum(&result, |flow| flow.retransmitted_packets);
        assert!(again > 0, "{scheme}");
        assert_eq!(count(&result, EventKind::Retransmit), again, "{scheme}");
        assert_eq!(count(&result, EventKind::Timeout), sum(&result, |flow| flow.timeouts), "{scheme}");
        assert!(result.events.is_sorted_by_key(|event| event.time_ps), "{scheme}");
        for event in &result.events {
            if !matches!(event.kind, EventKind::Retransmit | EventKind::Timeout) {
                continue;
            }
            let flow = &result.flows[event.flow.unwrap_or_else(|| panic!("{scheme}: {event:?}")) as usize];
            assert_eq!((event.node, event.peer_host), (flow.src_host, Some(flow.dst_host)), "{scheme}");
            let until = flow.acked_ps.or(flow.finish_ps).unwrap_or(u64::MAX);
            assert!((flow.start_ps..=until).contains(&event.time_ps), "{scheme}: {event:?} {flow:?}");
            assert!(event.path.is_some() && event.queue_pair.is_some());
            assert!(event.value < 1_000.0, "a PSN of a short message: {event:?}");
        }
    }
    assert!(count(&lossy_incast("ecmp", 1_000_000), EventKind::Timeout) > 0, "some of them are timeouts");
}

#[test]
fn each_kind_has_a_limit_of_its_own_and_what_is_beyond_it_is_counted() {
    let (all, few) = (lossy_incast("rps", 1_000_000), lossy_incast("rps", 5));
    assert_eq!(all.info.digest, few.info.digest);
    for &kind in EventKind::ALL {
        let beyond = few.events_not_recorded.get(&kind).copied().unwrap_or(0);
        assert_eq!(count(&few, kind) + beyond, count(&all, kind), "{kind}");
        assert_eq!(count(&few, kind), count(&all, kind).min(5), "{kind}");
    }
    let none = lossy_incast("rps", 0);
    assert_eq!((none.info.digest, none.events.len()), (all.info.digest, 0));
}

/// Every event and reason that the documentation lists occurs. A loop of switches requires a topology file, so that
/// reason is left to the tests of the fabric.
#[test]
fn every_kind_of_event_and_every_reason_occurs_in_some_run() {
    let mut runs = vec![lossy_incast("rps", 1_000_000)];
    // Switches that pause.
    let mut pausing = spec(leaf_spine(), &incast(16, 300_000), "rps");
    pausing.switch.buffer = Bytes::new(2_000_000);
    runs.push(play(&pausing));
    // Switches that trim, with hardly any room for headers.
    let mut trimming = spec(leaf_spine(), &incast(16, 300_000), "uet-nscc");
    trimming.switch.pfc.enabled = false;
    trimming.switch.trim.enabled = true;
    trimming.switch.trim.header_queue = Some(Bytes::new(300));
    runs.push(play(&trimming));
    let mut corrupting = spec(leaf_spine(), &permutation(16, 300_000), "rps");
    impair(&mut corrupting, 0.02, true);
    runs.push(play(&corrupting));
    // A spine link goes down and recovers; then the only link of a host, with packets on their way to it.
    for link in ["leaf0-spine0", "host5-leaf1"] {
        let mut spec = spec(leaf_spine(), &permutation(16, 300_000), "rps");
        // The outage is long enough for routing to detect it and for senders to retransmit.
        let (at, up_at) = (Duration::from_us(10), Some(Duration::from_us(60_000)));
        spec.network.retransmission.timeout = Duration::from_us(1_000);
        spec.faults = vec![FaultConfig::LinkDown { link: link.into(), at, up_at }];
        runs.push(play(&spec));
    }
    let kinds: BTreeSet<EventKind> = runs.iter().flat_map(|run| &run.events).map(|e| e.kind).collect();
    assert_eq!(kinds, EventKind::ALL.iter().copied().collect());
    let reasons: BTreeSet<DropReason> =
        runs.iter().flat_map(|run| &run.events).filter_map(|e| e.reason).collect();
    let promised = DropReason::ALL.iter().copied().filter(|reason| *reason != DropReason::HopLimit);
    assert_eq!(reasons, promised.collect());
}

#[test]
fn an_acknowledgement_ends_a_flow_half_a_round_trip_later() {
    let mut alone = spec(star(4), &[(0, 1, 1_000_000, 0)], "ecmp");
    alone.run.verify = false;
    let result = play(&alone);
    let flow = &result.flows[0];
    assert_eq!(flow.fct_ps(), Some(flow.ideal_fct_ps));
    assert_eq!(flow.acked_fct_ps(), flow.ideal_acked_ps, "{flow:?}");
    assert_eq!((flow.slowdown(), flow.acked_slowdown()), (Some(1.0), Some(1.0)));
    // Two cables of 1 us each, and an acknowledgement of less than 100 bytes on each at 100 Gb/s.
    let back_ps = flow.acked_fct_ps().unwrap() - flow.fct_ps().unwrap();
    assert!((2_000_000..2_016_000).contains(&back_ps), "{back_ps}");
}

/// Most records leave before the end of a run in which messages follow one another.
#[test]
fn records_leave_while_the_run_goes_on() {
    struct Count<'c>(&'c Cell<usize>);
    impl FlowSink for Count<'_> {
        fn take(&mut self, records: &[FlowRecord]) {
            self.0.set(self.0.get() + records.len());
        }
    }
    struct Look<'c>(&'c Cell<usize>, Vec<usize>);
    impl Monitor for Look<'_> {
        fn look(&mut self, _: &Snapshot) -> MonitorDecision {
            self.1.push(self.0.get());
            MonitorDecision::Continue
        }
    }
    // 2,000 messages of 100 packets, sent in turn by three hosts at a switch to a fourth.
    let flows: Vec<Flow> = (0..2_000).map(|n| ((n % 3) as u32, 3, 400_000, n * 50_000)).collect();
    let spec = spec(star(4), &flows, "rps");
    let left = Cell::new(0);
    let (mut count, mut look) = (Count(&left), Look(&left, Vec::new()));
    Simulation::new(&spec).expect("a valid spec").recorded_by(Some(&mut count)).run(&mut look);
    assert_eq!(left.get(), 2_000);
    // The last look precedes the records that leave at the end of the run. A chunk has 16 records here.
    let last = look.1.last().expect("it looks at the end");
    assert!(look.1.len() > 4 && look.1.is_sorted() && *last >= 2_000 - 2 * 16, "{:?}", look.1);
    assert!(look.1[look.1.len() / 2] > 500, "{:?}", look.1);
}
