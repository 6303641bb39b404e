//! The layout of a scenario file. What belongs to a part of the system is that crate's own configuration struct;
//! here is only what puts them together.

mod network;
mod run;
pub(crate) mod validate;
mod workload;

use std::collections::BTreeMap;

use pathweave_fabric::config::{FaultConfig, SwitchConfig};
pub use pathweave_sim::{NamedScheme, ObserveConfig, Verb};
use pathweave_topo::{RoutingConfig, TopologyConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use network::NetworkConfig;
pub use pathweave_transport::RetransmissionConfig;
pub use run::{Calibrate, Fidelity, Fold, RunConfig};
pub(crate) use workload::Role;
pub use workload::WorkloadEntry;

/// A scenario with every shorthand spelled out: presets replaced by what they stand for, defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario, in results and reports. Default: the file's name without ".toml".
    pub name: String,
    /// Seed of every random stream; the same seed gives the same run on every machine. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Hosts, switches and links. `preset = "..."` instead of `kind` starts from a preset, whose fields can be set.
    pub topology: TopologyConfig,
    /// What chooses the route of a packet: switches, or sources among explicit paths.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// Packets: their size, their headers, and what a sender does about lost ones.
    #[serde(default)]
    pub network: NetworkConfig,
    /// All switches.
    #[serde(default)]
    pub switch: SwitchConfig,
    /// How messages are carried, unless a workload says otherwise: the name of a scheme, or a table whose `base` is a
    /// name and whose other fields replace the preset's. Default "rps".
    pub scheme: NamedScheme,
    /// Sets of hosts for workloads to have to themselves: `name = hosts`. Drawn by seed, no host in two of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, u32>,
    /// Traffic. At least one.
    pub workload: Vec<WorkloadEntry>,
    /// Things that break.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultConfig>,
    /// When the run ends, besides when all is done.
    #[serde(default)]
    pub run: RunConfig,
    /// What is recorded beyond one record for each flow, job and link.
    #[serde(default)]
    pub observe: ObserveConfig,
}

fn one() -> u64 {
    1
}
