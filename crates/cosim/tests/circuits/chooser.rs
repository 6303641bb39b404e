//! Compares the chooser circuit with the integers of `policy::laps::pipeline`. Both get the same operations and random
//! numbers. Every operation must be equal in its clock, its path, and all numbers read or written.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Reader, Writer};
use pathweave_policy::laps::pipeline::{Choice, PathSampler, Scale, Ticks};
use pathweave_units::Rng;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::support;

/// Words of the bench.
pub(crate) const WORDS: (usize, usize) = (6, 14);
/// Number of bits of a destination in the benches.
pub(crate) const DESTINATION: u32 = 4;

/// Operation that enters in a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Idle,
    Choose { destination: usize },
    Update { destination: usize, path: usize, delay: Option<Ticks> },
}

/// Result that leaves in a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Result {
    update: bool,
    destination: usize,
    /// Chosen path. `None` if all weights are 0.
    path: Option<usize>,
    /// Weight written by an update.
    weight: Option<u32>,
    total: u64,
    left_sums: Vec<u64>,
}

/// Stimulus of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stimulus {
    pub(crate) reset: bool,
    pub(crate) operation: Operation,
    pub(crate) scale: Option<(usize, Scale)>,
    /// Word of the generator's state.
    pub(crate) seed: Option<u64>,
}

impl Stimulus {
    pub(crate) const IDLE: Stimulus =
        Stimulus { reset: false, operation: Operation::Idle, scale: None, seed: None };

    pub(crate) fn operation(operation: Operation) -> Self {
        Stimulus { operation, ..Self::IDLE }
    }

    pub(crate) fn words(&self) -> Vec<u32> {
        let (valid, update, destination, path, delay) = match self.operation {
            Operation::Idle => (false, false, 0, 0, None),
            Operation::Choose { destination } => (true, false, destination, 0, None),
            Operation::Update { destination, path, delay } => (true, true, destination, path, delay),
        };
        let flat = Scale { factor: 0, reference: Ticks::new(0) };
        let (of, scale) = self.scale.unwrap_or((0, flat));
        Writer::new()
            .put(self.reset, 1)
            .put(valid, 1)
            .put(update, 1)
            .put(delay.is_some(), 1)
            .put(destination as u64, 16)
            .put(path as u64, 16)
            .put(delay.unwrap_or_default().get(), 24)
            .put(self.scale.is_some(), 1)
            .put(of as u64, 16)
            .put(scale.factor, 18)
            .put(scale.reference.get(), 24)
            .put(self.seed.is_some(), 1)
            .put(self.seed.unwrap_or(0), 64)
            .words(WORDS.0)
    }
}

/// Model with its expected results.
struct Bench {
    model: pathweave_cosim::Model,
    levels: usize,
    golden: PathSampler,
    draws: Xoshiro256PlusPlus,
    /// Results in the pipeline, with the clock in which each leaves.
    due: VecDeque<(u64, Result)>,
    clock: u64,
    /// Chosen paths.
    chosen: Vec<usize>,
}

impl Bench {
    /// Builds and resets the circuit, whose memories are random before. Returns `None` with a message without
    /// Verilator.
    fn new(levels: usize) -> Option<Self> {
        let parameters = [("PATH", levels as u32), ("DESTINATION", DESTINATION)];
        let model = support::build(&Circuit { bench: "chooser", parameters: &parameters, words: WORDS })?;
        let mut bench = Bench {
            model,
            levels,
            golden: PathSampler::new(1 << DESTINATION, 1 << levels),
            draws: Xoshiro256PlusPlus::from_seed([0; 32]),
            due: VecDeque::new(),
            clock: 0,
            chosen: Vec::new(),
        };
        bench.reset();
        bench.seed([1, 2, 3, 4]);
        Some(bench)
    }

    fn latency(&self) -> u64 {
        13 + 2 * self.levels as u64
    }

    /// Resets all weights to 0, which takes one clock per path of each destination.
    fn reset(&mut self) {
        let scales: Vec<Scale> = (0..1 << DESTINATION).map(|d| self.golden.scale(d)).collect();
        self.golden = PathSampler::new(1 << DESTINATION, 1 << self.levels);
        (0..).zip(scales).for_each(|(destination, scale)| self.golden.set_scale(destination, scale));
        self.due.clear();
        let mut stimuli = vec![Stimulus { reset: true, ..Stimulus::IDLE }.words(); 2];
        let clear = 1 << (self.levels + DESTINATION as usize);
        stimuli.extend(vec![Stimulus::IDLE.words(); clear + 1]);
        let responses = self.model.run(&stimuli);
        let ready: Vec<bool> = responses.iter().map(|response| response[0] & 1 == 1).collect();
        assert!(ready[2..2 + clear].iter().all(|&ready| !ready) && ready[2 + clear], "clears {clear} paths");
        self.clock = 0;
    }

