//! Flows that are followed over time.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Flow, incast, leaf_spine, lossy, play, spec, star};
use pathweave_records::{RunResult, SeriesKind, SeriesSample};
use pathweave_sim::ObserveConfig;
use pathweave_units::Duration;
use pathweave_wire::Framing;

/// Host 0 sends 2 MB to a host of another leaf. A smaller message has the same source and destination, and a third
/// message other ones.
fn run(scheme: &str, flows: u32) -> RunResult {
    let messages = [(0, 5, 2_000_000, 0), (0, 5, 100_000, 0), (1, 6, 300_000, 0)];
    let mut spec = spec(leaf_spine(), &messages, scheme);
    let interval = Duration::from_us(5);
    spec.observe = ObserveConfig { interval, flows, ..ObserveConfig::default() };
    play(&spec)
}

fn of(result: &RunResult, kind: SeriesKind) -> Vec<&SeriesSample> {
    result.series.iter().filter(|s| s.kind == kind).collect()
}

/// Returns the shares at each instant, by path.
fn shares(result: &RunResult) -> BTreeMap<u64, Vec<(u16, f64)>> {
    let mut out: BTreeMap<u64, Vec<(u16, f64)>> = BTreeMap::new();
    for s in of(result, SeriesKind::PathShare) {
        out.entry(s.time_ps).or_default().push((s.index, s.value));
    }
    out
}

fn paths(result: &RunResult) -> BTreeSet<u16> {
    shares(result).values().flatten().map(|&(path, _)| path).collect()
}

#[test]
fn the_largest_is_followed_and_its_shares_add_up() {
    let result = run("rps", 1);
    let largest = result.flows.iter().max_by_key(|f| f.size_bytes).unwrap().flow;
    assert_eq!(of(&result, SeriesKind::InflightBytes)[0].entity, largest);
    assert!(of(&result, SeriesKind::PathShare).iter().all(|s| s.entity == largest));
    let shares = shares(&result);
    // 2 MB at 100 Gb/s take 160 us, which is 32 samples, besides a twentieth for the small message.
    assert!(shares.len() >= 30, "{} samples", shares.len());
    for (time, shares) in &shares {
        // At most 32 paths are recorded at an instant.
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        assert!(sum <= 1.0 + 1e-9 && sum > 0.5, "{sum} at {time}");
    }
    assert!(paths(&result).len() > 32, "spraying uses more paths than are recorded at an instant");
    let rates = of(&result, SeriesKind::PolicyRateBps);
    assert!(rates.iter().all(|s| s.value > 0.0 && s.value <= 100e9), "{rates:?}");
}

#[test]
fn flows_are_followed_by_number_beside_the_largest() {
    let messages = [(0, 5, 2_000_000, 0), (0, 5, 100_000, 0), (1, 6, 300_000, 0)];
    // Returns the numbers of the followed flows, and the sizes of all flows.
    let followed = |flows: u32, follow: Vec<u32>| {
        let mut spec = spec(leaf_spine(), &messages, "rps");
        let interval = Duration::from_us(5);
        spec.observe = ObserveConfig { interval, flows, follow, ..ObserveConfig::default() };
        let result = play(&spec);
        let numbers: BTreeSet<u32> =
            of(&result, SeriesKind::InflightBytes).iter().map(|s| s.entity).collect();
        (numbers, result.flows.iter().map(|flow| flow.size_bytes).collect::<Vec<_>>())
    };
    let (numbers, sizes) = followed(1, vec![]);
    let number = |size: u64| sizes.iter().position(|&other| other == size).unwrap() as u32;
    let (largest, other) = (number(2_000_000), number(300_000));
    assert_eq!(numbers, BTreeSet::from([largest]));
    assert_eq!(followed(0, vec![other]).0, BTreeSet::from([other]));
    // Each flow is followed once.
    assert_eq!(followed(1, vec![other, largest, other]).0, BTreeSet::from([largest, other]));
}

