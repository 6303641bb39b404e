//! Incast of many senders to one receiver.

use crate::support::{incast, leaf_spine, play, spec};
use pathweave_policy::Awaited;
use pathweave_records::RunResult;

/// Returns the completion time of each of 15 messages of `bytes` to one of 16 hosts, in ascending order. The unit is
/// the time that the link needs for all of them.
fn ends(scheme: &str, bytes: u64) -> Vec<f64> {
    ends_of(scheme, Awaited::Message, bytes)
}

/// Like [`ends`], with the unit of messages for whose end the application waits.
fn ends_of(scheme: &str, awaited: Awaited, bytes: u64) -> Vec<f64> {
    let mut spec = spec(leaf_spine(), &incast(16, bytes), scheme);
    spec.groups[0].awaited = awaited;
    let result: RunResult = play(&spec);
    let all_ps = result.flows.len() as f64 * bytes as f64 * 80.0;
    let done = |flow: &pathweave_records::FlowRecord| flow.finish_ps.expect("done") as f64 / all_ps;
    let mut ends: Vec<f64> = result.flows.iter().map(done).collect();
    ends.sort_by(f64::total_cmp);
    ends
}

fn mean(ends: &[f64]) -> f64 {
    ends.iter().sum::<f64>() / ends.len() as f64
}

/// The mean is near 1 if all flows share the link to the end, and (15 + 1) / (2 x 15) if they are served one after
/// the other.
#[test]
fn a_crowd_under_weave_takes_turns_and_keeps_the_link_full() {
    let (weave, swift) = (ends("weave", 2_000_000), ends("swift-rps", 2_000_000));
    assert!(mean(&weave) < 0.92 && weave[0] < 0.75, "{weave:?}");
    assert!(mean(&swift) > 0.9, "{swift:?}");
    assert!(weave[14] < 1.08, "{weave:?}");
}

/// A lot loses its effect over time, so no flow waits until another flow's long message is complete.
#[test]
fn in_the_long_run_a_crowd_shares() {
    let ends = ends("weave", 40_000_000);
    assert!(ends[0] > 0.4 && ends[14] < 1.08, "{ends:?}");
}

/// All share the link to the end, which is when the link has carried all messages.
#[test]
fn messages_of_a_step_end_together() {
    let ends = ends_of("weave", Awaited::Step, 2_000_000);
    assert!(ends[0] > 0.9 && ends[14] < 1.08, "{ends:?}");
}
