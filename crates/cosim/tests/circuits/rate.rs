//! Compares the rate unit circuit with `policy::laps::pipeline`: the state of the flow must be equal after each
//! acknowledgement.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader, Writer};
use pathweave_policy::laps::pipeline::{DecreaseRule, PathDelays, RateEntry, Rates, Ticks};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (8, 8);
const FLOW: u32 = 3;
const LATENCY: u64 = 46;
const LINE: u64 = 100_000_000_000;
const FLOOR: u64 = LINE / 100;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Idle,
    Open(usize),
    Acknowledged(usize, PathDelays),
}

struct Bench {
    model: Model,
    golden: Rates,
    cut: DecreaseRule,
    due: VecDeque<(u64, usize, RateEntry)>,
    clock: u64,
}

fn stimulus(reset: bool, cut: DecreaseRule, now: u64, operation: Operation) -> Vec<u32> {
    let none = PathDelays { fastest: Ticks::new(0), slowest: Ticks::new(0), threshold: Ticks::new(0) };
    let (valid, open, flow, delays) = match operation {
        Operation::Idle => (false, false, 0, none),
        Operation::Open(flow) => (true, true, flow, none),
        Operation::Acknowledged(flow, delays) => (true, false, flow, delays),
    };
    Writer::new()
        .put(reset, 1)
        .put(valid, 1)
        .put(open, 1)
        .put(cut == DecreaseRule::ToShare, 1)
        .put(flow as u64, 16)
        .put(now, 48)
        .put(delays.fastest.get(), 24)
        .put(delays.slowest.get(), 24)
        .put(delays.threshold.get(), 24)
        .put(LINE, 40)
        .put(FLOOR, 40)
        .words(WORDS.0)
}

impl Bench {
    fn new(cut: DecreaseRule) -> Option<Self> {
        let circuit = Circuit { bench: "rate", parameters: &[("FLOW", FLOW)], words: WORDS };
        let mut model = support::build(&circuit)?;
        model.run(&[stimulus(true, cut, 0, Operation::Idle), stimulus(true, cut, 0, Operation::Idle)]);
        let mut bench = Bench {
            model,
            golden: Rates::new(1 << FLOW, LINE, FLOOR, cut),
            cut,
            due: VecDeque::new(),
            clock: 0,
        };
        let opens: Vec<_> = (0..1 << FLOW).map(|flow| (0, Operation::Open(flow))).collect();
        bench.run(&opens);
        Some(bench)
    }

    fn run(&mut self, operations: &[(u64, Operation)]) {
        let stimuli: Vec<Vec<u32>> =
            operations.iter().map(|&(now, operation)| stimulus(false, self.cut, now, operation)).collect();
        let responses = self.model.run(&stimuli);
        for (&(now, operation), response) in operations.iter().zip(responses) {
            let flow = match operation {
                Operation::Idle => None,
                Operation::Open(flow) => {
                    self.golden.open(flow);
                    Some(flow)
                }
                Operation::Acknowledged(flow, delays) => {
                    self.golden.acknowledged(now, flow, delays);
                    Some(flow)
                }
            };
            self.due.extend(flow.map(|flow| (self.clock + LATENCY, flow, self.golden.entry(flow))));
            let is_due = self.due.front().is_some_and(|(clock, ..)| *clock == self.clock);
            let due = if is_due { self.due.pop_front() } else { None };
            assert_eq!(result(&response), due.map(|(_, flow, entry)| (flow, entry)), "clock {}", self.clock);
            self.clock += 1;
        }
    }
}

fn result(words: &[u32]) -> Option<(usize, RateEntry)> {
    let mut reader = Reader::new(words);
    let valid = reader.flag();
    let (flow, told) = (reader.take(16) as usize, reader.take(40));
    let (next_decrease, next_increase) = (reader.take(48), reader.take(48));
    let (stage, expected, current) = (reader.take(3) as u8, reader.take(40), reader.take(40));
    assert!(!valid || told == current);
    valid.then_some((flow, RateEntry { current, expected, stage, next_increase, next_decrease }))
}

fn random(operations: usize, flows: u32, seed: u64) {
    for cut in [DecreaseRule::Half, DecreaseRule::ToShare] {
        let Some(mut bench) = Bench::new(cut) else { return };
        let mut rng = Rng::for_component(seed, "cosim-rate", flows.into());
        let (mut now, mut left) = (0, operations / 2);
        while left > 0 {
            let part = left.min(4_096);
            left -= part;
            let batch: Vec<_> = (0..part)
                .map(|_| {
                    now += u64::from(rng.below(40));
                    let flow = rng.below(flows) as usize;
                    let fastest = u64::from(rng.below(200));
                    let delays = PathDelays {
                        fastest: Ticks::new(fastest),
                        slowest: Ticks::new(fastest + u64::from(rng.below(200))),
                        threshold: Ticks::new(u64::from(1 + rng.below(150))),
                    };
                    let operation = match rng.below(64) {
                        0 => Operation::Open(flow),
                        1..8 => Operation::Idle,
                        _ => Operation::Acknowledged(flow, delays),
                    };
                    (now, operation)
                })
                .collect();
            bench.run(&batch);
        }
        bench.run(&[(now, Operation::Idle); LATENCY as usize]);
        assert!(bench.due.is_empty());
    }
}

#[test]
fn random_operations_leave_no_difference() {
    random(40_000, 2, 1);
    random(40_000, 1 << FLOW, 1);
}

/// Runs `COSIM_OPERATIONS` acknowledgements. Default: ten million.
#[test]
#[ignore = "minutes: `make hardware-test`"]
fn ten_million_acknowledgements_leave_no_difference() {
    let operations = support::operations();
    random(operations, 3, 2);
    println!("{operations} acknowledgements, no difference");
}
