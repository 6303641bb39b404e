//! Compares the path state circuit with `policy::laps::pipeline`. Every operation must leave in the same clock with the
//! same path and delay, and write the same entry.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader, Writer};
use pathweave_policy::laps::pipeline::{PathEntry, Paths, Ticks};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (3, 4);
const DESTINATION: usize = 4;
const LATENCY: u64 = 2;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Measured { path: usize, delay: Ticks },
    Told { path: usize, up: bool, delay: Ticks },
    Look { first: usize },
    Sweep { path: usize },
}

#[derive(Clone, Copy, Debug)]
struct Stimulus {
    now: u32,
    operation: Option<(usize, Operation)>,
    reset: bool,
}

impl Stimulus {
    fn words(&self) -> Vec<u32> {
        let (destination, operation) =
            self.operation.map_or((0, None), |(d, operation)| (d, Some(operation)));
        let (code, path, up, delay) = match operation {
            Some(Operation::Measured { path, delay }) => (0u8, path, false, delay),
            Some(Operation::Told { path, up, delay }) => (1, path, up, delay),
            Some(Operation::Look { first }) => (2, first, false, Ticks::new(0)),
            Some(Operation::Sweep { path }) => (3, path, false, Ticks::new(0)),
            None => (0, 0, false, Ticks::new(0)),
        };
        Writer::new()
            .put(self.reset, 1)
            .put(operation.is_some(), 1)
            .put(code, 2)
            .put(destination as u64, 16)
            .put(path as u64, 16)
            .put(up, 1)
            .put(delay.get(), 24)
            .put(self.now, 32)
            .words(WORDS.0)
    }
}

/// Output: an update for the chooser, and the written entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Result {
    update: Option<Update>,
    written: Option<PathEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Update {
    probe: bool,
    destination: usize,
    path: usize,
    up: bool,
    delay: Ticks,
}

struct Bench {
    model: Model,
    golden: Paths,
    due: VecDeque<(u64, Result)>,
    clock: u64,
    probes: u64,
}

impl Bench {
    fn new(levels: usize) -> Option<Self> {
        let parameters = [("PATH", levels as u32), ("DESTINATION", DESTINATION as u32)];
        let mut model = support::build(&Circuit { bench: "paths", parameters: &parameters, words: WORDS })?;
        let reset = |reset| Stimulus { now: 0, operation: None, reset }.words();
        let mut stimuli = vec![reset(true); 2];
        let clear = 1 << (levels - 2 + DESTINATION);
        stimuli.extend(vec![reset(false); clear + 1]);
        let ready: Vec<bool> = model.run(&stimuli).iter().map(|response| response[0] & 1 == 1).collect();
        assert!(ready[2..2 + clear].iter().all(|&ready| !ready) && ready[2 + clear]);
        let golden = Paths::new(1 << DESTINATION, 1 << levels);
        Some(Bench { model, golden, due: VecDeque::new(), clock: 0, probes: 0 })
    }

    fn expect(&mut self, now: u32, destination: usize, operation: Operation) -> Result {
        let before = |golden: &Paths, path| golden.entry(destination, path);
        let (path, probe) = match operation {
            Operation::Measured { path, delay } => {
                self.golden.measured(now, destination, path, delay);
                (path, false)
            }
            Operation::Told { path, up, delay } => {
                self.golden.set_path(now, destination, path, up, delay);
                (path, false)
            }
            Operation::Look { first } => match self.golden.probe_candidate(now, destination, first) {
                Some(path) => (path, true),
                None => return Result::default(),
            },
            Operation::Sweep { path } => {
                let old = before(&self.golden, path);
                self.golden.sweep(now, destination, path);
                let new = before(&self.golden, path);
                return Result { update: None, written: (old != new).then_some(new) };
            }
        };
        self.probes += u64::from(probe);
        let entry = self.golden.entry(destination, path);
        let update = Update { probe, destination, path, up: entry.up, delay: entry.real };
        Result { update: Some(update), written: Some(entry) }
    }

