//! A run gives the same result regardless of its observers and of the order in which it is specified.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::support::{Flow, all_to_all, fat_tree, impair, incast, leaf_spine, permutation, play, spec};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::{FlowRecord, RunResult};
use pathweave_sim::{ObserveConfig, SimSpec};
use pathweave_units::{Bytes, Duration, Rng};

/// Returns short runs that together use pausing, marking, dropping, loss, faults and several queue pairs.
fn runs() -> Vec<(String, SimSpec)> {
    let mut runs = vec![];
    let hashing = ["ecmp", "ecmp-sr", "rps", "rps-nocc", "qp-scaling", "per-message", "dlbf"];
    let balancing = ["letflow", "conga", "conweave", "drill", "switch-rps", "wcmp"];
    let granting = ["uet-rccc", "uet", "eqds", "ndp"];
    for scheme in hashing.into_iter().chain(balancing).chain(granting) {
        runs.push((format!("{scheme} permutation"), spec(fat_tree(), &permutation(16, 300_000), scheme)));
        let mut pausing = spec(leaf_spine(), &incast(16, 200_000), scheme);
        pausing.switch.buffer = Bytes::from_kb(900);
        runs.push((format!("{scheme} incast with pauses"), pausing));
        let mut dropping = spec(leaf_spine(), &all_to_all(16, 30_000), scheme);
        dropping.switch.pfc.enabled = false;
        dropping.switch.buffer = Bytes::from_kb(500);
        impair(&mut dropping, 0.01, false);
        runs.push((format!("{scheme} all-to-all with losses"), dropping));
        let mut faulty = spec(leaf_spine(), &permutation(16, 300_000), scheme);
        faulty.faults.push(FaultConfig::LinkFlap {
            link: "leaf0-spine0".into(),
            at: Duration::from_us(8),
            down_for: Duration::from_us(7),
            up_for: Duration::from_us(9),
            times: 2,
        });
        runs.push((format!("{scheme} permutation with a flap"), faulty));
    }
    runs
}

/// Outcome of a flow: number, time of the end, time at which the sender knew it, packets sent.
type Fate = (u32, Option<u64>, Option<u64>, u32);

/// Returns all values that must not depend on observers: the digest, and the outcome of every flow.
fn outcome(result: &RunResult) -> (String, Vec<Fate>) {
    let fate = |f: &FlowRecord| (f.flow, f.finish_ps, f.acked_ps, f.sent_packets);
    (result.info.digest_hex(), result.flows.iter().map(fate).collect())
}

#[test]
fn twice_is_the_same() {
    for (name, spec) in runs() {
        let (first, second) = (play(&spec), play(&spec));
        assert_eq!(first.flows, second.flows, "{name}");
        assert_eq!(first.info.digest, second.info.digest, "{name}");
        assert_eq!(first.info.events, second.info.events, "{name}");
    }
}

#[test]
fn looking_changes_nothing() {
    for (name, mut spec) in runs() {
        let unseen = outcome(&play(&spec));
        // Rarely and often; at and between the times of packets; with as many samples as there are, and with few.
        let intervals =
            [(Duration::from_us(5), 16), (Duration::from_ps(777_777), 100_000), (Duration::from_ns(80), 16)];
        for (interval, max_samples) in intervals {
            spec.observe = ObserveConfig {
                interval,
                max_samples,
                max_events: 10,
                flows: 3,
                follow: vec![0],
                departures: true,
            };
            let seen = play(&spec);
            assert_eq!(outcome(&seen), unseen, "{name}, sampled every {interval}");
        }
    }
}

#[test]
fn the_order_of_declaration_changes_nothing() {
    let mut flows: Vec<Flow> = all_to_all(16, 9_000);
    // Some flows are equal in all but size or time.
    flows.extend([(3, 4, 50_000, 10), (3, 4, 50_000, 20), (3, 4, 60_000, 10)]);
    let digest = |flows: &[Flow]| play(&spec(leaf_spine(), flows, "rps")).info.digest;
    let as_written = digest(&flows);
    for seed in 0..3 {
        Rng::for_component(seed, "test", 0).shuffle(&mut flows);
        assert_eq!(digest(&flows), as_written);
    }
}

#[test]
fn another_seed_is_another_run() {
    let spec = spec(fat_tree(), &permutation(16, 300_000), "rps");
    let digests: std::collections::BTreeSet<u64> =
        (0..8).map(|seed| play(&SimSpec { seed, ..spec.clone() }).info.digest).collect();
    assert_eq!(digests.len(), 8);
}

#[test]
fn verification_changes_nothing() {
    for (name, mut spec) in runs() {
        let verified = outcome(&play(&spec));
        spec.run.verify = false;
        assert_eq!(outcome(&play(&spec)), verified, "{name}");
    }
}

/// The recorded digests are valid on every machine and in every profile. If a change of behaviour is intended, run
/// this test with `PATHWEAVE_BLESS=1` and commit the file.
#[test]
fn digests_are_those_written_down() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/digests.txt");
    let mut now = String::new();
    for (name, spec) in runs() {
        writeln!(now, "{}  {name}", play(&spec).info.digest_hex()).expect("a string takes everything");
    }
    if std::env::var_os("PATHWEAVE_BLESS").is_some() {
        std::fs::write(&file, &now).expect("the file can be written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let changed: Vec<&str> = now.lines().filter(|line| !written.lines().any(|w| w == *line)).collect();
    assert!(
        changed.is_empty() && written.lines().count() == now.lines().count(),
        "{} of {} runs are not what tests/digests.txt says; if that is meant, run\n    PATHWEAVE_BLESS=1 cargo test -p \
         pathweave-sim --test all determinism\nand commit the file. Now:\n{}",
        changed.len(),
        now.lines().count(),
        changed.join("\n")
    );
}
