//! Flows that are followed over time.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{incast, leaf_spine, play, spec};
use pathweave_records::{RunResult, SeriesKind, SeriesSample};
use pathweave_sim::ObserveConfig;
use pathweave_units::Duration;

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