    fn run(&mut self, stimuli: &[Stimulus]) {
        let words: Vec<Vec<u32>> = stimuli.iter().map(Stimulus::words).collect();
        let responses = self.model.run(&words);
        for (stimulus, response) in stimuli.iter().zip(responses) {
            if let Some((destination, operation)) = stimulus.operation {
                let result = self.expect(stimulus.now, destination, operation);
                self.due.push_back((self.clock + LATENCY, result));
            }
            let is_due = self.due.front().is_some_and(|(clock, _)| *clock == self.clock);
            let due = if is_due { self.due.pop_front() } else { None };
            let due = due.map_or(Result::default(), |(_, result)| result);
            assert_eq!(result(&response), due, "clock {}", self.clock);
            self.clock += 1;
        }
    }

    fn random(&mut self, rng: &mut Rng, operations: usize, levels: usize, destinations: u32) {
        let mut now = rng.next_u64() as u32;
        let mut left = operations;
        while left > 0 {
            let part = left.min(4_096);
            left -= part;
            let stimuli: Vec<Stimulus> = (0..part)
                .map(|_| {
                    // Occasionally a long pause, up to the second within which the sweep comes.
                    now =
                        now.wrapping_add(if rng.below(512) == 0 { rng.below(1 << 30) } else { rng.below(8) });
                    let path = rng.below(1 << levels) as usize;
                    let bits = rng.below(25);
                    let delay = Ticks::new(u64::from(rng.below(1 << bits)));
                    let operation = match rng.below(16) {
                        0 => None,
                        1..6 => Some(Operation::Measured { path, delay }),
                        6 => Some(Operation::Told { path, up: rng.below(8) != 0, delay }),
                        7..13 => Some(Operation::Look { first: path }),
                        _ => Some(Operation::Sweep { path }),
                    };
                    let destination = rng.below(destinations) as usize;
                    Stimulus {
                        now,
                        operation: operation.map(|operation| (destination, operation)),
                        reset: false,
                    }
                })
                .collect();
            self.run(&stimuli);
        }
        self.run(&[Stimulus { now, operation: None, reset: false }; LATENCY as usize]);
        assert!(self.due.is_empty());
        assert!(self.probes as usize > operations / 50, "{} probes", self.probes);
    }
}

fn result(words: &[u32]) -> Result {
    let mut reader = Reader::new(words);
    assert!(reader.flag(), "ready");
    let (valid, probe) = (reader.flag(), reader.flag());
    let (destination, path) = (reader.take(16) as usize, reader.take(16) as usize);
    let (up, delay) = (reader.flag(), Ticks::new(reader.take(24)));
    let write = reader.flag();
    let (real, due) = (Ticks::new(reader.take(24)), reader.take(32) as u32);
    let entry = PathEntry { real, due, up: reader.flag(), measured: reader.flag() };
    Result {
        update: valid.then_some(Update { probe, destination, path, up, delay }),
        written: write.then_some(entry),
    }
}

#[test]
fn random_operations_leave_no_difference() {
    let Some(mut bench) = Bench::new(3) else { return };
    let mut rng = Rng::for_component(1, "cosim-paths", 3);
    bench.random(&mut rng, 60_000, 3, 1);
    bench.random(&mut rng, 60_000, 3, 16);
}

/// Runs `COSIM_OPERATIONS` random operations of each size. Default: ten million.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn ten_million_random_operations_leave_no_difference() {
    let operations = support::operations();
    for levels in [3, 6, 8] {
        let Some(mut bench) = Bench::new(levels) else { return };
        let mut rng = Rng::for_component(2, "cosim-paths", levels as u64);
        bench.random(&mut rng, operations, levels, 2);
        println!("{} paths: {operations} operations, no difference", 1 << levels);
    }
}
