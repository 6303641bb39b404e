//! Circuit in the loop: the Verilated chooser chooses the paths of the simulator's queue pairs. The run must be
//! identical to one with the integers of `policy::laps::pipeline`.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use pathweave_cosim::{Circuit, Model, Reader};
use pathweave_policy::laps::pipeline::{Choice, PathSampler, Scale, Ticks};
use pathweave_policy::picker::{MakePicker, PathPicker, PickerConfig, PickerFactory, ProgramPicker};
use pathweave_policy::{
    Feedback, FeedbackKind, PathState, PathView, PolicyCx, PolicyEnv, QueuePairId, SendRequest, Sent,
};
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;
use pathweave_units::{PathId, Rng, Time};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chooser::{DESTINATION, Operation, Stimulus, WORDS};
use crate::support;

const LEVELS: usize = 3;
const LATENCY: usize = 13 + 2 * LEVELS;

/// Chooser of eight paths to one destination.
trait Draw: Debug + Send {
    fn update(&mut self, path: usize, delay: Option<Ticks>);
    fn choose(&mut self) -> Option<usize>;
}

fn scale() -> Scale {
    Scale::new(2.5, Ticks::new(10_000), Ticks::new(0))
}

#[derive(Debug)]
struct Integers {
    chooser: PathSampler,
    draws: Xoshiro256PlusPlus,
}

impl Integers {
    fn new(seed: [u64; 4]) -> Self {
        let mut chooser = PathSampler::new(1, 1 << LEVELS);
        chooser.set_scale(0, scale());
        let bytes: Vec<u8> = seed.iter().flat_map(|word| word.to_le_bytes()).collect();
        Integers { chooser, draws: Xoshiro256PlusPlus::from_seed(bytes.try_into().expect("32 bytes")) }
    }
}

impl Draw for Integers {
    fn update(&mut self, path: usize, delay: Option<Ticks>) {
        self.chooser.update(0, path, delay);
    }
    fn choose(&mut self) -> Option<usize> {
        match self.chooser.choose(0, (self.draws.next_u64() >> 32) as u32) {
            Choice::Path(path) => Some(path),
            Choice::None => None,
        }
    }
}

#[derive(Debug)]
struct Circuitry(Model);

impl Circuitry {
    fn new(seed: [u64; 4]) -> Self {
        let parameters = [("PATH", LEVELS as u32), ("DESTINATION", DESTINATION)];
        let circuit = Circuit { bench: "chooser", parameters: &parameters, words: WORDS };
        let mut model = support::build(&circuit).expect("the test looked for Verilator");
        let mut stimuli = vec![Stimulus { reset: true, ..Stimulus::IDLE }; 2];
        stimuli.extend(vec![Stimulus::IDLE; 1 << (LEVELS + DESTINATION as usize)]);
        stimuli.push(Stimulus { scale: Some((0, scale())), ..Stimulus::IDLE });
        stimuli.extend(seed.map(|word| Stimulus { seed: Some(word), ..Stimulus::IDLE }));
        model.run(&stimuli.iter().map(Stimulus::words).collect::<Vec<_>>());
        Circuitry(model)
    }
}

impl Draw for Circuitry {
    fn update(&mut self, path: usize, delay: Option<Ticks>) {
        self.0.run(&[Stimulus::operation(Operation::Update { destination: 0, path, delay }).words()]);
    }
    fn choose(&mut self) -> Option<usize> {
        let mut stimuli = vec![Stimulus::operation(Operation::Choose { destination: 0 }).words()];
        stimuli.extend(vec![Stimulus::IDLE.words(); LATENCY]);
        let responses = self.0.run(&stimuli);
        let mut reader = Reader::new(responses.last().expect("a response a clock"));
        let (_ready, valid, update, none) = (reader.flag(), reader.flag(), reader.flag(), reader.flag());
        assert!(valid && !update, "the choice leaves after its latency");
        let (_destination, path) = (reader.take(16), reader.take(16) as usize);
        (!none).then_some(path)
    }
}

/// Path picker that chooses the next path when a packet leaves, by the delays known then.
#[derive(Clone, Debug)]
struct SharedChooserPicker {
    /// Chooser of one queue pair. Copies of the picker share it.
    from: Arc<Mutex<dyn Draw>>,
    delays: Vec<Ticks>,
    next: usize,
}

