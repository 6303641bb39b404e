//! Soak test: chaos for a configurable time, in simulated time and over sockets. Memory must not grow.

use std::time::{Duration, Instant};

use crate::chaos::{Life, Side, Tally};

/// Number of lives before memory is measured: allocators and sockets fill their caches.
const WARM_UP: usize = 5;
/// Largest growth of the program's memory from the first half to the second, in KiB.
pub(crate) const GROWTH_KIB: u64 = 8 << 10;

/// Returns the resident memory of this program, in KiB.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it tells of RAM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Returns a number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Returns the median. Leaks persist, while devices may still be closing during a measurement, so medians are
/// compared.
pub(crate) fn median(looks: &[u64]) -> u64 {
    let mut looks = looks.to_vec();
    looks.sort_unstable();
    looks[looks.len() / 2]
}

/// Length of a life.
#[derive(Clone, Copy)]
enum Length {
    /// A number of batches, so that the same seed gives the same life.
    Batches(u32),
    Time(Duration),
}

/// Runs one life after the other on a side.
fn soak(side: Side, length: Length) {
    let seconds = number("SOAK_SECONDS").unwrap_or(600);
    let first_seed = number("SOAK_SEED").unwrap_or(1);
    println!("soak, {side:?}: {seconds} s, first seed {first_seed} (SOAK_SECONDS, SOAK_SEED)");
    let (begin, mut tally, mut resident) = (Instant::now(), Tally::default(), Vec::new());
    let mut shown = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) || resident.len() < WARM_UP + 4 {
        let (born, mut batches) = (Instant::now(), 0);
        let seed = first_seed + tally.lives;
        Life::new(side, seed).run(&mut tally, || {
            batches += 1;
            match length {
                Length::Batches(most) => batches < most,
                Length::Time(time) => born.elapsed() < time,
            }
        });
        resident.push(resident_kib());
        if shown.elapsed() >= Duration::from_secs(10) {
            shown = Instant::now();
            print!("{:4} s, seed {seed}, {} KiB resident: ", begin.elapsed().as_secs(), resident_kib());
            tally.show();
        }
    }
    tally.show();
    let warm = &resident[WARM_UP..];
    let (first, second) = warm.split_at(warm.len() / 2);
    let (before, after) = (median(first), median(second));
    println!("{before} KiB resident in the first half, {after} KiB in the second");
    tally.check();
    assert!(after <= before + GROWTH_KIB, "memory grew from {before} to {after} KiB: {resident:?}");
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn in_simulated_time() {
    soak(Side::Simulated, Length::Batches(100));
}

#[test]
#[ignore = "takes as long as it is told to: make soak"]
fn over_sockets() {
    soak(Side::Real, Length::Time(Duration::from_secs(2)));
}
