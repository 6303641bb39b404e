//! What is recorded of a run: samples over time.

mod support;

use std::collections::BTreeMap;

use pathweave_results::{RunResult, SeriesKind};
use pathweave_sim::ObserveConfig;
use pathweave_units::Duration;
use support::{play, spec, star};

/// Nanoseconds between flows: longer than any sampling below.
const APART: u64 = 1_500_000;

/// Three flows of 1 MB on a star of 16 hosts, 1.5 ms apart: 80 us of traffic each, and nothing in between.
fn three_flows(max_samples: u32) -> RunResult {
    let messages: Vec<_> = (0..3).map(|i| (i, i + 8, 1_000_000, u64::from(i) * APART)).collect();
    let mut spec = spec(star(16), &messages, "ecmp");
    let interval = Some(Duration::from_us(5));
    spec.observe = ObserveConfig { interval, max_samples, flows: 3, ..ObserveConfig::default() };
    play(&spec)
}

/// By instant, in nanoseconds.
fn of(result: &RunResult, kind: SeriesKind, entity: u32) -> BTreeMap<u64, f64> {
    let chosen = result.series.iter().filter(|s| (s.kind, s.entity) == (kind, entity));
    chosen.map(|s| (s.time_ps / 1_000, s.value)).collect()
}

#[test]
fn instants_at_which_nothing_moves_are_instants() {
    let result = three_flows(10_000);
    let instants: Vec<u64> = of(&result, SeriesKind::Interval, 0).into_keys().collect();
    // 3.08 ms in steps of 5 us, every one of them.
    assert!(instants.len() > 610, "{}", instants.len());
    assert!(instants.iter().zip(1..).all(|(&at, n)| at == n * 5_000));
    let received = of(&result, SeriesKind::HostRateBps, 8);
    assert!(received.keys().all(|&at| at < 100_000), "{received:?}");
    // A flow that is not under way has no sample; one that is has them without a gap.
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
        // A packet counts where its transmission begins, and a link cannot be busier than always.
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
        // Shares of what arrived add up at every instant at which anything did.
        for flow in 0..3 {
            let shares = of(&coarse, SeriesKind::PathShare, flow);
            assert!(shares.values().all(|share| (share - 1.0).abs() < 1e-9), "{shares:?}");
        }
    }
}
