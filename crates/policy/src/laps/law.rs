//! Rules in which the variants of LAPS differ and which no scenario chooses.

use pathweave_units::Rate;

use crate::ControlClass;

/// Fixed rules of a variant. Each is written out in full, so that none changes with another.
#[derive(Debug)]
pub(super) struct Law {
    /// Silent paths that are probed.
    pub probing: Probing,
    /// Delay of a probed path until the reply arrives.
    pub after_probe: AfterProbe,
    /// Treatment of probes by the network.
    pub probes: ControlClass,
    /// N: increases towards the expected rate before the expected rate doubles.
    pub stages: u32,
    /// Largest expected rate, in line rates. Bounded in every variant, so that numbers stay finite.
    pub most_lines: u64,
    /// Minimum rate, as a fraction of the line rate: without one a flow may stop for ever.
    pub floor: f64,
    /// Smallest increase.
    pub least_increase: Rate,
    /// Time for which the rate stays after a change.
    pub hold_off: HoldOff,
    /// Use of a path in the comparison of delays while it is being probed.
    pub unmeasured: Unmeasured,
}

/// Silent paths that are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probing {
    /// One path at random, before a data packet, among the silent ones that data hardly takes or does not return
    /// from. Data measures the others.
    OneAvoided,
    /// One silent path at random, before a data packet (the FPGA of section IV).
    One,
    /// All silent paths (algorithm 1).
    All,
}

/// Delay of a probed path until the reply arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterProbe {
    /// The delay doubles: the longer a path is silent, the less it is used (section III-C).
    Doubled,
    /// The delay stays (the authors' code).
    Kept,
}

/// Time for which the rate stays after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldOff {
    /// Twice the longest delay of any path after a decrease, and twice the threshold after an increase (the authors'
    /// code), so that the change has shown its effect on every path.
    Slowest,
    /// Twice the shortest delay (algorithm 2).
    Fastest,
}

/// Use of estimated delays in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmeasured {
    /// Estimated delays do not count.
    Ignored,
    /// Estimated delays count (algorithm 2): a sender that was idle takes its own estimates for congestion.
    Counted,
}

/// Rules of the default variant: the paper's five stages; the minimum rate of its code, 1 Gb/s of 100.
pub(super) const REPAIRED: Law = Law {
    probing: Probing::OneAvoided,
    after_probe: AfterProbe::Doubled,
    probes: ControlClass::AsUnmarkedData,
    stages: 5,
    most_lines: 1,
    floor: 0.01,
    least_increase: Rate::ZERO,
    hold_off: HoldOff::Slowest,
    unmeasured: Unmeasured::Ignored,
};
