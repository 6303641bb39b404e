//! Conformance test: one script runs in simulated time and over real sockets, with the same outcome.
#![allow(clippy::print_stdout, reason = "a test that fails tells its seed")]

mod chaos;
mod connections;
mod datagrams;
mod liars;
mod model;
mod real;
mod script;
mod sessions;
mod simulated;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod world;

use connections::Connected;
use datagrams::{Datagrams, RealDatagrams};
use model::Transcript;
use real::Real;
use script::{WEATHER, peer_restart, refusals, shared_bytes, verbs_and_sizes};
use simulated::Simulated;
use world::{AsWhole, InOrder, Told};

/// Runs the script on both sides, and compares the transcripts.
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
        let simulated = verbs_and_sizes::<Simulated<Connected>>(weather, seed);
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
        let simulated = shared_bytes::<Simulated<Connected>>(weather, seed);
        let real = shared_bytes::<Real>(weather, seed);
        assert_eq!(simulated, real, "{}, seed {seed}: the sides differ", weather.name);
        assert_eq!(simulated.requests.each_ref().map(Vec::len), [80, 80], "{}", weather.name);
    }
}

/// Sends datagrams of every size under every fault.
fn datagrams<T: Told>() {
    for (seed, weather) in (81..).zip(&WEATHER) {
        println!("datagrams, {}: seed {seed}", weather.name);
        let simulated = verbs_and_sizes::<Simulated<Datagrams<T>>>(weather, seed);
        let real = verbs_and_sizes::<RealDatagrams<T>>(weather, seed);
        assert_eq!(simulated, real, "{}, seed {seed}: the sides differ", weather.name);
        // 6 one by one and 6 at once; the other end only at once.
        assert_eq!(simulated.requests.each_ref().map(Vec::len), [12, 6], "{}", weather.name);
        assert_eq!(simulated.receives.each_ref().map(Vec::len), [6, 12], "{}", weather.name);
    }
}

#[test]
fn datagrams_of_every_size_in_every_weather() {
    datagrams::<AsWhole>();
}

#[test]
fn datagrams_in_order_of_every_size_in_every_weather() {
    datagrams::<InOrder>();
}

#[test]
fn a_peer_that_restarts() {
    on_both("peer restart", 61, peer_restart::<Simulated<Connected>>, peer_restart::<Real>);
}

#[test]
fn invalid_requests_are_refused() {
    on_both("refusals", 62, refusals::<Simulated<Connected>>, refusals::<Real>);
}

/// Sensitivity check: the script detects a side that places a byte wrongly.
#[test]
#[should_panic(expected = "1 bytes at the Far end are wrong")]
fn a_wrong_byte_is_noticed() {
    use world::{End, Setup, World};
    let setup = Setup::new(1, Default::default(), 1_000, std::time::Duration::from_secs(1));
    let mut world = Simulated::<Connected>::open(&setup);
    let mut model = model::Model::new(&mut world, setup.memory_bytes, 1, "a wrong byte".into());
    model.post(&mut world, End::Near, world::Verb::Write, 100, None);
    model.wait_all(&mut world);
    model.compare(&world);
    let byte = world.memory(End::Far)[5];
    world.write(End::Far, 5, &[!byte]);
    model.compare(&world);
}
