//! When a run ends and what it records.

use std::path::PathBuf;

use pathweave_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the run ends, besides when every message is delivered and acknowledged or has failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// What moves through the network: "packet" (default), each of them; or "flow", messages as fluids that share links,
    /// in a fraction of the time and with an error that docs/flow-fidelity.md tells.
    #[serde(skip_serializing_if = "Fidelity::is_packet")]
    pub fidelity: Fidelity,
    /// When a run of flows is measured on packets of its beginning: "auto" (default), where it shows signs that it is outside of
    /// the model, for some tenths of a second: it is inside, or outside, as that measures; "prefix", always, for some seconds:
    /// one number is fitted on half of the messages, and the error on the others is in the label; "off", never.
    #[serde(skip_serializing_if = "Calibrate::is_auto")]
    pub calibrate: Calibrate,
    /// Ranks of collectives and training jobs ("collective", "simai", "transformer") in a run of flows that the network and the
    /// job treat alike: "auto" (default) runs them once where there are more than 4 million messages and computations, "always"
    /// does everywhere, "never" nowhere. Needs one workload without stragglers or faults, and a scheme that spreads its packets.
    #[serde(skip_serializing_if = "Fold::is_auto")]
    pub fold: Fold,
    /// Simulated time at which the run ends whatever is left to do. Absent: when all is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Simulator events after which the run ends, with the window (2us at most) in which they are reached. Absent: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
    /// Threads that run it side by side, 1 to 1024; of no influence on results. Absent: as many as the command says, or
    /// as there are cores for it and hosts enough, 64 a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// File that says which part of the run each node belongs to, for threads and ranks: a line a node, its name and the number
    /// of its part, from 0; hosts left out go with their switch. Of no influence on results. Absent: by the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PathBuf>,
    /// Check that every byte of every message is delivered exactly once, and stop with an internal error if not. Costs
    /// time and memory. Default false.
    pub verify: bool,
}

/// When a run of flows is measured on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrate {
    /// Where it shows signs that it is outside of the model.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always, and links are used as packets of its beginning used them.
    Prefix,
}

impl Calibrate {
    /// The same, as engines take it.
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

/// Whether ranks that are alike are run once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// In large jobs.
    #[default]
    Auto,
    /// In every job; it is an error where none are alike.
    Always,
    /// In none.
    Never,
}

impl Fold {
    fn is_auto(&self) -> bool {
        *self == Fold::Auto
    }
}

/// What moves through the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Each packet.
    #[default]
    Packet,
    /// Messages as fluids.
    Flow,
}

impl Fidelity {
    /// The same, as the engines take it.
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