    fn seed(&mut self, state: [u64; 4]) {
        let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.draws = Xoshiro256PlusPlus::from_seed(bytes.try_into().expect("32 bytes"));
        self.run(&state.map(|word| Stimulus { seed: Some(word), ..Stimulus::IDLE }));
    }

    fn set_scales(&mut self, scale: impl Fn(usize) -> Scale) {
        let all: Vec<Stimulus> = (0..1 << DESTINATION)
            .map(|destination| Stimulus { scale: Some((destination, scale(destination))), ..Stimulus::IDLE })
            .collect();
        self.run(&all);
    }

    /// Adds the result of the integers for an operation.
    fn expect(&mut self, operation: Operation) {
        let (update, destination, path, weight) = match operation {
            Operation::Idle => return,
            Operation::Choose { destination } => {
                let draw = (self.draws.next_u64() >> 32) as u32;
                let path = match self.golden.choose(destination, draw) {
                    Choice::Path(path) => Some(path),
                    Choice::None => None,
                };
                (false, destination, path, None)
            }
            Operation::Update { destination, path, delay } => {
                self.golden.update(destination, path, delay);
                (true, destination, Some(path), Some(self.golden.weight(destination, path)))
            }
        };
        self.chosen.extend(path.filter(|_| !update));
        let left_sums =
            path.map(|path| self.golden.left_sums(destination, path).collect()).unwrap_or_default();
        let total = self.golden.total(destination);
        let result = Result { update, destination, path, weight, total, left_sums };
        self.due.push_back((self.clock + self.latency(), result));
    }

    /// Clocks the circuit and compares each clock.
    fn run(&mut self, stimuli: &[Stimulus]) {
        let words: Vec<Vec<u32>> = stimuli.iter().map(Stimulus::words).collect();
        let responses = self.model.run(&words);
        for (stimulus, response) in stimuli.iter().zip(responses) {
            // An operation in the clock of a new scale still uses the old one.
            self.expect(stimulus.operation);
            if let Some((destination, scale)) = stimulus.scale {
                self.golden.set_scale(destination, scale);
            }
            let is_due = self.due.front().is_some_and(|(clock, _)| *clock == self.clock);
            let due = if is_due { self.due.pop_front().map(|(_, result)| result) } else { None };
            assert_eq!(self.response(&response), due, "clock {}", self.clock);
            self.clock += 1;
        }
    }

    fn response(&self, words: &[u32]) -> Option<Result> {
        let mut reader = Reader::new(words);
        assert!(reader.flag(), "ready");
        let (valid, update, none) = (reader.flag(), reader.flag(), reader.flag());
        let (destination, path) = (reader.take(16) as usize, reader.take(16) as usize);
        let (weight, total) = (reader.take(24) as u32, reader.take(40));
        let sums: Vec<u64> = (0..self.levels).map(|_| reader.take(40)).collect();
        valid.then(|| Result {
            update,
            destination,
            path: (!none).then_some(path),
            weight: update.then_some(weight),
            total,
            left_sums: if none { Vec::new() } else { sums },
        })
    }

    fn drain(&mut self) {
        self.run(&vec![Stimulus::IDLE; self.latency() as usize]);
        assert!(self.due.is_empty());
    }

    /// Runs random operations. `crowd` restricts the destinations and paths, so that operations meet in the pipeline.
    fn random(&mut self, rng: &mut Rng, operations: usize, crowd: PathSpread) {
        let (destinations, paths) = match crowd {
            PathSpread::None => (1 << DESTINATION, 1 << self.levels),
            PathSpread::Few => (3, 2),
        };
        let mut left = operations;
        while left > 0 {
            let part = left.min(4_096);
            left -= part;
            let stimuli: Vec<Stimulus> = (0..part)
                .map(|_| {
                    let destination = rng.below(destinations) as usize;
                    let path = rng.below(paths) as usize;
                    let operation = match rng.below(16) {
                        0 => Operation::Idle,
                        1..8 => Operation::Choose { destination },
                        8 => Operation::Update { destination, path, delay: None },
                        _ => {
                            let bits = 10 + rng.below(15);
                            let delay = Some(Ticks::new(u64::from(rng.below(1 << bits))));
                            Operation::Update { destination, path, delay }
                        }
                    };
                    let scale = (rng.below(64) == 0).then(|| {
                        let reference = Ticks::new(u64::from(rng.below(20_000)));
                        (destination, Scale { factor: rng.below(1 << 18), reference })
                    });
                    Stimulus { operation, scale, ..Stimulus::IDLE }
                })
                .collect();
            self.run(&stimuli);
        }
        self.drain();
    }
}

/// Distribution of operations.
#[derive(Clone, Copy)]
enum PathSpread {
    None,
    Few,
}

const UNIT: Ticks = Ticks::new(10_000);

fn update(destination: usize, path: usize, delay: Option<u64>) -> Stimulus {
    let delay = delay.map(Ticks::new);
    Stimulus::operation(Operation::Update { destination, path, delay })
}

fn flat(_: usize) -> Scale {
    Scale::new(1.0, UNIT, Ticks::new(0))
}

