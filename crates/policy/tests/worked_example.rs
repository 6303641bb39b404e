//! The worked example of docs/add-a-scheme.md: a path picker, on the test bench that every scheme must pass.

// The picker finds the same names here as in the crate.
extern crate alloc;
pub use pathweave_policy::*;

#[path = "worked_example/two_choices.rs"]
pub mod two_choices;

use pathweave_policy::cc::{AnyCc, CcConfig, DcqcnConfig};
use pathweave_policy::testing::{Scenario, random_operations};
use pathweave_units::Rng;
use two_choices::TwoChoices;

/// Combines the picker with DCQCN, as in `rps`.
fn two_choices(env: &PolicyEnv, rng: &mut Rng) -> SplitPolicy<AnyCc, TwoChoices> {
    SplitPolicy {
        cc: CcConfig::Dcqcn(DcqcnConfig::default()).build(env),
        picker: TwoChoices::new(env.paths, rng),
    }
}

#[test]
fn every_situation_ends() {
    for (name, scenario) in Scenario::all() {
        let report = scenario.run(two_choices);
        assert!(report.senders.iter().all(|sender| sender.done_at.is_some()), "{name}");
    }
}

#[test]
fn unmarked_paths_are_used_evenly() {
    // 1,000 packets on 4 paths; the standard deviation of a path's share is below 14.
    let sent = &Scenario::steady().run(two_choices).senders[0].sent;
    assert!(sent.iter().all(|&packets| (180..320).contains(&packets)), "{sent:?}");
}

#[test]
fn a_marked_path_is_taken_only_if_both_draws_select_it() {
    // Both draws have to fall on it: 1 packet of 16, not 1 of 4, once its first marks have returned.
    let sent = &Scenario::one_path_marked().run(two_choices).senders[0].sent;
    assert!(sent[0] < 120 && sent[1..].iter().all(|&packets| packets > 220), "{sent:?}");
}

#[test]
fn random_operations_break_nothing() {
    for seed in 0..50 {
        random_operations(seed, 2_000, &Scenario::steady().env, two_choices);
    }
}
