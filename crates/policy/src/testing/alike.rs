//! Comparison of a part that a program supplies with the built-in one.

use alloc::vec::Vec;

use super::{Scenario, SenderReport, random_operations};
use crate::PolicyConfig;

/// Checks that a supplied part behaves as the built-in one: every scenario of the test bench has the same result, and
/// random operations break no invariant.
pub(crate) fn assert_alike(name: &str, supplied: &PolicyConfig, own: &PolicyConfig) {
    assert_eq!(supplied.validate(), Ok(()));
    for (situation, scenario) in Scenario::all() {
        let outcome = |policy: &PolicyConfig| {
            let report = scenario.run(|env, rng| policy.build(env, rng));
            let sender = |sender: &SenderReport| {
                (sender.sent.clone(), sender.retransmitted, sender.marked, sender.done_at)
            };
            report.senders.iter().map(sender).collect::<Vec<_>>()
        };
        assert_eq!(outcome(supplied), outcome(own), "{name}, {situation}");
    }
    for seed in 0..2 {
        random_operations(seed, 1_000, &Scenario::steady().env, |env, rng| supplied.build(env, rng));
    }
}
