//! The rate of a flow (algorithm 2). It is halved if even the fastest path is congested. Otherwise it rises towards
//! the expected rate, which was the rate before and doubles after a few stages without congestion.

use pathweave_units::{Duration, Rate, Time};

use super::config::{LapsConfig, RateCut};
use super::law::{HoldOff, Law};

/// Delays of the paths to the destination at an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delays {
    /// True if every measured path is congested.
    pub congested: bool,
    /// t: shortest measured delay.
    pub fastest: Duration,
    /// Longest measured delay.
    pub slowest: Duration,
    /// T: delay of the slowest path when it is nearly idle.
    pub threshold: Duration,
}

impl Delays {
    /// Returns min(1, T / t), where T is at least `least`, and t the delay of the fastest path.
    pub(super) fn share(&self, least: Duration) -> f64 {
        let threshold = self.threshold.max(least).as_ps() as f64;
        (threshold / self.fastest.as_ps().max(1) as f64).min(1.0)
    }
}

/// Rate control of a flow. Rates are in bits per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControl {
    current: u64,
    expected: u64,
    line: u64,
    floor: u64,
    /// Number of increases since the last decrease.
    stage: u32,
    next_increase: Time,
    next_decrease: Time,
    decrease: RateCut,
    law: &'static Law,
}

impl RateControl {
    pub(super) fn new(config: &LapsConfig, line: Rate) -> Self {
        RateControl {
            current: line.as_bps(),
            expected: line.as_bps(),
            line: line.as_bps(),
            floor: line.scale(config.law().floor).as_bps().max(1),
            stage: 0,
            next_increase: Time::ZERO,
            next_decrease: Time::ZERO,
            decrease: config.decrease,
            law: config.law(),
        }
    }