impl SharedChooserPicker {
    fn draw(&mut self) {
        let drawn = self.from.lock().expect("nobody panics while holding it").choose();
        // With every path down, any path will do. The endpoint gives up by itself.
        self.next = drawn.unwrap_or(self.next);
    }
    fn update(&mut self, path: usize, delay: Option<Ticks>) {
        self.from.lock().expect("nobody panics while holding it").update(path, delay);
    }
}

impl PathPicker for SharedChooserPicker {
    fn on_open(&mut self, _: Time, _: &QueuePairId, _: &mut PolicyCx<'_>) {
        (0..self.delays.len()).for_each(|path| self.update(path, Some(self.delays[path])));
        self.draw();
    }
    fn on_close(&mut self, _: &mut PolicyCx<'_>) {}
    fn pick(&self, _: Time, _: &SendRequest, _: &mut PolicyCx<'_>) -> PathId {
        PathId(self.next as u16)
    }
    fn on_sent(&mut self, _: Time, _: &Sent, _: &mut PolicyCx<'_>) -> u32 {
        self.draw();
        0
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback, _: &mut PolicyCx<'_>) {
        if let FeedbackKind::Ack { timed: true, .. } = feedback.kind {
            let path = feedback.path.index();
            self.delays[path] = Ticks::between(0, feedback.one_way_ps.max(0) as u64);
            self.update(path, Some(self.delays[path]));
        }
    }
    fn on_paths(&mut self, _: Time, paths: &[PathView], _: &mut PolicyCx<'_>) {
        for path in paths {
            let is_up = path.state == PathState::Up;
            self.update(path.id.index(), is_up.then_some(self.delays[path.id.index()]));
        }
    }
}

/// Chooser that a run uses.
#[derive(Clone, Copy, Debug)]
enum ChooserKind {
    Integers,
    Circuit,
}

impl MakePicker for ChooserKind {
    fn name(&self) -> &str {
        "chooser"
    }
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker> {
        assert_eq!(usize::from(env.paths), 1 << LEVELS);
        let seed = [(); 4].map(|()| rng.next_u64());
        let from: Arc<Mutex<dyn Draw>> = match self {
            ChooserKind::Integers => Arc::new(Mutex::new(Integers::new(seed))),
            ChooserKind::Circuit => Arc::new(Mutex::new(Circuitry::new(seed))),
        };
        Box::new(SharedChooserPicker {
            from,
            delays: vec![Ticks::from(env.base_rtt / 2); 1 << LEVELS],
            next: 0,
        })
    }
}

/// Eight hosts whose messages cross eight spines. One link of a spine goes down and comes up again.
const SCENARIO: &str = r#"
topology = { kind = "leaf-spine", leaves = 2, spines = 8, hosts_per_leaf = 4 }

[scheme]
base = "rps"
paths = 8

[[fault]]
kind = "link-flap"
link = "leaf0-spine1"
at = "10us"
down_for = "20us"
up_for = "1ms"
times = 1

[[workload]]
kind = "permutation"
size = "256KB"

[run]
until = "20ms"
threads = 1
"#;

fn digest(by: ChooserKind) -> (String, Vec<Option<u64>>) {
    let loaded = Loaded::parse(SCENARIO, "loop.toml", ".", &Changes::default()).expect("a good scenario");
    let mut prepared = loaded.prepare().expect("a scenario that can run");
    for scheme in &mut prepared.spec.schemes {
        let picker = scheme.scheme.policy.picker_mut().expect("rps has a picker");
        *picker = PickerConfig::Supplied(PickerFactory::new(Arc::new(by)));
    }
    let result = pathweave_sim::run(&prepared.spec, &mut NoMonitor).expect("a run");
    let finished: Vec<Option<u64>> = result.flows.iter().map(|flow| flow.finish_ps).collect();
    assert!(finished.iter().all(Option::is_some), "every message arrives");
    (result.info.digest_hex(), finished)
}

#[test]
fn the_simulator_sees_no_difference_between_circuit_and_integers() {
    let circuit =
        Circuit { bench: "chooser", parameters: &[("PATH", 3), ("DESTINATION", DESTINATION)], words: WORDS };
    if support::build(&circuit).is_none() {
        return;
    }
    assert_eq!(digest(ChooserKind::Circuit), digest(ChooserKind::Integers));
}
