//! The endpoint of connections, and the queue pair of datagrams, under a peer that says anything, beside one that does not:
//! the worlds of `crates/transport/tests/hostile`, with the fuzzer's choices.

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

/// More operations take long and find nothing new.
const MOST_BYTES: usize = 8 << 10;

/// The schemes of connections or of datagrams.
fn of(datagrams: bool) -> Vec<fn() -> Scheme> {
    let all = schemes().iter().map(|info| info.make);
    all.filter(|make| matches!(make().service, Service::Datagram(_)) == datagrams).collect()
}

/// The scheme that the first byte says, and what happens, which the others say.
fn choices(data: &[u8], datagrams: bool) -> Option<(Scheme, Choices<'_>)> {
    let (first, rest) = data.split_first()?;
    let schemes = of(datagrams);
    let make = schemes[usize::from(*first) % schemes.len()];
    Some((make(), Choices::Bytes(&rest[..rest.len().min(MOST_BYTES)])))
}

/// Packets of any kind from the peer and from strangers, timers, requests, changes of paths, the end of a connection and
/// another one.
pub fn endpoint(data: &[u8]) {
    if let Some((scheme, choices)) = choices(data, false) {
        World::new(scheme, choices).run();
    }
}

/// Packets and messages of the side channel of any kind, timers, messages, a peer that goes and comes.
pub fn datagram_queue_pair(data: &[u8]) {
    if let Some((scheme, choices)) = choices(data, true) {
        RdWorld::new(&scheme, choices).run();
    }
}