#[test]
fn bytes_ahead_of_a_gap_are_whole_packets() {
    let mut spec = spec(leaf_spine(), &incast(16, 500_000), "rps");
    let interval = Duration::from_us(5);
    spec.observe = ObserveConfig { interval, flows: 15, ..ObserveConfig::default() };
    let result = play(&spec);
    // With sprayed cross traffic, packets overtake each other.
    let held = of(&result, SeriesKind::HeldBytes);
    assert_eq!(held.len(), of(&result, SeriesKind::InflightBytes).len());
    assert!(held.iter().any(|s| s.value > 0.0));
    assert!(held.iter().all(|s| s.value % 4_096.0 == 0.0 && s.value < 500_000.0), "{held:?}");
}

#[test]
fn one_path_has_all_and_queue_pairs_are_told_apart() {
    let one = run("ecmp", 1);
    assert_eq!(paths(&one).len(), 1);
    assert!(of(&one, SeriesKind::HeldBytes).iter().all(|s| s.value == 0.0), "one path keeps the order");
    assert!(shares(&one).values().flatten().all(|&(_, share)| share == 1.0));
    // Sixteen queue pairs, identified by their own numbers. Each keeps to one path.
    assert_eq!(paths(&run("qp16", 1)), (0..16).collect());
}

#[test]
fn nothing_is_followed_unless_asked_and_all_can_be() {
    let nothing = run("rps", 0);
    assert!(
        of(&nothing, SeriesKind::PathShare).is_empty() && of(&nothing, SeriesKind::InflightBytes).is_empty()
    );
    let all = run("rps", 9);
    let followed: BTreeSet<u32> = of(&all, SeriesKind::InflightBytes).iter().map(|s| s.entity).collect();
    assert_eq!(followed, (0..3).collect());
}

/// Returns the number of different paths in flight of each host's only flow, at each instant with at least `packets`
/// packets in flight.
fn paths_in_flight(scheme: &str, packets: u64) -> Vec<f64> {
    let messages: Vec<_> = (0..16).map(|host| (host, (host + 5) % 16, 8_000_000, 0)).collect();
    let mut spec = spec(leaf_spine(), &messages, scheme);
    let interval = Duration::from_us(10);
    spec.observe = ObserveConfig { interval, flows: 16, ..ObserveConfig::default() };
    let result = play(&spec);
    let distinct = of(&result, SeriesKind::InflightPaths);
    let bytes = of(&result, SeriesKind::InflightBytes);
    let pairs = distinct.iter().zip(&bytes);
    pairs.filter(|(_, bytes)| bytes.value >= (packets * 4_096) as f64).map(|(paths, _)| paths.value).collect()
}

/// Returns the mean of the first quarter and the mean of the last.
fn first_and_last(values: &[f64]) -> (f64, f64) {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let quarter = values.len() / 4;
    (mean(&values[..quarter]), mean(&values[values.len() - quarter..]))
}

#[test]
fn paths_in_flight_are_counted() {
    assert!(paths_in_flight("ecmp", 1).iter().all(|&paths| paths == 1.0));
    assert!(paths_in_flight("qp16", 16).iter().all(|&paths| (1.0..=16.0).contains(&paths)));
    let (_, sprayed) = first_and_last(&paths_in_flight("rps", 16));
    assert!(sprayed > 40.0, "{sprayed}");
}

#[test]
fn schemes_that_use_paths_again_keep_many_of_them() {
    for scheme in ["udmp", "reps", "weave", "mprdma"] {
        let (first, last) = first_and_last(&paths_in_flight(scheme, 16));
        assert!(last > 0.8 * first && last > 20.0, "{scheme}: {first:.1}, later {last:.1}");
    }
    // The published UDMP sends every packet on the path of an acknowledgement, so paths disappear over time.
    let (first, last) = first_and_last(&paths_in_flight("udmp-published", 16));
    assert!(last < 0.5 * first && last < 6.0, "{first:.1}, later {last:.1}");
}

/// Payload bits per second of a link of 100 Gb/s: 4096 of the 4144 bytes of a packet, as ns-3 counts them.
const LINE_BPS: f64 = 100e9 * 4_096.0 / 4_144.0;
/// Payload of a packet per interval of 10 us, in bits per second.
const PACKET_BPS: f64 = 4_096.0 * 8.0 / 10e-6;

