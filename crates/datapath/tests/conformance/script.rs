//! The script: operations on every side, and their expected outcome.

use std::time::Duration;

use pathweave_datapath::Status;
use pathweave_datapath::backend::Faults;

use crate::model::{Model, Transcript};
use crate::world::{End, Key, MTU, Restarts, Setup, Troubles, Verb, World};

/// Sizes of messages, in bytes: none, one, around a packet, some packets, many.
pub(crate) const SIZES: [usize; 7] = [0, 1, MTU - 1, MTU, MTU + 1, 100_000, 1 << 20];
/// Memory of each end: every verb with every size in both directions, with gaps.
const MEMORY_BYTES: usize = 13 << 20;
/// Bytes that several requests use.
const SHARED_BYTES: usize = 30_000;
/// Timeout longer than a busy machine stalls.
const PATIENT: Duration = Duration::from_secs(5);

/// Path failures while messages are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Nothing,
    /// Paths 2 and 5, until half of the messages are complete.
    SomePaths,
    /// All paths, for 30 ms.
    AllPaths,
}

/// Check that the network has caused the intended faults on a side.
type Proof = fn(&Troubles) -> bool;

/// A network with faults.
pub(crate) struct Weather {
    pub(crate) name: &'static str,
    pub(crate) faults: Faults,
    pub(crate) cut: Cut,
    proof: Proof,
}

const CALM: Faults = Faults {
    lose: 0.0,
    repeat: 0.0,
    reorder: 0.0,
    damage: 0.0,
    cut_short: 0.0,
    replay: 0.0,
    stray: 0.0,
    mark: 0.0,
};

/// All networks of the script.
pub(crate) const WEATHER: [Weather; 8] = [
    Weather { name: "no fault", faults: CALM, cut: Cut::Nothing, proof: |_| true },
    Weather {
        name: "loss",
        faults: Faults { lose: 0.02, ..CALM },
        cut: Cut::Nothing,
        proof: |troubles| troubles.retransmitted > 0,
    },
    Weather {
        name: "duplication",
        faults: Faults { repeat: 0.1, ..CALM },
        cut: Cut::Nothing,
        proof: |troubles| troubles.duplicates > 0,
    },
    Weather {
        name: "reordering",
        faults: Faults { reorder: 0.1, ..CALM },
        cut: Cut::Nothing,
        proof: |troubles| troubles.out_of_order > 0,
    },
    Weather {
        name: "corruption",
        faults: Faults { damage: 0.02, ..CALM },
        cut: Cut::Nothing,
        proof: |troubles| troubles.refused > 0 && troubles.retransmitted > 0,
    },
    Weather {
        name: "everything",
        faults: Faults { lose: 0.01, repeat: 0.02, reorder: 0.05, damage: 0.01, mark: 0.1, ..CALM },
        cut: Cut::Nothing,
        proof: |troubles| troubles.refused > 0 && troubles.retransmitted > 0 && troubles.duplicates > 0,
    },
    Weather {
        name: "two paths cut and restored",
        faults: CALM,
        cut: Cut::SomePaths,
        proof: |troubles| troubles.retransmitted > 0,
    },
    Weather {
        name: "all paths cut and restored",
        faults: CALM,
        cut: Cut::AllPaths,
        proof: |troubles| troubles.retransmitted > 0,
    },
];

/// Runs every verb of a service with every size under the given faults: one at a time, then all at once in both
/// directions.
pub(crate) fn verbs_and_sizes<W: World>(weather: &Weather, seed: u64) -> Transcript {
    let Weather { name, faults, cut, proof } = *weather;
    let mut world = W::open(&Setup::new(seed, faults, MEMORY_BYTES, PATIENT));
    let mut model = Model::new(&mut world, MEMORY_BYTES, seed, name.into());
    let sizes = SIZES.into_iter().filter(|size| *size >= W::SHORTEST);
    for size in sizes.clone() {
        for &verb in W::VERBS {
            model.post(&mut world, End::Near, verb, size, None);
            model.wait_all(&mut world);
        }
    }
    model.compare(&world);
    model.rewind();
    for (at, size) in sizes.rev().enumerate() {
        if at == 1 {
            // The largest messages are in flight.
            world.cut(match cut {
                Cut::Nothing => 0,
                Cut::SomePaths => 1 << 2 | 1 << 5,
                Cut::AllPaths => u64::MAX,
            });
        }
        for end in End::BOTH {
            let mut written = None;
            for &verb in W::VERBS {
                // A READ returns the bytes written before it.
                let of = written.filter(|_| verb == Verb::Read);
                written = Some(model.post(&mut world, end, verb, size, of));
            }
        }
    }
    match cut {
        Cut::Nothing => {}
        Cut::SomePaths => {
            for end in End::BOTH {
                let half = model.due(end) / 2;
                (0..half).for_each(|_| model.wait(&mut world, end));
            }
        }
        Cut::AllPaths => world.pass(Duration::from_millis(30)),
    }
    world.cut(0);
    model.wait_all(&mut world);
    model.compare(&world);
    let troubles = world.troubles();
    assert!(proof(&troubles), "{}, {name}, seed {seed}: the network did too little: {troubles:?}", W::NAME);
    model.transcript
}

