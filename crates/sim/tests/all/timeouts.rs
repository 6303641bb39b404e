//! Timeouts and retransmissions of schemes that spread packets, where nothing is lost and where packets are.

use crate::support::{all_to_all, fat_tree, impair, incast, permutation, play, spec};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::{FlowStatus, RunResult};
use pathweave_sim::SimSpec;
use pathweave_units::{Duration, Rate};

/// Schemes whose losses are found by time or by the order on each path. STrack counts packets ahead of a gap, as its
/// reference code does, and takes late packets for lost.
const SPREAD: [&str; 9] =
    ["rps", "swift-rps", "reps", "udmp", "weave", "laps", "mprdma", "smartt", "uet-nscc"];

/// Returns a run of each traffic: an all-to-all, a permutation, and an incast deeper than a bandwidth-delay product.
fn runs(scheme: &str, change: impl Fn(&mut SimSpec)) -> Vec<RunResult> {
    let traffic = [all_to_all(16, 250_000), permutation(16, 2_000_000), incast(16, 1_000_000)];
    let run = |flows: &Vec<_>| {
        let mut spec = spec(fat_tree(), flows, scheme);
        change(&mut spec);
        play(&spec)
    };
    traffic.iter().map(run).collect()
}

/// Sums of a run: packets sent, retransmitted and dropped, and timeouts.
fn sums(result: &RunResult) -> [u64; 4] {
    assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished));
    result.flows.iter().fold([0; 4], |[sent, again, dropped, timeouts], flow| {
        [
            sent + u64::from(flow.sent_packets),
            again + u64::from(flow.retransmitted_packets),
            dropped + u64::from(flow.dropped_packets),
            timeouts + u64::from(flow.timeouts),
        ]
    })
}

#[test]
fn nothing_times_out_and_nothing_is_sent_again_where_nothing_is_lost() {
    // MRC is made for switches that trim. Where they pause, its timers wait for deep queues.
    for scheme in SPREAD.into_iter().chain(["mrc"]) {
        for result in runs(scheme, |_| {}) {
            let [sent, again, dropped, timeouts] = sums(&result);
            assert_eq!([again, dropped, timeouts], [0; 3], "{scheme}: of {sent}");
        }
    }
}

/// Packets that wait at a link with a quarter of the rate are late, and not lost. Schemes that keep sending there have the
/// most copies: 1.1 % under rps.
#[test]
fn a_slow_link_causes_no_timeout_and_few_copies() {
    let slow = |spec: &mut SimSpec| {
        spec.faults.push(FaultConfig::LinkRate {
            link: "agg0.0-core0".into(),
            at: Duration::ZERO,
            rate: Rate::from_gbps(25),
            until: None,
        });
    };
    for scheme in SPREAD {
        for result in runs(scheme, slow) {
            let [sent, again, dropped, timeouts] = sums(&result);
            assert_eq!([dropped, timeouts], [0; 2], "{scheme}");
            assert!(again * 50 <= sent, "{scheme}: {again} of {sent}");
        }
    }
}

#[test]
fn under_losses_few_packets_are_sent_again_in_vain() {
    for scheme in SPREAD {
        for result in runs(scheme, |spec| impair(spec, 0.005, false)) {
            let [sent, again, dropped, _] = sums(&result);
            assert!(
                dropped > 0 && again.saturating_sub(dropped) * 100 <= sent,
                "{scheme}: {again} of {sent}"
            );
        }
    }
}
