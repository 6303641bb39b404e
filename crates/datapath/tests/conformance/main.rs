//! Conformance: one script, run in simulated time and over real sockets, with the same outcome.
#![allow(clippy::print_stdout, reason = "a test that fails tells its seed")]

mod datagrams;
mod liars;
mod model;
mod real;
mod script;
mod simulated;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod world;

use model::Transcript;
use real::Real;
use script::{WEATHER, peer_restart, refusals, shared_bytes, verbs_and_sizes};
use simulated::Simulated;

/// Runs on both sides, and compares what each saw.
fn on_both(name: &str, seed: u64, simulated: fn(u64) -> Transcript, real: fn(u64) -> Transcript) {
    println!("{name}: seed {seed}");
    let (simulated, real) = (simulated(seed), real(seed));
    assert_eq!(simulated, real, "{name}, seed {seed}: the sides differ");
    assert!(simulated.requests[0].len() > 1, "{name}: something was done");
}

#[test]
fn every_verb_and_size_in_every_weather() {
    for (seed, weather) in (41..).zip(&WEATHER) {
        println!("{}: seed {seed}", weather.name);
        let simulated = verbs_and_sizes::<Simulated>(weather, seed);
        let real = verbs_and_sizes::<Real>(weather, seed);
        assert_eq!(simulated, real, "{}, seed {seed}: the sides differ", weather.name);
        // 35 one by one and 35 at once; the other end only at once.
        assert_eq!(simulated.requests.each_ref().map(Vec::len), [70, 35], "{}", weather.name);
        assert_eq!(simulated.receives.each_ref().map(Vec::len), [21, 42], "{}", weather.name);
    }
}

#[test]
fn requests_that_share_bytes_in_every_weather() {
    for (seed, weather) in (51..).zip(&WEATHER) {
        println!("shared bytes, {}: seed {seed}", weather.name);
        let simulated = shared_bytes::<Simulated>(weather, seed);
        let real = shared_bytes::<Real>(weather, seed);
        assert_eq!(simulated, real, "{}, seed {seed}: the sides differ", weather.name);
        assert_eq!(simulated.requests.each_ref().map(Vec::len), [80, 80], "{}", weather.name);
    }
}

#[test]
fn datagrams_of_every_size_in_every_weather() {
    use datagrams::{Outcome, Plan, real, simulated};
    use pathweave_datapath::rdm::Delivery;
    for (seed, weather) in (81..).zip(&WEATHER) {
        for delivery in [Delivery::Unordered, Delivery::Ordered] {
            println!("datagrams, {}, {delivery:?}: seed {seed}", weather.name);
            let plan = Plan { weather, seed, delivery, rounds: 2 };
            let expected = Outcome::expected(&plan);
            for (side, run) in [("simulated", simulated as fn(&Plan<'_>) -> _), ("real", real)] {
                let (outcome, troubles) = run(&plan);
                assert_eq!(outcome, expected, "{side}, {}, {delivery:?}, seed {seed}", weather.name);
                let proven = weather.proves(&troubles);
                assert!(
                    proven,
                    "{side}, {}, seed {seed}: the network did too little: {troubles:?}",
                    weather.name
                );
            }
        }
    }
}

#[test]
fn a_peer_that_restarts() {
    on_both("peer restart", 61, peer_restart::<Simulated>, peer_restart::<Real>);
}

#[test]
fn what_must_be_refused() {
    on_both("refusals", 62, refusals::<Simulated>, refusals::<Real>);
}

/// The script is sharp: it notices a side that places a byte wrongly.
#[test]
#[should_panic(expected = "1 bytes at the Far end are wrong")]
fn a_wrong_byte_is_noticed() {
    use world::{End, Setup, World};
    let setup = Setup {
        seed: 1,
        faults: Default::default(),
        memory_bytes: 1_000,
        peer_timeout: std::time::Duration::from_secs(1),
    };
    let mut world = Simulated::open(&setup);
    let mut model = model::Model::new(&mut world, setup.memory_bytes, 1, "a wrong byte".into());
    model.post(&mut world, End::Near, world::Verb::Write, 100, None);
    model.wait_all(&mut world);
    model.compare(&world);
    let byte = world.memory(End::Far)[5];
    world.write(End::Far, 5, &[!byte]);
    model.compare(&world);
}
