//! Chaos test: random requests under random faults with any scheme and protection. Meanwhile paths are cut, the MTU
//! falls, and ends stall, restart and crash. The seed determines all of it. Every byte and every completion is
//! compared with the model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pathweave_datapath::backend::{FaultCounters, Faults};
use pathweave_datapath::secure::Protection;
use pathweave_policy::{Scheme, Service, schemes};
use pathweave_units::Rng;

use crate::connections::Connected;
use crate::datagrams::{Datagrams, RealDatagrams};
use crate::model::Model;
use crate::real::{Loopback, Loopback6, Real, Wires};
use crate::simulated::Simulated;
use crate::world::{
    AsWhole, End, Fences, Hosts, InOrder, Order, PATHS, Restarts, Setup, Start, Troubles, Verb, World,
};

/// Bytes of each end that several requests use.
const SHARED_BYTES: usize = 30_000;
/// Largest packet in bytes that passes a link whose MTU has fallen: acknowledgements, and short messages.
const NARROW: usize = 400;
/// Largest number of requests at a time.
const AT_A_TIME: u32 = 24;
/// Schemes whose windows, as published, fall to a thousandth of a packet: one packet in a thousand round trips.
const SLOW: [&str; 2] = ["swift-published", "reflex-swift-published"];
/// Size of the PSN space on the wire: 24 bits.
const PSNS: u64 = 1 << 24;

pub(crate) fn draw<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// Kind of world in which lives take place, and their dimensions there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Simulated,
    Real,
}

impl Side {
    fn longest(self) -> u32 {
        match self {
            Side::Simulated => 30_000,
            Side::Real => 300_000,
        }
    }

    fn memory_bytes(self) -> usize {
        2 * SHARED_BYTES + (AT_A_TIME as usize + 1) * (self.longest() as usize + 100)
    }

    /// Returns the longest time for which ends stall.
    fn longest_stall(self) -> Duration {
        match self {
            Side::Simulated => Duration::from_secs(5),
            Side::Real => Duration::from_secs(1),
        }
    }

    /// Returns the probability of a crash. A crash with outstanding requests takes as long as the peer timeout.
    fn crashes(self) -> f64 {
        match self {
            Side::Simulated => 0.02,
            Side::Real => 0.0002,
        }
    }

    /// Returns the schemes that can be run there.
    pub(crate) fn schemes(self) -> Vec<&'static str> {
        let is_run = |scheme: Scheme| match self {
            Side::Simulated => true,
            Side::Real => scheme.connects_real_hosts() || matches!(scheme.service, Service::Datagram(_)),
        };
        schemes().iter().filter(|info| is_run((info.make)())).map(|info| info.name).collect()
    }
}

/// Counters of requests, and of faults meanwhile.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) lives: u64,
    pub(crate) requests: u64,
    pub(crate) fenced: u64,
    pub(crate) bytes: u64,
    pub(crate) cuts: u64,
    pub(crate) narrowed: u64,
    pub(crate) stalls: u64,
    pub(crate) restarts: u64,
    pub(crate) crashes: u64,
    pub(crate) troubles: Troubles,
    pub(crate) happened: FaultCounters,
    /// Descriptions of lives that failed.
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    pub(crate) fn show(&self) {
        let Tally { lives, requests, fenced, cuts, narrowed, stalls, restarts, crashes, .. } = self;
        println!(
            "{lives} lives, {requests} requests, {fenced} of them fenced, {} MB; {cuts} cuts, {narrowed} with a smaller MTU, {stalls} \
             stalls, {restarts} restarts, {crashes} crashes; {:?}; {:?}; {} lives went wrong",
            self.bytes / 1_000_000,
            self.happened,
            self.troubles,
            self.wrong.len(),
        );
    }

    /// Checks that nothing failed, and that each kind of fault occurred.
    #[track_caller]
    pub(crate) fn check(&self) {
        assert!(self.wrong.is_empty(), "{} of {} lives: {:#?}", self.wrong.len(), self.lives, self.wrong);
        let FaultCounters { lost, repeated, reordered, damaged, cut_short, replayed, strayed, .. } =
            self.happened;
        let least =
            [lost, repeated, reordered, damaged, cut_short, replayed, strayed].into_iter().min().unwrap();
        let Troubles { retransmitted, refused, duplicates, out_of_order } = self.troubles;
        let noticed = [retransmitted, refused, duplicates, out_of_order].into_iter().min().unwrap();
        let events = [self.cuts, self.narrowed, self.stalls, self.restarts].into_iter().min().unwrap();
        assert!(least > 0 && noticed > 0 && events > 0, "the network did too little");
    }
}

/// Two connected ends for a limited time.
pub(crate) struct Life {
    side: Side,
    setup: Setup,
    rng: Rng,
}