/// Runs requests whose bytes at the other end overlap at random, in both directions, under the given faults. Memory
/// must be as if each request had completed before the next.
pub(crate) fn shared_bytes<W: World>(weather: &Weather, seed: u64) -> Transcript {
    let faults = weather.faults;
    let mut world = W::open(&Setup::new(seed, faults, MEMORY_BYTES, PATIENT));
    let mut model = Model::new(&mut world, MEMORY_BYTES, seed, format!("{}, shared bytes", weather.name));
    let shared = End::BOTH.map(|end| model.shared(end, SHARED_BYTES));
    for _ in 0..80 {
        for end in End::BOTH {
            let verb =
                model.any(&[Verb::Write, Verb::Write, Verb::Write, Verb::WriteImm, Verb::Read, Verb::Read]);
            let size = model.any(&[0, 1, 100, MTU, 5_000, 20_000]);
            // Often exactly the same place.
            let slot = model.any(&[0, 0, 0, 1, 2, 3]) * MTU / 2;
            let remote = shared[end.other().index()] + slot.min(SHARED_BYTES - size);
            model.post(&mut world, end, verb, size, Some(remote));
        }
    }
    model.wait_all(&mut world);
    model.compare(&world);
    model.transcript
}

/// The far end crashes with outstanding requests, restarts without state, and is connected again.
pub(crate) fn peer_restart<W: Restarts>(seed: u64) -> Transcript {
    let size = 200_000;
    let (memory_bytes, peer_timeout) = (8 * size, Duration::from_millis(800));
    let mut world = W::open(&Setup::new(seed, CALM, memory_bytes, peer_timeout));
    let mut model = Model::new(&mut world, memory_bytes, seed, "peer restart".into());
    for verb in Verb::ALL {
        model.post(&mut world, End::Near, verb, size / 2, None);
    }
    model.wait_all(&mut world);
    model.compare(&world);
    model.rewind();
    world.crash_far();
    for (verb, status) in
        [(Verb::Write, Status::RetryExceeded), (Verb::Send, Status::Flushed), (Verb::Read, Status::Flushed)]
    {
        model.post_in_vain(&mut world, End::Near, (verb, size), status, |_| {});
    }
    world.revive_far();
    model.crashed(End::Far);
    model.fill(&mut world, End::Far);
    model.wait_all(&mut world);
    // Nothing of the old connection changes the memory after the restart.
    model.compare(&world);
    model.rewind();
    world.reconnect();
    for verb in Verb::ALL {
        model.post(&mut world, End::Near, verb, size / 2, None);
        model.post(&mut world, End::Far, verb, size / 4, None);
    }
    model.wait_all(&mut world);
    model.compare(&world);
    model.transcript
}

/// Runs requests that the other end must refuse without changing a byte, each on a separate connection.
pub(crate) fn refusals<W: Restarts>(seed: u64) -> Transcript {
    let memory_bytes = 1 << 16;
    let mut world = W::open(&Setup::new(seed, CALM, memory_bytes, PATIENT));
    let mut model = Model::new(&mut world, memory_bytes, seed, "refusals".into());
    for (verb, size) in [(Verb::Write, 1), (Verb::WriteImm, MTU), (Verb::Read, MTU + 1)] {
        for (key, remote) in [(Key::Wrong, 0), (Key::Right, memory_bytes - size + 1)] {
            let change = |request: &mut crate::world::Request| {
                (request.key, request.remote) = (key, remote);
            };
            model.post_in_vain(&mut world, End::Near, (verb, size), Status::RemoteAccess, change);
            model.wait_all(&mut world);
            world.reconnect();
            model.post(&mut world, End::Near, Verb::Write, 100, None);
            model.wait_all(&mut world);
            model.compare(&world);
        }
    }
    model.receive_in_vain(&mut world, End::Far, 1, Status::LocalLength);
    model.post_in_vain(&mut world, End::Near, (Verb::Send, 2), Status::RemoteInvalidRequest, |_| {});
    model.wait_all(&mut world);
    model.compare(&world);
    model.transcript
}
