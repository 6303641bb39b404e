//! Peers that know the protocol and violate it, for every listed scheme: at worst they lose their own connection.
//!
//! `World` checks the invariants after every step. The fuzz target of the endpoint drives the same one.
#![allow(clippy::print_stdout, reason = "a test that fails tells its scheme and seed")]

mod choices;
mod rd_world;
mod world;

use choices::Choices;
use pathweave_policy::{SchemeInfo, Service, schemes};
use pathweave_units::Rng;
use rd_world::RdWorld;
use world::World;

/// Seed, printed by every test. `HOSTILE_SEED` sets another one.
fn seed() -> u64 {
    std::env::var("HOSTILE_SEED").map_or(1, |text| text.parse().expect("a number"))
}

/// Number of seeds for each scheme. `HOSTILE_SEEDS` sets another one; default 24.
fn seeds() -> u64 {
    std::env::var("HOSTILE_SEEDS").map_or(24, |text| text.parse().expect("a number"))
}

/// Runs a case for all schemes, and reports at the end the schemes and seeds that failed.
fn for_all(seeds: u64, case: impl Fn(&SchemeInfo, u64)) {
    let mut failed = Vec::new();
    for info in schemes() {
        for seed in seed()..seed() + seeds {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(info, seed)));
            if outcome.is_err() {
                println!("^ {}, seed {seed}", info.name);
                failed.push((info.name, seed));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "schemes and their first seed that fails: {failed:?}");
}

/// World of a scheme's transport service.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Any<'a> {
    Connections(World<'a>),
    Datagrams(RdWorld<'a>),
}

impl<'a> Any<'a> {
    fn new(info: &SchemeInfo, choices: Choices<'a>) -> Self {
        let scheme = (info.make)();
        match scheme.service {
            Service::Datagram(_) => Any::Datagrams(RdWorld::new(&scheme, choices)),
            Service::Connection | Service::SharedReceive(_) | Service::EndToEnd => {
                Any::Connections(World::new(scheme, choices))
            }
        }
    }
    fn run(&mut self) {
        match self {
            Any::Connections(world) => world.run(),
            Any::Datagrams(world) => world.run(),
        }
    }
    fn operations(&mut self, count: u32) {
        match self {
            Any::Connections(world) => world.operations(count),
            Any::Datagrams(world) => world.operations(count),
        }
    }
    /// Number of forged packets, by kind.
    fn said(&self) -> &[u64] {
        match self {
            Any::Connections(world) => &world.said,
            Any::Datagrams(world) => &world.said,
        }
    }
    /// Number of honest rounds that were done, and largest number of answers to one input.
    fn outcome(&self) -> (u64, u32) {
        match self {
            Any::Connections(world) => (world.rounds_done, world.most_answers),
            Any::Datagrams(world) => (world.rounds_done, world.most_answers),
        }
    }
}

#[test]
fn a_liar_harms_nobody_else() {
    for_all(seeds(), |info, seed| {
        let rng = Rng::for_component(seed, info.name, 0);
        let mut world = Any::new(info, Choices::Random(rng, 600));
        world.run();
        assert!(world.outcome().0 > 0, "there is headway");
    });
}

/// Hostile inputs leave nothing behind: many of them take as much memory as some.
#[test]
fn a_liar_takes_no_memory() {
    for_all(1, |info, seed| {
        let rng = Rng::for_component(seed, info.name, 1);
        let mut world = Any::new(info, Choices::Random(rng, u32::MAX));
        let some = allocation_counter::measure(|| world.operations(3_000));
        let many = allocation_counter::measure(|| world.operations(12_000));
        let (rounds, answers) = world.outcome();
        println!(
            "{}: {} bytes, then {} more; {rounds} honest rounds; {answers} answers to one input",
            info.name, some.bytes_current, many.bytes_current
        );
        assert!(rounds > 10, "{rounds} rounds");
        assert!(world.said().iter().all(|&times| times > 10), "each kind is said: {:?}", world.said());
        assert!(many.bytes_current < 64 << 10, "{} bytes are kept", many.bytes_current);
        assert!(many.bytes_max < 4 << 20, "{} bytes at a time", many.bytes_max);
    });
}
