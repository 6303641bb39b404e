//! Connection endpoint and datagram queue pair under a hostile peer, beside a well-behaved one. Uses the worlds of
//! `crates/transport/tests/hostile`, with the fuzzer's choices.

#[path = "../../crates/transport/tests/hostile/choices.rs"]
#[allow(dead_code, reason = "the tests of the crate use the rest")]
mod choices;
#[path = "../../crates/transport/tests/hostile/rd_world.rs"]
#[allow(dead_code, reason = "the tests of the crate use the rest")]
mod rd_world;
#[path = "../../crates/transport/tests/hostile/world.rs"]
#[allow(dead_code, reason = "the tests of the crate use the rest")]
mod world;

use choices::Choices;
use pathweave_policy::{Scheme, Service, schemes};
use rd_world::RdWorld;
use world::World;

/// Largest input in bytes. More operations take long and find nothing new.
const MOST_BYTES: usize = 8 << 10;

/// Returns the schemes of connections or of datagrams.
fn schemes_of(datagrams: bool) -> Vec<fn() -> Scheme> {
    let all = schemes().iter().map(|info| info.make);
    all.filter(|make| matches!(make().service, Service::Datagram(_)) == datagrams).collect()
}

/// Selects the scheme by the first byte. The other bytes are the choices.
fn choices(data: &[u8], datagrams: bool) -> Option<(Scheme, Choices<'_>)> {
    let (first, rest) = data.split_first()?;
    let schemes = schemes_of(datagrams);
    let make = schemes[usize::from(*first) % schemes.len()];
    Some((make(), Choices::Bytes(&rest[..rest.len().min(MOST_BYTES)])))
}

/// Runs a connection endpoint with any packets from the peer and from strangers, timers, requests, path changes, and
/// closed and new connections.
pub fn endpoint(data: &[u8]) {
    if let Some((scheme, choices)) = choices(data, false) {
        World::new(scheme, choices).run();
    }
}

/// Runs a datagram queue pair with any packets and side-channel messages, timers, messages, and a peer that
/// disappears and returns.
pub fn datagram_queue_pair(data: &[u8]) {
    if let Some((scheme, choices)) = choices(data, true) {
        RdWorld::new(&scheme, choices).run();
    }
}
