//! The soak: random requests over the real side in random weather, for as long as one likes. Every byte and every
//! completion is checked, and memory must stay flat.

use std::time::{Duration, Instant};

use pathweave_datapath::backend::Faults;
use pathweave_units::Rng;

use crate::model::Model;
use crate::real::Real;
use crate::world::{End, PATHS, Restarts, Setup, Troubles, Verb, World};

/// Memory of each end.
const MEMORY_BYTES: usize = 8 << 20;
/// Longest message, in bytes.
const LONGEST: u32 = 300_000;
/// Rounds before memory is looked at: allocators and sockets fill their caches.
const WARM_UP: usize = 5;
/// How much the program's memory may grow from the first half to the second, in KiB.
pub(crate) const GROWTH_KIB: u64 = 8 << 10;

/// Memory of this program that is in RAM, in KiB.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

pub(crate) fn draw<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u32) as usize]
}

/// Small ones as likely as large ones.
fn size(rng: &mut Rng) -> usize {
    let most = LONGEST >> rng.below(19);
    rng.below(most + 1) as usize
}

/// What the environment says.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// What leaks stays, and devices may still be closing when memory is looked at: so medians are compared.
pub(crate) fn median(looks: &[u64]) -> u64 {
    let mut looks = looks.to_vec();
    looks.sort_unstable();
    looks[looks.len() / 2]
}

/// What was done.
#[derive(Default)]
struct Tally {
    requests: u64,
    bytes: u64,
    cuts: u64,
    restarts: u64,
    troubles: Troubles,
}

/// Some seconds with two devices in one weather.
fn round(seed: u64, time: Duration, tally: &mut Tally) {
    let mut rng = Rng::for_component(seed, "soak", 0);
    let faults = Faults {
        lose: draw(&mut rng, &[0.0, 0.0, 0.001, 0.02]),
        repeat: draw(&mut rng, &[0.0, 0.0, 0.01, 0.1]),
        reorder: draw(&mut rng, &[0.0, 0.0, 0.01, 0.1]),
        damage: draw(&mut rng, &[0.0, 0.0, 0.001, 0.02]),
        mark: draw(&mut rng, &[0.0, 0.0, 0.1]),
    };
    let setup = Setup { seed, faults, memory_bytes: MEMORY_BYTES, peer_timeout: Duration::from_secs(10) };
    let mut world = <Real>::open(&setup);
    let mut model = Model::new(&mut world, MEMORY_BYTES, seed, format!("soak, {faults:?}"));
    let end = Instant::now() + time;
    while Instant::now() < end {
        for _ in 0..=rng.below(24) {
            let (at, verb, size) = (draw(&mut rng, &End::BOTH), draw(&mut rng, &Verb::ALL), size(&mut rng));
            model.post(&mut world, at, verb, size, None);
            tally.requests += 1;
            tally.bytes += size as u64;
        }
        let cut = match rng.below(20) {
            0 => u64::MAX,
            1 | 2 => u64::from(rng.below(1 << PATHS)),
            _ => 0,
        };
        if cut != 0 {
            world.cut(cut);
            world.pass(Duration::from_millis(u64::from(1 + rng.below(20))));
            // Not for ever: with all paths cut nothing would come.
            world.cut(0);
            tally.cuts += 1;
        }
        model.wait_all(&mut world);
        model.compare(&world);
        model.rewind();
        model.transcript = Default::default();
        if rng.chance(0.01) {
            world.crash_far();
            world.revive_far();
            model.fill(&mut world, End::Far);
            world.reconnect();
            tally.restarts += 1;
        }
    }
    tally.troubles = tally.troubles + world.troubles();
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn soak() {
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let first_seed = number("SOAK_SEED").unwrap_or(1);
    // At least 20 rounds, so that growth from one to the next can show.
    let time = Duration::from_millis((seconds * 1_000 / 20).clamp(200, 5_000));
    println!("soak: {seconds} s, first seed {first_seed} (SOAK_SECONDS, SOAK_SEED)");
    let (begin, mut tally, mut resident) = (Instant::now(), Tally::default(), Vec::new());
    while begin.elapsed() < Duration::from_secs(seconds) || resident.len() < WARM_UP + 4 {
        let seed = first_seed + resident.len() as u64;
        round(seed, time, &mut tally);
        resident.push(resident_kib());
        println!(
            "{:4} s, seed {seed}: {} requests, {} MB, {} cuts, {} restarts, {:?}, {} KiB resident",
            begin.elapsed().as_secs(),
            tally.requests,
            tally.bytes / 1_000_000,
            tally.cuts,
            tally.restarts,
            tally.troubles,
            resident[resident.len() - 1],
        );
    }
    let warm = &resident[WARM_UP..];
    let (first, second) = warm.split_at(warm.len() / 2);
    let (before, after) = (median(first), median(second));
    println!("{before} KiB resident in the first half, {after} KiB in the second");
    assert!(after <= before + GROWTH_KIB, "memory grew from {before} to {after} KiB: {resident:?}");
    assert!(tally.troubles.retransmitted > 0 && tally.troubles.refused > 0, "{:?}", tally.troubles);
}
