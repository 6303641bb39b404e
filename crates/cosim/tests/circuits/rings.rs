//! Compares the loss ring circuit with `policy::laps::pipeline`. The same packets must be lost in the same order, none of
//! them twice, whether operations are back to back or not.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader, Writer};
use pathweave_policy::laps::pipeline::{InFlight, InFlightRings};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (4, 4);
const POOL: u32 = 4;
const PATHS: u32 = 3;
/// Clocks from an operation to the first packet that it declares lost.
const LATENCY: usize = 4;
/// Clocks between lost packets.
const EACH: usize = 2;
/// Operations that the queue of the bench holds, with some margin.
const QUEUE: usize = 200;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Sent(InFlight),
    Heard(u64),
    Expired,
}

fn stimulus(reset: bool, path: usize, operation: Option<Operation>) -> Vec<u32> {
    let none = InFlight { queue_pair: 0, psn: 0, stamp: 0 };
    let (code, packet) = match operation {
        None => (0u8, none),
        Some(Operation::Sent(packet)) => (0, packet),
        Some(Operation::Heard(stamp)) => (1, InFlight { stamp, ..none }),
        Some(Operation::Expired) => (2, none),
    };
    Writer::new()
        .put(reset, 1)
        .put(operation.is_some(), 1)
        .put(code, 2)
        .put(path as u64, 16)
        .put(packet.queue_pair, 16)
        .put(packet.psn, 24)
        .put(packet.stamp, 40)
        .words(WORDS.0)
}

struct Bench {
    model: Model,
    golden: InFlightRings,
    /// Stamps of packets sent on each path, for echoes that match.
    sent: Vec<VecDeque<u64>>,
    stamp: u64,
    lost: usize,
    full: usize,
}

impl Bench {
    fn new() -> Option<Self> {
        let parameters = [("POOL", POOL), ("PATHS", PATHS)];
        let mut model = support::build(&Circuit { bench: "rings", parameters: &parameters, words: WORDS })?;
        let mut stimuli = vec![stimulus(true, 0, None); 2];
        stimuli.extend(vec![stimulus(false, 0, None); 1 << POOL.max(PATHS)]);
        model.run(&stimuli);
        let golden = InFlightRings::new(1 << PATHS, 1 << POOL);
        Some(Bench { model, golden, sent: vec![VecDeque::new(); 1 << PATHS], stamp: 0, lost: 0, full: 0 })
    }

    /// Returns a plausible operation. Its stamp or echo is sometimes invalid.
    fn operation(&mut self, rng: &mut Rng, path: usize) -> Operation {
        let ring = &mut self.sent[path];
        match rng.below(16) {
            0 => {
                ring.clear();
                Operation::Expired
            }
            1..4 if !ring.is_empty() => {
                let echoed = rng.below(ring.len().min(3) as u32) as usize;
                ring.drain(..echoed);
                Operation::Heard(ring.pop_front().expect("one more than what was drained"))
            }
            7 => Operation::Heard(u64::from(rng.below(self.stamp as u32 + 2))),
            _ => {
                self.stamp += u64::from(1 + rng.below(3));
                ring.push_back(self.stamp);
                let (queue_pair, psn) = (rng.next_u64() as u16, rng.below(1 << 24));
                Operation::Sent(InFlight { queue_pair, psn, stamp: self.stamp })
            }
        }
    }

    /// Returns the packets that the rings should lose by an operation.
    fn golden(&mut self, path: usize, operation: Operation) -> Vec<InFlight> {
        match operation {
            Operation::Sent(packet) => {
                self.full += usize::from(!self.golden.sent(path, packet));
                Vec::new()
            }
            Operation::Heard(echo) => self.golden.on_ack(path, echo),
            Operation::Expired => self.golden.expired(path),
        }
    }

    /// Runs random operations, back to back as long as the queue has space, or with pauses. At the end all have
    /// completed.
    fn random(&mut self, rng: &mut Rng, operations: usize) {
        let mut stimuli = Vec::new();
        let mut due = VecDeque::new();
        let pauses = rng.below(2) * rng.below(8);
        // With few paths, operations wait for each other.
        let paths = 1 << rng.below(PATHS + 1);
        // Clock in which everything has completed, if each operation takes the longest time.
        let mut ends = 0;
        for _ in 0..operations {
            let path = rng.below(paths) as usize;
            let operation = self.operation(rng, path);
            let lost = self.golden(path, operation);
            self.lost += lost.len();
            ends = ends.max(stimuli.len()) + 4 + EACH * lost.len();
            due.extend(lost.into_iter().map(|packet| (path, packet)));
            stimuli.push(stimulus(false, path, Some(operation)));
            let waits = ends.saturating_sub(stimuli.len() + QUEUE) + rng.below(pauses + 1) as usize;
            stimuli.extend(vec![stimulus(false, 0, None); waits]);
        }
        stimuli.extend(vec![stimulus(false, 0, None); ends.saturating_sub(stimuli.len()) + LATENCY + 2]);
        let responses = self.model.run(&stimuli);
        for (clock, response) in responses.iter().enumerate() {
            let response = Response::new(response);
            assert!(response.queue_ready, "clock {clock}: the queue of the bench is full");
            if let Some(lost) = response.lost {
                assert_eq!(Some(lost), due.pop_front(), "clock {clock}");
            }
        }
        assert!(due.is_empty());
        let last = Response::new(responses.last().expect("a clock"));
        assert_eq!((last.free, last.full), (self.golden.free(), self.golden.free() == 0));
    }