impl Life {
    /// Returns the life of a seed: consecutive seeds cover all schemes with one protection, then with the next.
    pub(crate) fn new(side: Side, seed: u64) -> Self {
        let mut rng = Rng::for_component(seed, "chaos", 0);
        let of_seed = side.schemes();
        let (scheme, round) = (of_seed[seed as usize % of_seed.len()], seed as usize / of_seed.len());
        let faults = Faults {
            lose: draw(&mut rng, &[0.0, 0.001, 0.02, 0.1]),
            repeat: draw(&mut rng, &[0.0, 0.01, 0.1]),
            reorder: draw(&mut rng, &[0.0, 0.01, 0.1, 0.5]),
            damage: draw(&mut rng, &[0.0, 0.001, 0.02]),
            cut_short: draw(&mut rng, &[0.0, 0.001, 0.02]),
            replay: draw(&mut rng, &[0.0, 0.01, 0.05]),
            stray: draw(&mut rng, &[0.0, 0.2]),
            mark: draw(&mut rng, &[0.0, 0.0, 0.1]),
        };
        let latest: &[u64] = if SLOW.contains(&scheme) { &[20] } else { &[20, 500, 20_000] };
        let setup = Setup {
            scheme: Some(scheme),
            protection: Protection::ALL[round % Protection::ALL.len()],
            hosts: draw(&mut rng, &[Hosts::Simulated, Hosts::Software]),
            latest: Duration::from_micros(draw(&mut rng, latest)),
            packets_a_key: draw(&mut rng, &[30, 300, 1 << 22]),
            // Start values make the PSNs wrap, or pass the middle of their range, by which they are compared.
            first_psn: draw(&mut rng, &[0, PSNS, PSNS, PSNS / 2]).saturating_sub(rng.below(1_000).into()),
            ..Setup::new(seed, faults, side.memory_bytes(), Duration::from_secs(10))
        };
        Life { side, setup, rng }
    }

