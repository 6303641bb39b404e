//! The script: what is done on every side, and what must come of it.

use std::time::Duration;

use pathweave_datapath::Status;
use pathweave_datapath::backend::Faults;

use crate::model::{Model, Transcript};
use crate::world::{End, Key, MTU, Restarts, Setup, Troubles, Verb, World};

/// Sizes of messages, in bytes: none, one, around a packet, some packets, many.
pub(crate) const SIZES: [usize; 7] = [0, 1, MTU - 1, MTU, MTU + 1, 100_000, 1 << 20];
/// Memory of each end: every verb with every size in both directions, with gaps.
const MEMORY_BYTES: usize = 13 << 20;
/// Bytes that requests share.
const SHARED_BYTES: usize = 30_000;
/// Longer than a busy machine stalls.
const PATIENT: Duration = Duration::from_secs(5);

/// What goes wrong with paths while messages are on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Nothing,
    /// Paths 2 and 5, until half of the messages are through.
    SomePaths,
    /// All of them, for 30 ms.
    AllPaths,
}

/// What a network must have done to a side, so that a scenario tests what it says.
type Proof = fn(&Troubles) -> bool;

/// A network.
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

/// Every verb of a service with every size in some weather: one at a time, then all at once and both ways.
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
            // The largest messages are on the way.
            world.cut(match cut {
                Cut::Nothing => 0,
                Cut::SomePaths => 1 << 2 | 1 << 5,
                Cut::AllPaths => u64::MAX,
            });
        }
        for end in End::BOTH {
            let mut written = None;
            for &verb in W::VERBS {
                // A READ sees what was written before it.
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

/// Requests whose bytes at the other end overlap at random, both ways, in some weather: memory is as if each had been carried
/// out before the next.
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
            // Often the very same place.
            let slot = model.any(&[0, 0, 0, 1, 2, 3]) * MTU / 2;
            let remote = shared[end.other().index()] + slot.min(SHARED_BYTES - size);
            model.post(&mut world, end, verb, size, Some(remote));
        }
    }
    model.wait_all(&mut world);
    model.compare(&world);
    model.transcript
}

/// The far end crashes with work on the way, comes back with nothing, and is connected with again.
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
    // Nothing of the old connection reaches the memory of the new life.
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

/// What the other end must refuse, each on a connection of its own, and touch no byte for.
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
