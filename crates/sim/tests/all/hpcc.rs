//! HPCC on fabrics whose switches write telemetry.

use pathweave_records::{RunResult, SeriesKind};
use pathweave_sim::{ObserveConfig, SimSpec};
use pathweave_units::Duration;

use crate::support::{Flow, finish, incast, leaf_spine, spec, star};

/// Wire bytes of a full packet with its telemetry, over those of its payload: 82 and 42 around 4,096.
const WIRE: f64 = 4_220.0 / 4_096.0;

/// Runs a scheme with samples every 5 us.
fn sampled(mut spec: SimSpec) -> RunResult {
    spec.observe = ObserveConfig {
        interval: Duration::from_us(5),
        max_samples: 100_000,
        flows: 16,
        ..ObserveConfig::default()
    };
    finish(&spec)
}

/// Returns the samples of a kind in this range of microseconds, with their entities.
fn within(result: &RunResult, kind: SeriesKind, us: std::ops::Range<u64>) -> Vec<(u32, f64)> {
    let chosen = result.series.iter().filter(|s| s.kind == kind && us.contains(&(s.time_ps / 1_000_000)));
    chosen.map(|s| (s.entity, s.value)).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len() as f64
}

/// Two hosts send to a third one over one switch: 24 MB, which take 2 ms.
#[test]
fn two_senders_get_half_each_of_95_per_cent_and_leave_no_queue() {
    let flows: Vec<Flow> = vec![(1, 0, 12_000_000, 0), (2, 0, 12_000_000, 0)];
    let result = sampled(spec(star(3), &flows, "hpcc"));
    let arrives =
        within(&result, SeriesKind::HostRateBps, 500..1_900).into_iter().filter(|(host, _)| *host == 0);
    let used = mean(arrives.map(|(_, rate)| rate * WIRE / 100e9));
    assert!((0.93..0.97).contains(&used), "{used}");
    for flow in 0..2 {
        let rates = within(&result, SeriesKind::PolicyRateBps, 1_500..1_900);
        let rate = mean(rates.into_iter().filter(|(of, _)| *of == flow).map(|(_, rate)| rate));
        assert!((rate / 47.5e9 - 1.0).abs() < 0.1, "{flow}: {rate}");
    }
    // Two packets that meet.
    let queues = within(&result, SeriesKind::QueueBytes, 500..1_900);
    let most = queues.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    assert!(most <= 2.0 * 4_220.0, "{most}");
}

/// The first windows meet at the receiver: at most 15 of a bandwidth-delay product. Thereafter DCQCN's queue stays.
#[test]
fn the_queue_of_an_incast_is_below_that_of_dcqcn() {
    let queues = |scheme| {
        let result = sampled(spec(leaf_spine(), &incast(16, 1_000_000), scheme));
        let most = result.links.iter().map(|link| link.max_queue_bytes).max().expect("links");
        let later = within(&result, SeriesKind::QueueBytes, 300..1_000);
        (most, mean(later.into_iter().map(|(_, bytes)| bytes)))
    };
    let (hpcc, dcqcn) = (queues("hpcc"), queues("ecmp"));
    assert!(hpcc.0 < dcqcn.0 && hpcc.1 < dcqcn.1 / 4.0, "HPCC {hpcc:?}, DCQCN {dcqcn:?}");
}

/// Packets and acknowledgements of HPCC take 42 bytes more. A message of one packet has one of each.
#[test]
fn telemetry_takes_its_bytes_on_every_link() {
    let bytes = |scheme: &str| {
        let result = finish(&spec(star(3), &[(1, 0, 4_096, 0)], scheme));
        result.links.iter().map(|link| link.tx_bytes).sum::<u64>()
    };
    // Data and acknowledgement over two links each.
    assert_eq!(bytes("hpcc") - bytes("swift"), 4 * 42);
}
