//! The rate of each flow in integers (algorithm 2 of LAPS, as repaired in `pathweave-policy`).

use alloc::boxed::Box;
use alloc::vec;

use super::Ticks;

/// Number of increases towards the expected rate before the expected rate doubles.
const STAGES: u8 = 5;

/// Target of a decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseRule {
    /// Half the rate.
    Half,
    /// Half the rate, but not below the line rate times threshold / fastest delay.
    ToShare,
}

/// Delays of the paths to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDelays {
    /// Shortest delay.
    pub fastest: Ticks,
    /// Longest delay.
    pub slowest: Ticks,
    /// Threshold of congestion: a fastest path with a longer delay is congested.
    pub threshold: Ticks,
}

/// State of a flow. Rates are in bits per second, 40 bits wide; instants are in ticks, 48 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateEntry {
    /// Current sending rate.
    pub current: u64,
    /// Rate before the last decrease, doubled on each increase after the fifth.
    pub expected: u64,
    /// Increases since the last decrease, at most six.
    pub stage: u8,
    /// Earliest instant of the next increase.
    pub next_increase: u64,
    /// Earliest instant of the next decrease.
    pub next_decrease: u64,
}

impl RateEntry {
    /// Returns the state of a flow that begins at this rate.
    fn at(rate: u64) -> Self {
        RateEntry { current: rate, expected: rate, stage: 0, next_increase: 0, next_decrease: 0 }
    }
}

/// The flows of a host.
#[derive(Clone, Debug)]
pub struct Rates {
    line_rate: u64,
    floor: u64,
    cut: DecreaseRule,
    flows: Box<[RateEntry]>,
}

impl Rates {
    /// Creates `flows` flows on links of rate `line`, each at that rate. No rate falls below `floor`.
    pub fn new(flows: usize, line: u64, floor: u64, cut: DecreaseRule) -> Self {
        assert!((1..1 << 40).contains(&line) && floor <= line, "line {line}, floor {floor}");
        Rates { line_rate: line, floor, cut, flows: vec![RateEntry::at(line); flows].into_boxed_slice() }
    }

    /// Returns the state of a flow.
    pub fn entry(&self, flow: usize) -> RateEntry {
        self.flows[flow]
    }

    /// Begins a flow, at the line rate.
    pub fn open(&mut self, flow: usize) {
        self.flows[flow] = RateEntry::at(self.line_rate);
    }

    /// Updates the rate of a flow on an acknowledgement.
    pub fn acknowledged(&mut self, now: u64, flow: usize, delays: PathDelays) {
        let entry = &mut self.flows[flow];
        let twice = |delay: Ticks| u64::from(delay.get()) * 2;
        let instant = |now: u64, delay: Ticks| (now + twice(delay)) & ((1 << 48) - 1);
        if delays.fastest > delays.threshold {
            if now >= entry.next_decrease {
                let share = match self.cut {
                    DecreaseRule::Half => 0,
                    DecreaseRule::ToShare => {
                        let line = u128::from(self.line_rate) * u128::from(delays.threshold.get());
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
                entry.expected = (entry.expected * 2).min(self.line_rate);
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
        let mut rates = Rates::new(1, 64 * GBPS, 640_000_000, DecreaseRule::Half);
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

        let mut rates = Rates::new(1, 64 * GBPS, 640_000_000, DecreaseRule::ToShare);
        for now in [0, 40] {
            rates.acknowledged(now, 0, delays(12, 20, 9));
            assert_eq!(rates.entry(0).current, 48 * GBPS);
        }
    }

    proptest! {
        /// The floor, the current rate, the expected rate and the line rate stay in this order, and two decreases are
        /// at least twice the longest delay apart.
        #[test]
        fn rates_stay_in_order(
            line in 1u64..1 << 40,
            share in 1u64..200,
            steps in prop::collection::vec((0u64..100_000, 0u64..50_000, 0u64..50_000, 1u64..20_000), 1..100),
            cut in prop::sample::select(std::vec![DecreaseRule::Half, DecreaseRule::ToShare]),
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
