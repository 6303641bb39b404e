//! One test run of two endpoints, defined completely by a seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pathweave_datapath::backend::{FaultCounters, Faults};
use pathweave_datapath::secure::Protection;
use pathweave_units::Rng;

use crate::World;
use crate::end::PORT;
use crate::pair::Process;
use crate::script::{End, Fate, draw};
use crate::wire::Family;

/// Schemes whose windows, as published, shrink to a thousandth of a packet: they send one packet in a
/// thousand round trips.
const SLOW: [&str; 2] = ["swift-published", "reflex-swift-published"];
/// Largest packet on a narrow wire, bytes. Acknowledgements and short messages pass.
const NARROW: usize = 600;
/// Longest time for which an endpoint is stopped, or the wire is cut.
const LONGEST_STOP: Duration = Duration::from_secs(2);

/// Returns the names of the schemes that the provider supports.
pub(crate) fn schemes() -> Vec<&'static str> {
    let all = pathweave_policy::schemes().iter();
    all.filter(|info| (info.make)().connects_real_hosts()).map(|info| info.name).collect()
}

/// End of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Batches(u64),
    Time(Duration),
}

/// Counts of events.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) lives: u64,
    pub(crate) batches: u64,
    pub(crate) cuts: u64,
    pub(crate) narrowed: u64,
    pub(crate) stops: u64,
    pub(crate) restarts: u64,
    pub(crate) crashes: u64,
    /// Slowest batches, with their seeds and schemes.
    pub(crate) slowest: Vec<(Duration, u64, &'static str)>,
    /// Failed runs.
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    pub(crate) fn show(&self, world: &World) {
        let Tally { lives, batches, cuts, narrowed, stops, restarts, crashes, slowest, wrong } = self;
        println!(
            "{lives} lives, {batches} batches; {cuts} cuts, {narrowed} with a smaller MTU, {stops} stops, {restarts} restarts, {crashes} \
             crashes; {:?}; slowest: {slowest:?}; {} lives went wrong",
            world.wire.happened(),
            wrong.len()
        );
    }

    /// Panics if a run failed, or if some kind of network fault has not occurred.
    #[track_caller]
    pub(crate) fn check(&self, world: &World) {
        assert!(self.wrong.is_empty(), "{} of {} lives: {:#?}", self.wrong.len(), self.lives, self.wrong);
        let FaultCounters { lost, repeated, reordered, damaged, cut_short, replayed, .. } =
            world.wire.happened();
        let least = [lost, repeated, reordered, damaged, cut_short, replayed].into_iter().min();
        let events = [self.cuts, self.narrowed, self.stops, self.restarts + self.crashes].into_iter().min();
        assert!(least > Some(0) && events > Some(0), "the network did too little");
    }
}

/// A run of two endpoints.
#[derive(Debug)]
pub(crate) struct Life {
    seed: u64,
    scheme: &'static str,
    protection: Protection,
    family: Family,
    faults: Faults,
    latest: Duration,
    /// Value of `PATHWEAVE_EAGER`.
    eager: usize,
    /// Value of `PATHWEAVE_PROGRESS` at both endpoints.
    progress: [&'static str; 2],
    paths: u32,
    rng: Rng,
}

impl Life {
    /// Returns the run of a seed. Consecutive seeds use all schemes in turn, each with another protection
    /// than before.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::for_component(seed, "chaos", 0);
        let of_seed = schemes();
        let (number, round) = (seed as usize % of_seed.len(), seed as usize / of_seed.len());
        let scheme = of_seed[number];
        let faults = Faults {
            lose: draw(&mut rng, &[0.0, 0.001, 0.02, 0.1]),
            repeat: draw(&mut rng, &[0.0, 0.01, 0.1]),
            reorder: draw(&mut rng, &[0.0, 0.01, 0.1, 0.5]),
            damage: draw(&mut rng, &[0.0, 0.001, 0.02]),
            cut_short: draw(&mut rng, &[0.0, 0.001, 0.02]),
            replay: draw(&mut rng, &[0.0, 0.01, 0.05]),
            stray: 0.0,
            mark: draw(&mut rng, &[0.0, 0.0, 0.1]),
        };
        let is_slow = SLOW.contains(&scheme);
        let faults = if is_slow { Faults { lose: faults.lose.min(0.02), ..faults } } else { faults };
        let latest: &[u64] = if is_slow { &[20] } else { &[20, 500, 20_000] };
        Life {
            seed,
            scheme,
            protection: Protection::ALL[(number + round) % Protection::ALL.len()],
            family: draw(&mut rng, &[Family::V4, Family::V6]),
            faults,
            latest: Duration::from_micros(draw(&mut rng, latest)),
            eager: draw(&mut rng, &[1_024, 16_384, 65_536]),
            progress: End::BOTH.map(|_| draw(&mut rng, &["auto", "auto", "thread"])),
            paths: draw(&mut rng, &[1, 4, 4, 32]),
            rng,
        }
    }