    /// Returns the rate at which the flow may send.
    #[inline]
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps(self.current.min(self.line))
    }

    /// Returns true at line rate, which needs no pacing.
    #[inline]
    pub(super) fn is_line(&self) -> bool {
        self.current >= self.line
    }

    /// Returns true if an acknowledgement may change the rate now.
    #[inline]
    pub(super) fn may_act(&self, now: Time) -> bool {
        now >= self.next_increase || now >= self.next_decrease
    }

    /// Updates the rate on an acknowledgement.
    pub(super) fn on_ack(&mut self, now: Time, delays: &Delays) {
        if delays.congested {
            if now >= self.next_decrease {
                self.decrease(delays);
                self.next_decrease = now.saturating_add(self.hold_after_decrease(delays) * 2);
            }
        } else if now >= self.next_increase {
            self.increase();
            self.next_increase = now.saturating_add(self.hold_after_increase(delays) * 2);
        }
    }

    fn decrease(&mut self, delays: &Delays) {
        let least = match self.decrease {
            RateCut::Half => self.floor,
            RateCut::ToShare => self.floor.max(self.share(delays).min(self.current)),
        };
        self.expected = self.current;
        self.current = (self.current / 2).max(least);
        self.stage = 0;
    }

    /// Returns the smallest rate that a delay of t justifies: T / t of the line rate. A queue of n windows of two
    /// thresholds takes t = 2 n T. The returned rate is half of what each of the n flows gets, so the queue shrinks.
    fn share(&self, delays: &Delays) -> u64 {
        let of_line = u128::from(self.line) * u128::from(delays.threshold.as_ps())
            / u128::from(delays.fastest.as_ps().max(1));
        u64::try_from(of_line).unwrap_or(u64::MAX)
    }

    fn increase(&mut self) {
        let doubles = self.stage >= self.law.stages;
        self.stage = self.stage.saturating_add(1);
        let cap = self.line.saturating_mul(self.law.most_lines);
        if doubles {
            self.expected = self.expected.saturating_mul(2).min(cap);
        }
        let middle = self.current.midpoint(self.expected);
        self.current = middle.max(self.current.saturating_add(self.law.least_increase.as_bps())).min(cap);
        self.expected = self.expected.max(self.current);
    }

    fn hold_after_decrease(&self, delays: &Delays) -> Duration {
        match self.law.hold_off {
            HoldOff::Slowest => delays.slowest,
            HoldOff::Fastest => delays.fastest,
        }
    }
    fn hold_after_increase(&self, delays: &Delays) -> Duration {
        match self.law.hold_off {
            HoldOff::Slowest => delays.threshold,
            HoldOff::Fastest => delays.fastest,
        }
    }

    #[cfg(test)]
    fn assert_invariants(&self) {
        assert!(self.floor <= self.current && self.current <= self.expected, "{self:?}");
        assert!(self.law.most_lines > 1 || self.expected <= self.line, "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::code_2025;
    use super::super::config::LapsVariant;
    use super::*;
    use alloc::boxed::Box;
    use pathweave_units::Rng;
    use std::vec::Vec;

    /// Configuration of the paper without a bound on its rates.
    const UNBOUNDED: fn() -> LapsConfig =
        || LapsConfig { variant: LapsVariant::PublishedUnbounded, ..LapsConfig::published() };
    const US: fn(u64) -> Duration = Duration::from_us;
    /// Configuration with the decreases of algorithm 2.
    const PAPER: fn() -> LapsConfig = || LapsConfig { decrease: RateCut::Half, ..LapsConfig::default() };

    /// Returns delays against a threshold of 9 us; the slowest path takes 20 us.
    fn delays(fastest_us: u64) -> Delays {
        let (fastest, threshold) = (US(fastest_us), US(9));
        Delays { congested: fastest > threshold, fastest, slowest: US(20), threshold }
    }
    fn control(config: LapsConfig) -> RateControl {
        RateControl::new(&config, Rate::from_gbps(64))
    }
    /// Returns the rate after each of `count` increases; 1.0 is a line rate of 64 Gb/s.
    fn increases(control: &mut RateControl, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| {
                let now = control.next_increase;
                control.on_ack(now, &delays(5));
                control.assert_invariants();
                control.current as f64 / 64e9
            })
            .collect()
    }

    #[test]
    fn increases_approach_the_expected_rate_which_doubles_after_five_stages() {
        let mut paper = control(UNBOUNDED());
        paper.expected = 2 * paper.current;
        let seven = [1.5, 1.75, 1.875, 1.937_5, 1.968_75, 2.984_375, 5.492_187_5];
        assert_eq!(increases(&mut paper, 7), seven);
        let code = Law { most_lines: 1 << 20, least_increase: Rate::ZERO, ..code_2025::LAW };
        let mut code = RateControl { law: Box::leak(Box::new(code)), ..control(PAPER()) };
        code.expected = 2 * code.current;
        assert_eq!(increases(&mut code, 7)[5..], [1.984_375, 2.992_187_5]);
        let before = paper.current;
        paper.on_ack(Time::from_us(1_000), &delays(10));
        assert_eq!((paper.expected, paper.current, paper.stage), (before, before / 2, 0));
    }

    #[test]
    fn the_line_caps_both_rates() {
        for config in [PAPER(), LapsConfig::published()] {
            let mut control = control(config);
            assert_eq!(increases(&mut control, 9), [1.0; 9]);
            control.on_ack(Time::from_us(1_000), &delays(10));
            assert_eq!((control.current, control.expected), (32_000_000_000, 64_000_000_000));
            control.next_increase = Time::from_us(1_000);
            let steps = [0.75, 0.875, 0.937_5, 0.968_75, 0.984_375];
            assert_eq!(increases(&mut control, 5), steps);
            increases(&mut control, 1);
            assert_eq!(control.expected, 64_000_000_000);
        }
    }

    #[test]
    fn changes_are_a_hold_off_apart_and_the_two_kinds_do_not_wait_for_each_other() {
        let mut control = control(PAPER());
        // Both hold-offs are over at the start: the first acknowledgement may act.
        control.on_ack(Time::ZERO, &delays(10));
        assert_eq!(control.rate(), Rate::from_gbps(32));
        control.on_ack(Time::ZERO, &delays(5));
        assert_eq!(control.rate(), Rate::from_gbps(48), "a decrease does not postpone an increase");
        // Twice the slowest path, 40 us; twice the threshold, 18 us.
        control.on_ack(Time::from_ns(39_999), &delays(10));
        control.on_ack(Time::from_ns(17_999), &delays(5));
        assert_eq!(control.rate(), Rate::from_gbps(48));
        control.on_ack(Time::from_us(18), &delays(9));
        assert_eq!(control.rate(), Rate::from_gbps(56), "as slow as the threshold is not congested");
        control.on_ack(Time::from_us(40), &delays(10));
        assert_eq!(control.rate(), Rate::from_gbps(28));
    }

    #[test]
    fn the_hold_off_of_algorithm_2() {
        let mut control = control(LapsConfig::published());
        control.on_ack(Time::ZERO, &delays(10));
        assert_eq!(control.next_decrease, Time::from_us(20));
    }

    #[test]
    fn a_decrease_ends_at_the_share_that_the_delay_tells() {
        let at = |delays_us: [u64; 3]| {
            let mut control = control(LapsConfig::default());
            delays_us.map(|us| {
                let now = control.next_decrease;
                control.on_ack(now, &delays(us));
                control.assert_invariants();
                control.current
            })
        };
        // 12 us against 9: three quarters of 64 Gb/s, and no further decrease.
        assert_eq!(at([12, 12, 12]), [48_000_000_000; 3]);
        // 90 us: a tenth; the rate halves until it is reached.
        assert_eq!(at([90, 90, 90]), [32_000_000_000, 16_000_000_000, 8_000_000_000]);
        assert_eq!(at([90, 90, 30]), [32_000_000_000, 16_000_000_000, 16_000_000_000]);
        assert_eq!(at([36, 36, 36]), [32_000_000_000, 16_000_000_000, 16_000_000_000]);
    }

    #[test]
    fn the_least_increase_of_the_code() {
        let mut control = control(LapsConfig::code_2025());
        control.current = 63_900_000_000;
        assert_eq!(increases(&mut control, 1), [1.0], "half of the way is 0.05 Gb/s, the least 1 Gb/s");
    }

    #[test]
    fn rates_stay_in_order_whatever_comes() {
        let mut rng = Rng::for_component(1, "test", 0);
        for config in
            [LapsConfig::default(), PAPER(), LapsConfig::published(), UNBOUNDED(), LapsConfig::code_2025()]
        {
            let mut control = control(config);
            let (mut now, mut last_decrease) = (Time::ZERO, None::<(Time, Duration)>);
            for _ in 0..20_000 {
                now += Duration::from_ns(u64::from(rng.below(20_000)));
                let before = control;
                let seen = delays(4 + u64::from(rng.below(9)));
                control.on_ack(now, &seen);
                control.assert_invariants();
                if control.current < before.current {
                    assert!(seen.congested);
                    if let Some((at, hold)) = last_decrease {
                        assert!(now >= at + hold * 2);
                    }
                    last_decrease = Some((now, control.hold_after_decrease(&seen)));
                }
            }
        }
    }

    /// The circuit's rates equal these bit by bit, if delays and instants are whole ticks.
    #[test]
    fn the_circuit_has_the_same_rates() {
        use crate::laps::pipeline::{DecreaseRule, PathDelays, Rates, Ticks};
        let ticks = |ticks: u64| Duration::from_ps(ticks * 1_024);
        let mut rng = Rng::for_component(1, "test-circuit", 0);
        for (config, cut) in [(LapsConfig::default(), DecreaseRule::ToShare), (PAPER(), DecreaseRule::Half)] {
            let mut control = control(config);
            let mut circuit = Rates::new(1, control.line, control.floor, cut);
            let mut now = 0;
            for _ in 0..20_000 {
                now += u64::from(rng.below(20_000));
                let fastest = u64::from(1 + rng.below(20_000));
                let slowest = fastest + u64::from(rng.below(20_000));
                let threshold = u64::from(1 + rng.below(20_000));
                let seen = Delays {
                    congested: fastest > threshold,
                    fastest: ticks(fastest),
                    slowest: ticks(slowest),
                    threshold: ticks(threshold),
                };
                control.on_ack(Time::ZERO + ticks(now), &seen);
                let [fastest, slowest, threshold] = [fastest, slowest, threshold].map(Ticks::new);
                circuit.acknowledged(now, 0, PathDelays { fastest, slowest, threshold });
                let entry = circuit.entry(0);
                assert_eq!((entry.current, entry.expected), (control.current, control.expected));
                assert_eq!(Time::ZERO + ticks(entry.next_increase), control.next_increase);
                assert_eq!(Time::ZERO + ticks(entry.next_decrease), control.next_decrease);
            }
        }
    }
}
