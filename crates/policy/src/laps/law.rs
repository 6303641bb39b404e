//! What differs between the variants of LAPS beyond what a scenario chooses.

use pathweave_units::Rate;

use crate::Treatment;

/// The fixed part of a variant. Each is spelled out whole, so that none changes with another.
#[derive(Debug)]
pub(super) struct Law {
    /// Which paths that nothing was heard of for too long are probed.
    pub probing: Probing,
    /// What becomes of the delay of a path that is probed, until the answer comes.
    pub after_probe: AfterProbe,
    /// How the network treats probes.
    pub probes: Treatment,
    /// N: increases towards the expected rate before that one doubles.
    pub stages: u32,
    /// The most the expected rate may be, in line rates. It is bounded in every variant, so that numbers stay finite.
    pub most_lines: u64,
    /// The least rate, as a share of the line rate: with none a flow may stop for ever.
    pub floor: f64,
    /// The least an increase adds.
    pub least_increase: Rate,
    /// How long the rate is left alone after it was changed.
    pub hold_off: HoldOff,
    /// Whether a path that is being probed counts when delays are compared.
    pub unmeasured: Unmeasured,
}

/// Which silent paths are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probing {
    /// One of those that data hardly takes or does not come back from, drawn at random, before a data packet: of the others
    /// data tells.
    OneAvoided,
    /// One of them, drawn at random, before a data packet (the FPGA of section IV).
    One,
    /// All of them (algorithm 1).
    All,
}

/// What becomes of the delay of a probed path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterProbe {
    /// It doubles: the longer nothing is heard, the less the path is used (section III-C).
    Doubled,
    /// It stays (the authors' code).
    Kept,
}

/// How long the rate is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldOff {
    /// After a decrease twice the longest delay of any path, after an increase twice the threshold (the authors' code): so
    /// that what was changed has shown on every path.
    Slowest,
    /// Twice the shortest delay (algorithm 2).
    Fastest,
}

/// Whether guesses count as delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmeasured {
    /// No.
    Ignored,
    /// Yes (algorithm 2): a sender that was idle sees its own guesses as congestion.
    Counted,
}

/// The default. The paper's five stages; the floor of its code, 1 Gb/s of 100.
pub(super) const REPAIRED: Law = Law {
    probing: Probing::OneAvoided,
    after_probe: AfterProbe::Doubled,
    probes: Treatment::AsUnmarkedData,
    stages: 5,
    most_lines: 1,
    floor: 0.01,
    least_increase: Rate::ZERO,
    hold_off: HoldOff::Slowest,
    unmeasured: Unmeasured::Ignored,
};