#[test]
fn random_operations_leave_no_difference() {
    let Some(mut bench) = Bench::new(3) else { return };
    let mut rng = Rng::for_component(1, "cosim", 3);
    bench.set_scales(flat);
    bench.random(&mut rng, 60_000, PathSpread::Few);
    bench.random(&mut rng, 60_000, PathSpread::None);
    // Repeats it after a reset with operations in the pipeline.
    let first = update(0, 0, Some(1));
    bench.run(&[first; 5]);
    bench.reset();
    bench.random(&mut rng, 10_000, PathSpread::Few);
}

/// The first numbers that the authors of Xoshiro256++ publish for the state (1, 2, 3, 4), which is the seed of every
/// bench here.
#[test]
fn the_generator_that_the_circuit_is_compared_with_is_the_published_one() {
    let bytes: Vec<u8> = [1u64, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut draws = Xoshiro256PlusPlus::from_seed(bytes.try_into().expect("32 bytes"));
    assert_eq!([(); 3].map(|()| draws.next_u64()), [41_943_041, 58_720_359, 3_588_806_011_781_223]);
}

/// Two operations one clock apart. The later one must not choose a path that is down; the earlier one may.
#[test]
fn each_operation_sees_exactly_those_before_it() {
    let Some(mut bench) = Bench::new(3) else { return };
    bench.set_scales(flat);
    let up = update(5, 3, Some(7));
    let down = update(5, 3, None);
    let choose = Stimulus::operation(Operation::Choose { destination: 5 });
    bench.run(&[choose, up, choose, down, choose]);
    let other = update(5, 4, Some(7));
    // Three updates of a leaf in consecutive clocks. The last one must hold.
    let again = [40_000, 3, 20_000].map(|delay| update(5, 4, Some(delay)));
    bench.run(&[other, choose]);
    bench.run(&again);
    bench.run(&[choose]);
    bench.drain();
    assert_eq!(bench.chosen, [3, 4, 4]);
    assert_eq!(bench.golden.total(5), u64::from(bench.golden.weight(5, 4)));
}

/// A thousand consecutive operations take a thousand clocks plus the latency of the size: 19, 25 and 29.
#[test]
#[ignore = "builds two more models: `make hardware-test`"]
fn sixty_four_and_256_paths_likewise() {
    for (levels, latency) in [(6, 25), (8, 29)] {
        let Some(mut bench) = Bench::new(levels) else { return };
        assert_eq!(bench.latency(), latency);
        let mut rng = Rng::for_component(1, "cosim", levels as u64);
        bench.set_scales(flat);
        bench.random(&mut rng, 60_000, PathSpread::Few);
        bench.random(&mut rng, 60_000, PathSpread::None);
    }
}

/// Runs `COSIM_OPERATIONS` random operations of each size. Default: ten million.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn ten_million_random_operations_leave_no_difference() {
    let operations = support::operations();
    for levels in [3, 6, 8] {
        let Some(mut bench) = Bench::new(levels) else { return };
        let mut rng = Rng::for_component(2, "cosim", levels as u64);
        bench.set_scales(flat);
        bench.random(&mut rng, operations / 2, PathSpread::Few);
        bench.random(&mut rng, operations - operations / 2, PathSpread::None);
        println!("{} paths: {operations} operations, no difference", 1 << levels);
    }
}

/// The circuit's choices must have the frequencies of the exact softmax, by a chi-square test at p = 0.001.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn a_million_choices_have_the_frequencies_of_the_exact_softmax() {
    const DRAWS: usize = 1_000_000;
    for (levels, most) in [(3, 24.32), (6, 103.44), (8, 330.52)] {
        let Some(mut bench) = Bench::new(levels) else { return };
        let mut rng = Rng::for_component(3, "cosim", levels as u64);
        bench.set_scales(|_| Scale::new(5.0, UNIT, Ticks::new(0)));
        let delays: Vec<u32> = (0..1 << levels).map(|_| 5_000 + rng.below(5_000)).collect();
        for (path, &delay) in delays.iter().enumerate() {
            let update = update(1, path, Some(delay.into()));
            bench.run(&[update]);
        }
        for _ in 0..DRAWS / 4_000 {
            bench.run(&[Stimulus::operation(Operation::Choose { destination: 1 }); 4_000]);
        }
        bench.drain();
        let mut counts = vec![0u32; delays.len()];
        bench.chosen.iter().for_each(|&path| counts[path] += 1);
        let weights: Vec<f64> =
            delays.iter().map(|&ticks| (-5.0 * f64::from(ticks) / 10_000.0).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let square: f64 = counts
            .iter()
            .zip(&weights)
            .map(|(&count, weight)| {
                let expected = DRAWS as f64 * weight / sum;
                (f64::from(count) - expected).powi(2) / expected
            })
            .sum();
        println!("{} paths: chi-square {square:.1}, at most {most}", delays.len());
        assert!(square < most, "{} paths: chi-square {square}", delays.len());
    }
}
