//! Chaos test of the provider. Two processes exchange random messages, WRITEs, READs and atomics through
//! libfabric's interface. The wire between them loses, repeats, delays, damages, truncates and replays
//! packets. It also fails, and an endpoint is stopped, restarted or killed. Every entry and every byte is
//! compared with a model. The network namespaces need root.

#![allow(clippy::print_stdout, clippy::print_stderr)] // Prints skipped tests and statistics.
#![allow(unsafe_code, reason = "calls C tables, and makes networks")]

mod calls;
#[path = "../client/mod.rs"]
mod client;
mod end;
mod life;
mod pair;
mod play;
mod script;
mod wire;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use life::{Length, Life, Tally, schemes};
use pair::Process;
use script::End;
use wire::{Host, Wire};

/// Number of runs before memory is measured, while allocators and sockets fill their caches.
const WARM_UP: usize = 5;
/// Largest growth of the near process's memory from the first half to the second, KiB.
const GROWTH_KIB: u64 = 8 << 10;

/// Two hosts, the wire between them, and the near process, which survives from run to run.
pub(crate) struct World {
    pub(crate) hosts: [Host; 2],
    pub(crate) wire: Wire,
    pub(crate) near: Process,
    pub(crate) far: Process,
    pub(crate) key: PathBuf,
}

impl World {
    /// Makes the hosts and processes. Without root, the test runs again as root of a user namespace. If that
    /// is not allowed, it prints a message and is skipped.
    fn new(test: &str) -> Option<World> {
        let hosts = match End::BOTH.map(Host::new) {
            [Ok(near), Ok(far)] => [near, far],
            [Err(why), _] | [_, Err(why)] => {
                if std::env::var_os(AGAIN).is_some() || !is_possible_as_own_root() {
                    eprintln!("\n*** SKIPPED: {test}: no networks can be made: {why} ***\n");
                } else {
                    let mut again = as_own_root(std::env::current_exe().unwrap().to_str().unwrap());
                    again.args([test, "--exact", "--include-ignored", "--nocapture"]).env(AGAIN, "1");
                    assert!(again.status().unwrap().success(), "{test} in a namespace of users");
                }
                return None;
            }
        };
        let key = std::env::temp_dir().join(format!("pathweave-soak-{}.key", std::process::id()));
        let _ = std::fs::remove_file(&key);
        pathweave_datapath::secure::ClusterKey::from_bytes(std::array::from_fn(|index| index as u8))
            .create_file(&key)
            .unwrap();
        let wire = Wire::between(&hosts).unwrap();
        let [near, far] = End::BOTH.map(|end| Process::start(&hosts[end as usize], end));
        Some(World { hosts, wire, near, far, key })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.key);
    }
}

/// Variable that is set if a test runs again as root of a user namespace.
const AGAIN: &str = "PATHWEAVE_TEST_AGAIN";

fn as_own_root(program: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", program]);
    command
}

fn is_possible_as_own_root() -> bool {
    as_own_root("true").output().is_ok_and(|done| done.status.success())
}

/// Body of the process of an endpoint.
#[test]
#[ignore = "started by other tests of this file"]
fn one_end() {
    match std::env::var("PATHWEAVE_TEST_END").as_deref() {
        Ok("Near") => end::obey(End::Near),
        Ok("Far") => end::obey(End::Far),
        // Without the variable, somebody runs all ignored tests.
        _ => {}
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Returns the median, because leaks stay and peaks do not.
fn median(looks: &[u64]) -> u64 {
    let mut looks = looks.to_vec();
    looks.sort_unstable();
    looks[looks.len() / 2]
}

#[test]
fn every_byte_arrives_over_a_hostile_wire_for_a_while() {
    let Some(mut world) = World::new("every_byte_arrives_over_a_hostile_wire_for_a_while") else { return };
    let mut tally = Tally::default();
    // These seeds cover a few schemes, all protections and both families.
    let seeds: Vec<u64> = (0..4).map(|life| life * (schemes().len() as u64 / 4 + 1)).collect();
    for seed in &seeds {
        Life::new(*seed).run(&mut world, &mut tally, Length::Batches(6));
    }
    println!("chaos over the provider, seeds {seeds:?}");
    tally.show(&world);
    tally.check(&world);
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn every_byte_arrives_over_a_hostile_wire() {
    let Some(mut world) = World::new("every_byte_arrives_over_a_hostile_wire") else { return };
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let first_seed = number("SOAK_SEED").unwrap_or(1);
    println!("soak of the provider: {seconds} s, first seed {first_seed} (SOAK_SECONDS, SOAK_SEED)");
    let (begin, mut shown) = (Instant::now(), Instant::now());
    let (mut tally, mut resident) = (Tally::default(), Vec::new());
    while begin.elapsed() < Duration::from_secs(seconds) || resident.is_empty() {
        let seed = first_seed + tally.lives;
        resident.push(Life::new(seed).run(&mut world, &mut tally, Length::Time(Duration::from_secs(4))));
        if shown.elapsed() >= Duration::from_secs(10) {
            shown = Instant::now();
            print!("{:4} s, seed {seed}, {:?} KiB resident: ", begin.elapsed().as_secs(), resident.last());
            tally.show(&world);
        }
    }
    tally.show(&world);
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    // Short runs repeat a seed.
    if resident.len() > 2 * WARM_UP {
        tally.check(&world);
        let (first, second) = resident[WARM_UP..].split_at((resident.len() - WARM_UP) / 2);
        let (before, after) = (median(first), median(second));
        println!("{before} KiB resident in the first half, {after} KiB in the second");
        assert!(after <= before + GROWTH_KIB, "memory grew from {before} to {after} KiB: {resident:?}");
    }
}
