//! The rate of each flow (algorithm 2 of LAPS, as `pathweave-policy` has it repaired), in integers.

use alloc::boxed::Box;
use alloc::vec;

use super::Ticks;

/// Increases towards the expected rate before that one doubles.
const STAGES: u8 = 5;

/// What a decrease goes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Half the rate.
    Half,
    /// Half the rate, but not below the share of the line that the delay tells: threshold / fastest of it.
    ToShare,
}

/// Delays of the paths to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDelays {
    /// The shortest.
    pub fastest: Ticks,
    /// The longest.
    pub slowest: Ticks,
    /// Above this even the fastest path is congested.
    pub threshold: Ticks,
}

/// A flow. Rates are bits per second, of 40 bits; instants are ticks, of 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateEntry {
    /// What it may send at.
    pub current: u64,
    /// What it had before the last decrease, doubled after five stages.
    pub expected: u64,
    /// Increases since the last decrease, at most six.
    pub stage: u8,
    /// No increase before.
    pub next_increase: u64,
    /// No decrease before.
    pub next_decrease: u64,
}

impl RateEntry {
    /// Of a flow that begins at this rate.
    fn at(rate: u64) -> Self {
        RateEntry { current: rate, expected: rate, stage: 0, next_increase: 0, next_decrease: 0 }
    }
}

/// The flows of a host.
#[derive(Clone, Debug)]
pub struct Rates {
    line: u64,
    floor: u64,
    cut: Cut,
    flows: Box<[RateEntry]>,
}

impl Rates {
    /// For so many flows on a line of this rate, each at the line's rate; no rate falls below `floor`.
    pub fn new(flows: usize, line: u64, floor: u64, cut: Cut) -> Self {
        assert!((1..1 << 40).contains(&line) && floor <= line, "line {line}, floor {floor}");
        Rates { line, floor, cut, flows: vec![RateEntry::at(line); flows].into_boxed_slice() }
    }

    /// The state of a flow.
    pub fn entry(&self, flow: usize) -> RateEntry {
        self.flows[flow]
    }

    /// A flow begins, at the line's rate.
    pub fn open(&mut self, flow: usize) {
        self.flows[flow] = RateEntry::at(self.line);
    }

    /// An acknowledgement of a flow has been taken in.
    pub fn acknowledged(&mut self, now: u64, flow: usize, delays: PathDelays) {
        let entry = &mut self.flows[flow];
        let twice = |delay: Ticks| u64::from(delay.get()) * 2;
        let instant = |now: u64, delay: Ticks| (now + twice(delay)) & ((1 << 48) - 1);
        if delays.fastest > delays.threshold {
            if now >= entry.next_decrease {
                let share = match self.cut {
                    Cut::Half => 0,
                    Cut::ToShare => {
                        let line = u128::from(self.line) * u128::from(delays.threshold.get());
                        (line / u128::from(delays.fastest.get())) as u64
                    }
                };
                let least = self.floor.max(share.min(entry.current));
                entry.expected = entry.current;
                entry.current = (entry.current / 2).max(least);
                entry.stage = 0;
                entry.next_decrease = instant(now, delays.slowest);
            }
        } else if now >= entry.next_increase {
            if entry.stage >= STAGES {
                entry.expected = (entry.expected * 2).min(self.line);
            }
            entry.stage = (entry.stage + 1).min(STAGES + 1);
            entry.current = entry.current.midpoint(entry.expected);
            entry.next_increase = instant(now, delays.threshold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const GBPS: u64 = 1_000_000_000;

    fn delays(fastest: u64, slowest: u64, threshold: u64) -> PathDelays {
        let [fastest, slowest, threshold] = [fastest, slowest, threshold].map(Ticks::new);
        PathDelays { fastest, slowest, threshold }
    }

    #[test]
    fn a_cut_and_what_follows_worked_out_by_hand() {
        let mut rates = Rates::new(1, 64 * GBPS, 640_000_000, Cut::Half);
        rates.acknowledged(100, 0, delays(12, 20, 9));
        assert_eq!((rates.entry(0).current, rates.entry(0).next_decrease), (32 * GBPS, 140));
        rates.acknowledged(139, 0, delays(12, 20, 9));
        assert_eq!(rates.entry(0).current, 32 * GBPS);
        let rises: Vec<u64> = (0..6)
            .map(|i| {
                rates.acknowledged(200 + 18 * i, 0, delays(9, 20, 9));
                rates.entry(0).current / GBPS
            })
            .collect();
        assert_eq!(rises, [48, 56, 60, 62, 63, 63]);
        assert_eq!(rates.entry(0).expected, 64 * GBPS);

        let mut rates = Rates::new(1, 64 * GBPS, 640_000_000, Cut::ToShare);
        for now in [0, 40] {
            rates.acknowledged(now, 0, delays(12, 20, 9));
            assert_eq!(rates.entry(0).current, 48 * GBPS);
        }
    }

    proptest! {
        /// The floor, the current rate, the expected one and the line are in order, and two cuts are twice the longest delay
        /// apart.
        #[test]
        fn rates_stay_in_order(
            line in 1u64..1 << 40,
            share in 1u64..200,
            steps in prop::collection::vec((0u64..100_000, 0u64..50_000, 0u64..50_000, 1u64..20_000), 1..100),
            cut in prop::sample::select(std::vec![Cut::Half, Cut::ToShare]),
        ) {
            let mut rates = Rates::new(1, line, line / share.max(2), cut);
            let (mut now, mut last_cut): (u64, Option<(u64, u64)>) = (0, None);
            for (after, fastest, more, threshold) in steps {
                now += after;
                let before = rates.entry(0);
                rates.acknowledged(now, 0, delays(fastest, fastest + more, threshold));
                let entry = rates.entry(0);
                prop_assert!(line / share.max(2) <= entry.current, "{:?}", entry);
                prop_assert!(entry.current <= entry.expected && entry.expected <= line, "{:?}", entry);
                if entry.next_decrease != before.next_decrease {
                    prop_assert!(last_cut.is_none_or(|(at, hold)| now >= at + hold));
                    last_cut = Some((now, 2 * (fastest + more)));
                }
            }
        }
    }
}