    /// Runs operations back to back. Returns the clocks in which they are accepted and in which packets are lost.
    fn back_to_back(&mut self, operations: &[(usize, Operation)]) -> (Vec<usize>, Vec<usize>) {
        let mut stimuli: Vec<_> =
            operations.iter().map(|(path, operation)| stimulus(false, *path, Some(*operation))).collect();
        stimuli.extend(vec![stimulus(false, 0, None); 4 * operations.len() + 40]);
        let responses = self.model.run(&stimuli);
        let clocks = |wanted: fn(&Response) -> bool| {
            (0..)
                .zip(&responses)
                .filter(|(_, words)| wanted(&Response::new(words)))
                .map(|(at, _)| at)
                .collect()
        };
        (clocks(|response| response.taken), clocks(|response| response.lost.is_some()))
    }
}

/// Output of the bench in a clock.
struct Response {
    taken: bool,
    queue_ready: bool,
    full: bool,
    lost: Option<(usize, InFlight)>,
    free: usize,
}

impl Response {
    fn new(words: &[u32]) -> Self {
        let mut reader = Reader::new(words);
        let (taken, queue_ready, full, is_lost) =
            (reader.flag(), reader.flag(), reader.flag(), reader.flag());
        let (path, queue_pair) = (reader.take(16) as usize, reader.take(16) as u16);
        let (psn, stamp, free) = (reader.take(24) as u32, reader.take(40), reader.take(16) as usize);
        let lost = is_lost.then_some((path, InFlight { queue_pair, psn, stamp }));
        Response { taken, queue_ready, full, lost, free }
    }
}

fn packet(stamp: u64) -> Operation {
    Operation::Sent(InFlight { queue_pair: 1, psn: 2, stamp })
}

/// Returns the differences of consecutive clocks.
fn between(clocks: &[usize]) -> Vec<usize> {
    clocks.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Sent and acknowledged packets alternate. Operations take one clock on different paths, and two on the same path.
#[test]
fn sent_and_heard_by_turns_take_a_clock_each() {
    let Some(mut bench) = Bench::new() else { return };
    let turns = |paths: u64| -> Vec<_> {
        let path = |i: u64| (i % paths) as usize;
        // The packet sent three turns earlier is acknowledged.
        let heard = |i: u64| i.checked_sub(3).map(|i| (path(i), Operation::Heard(100 + i)));
        (0..40).flat_map(|i| [Some((path(i), packet(100 + i))), heard(i)].into_iter().flatten()).collect()
    };
    let (taken, lost) = bench.back_to_back(&turns(8));
    assert_eq!((taken.len(), lost.len()), (77, 0));
    // The first four operations are of one kind. Each is accepted before the previous one has started.
    assert_eq!(between(&taken)[..4], [1, 2, 2, 2]);
    assert!(between(&taken)[4..].iter().all(|clocks| *clocks == 1), "{taken:?}");
    bench.back_to_back(&[(5, Operation::Expired), (6, Operation::Expired), (7, Operation::Expired)]);
    let (taken, lost) = bench.back_to_back(&turns(1));
    assert_eq!((taken.len(), lost.len()), (77, 0));
    assert!(between(&taken)[2..].iter().all(|clocks| *clocks == 2), "{taken:?}");
}

/// Three packets of a path are lost: the first four clocks after the operation, the others two clocks later each.
#[test]
fn lost_packets_are_told_every_two_clocks() {
    let Some(mut bench) = Bench::new() else { return };
    bench.back_to_back(&[(3, packet(1)), (3, packet(2)), (3, packet(3))]);
    let (taken, lost) = bench.back_to_back(&[(3, Operation::Expired)]);
    assert_eq!(lost, [0, 1, 2].map(|i| taken[0] + LATENCY + EACH * i));
}

fn random(operations: usize) {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-rings", 0);
    let mut left = operations;
    while left > 0 {
        let part = left.min(200);
        bench.random(&mut rng, part);
        left -= part;
    }
    assert!(bench.lost > operations / 20 && bench.full > operations / 100, "{} {}", bench.lost, bench.full);
}

#[test]
fn random_operations_leave_no_difference() {
    random(60_000);
}

/// Runs `COSIM_OPERATIONS` operations. Default: ten million.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn ten_million_operations_leave_no_difference() {
    let operations = support::operations();
    random(operations);
    println!("{operations} operations, no difference");
}