    /// Runs as long as `goes_on` returns true, which is called after each batch of requests. A failure is recorded,
    /// and the caller continues.
    pub(crate) fn run(self, tally: &mut Tally, goes_on: impl FnMut() -> bool) {
        let context = format!("{:?}, {:?}", self.side, self.setup);
        let scheme = pathweave_policy::find_scheme(self.setup.scheme.unwrap()).expect("a scheme");
        let is_datagrams = matches!((scheme.make)().service, Service::Datagram(_));
        tally.lives += 1;
        let seed = self.setup.seed;
        let life = AssertUnwindSafe(|| match (self.side, is_datagrams, seed % 2) {
            (Side::Simulated, false, _) => self.live::<Simulated<Connected>>(tally, goes_on),
            (Side::Simulated, true, 0) => self.live::<Simulated<Datagrams<AsWhole>>>(tally, goes_on),
            (Side::Simulated, true, _) => self.live::<Simulated<Datagrams<InOrder>>>(tally, goes_on),
            (Side::Real, ..) if (seed / 2).is_multiple_of(2) => {
                self.over::<Loopback>(is_datagrams, tally, goes_on);
            }
            (Side::Real, ..) => self.over::<Loopback6>(is_datagrams, tally, goes_on),
        });
        if let Err(panic) = catch_unwind(life) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            println!("WRONG: {context}: {text}");
            tally.wrong.push(format!("{context}: {text:.1000}"));
        }
    }

    fn over<W: Wires>(self, is_datagrams: bool, tally: &mut Tally, goes_on: impl FnMut() -> bool) {
        match (is_datagrams, self.setup.seed % 2) {
            (false, _) => self.live::<Real<W>>(tally, goes_on),
            (true, 0) => self.live::<RealDatagrams<AsWhole, W>>(tally, goes_on),
            (true, _) => self.live::<RealDatagrams<InOrder, W>>(tally, goes_on),
        }
    }

    fn live<W: Restarts>(mut self, tally: &mut Tally, mut goes_on: impl FnMut() -> bool) {
        let Setup { seed, memory_bytes, .. } = self.setup;
        let mut world = W::open(&self.setup);
        let mut model = Model::new(&mut world, memory_bytes, seed, format!("{:?}", self.setup));
        loop {
            self.post_some(&mut world, &mut model, tally);
            // Datagrams have no notion of a peer's end, and an end without outstanding requests does not detect it.
            let notices = W::ORDER == Order::OfPosting && model.has_requests(End::Near);
            if notices && self.rng.bernoulli(self.side.crashes()) {
                world.crash_far();
                model.crashed(End::Far);
                model.give_up(&mut world, End::Near);
                self.begin_anew(&mut world, &mut model);
                model.fill(&mut world, End::Near);
                tally.crashes += 1;
            } else {
                self.disturb(&mut world, tally);
                model.wait_all(&mut world);
                model.compare(&world);
                if self.rng.bernoulli(0.05) {
                    world.crash_far();
                    self.begin_anew(&mut world, &mut model);
                    tally.restarts += 1;
                }
            }
            model.rewind();
            model.transcript = Default::default();
            if !goes_on() {
                break;
            }
        }
        tally.troubles = tally.troubles + world.troubles();
        tally.happened += world.close();
    }

    /// Restarts the far end without state.
    fn begin_anew<W: Restarts>(&self, world: &mut W, model: &mut Model) {
        world.revive_far();
        model.fill(world, End::Far);
        world.reconnect();
    }

    /// Posts requests between separate places, requests that share places, and requests that need the bytes of the
    /// previous one.
    fn post_some<W: World>(&mut self, world: &mut W, model: &mut Model, tally: &mut Tally) {
        let shared = End::BOTH.map(|end| model.shared(end, SHARED_BYTES));
        for _ in 0..=self.rng.below(AT_A_TIME / 2) {
            let (at, verb) = (draw(&mut self.rng, &End::BOTH), draw(&mut self.rng, W::VERBS));
            // Small requests are as likely as large ones.
            let most = self.side.longest() >> self.rng.below(15);
            let size = (self.rng.below(most + 1) as usize).max(W::SHORTEST);
            let start = match W::FENCES {
                Fences::Kept => {
                    draw(&mut self.rng, &[Start::AtOnce, Start::AtOnce, Start::AtOnce, Start::Fenced])
                }
                Fences::Missing => Start::AtOnce,
            };
            let shares = matches!(verb, Verb::Write | Verb::WriteImm | Verb::Read)
                && size <= SHARED_BYTES
                && self.rng.bernoulli(0.5);
            if shares {
                let place = self.rng.below((SHARED_BYTES - size) as u32 + 1) as usize;
                // Often exactly the same place.
                let place = place.min(draw(&mut self.rng, &[0, 700, SHARED_BYTES]));
                let remote = shared[at.other().index()] + place;
                model.post_at(world, at, (verb, size, start), Some(remote));
            } else if start == Start::Fenced && verb != Verb::Read && size > 0 {
                model.post_what_is_read(world, at, verb, size);
                tally.requests += 1;
            } else {
                model.post_at(world, at, (verb, size, start), None);
            }
            tally.fenced += u64::from(start == Start::Fenced);
            tally.requests += 1;
            tally.bytes += size as u64;
        }
    }

    /// Injects an event while requests are outstanding.
    fn disturb<W: World>(&mut self, world: &mut W, tally: &mut Tally) {
        let for_long = self.rng.bernoulli(0.1);
        let most = if for_long { self.side.longest_stall() } else { Duration::from_millis(20) };
        let time = most.mul_f64(self.rng.unit_f64());
        match self.rng.below(16) {
            which @ 0..=2 => {
                let paths = if which == 0 { u64::MAX } else { self.rng.below(1 << PATHS).into() };
                world.cut(paths);
                world.pass(time);
                // Limited in time: with all paths cut nothing would arrive.
                world.cut(0);
                tally.cuts += 1;
            }
            3 => {
                world.narrow(NARROW);
                world.pass(time);
                world.narrow(usize::MAX);
                tally.narrowed += 1;
            }
            4 => {
                world.stall(time);
                tally.stalls += 1;
            }
            _ => {}
        }
    }
}

/// Runs all schemes with a protection, in simulated time, with the same packets each time.
fn every_scheme(protection: Protection) {
    let side = Side::Simulated;
    let of_round = side.schemes().len() as u64;
    let round = Protection::ALL.iter().position(|&one| one == protection).expect("one of all") as u64;
    let mut tally = Tally::default();
    for seed in round * of_round..(round + 1) * of_round {
        let mut batches = 0;
        let life = Life::new(side, seed);
        assert_eq!(life.setup.protection, protection);
        life.run(&mut tally, || {
            batches += 1;
            batches < 40
        });
    }
    println!("chaos in simulated time, seeds {} to {}", round * of_round, (round + 1) * of_round - 1);
    tally.show();
    tally.check();
}

#[test]
fn every_scheme_unprotected() {
    every_scheme(Protection::Insecure);
}

#[test]
fn every_scheme_authenticated() {
    every_scheme(Protection::AuthOnly);
}

#[test]
fn every_scheme_encrypted() {
    every_scheme(Protection::Encrypt);
}

/// Runs some schemes over sockets, with IPv4 and IPv6.
#[test]
fn some_schemes_over_sockets() {
    let side = Side::Real;
    let seeds = (0..8).map(|life| life * (side.schemes().len() as u64 / 3 + 1));
    let mut tally = Tally::default();
    for seed in seeds.clone() {
        let mut batches = 0;
        Life::new(side, seed).run(&mut tally, || {
            batches += 1;
            batches < 10
        });
    }
    println!("chaos over sockets, seeds {:?}", seeds.collect::<Vec<_>>());
    tally.show();
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.troubles.refused > 0 && tally.troubles.retransmitted > 0, "the network did too little");
}
