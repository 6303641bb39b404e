//! Published parameter sets of DCQCN, with their sources.

use pathweave_units::{Bytes, Duration, Rate};

use super::params::{DcqcnParams, Reaction};
use crate::cc::Window;

/// A named parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DcqcnPreset {
    /// Values that the HPCC authors used for DCQCN.
    #[default]
    Hpcc,
    /// Values of the DCQCN paper.
    Paper,
    /// Values that the ConWeave authors used.
    Conweave,
    /// Values that the LAPS authors used.
    Laps,
    /// Defaults of ASTRA-sim's ns-3 back end.
    Astra,
}

/// A preset as `pathweave list presets` shows it.
#[derive(Clone, Copy, Debug)]
pub struct PresetInfo {
    /// The preset.
    pub preset: DcqcnPreset,
    /// Name in a scenario.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// Source of the values.
    pub source: &'static str,
    /// The values.
    pub params: DcqcnParams,
    /// Shortest time between notifications of a queue pair in the source (`cnp.interval`, DCQCN's N).
    pub cnp_interval: Duration,
}

/// Values that the ns-3 models share; presets state only the differences.
const NS3: DcqcnParams = DcqcnParams {
    reaction: Reaction::Sampled,
    gain: 1.0 / 256.0,
    initial_alpha: 1.0,
    alpha_timer: Duration::from_us(1),
    decrease_interval: Duration::from_us(4),
    rate_timer: Duration::from_us(300),
    byte_counter: Bytes::ZERO,
    fast_recovery_stages: 1,
    additive_increase: Rate::from_mbps(5),
    hyper_increase: Rate::from_mbps(50),
    increase_scale: Rate::ZERO,
    min_rate: Rate::from_mbps(100),
    clamp_target: false,
    window: Window::Unlimited,
    window_follows_rate: false,
};

static PRESETS: [PresetInfo; 5] = [
    PresetInfo {
        preset: DcqcnPreset::Hpcc,
        name: "hpcc",
        help: "Fast clocks (1us alpha, 4us cuts), increases in proportion to the line rate; the default",
        source: "High-Precision-Congestion-Control, simulation/run.py, cc = dcqcn (AI 5, HAI 50 Mb/s per 25G)",
        params: DcqcnParams { increase_scale: Rate::from_gbps(25), min_rate: Rate::from_mbps(1_000), ..NS3 },
        cnp_interval: Duration::ZERO,
    },
    PresetInfo {
        preset: DcqcnPreset::Paper,
        name: "paper",
        help: "The paper's 40G values: 50us notifications, 55us timers, 10MB byte counter, five recovery steps",
        source: "Zhu et al., SIGCOMM 2015, deployed values; R_HAI from the authors' ns3-rdma; minimum rate ours",
        params: DcqcnParams {
            reaction: Reaction::Immediate,
            alpha_timer: Duration::from_us(55),
            decrease_interval: Duration::ZERO,
            rate_timer: Duration::from_us(55),
            byte_counter: Bytes::from_mb(10),
            fast_recovery_stages: 5,
            additive_increase: Rate::from_mbps(40),
            hyper_increase: Rate::from_mbps(200),
            clamp_target: true,
            ..NS3
        },
        cnp_interval: Duration::from_us(50),
    },
    PresetInfo {
        preset: DcqcnPreset::Conweave,
        name: "conweave",
        help: "As hpcc with AI twice and HAI half as large, and a lower minimum rate",
        source: "conweave-ns3, run.py (AI 10, HAI 25 Mb/s per 25G, minimum 100 Mb/s)",
        params: DcqcnParams {
            additive_increase: Rate::from_mbps(10),
            hyper_increase: Rate::from_mbps(25),
            increase_scale: Rate::from_gbps(25),
            ..NS3
        },
        cnp_interval: Duration::ZERO,
    },
    PresetInfo {
        preset: DcqcnPreset::Laps,
        name: "laps",
        help: "As hpcc with increases that do not grow with the line rate",
        source: "Laps-ns3, branch Sigcomm2025, CONFIG_DCQCN.txt (AI 5, HAI 50, minimum 100 Mb/s)",
        params: NS3,
        cnp_interval: Duration::ZERO,
    },
    PresetInfo {
        preset: DcqcnPreset::Astra,
        name: "astra",
        help: "Slow recovery: a step every 900us, AI 50 and HAI 100 Mb/s at any line rate",
        source: "ASTRA-sim ns-3 back end, scratch/config/config.txt",
        params: DcqcnParams {
            rate_timer: Duration::from_us(900),
            additive_increase: Rate::from_mbps(50),
            hyper_increase: Rate::from_mbps(100),
            ..NS3
        },
        cnp_interval: Duration::ZERO,
    },
];

/// Returns all presets, the default first.
pub fn presets() -> &'static [PresetInfo] {
    &PRESETS
}

impl DcqcnPreset {
    /// Returns name, values and source.
    pub fn info(self) -> &'static PresetInfo {
        // The table is in order of declaration, which a test checks.
        &PRESETS[self as usize]
    }
}