    /// Executes the run. Returns the memory of the near endpoint's process, KiB. A failure is recorded, and
    /// the caller continues with new processes.
    pub(crate) fn run(mut self, world: &mut World, tally: &mut Tally, length: Length) -> u64 {
        let context = format!("{self:?}");
        tally.lives += 1;
        let lived = catch_unwind(AssertUnwindSafe(|| self.live(world, tally, length)));
        world.wire.narrow(&End::BOTH, usize::MAX);
        lived.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            println!("WRONG: {context}: {text}");
            tally.wrong.push(format!("{context}: {text:.3000}"));
            world.near = Process::start(&world.hosts[0], End::Near);
            world.far = Process::start(&world.hosts[1], End::Far);
            0
        })
    }

    fn live(&mut self, world: &mut World, tally: &mut Tally, length: Length) -> u64 {
        world.wire.change(self.faults, self.latest, self.seed);
        for end in End::BOTH {
            self.open(world, end);
        }
        let (born, mut start, mut number) = (Instant::now(), 0, 0);
        self.greet(world, start);
        loop {
            let is_over = match length {
                Length::Batches(most) => number >= most,
                Length::Time(time) => born.elapsed() >= time,
            };
            if is_over {
                break;
            }
            number += 1;
            let fate = if self.rng.bernoulli(0.04) { Fate::Crash } else { Fate::Whole };
            let begun = Instant::now();
            let word = if fate == Fate::Crash { "crash" } else { "whole" };
            for end in [&mut world.near, &mut world.far] {
                end.tell(&format!("batch {number} {word}"));
            }
            if fate == Fate::Crash {
                std::thread::sleep(Duration::from_millis(30).mul_f64(self.rng.unit_f64()));
                start += 1;
                self.start_again(world, start, Some("lost"));
                tally.crashes += 1;
            } else {
                self.disturb(world, tally);
                world.near.has("batch");
                world.far.has("batch");
                tally.slowest.push((begun.elapsed(), self.seed, self.scheme));
                tally.slowest.sort_unstable_by(|one, other| other.cmp(one));
                tally.slowest.truncate(5);
                if self.rng.bernoulli(0.04) {
                    start += 1;
                    self.start_again(world, start, None);
                    tally.restarts += 1;
                }
            }
            tally.batches += 1;
        }
        self.part(world)
    }

    /// One endpoint closes with messages in flight, and the other one receives them.
    fn part(&mut self, world: &mut World) -> u64 {
        let words = if self.rng.bernoulli(0.5) { ["part", "seeoff"] } else { ["seeoff", "part"] };
        world.near.tell(words[0]);
        world.far.tell(words[1]);
        world.far.has(words[1]);
        world.near.has(words[0])
    }

    fn open(&self, world: &mut World, end: End) {
        let key = world.key.to_str().unwrap().to_owned();
        let process = match end {
            End::Near => &mut world.near,
            End::Far => &mut world.far,
        };
        let variables = [
            ("ADDRESS", self.family.address(end).to_string()),
            ("PORTS", format!("{PORT}-{PORT}")),
            ("PROTECTION", self.protection.name().to_owned()),
            ("KEY_FILE", key),
            ("SCHEME", self.scheme.to_owned()),
            ("EAGER", self.eager.to_string()),
            ("PROGRESS", self.progress[end as usize].to_owned()),
            ("PATHS", self.paths.to_string()),
            ("LINE_RATE", "1Gbps".to_owned()),
            ("SHARED_MEMORY", "off".to_owned()),
            ("PEER_TIMEOUT", "30".to_owned()),
        ];
        for (name, value) in variables {
            process.tell(&format!("set PATHWEAVE_{name} {value}"));
        }
        process.tell(&format!("open {} {}", self.seed, self.eager));
        process.has("open");
    }

    /// Makes the endpoints greet each other, one of them first.
    fn greet(&mut self, world: &mut World, start: u64) {
        // The near endpoint learns of a restart of the far one only when it receives a message from it, or
        // when an operation fails.
        let words =
            if start == 0 && self.rng.bernoulli(0.5) { ["first", "second"] } else { ["second", "first"] };
        world.far.tell(&format!("greet {start} {}", words[1]));
        world.near.tell(&format!("greet {start} {}", words[0]));
        world.far.has("greet");
        world.near.has("greet");
    }

    /// Kills the far endpoint, and starts another one in its place.
    fn start_again(&mut self, world: &mut World, start: u64, word: Option<&str>) {
        world.far.signal(libc::SIGKILL);
        if word.is_some() {
            world.near.has("posted");
        }
        world.far = Process::start(&world.hosts[1], End::Far);
        self.open(world, End::Far);
        world.far.tell(&format!("greet {start} first"));
        if let Some(word) = word {
            world.near.tell(word);
            world.near.has("batch");
        }
        world.near.tell(&format!("greet {start} second"));
        world.far.has("greet");
        world.near.has("greet");
    }

    /// Causes an event while requests are in flight.
    fn disturb(&mut self, world: &mut World, tally: &mut Tally) {
        let most = if self.rng.bernoulli(0.1) { LONGEST_STOP } else { Duration::from_millis(50) };
        let time = most.mul_f64(self.rng.unit_f64());
        match self.rng.below(16) {
            which @ 0..=2 => {
                let ends = [&End::BOTH[..], &End::BOTH[..1], &End::BOTH[1..]][which as usize];
                world.wire.narrow(ends, 0);
                std::thread::sleep(time);
                tally.cuts += 1;
            }
            3 => {
                world.wire.narrow(&End::BOTH, NARROW);
                std::thread::sleep(time);
                tally.narrowed += 1;
            }
            which @ 4..=5 => {
                let end = if which == 4 { &world.near } else { &world.far };
                end.signal(libc::SIGSTOP);
                std::thread::sleep(time);
                end.signal(libc::SIGCONT);
                tally.stops += 1;
            }
            _ => {}
        }
        world.wire.narrow(&End::BOTH, usize::MAX);
    }
}
