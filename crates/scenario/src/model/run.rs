//! End, fidelity and execution of a run.

use std::path::PathBuf;

use pathweave_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// End, fidelity and execution of the run. The run ends when every foreground message is delivered and acknowledged
/// or has failed, or earlier at one of the limits below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Granularity of the simulation: "packet" (default) simulates every packet. "flow" simulates messages as fluids
    /// that share links, in a fraction of the time; docs/flow-fidelity.md states its error.
    #[serde(skip_serializing_if = "Fidelity::is_packet")]
    pub fidelity: Fidelity,
    /// Check of a flow simulation against packets of its beginning. "auto" (default) measures a run that shows signs
    /// of being outside of the model, for some tenths of a second, and reports whether it is. "prefix" measures every
    /// run for some seconds: one number is fitted on half of the messages, and the label states the error on the
    /// others. "off" measures none.
    #[serde(skip_serializing_if = "Calibrate::is_auto")]
    pub calibrate: Calibrate,
    /// Folding of equivalent ranks in a flow simulation of a collective or training job ("collective", "simai",
    /// "transformer"). Ranks that the network and the job treat alike are simulated once. "auto" (default) folds jobs
    /// of more than 4 million messages and computations. "always" folds every job and is an error where no ranks are
    /// alike; "never" folds none. Needs a single workload without stragglers or faults, and a scheme that spreads its
    /// packets.
    #[serde(skip_serializing_if = "Fold::is_auto")]
    pub fold: Fold,
    /// Simulated time at which the run ends, even if work is left. Above 0. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Number of simulator events after which the run ends. The run completes the window (2us at most) in which it
    /// reaches the number. At least 1. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// Number of parallel threads, 1 to 1024. Has no influence on results. Default: as many as the command sets, or
    /// as there are cores and enough hosts for, with at least 64 hosts a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// File that assigns each node to a part of the run, for threads and ranks. Each line has the name of a node and
    /// the number of its part, from 0. A host that is not listed belongs to the part of its switch. Has no influence
    /// on results. Default: by the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PathBuf>,
    /// Verification that every byte of every message is delivered exactly once. A violation stops the run with an
    /// internal error. Costs time and memory. Default false.
    pub verify: bool,
}

/// Check of a flow simulation against packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrate {
    /// Check runs that show signs of being outside of the model.
    #[default]
    Auto,
    /// Check no run.
    Off,
    /// Check every run, and use links to the share that packets of its beginning used.
    Prefix,
}

impl Calibrate {
    /// Converts the value to that of the engines.
    pub fn to_sim(self) -> pathweave_sim::Calibrate {
        match self {
            Calibrate::Auto => pathweave_sim::Calibrate::InDoubt,
            Calibrate::Off => pathweave_sim::Calibrate::Never,
            Calibrate::Prefix => pathweave_sim::Calibrate::Always,
        }
    }
    fn is_auto(&self) -> bool {
        *self == Calibrate::Auto
    }
}

/// Folding of equivalent ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// Fold large jobs.
    #[default]
    Auto,
    /// Fold every job. An error if no ranks are alike.
    Always,
    /// Fold no job.
    Never,
}

impl Fold {
    fn is_auto(&self) -> bool {
        *self == Fold::Auto
    }
}

/// Granularity of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Simulate every packet.
    #[default]
    Packet,
    /// Simulate messages as fluids.
    Flow,
}

impl Fidelity {
    /// Converts the value to that of the engines.
    pub fn to_sim(self) -> pathweave_sim::Fidelity {
        match self {
            Fidelity::Packet => pathweave_sim::Fidelity::Packet,
            Fidelity::Flow => pathweave_sim::Fidelity::Flow,
        }
    }
    fn is_packet(&self) -> bool {
        *self == Fidelity::Packet
    }
}