/// Plays flows on a star with one sample in 10 us, and returns the samples of a flow in order of time.
fn sampled(flows: &[Flow]) -> impl Fn(SeriesKind, u32) -> Vec<f64> + use<> {
    let mut spec = spec(star(5), flows, "ecmp");
    spec.network.framing = Framing::Ns3;
    // Without marks nobody slows down.
    spec.switch.ecn.enabled = false;
    let interval = Duration::from_us(10);
    spec.observe = ObserveConfig { interval, flows: flows.len() as u32, ..ObserveConfig::default() };
    let result = play(&spec);
    move |kind, flow| of(&result, kind).iter().filter(|s| s.entity == flow).map(|s| s.value).collect()
}

#[test]
fn a_flow_alone_has_the_throughput_of_its_link_until_nothing_is_left() {
    let of = sampled(&[(0, 1, 2_000_000, 0)]);
    let (rates, left) = (of(SeriesKind::GoodputBps, 0), of(SeriesKind::UnfinishedBytes, 0));
    // 2 MB take 161.9 us and 2.3 us of latency, with which the first interval begins. The run ends with the flow.
    assert_eq!((rates.len(), left.len()), (16, 16), "{rates:?}");
    assert!(rates[1..16].iter().all(|rate| (rate - LINE_BPS).abs() <= PACKET_BPS), "{rates:?}");
    let mean = rates[1..16].iter().sum::<f64>() / 15.0;
    assert!((mean - LINE_BPS).abs() <= PACKET_BPS / 15.0, "{mean} of {LINE_BPS}");
    // What has arrived is no longer left: 10 us at a rate are rate / 800,000 bytes.
    let mut expected = 2_000_000.0;
    for (rate, left) in rates.iter().zip(&left) {
        expected -= rate / 800_000.0;
        assert!((left - expected).abs() < 1e-3, "{left}, not {expected}");
    }
    // 4.2 us later the rest is there, too: 51 kB at the rate of the link.
    assert!((left[15] - LINE_BPS / 8.0 * 4.2e-6).abs() < 2.0 * 4_096.0, "{}", left[15]);
}

#[test]
fn two_flows_to_one_host_have_half_of_its_link_each() {
    let of = sampled(&[(0, 2, 2_000_000, 0), (1, 2, 2_000_000, 0), (3, 4, 500_000, 0)]);
    let rates = [0, 1].map(|flow| of(SeriesKind::GoodputBps, flow));
    // Together they need 324 us. In the last tenth one of them may be done.
    for (at, (a, b)) in rates[0].iter().zip(&rates[1]).enumerate().skip(1).take(28) {
        assert!((a + b - LINE_BPS).abs() <= PACKET_BPS, "{at}: {a} and {b}");
    }
    for rates in &rates {
        let mean = rates[1..29].iter().sum::<f64>() / 28.0;
        assert!((mean / LINE_BPS - 0.5).abs() < 0.05, "{mean} of {LINE_BPS}");
    }
    // The third flow shares no link with them.
    let alone = of(SeriesKind::GoodputBps, 2);
    assert!(alone[1..4].iter().all(|rate| (rate - LINE_BPS).abs() <= PACKET_BPS), "{alone:?}");
}

/// Packets that arrive twice are placed once.
#[test]
fn what_is_lost_on_the_way_is_left() {
    let mut spec = lossy(spec(leaf_spine(), &incast(16, 500_000), "rps"));
    let interval = Duration::from_us(10);
    spec.observe = ObserveConfig { interval, flows: 15, ..ObserveConfig::default() };
    let result = play(&spec);
    assert!(result.flows.iter().any(|flow| flow.retransmitted_packets > 0));
    let mut ended = 0;
    for flow in 0..15 {
        let samples = |kind| of(&result, kind).into_iter().filter(move |s| s.entity == flow);
        let arrived: f64 = samples(SeriesKind::GoodputBps).map(|s| s.value / 800_000.0).sum();
        let left = samples(SeriesKind::UnfinishedBytes).next_back().expect("it was followed").value;
        assert!((arrived + left - 500_000.0).abs() < 1e-3, "flow {flow}: {arrived} and {left}");
        ended += u32::from(left == 0.0);
    }
    // The run ends with the last flow, before its last sample.
    assert!((1..15).contains(&ended), "{ended}");
}
