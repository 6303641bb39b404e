//! The rings as a circuit against those of `pathweave-hardware`: the same packets lost, in the same order and clock, and none
//! lost or kept twice.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader, Writer};
use pathweave_hardware::{InFlight, Rings};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (4, 4);
const POOL: u32 = 4;
const PATHS: u32 = 3;
/// From an operation to the first packet that it loses.
const LATENCY: u64 = 3;

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
    golden: Rings,
    /// Stamps of what was sent on each path, for echoes that hit.
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
        let golden = Rings::new(1 << PATHS, 1 << POOL);
        Some(Bench { model, golden, sent: vec![VecDeque::new(); 1 << PATHS], stamp: 0, lost: 0, full: 0 })
    }

    /// An operation that makes sense, with stamps and echoes that sometimes do not.
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

    fn random(&mut self, rng: &mut Rng, operations: usize) {
        let mut stimuli = Vec::new();
        let mut due = VecDeque::new();
        // Of the clock in which an operation begins: whether the pool is full, and how much of it is free.
        let mut begins = VecDeque::new();
        for _ in 0..operations {
            let path = rng.below(1 << PATHS) as usize;
            let operation = self.operation(rng, path);
            let clock = stimuli.len() as u64;
            begins.push_back((clock, self.golden.free()));
            let (lost, clocks) = match operation {
                Operation::Sent(packet) => {
                    self.full += usize::from(!self.golden.sent(path, packet));
                    (Vec::new(), 2)
                }
                Operation::Heard(echo) => {
                    let lost = self.golden.heard(path, echo);
                    let clocks = 3 + lost.len();
                    (lost, clocks)
                }
                Operation::Expired => {
                    let lost = self.golden.expired(path);
                    let clocks = 3 + lost.len();
                    (lost, clocks)
                }
            };
            self.lost += lost.len();
            due.extend((clock + LATENCY..).zip(lost).map(|(clock, packet)| (clock, path, packet)));
            stimuli.push(stimulus(false, path, Some(operation)));
            let idle = clocks - 1 + rng.below(2) as usize;
            stimuli.extend(vec![stimulus(false, 0, None); idle]);
        }
        stimuli.extend(vec![stimulus(false, 0, None); LATENCY as usize]);
        for (clock, response) in (0..).zip(self.model.run(&stimuli)) {
            let mut reader = Reader::new(&response);
            let (ready, full, is_lost) = (reader.flag(), reader.flag(), reader.flag());
            let (path, queue_pair) = (reader.take(16) as usize, reader.take(16) as u16);
            let (psn, stamp, free) = (reader.take(24) as u32, reader.take(40), reader.take(16) as usize);
            if begins.front().is_some_and(|(at, _)| *at == clock) {
                let (_, expected) = begins.pop_front().expect("it was looked at");
                assert!(ready, "clock {clock}");
                assert_eq!((free, full), (expected, expected == 0), "clock {clock}");
            }
            let is_due = due.front().is_some_and(|(at, ..)| *at == clock);
            let due = if is_due { due.pop_front() } else { None };
            let told = is_lost.then_some((clock, path, InFlight { queue_pair, psn, stamp }));
            assert_eq!(told, due, "clock {clock}");
        }
        assert!(due.is_empty() && begins.is_empty());
    }
}

fn random(operations: usize) {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-rings", 0);
    let mut left = operations;
    while left > 0 {
        let part = left.min(4_096);
        bench.random(&mut rng, part);
        left -= part;
    }
    assert!(bench.lost > operations / 20 && bench.full > operations / 100, "{} {}", bench.lost, bench.full);
}

#[test]
fn random_operations_leave_no_difference() {
    random(60_000);
}

/// `COSIM_OPERATIONS` operations, ten million unless it says otherwise.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn ten_million_operations_leave_no_difference() {
    let operations = support::operations();
    random(operations);
    println!("{operations} operations, no difference");
}
