//! Many senders to one receiver.

use crate::support::{incast, leaf_spine, play, spec};
use pathweave_results::RunResult;

/// When each of 15 messages of so many bytes to one host of 16 was done, in the order of their ends, in units of what the link
/// takes for all.
fn ends(scheme: &str, bytes: u64) -> Vec<f64> {
    let result: RunResult = play(&spec(leaf_spine(), &incast(16, bytes), scheme));
    let all_ps = result.flows.len() as f64 * bytes as f64 * 80.0;
    let done = |flow: &pathweave_results::FlowRecord| flow.finish_ps.expect("done") as f64 / all_ps;
    let mut ends: Vec<f64> = result.flows.iter().map(done).collect();
    ends.sort_by(f64::total_cmp);
    ends
}

fn mean(ends: &[f64]) -> f64 {
    ends.iter().sum::<f64>() / ends.len() as f64
}

/// If all share to the end, all end near 1; if one is done after the other, (15 + 1) / (2 x 15) on average.
#[test]
fn a_crowd_under_weave_takes_turns_and_keeps_the_link_full() {
    let (weave, swift) = (ends("weave", 2_000_000), ends("swift-rps", 2_000_000));
    assert!(mean(&weave) < 0.8, "{weave:?}");
    assert!(mean(&swift) > 0.9, "{swift:?}");
    assert!(weave[14] < 1.08, "{weave:?}");
}

/// A lot fades, so nobody waits for the whole of a long message of another.
#[test]
fn in_the_long_run_a_crowd_shares() {
    let ends = ends("weave", 40_000_000);
    assert!(ends[0] > 0.4 && ends[14] < 1.08, "{ends:?}");
}
