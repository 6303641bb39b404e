//! Layout of a scenario file. Each part of the system is configured by its own crate's struct; this module only
//! combines them.

pub(crate) mod pool;
pub(crate) mod validate;
mod workload;

use std::collections::BTreeMap;

use pathweave_fabric::config::{FaultConfig, SwitchConfig};
pub(crate) use pathweave_sim::Role;
pub use pathweave_sim::{
    Calibrate, Fidelity, Fold, NamedScheme, NetworkConfig, ObserveConfig, RunConfig, Verb,
};
use pathweave_topo::{LinkFor, RoutingConfig, TopologyConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pathweave_transport::RetransmissionConfig;
pub use pool::{PlacedPool, Pool, PoolHosts, PoolPlacement};
pub use workload::WorkloadEntry;

/// Scenario with every shorthand expanded: presets are replaced by their settings, and defaults are filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario, used in results and reports. Default: the file's name without ".toml".
    pub name: String,
    /// Seed of all random streams. The same seed gives the same run on every machine. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Hosts, switches and links. `preset = "..."` instead of `kind` starts from a preset, whose fields can be set.
    pub topology: TopologyConfig,
    /// Other rates, delays and error rates for some links of the topology. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkFor>,
    /// Component that chooses the path of a packet: switches by a hash, sources among explicit paths, or the switch
    /// of the sender. Default "ecmp": switches by a hash.
    #[serde(default)]
    pub routing: RoutingConfig,
    /// Packets: size, headers, and retransmission.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Settings of all switches.
    #[serde(default)]
    pub switch: SwitchConfig,
    /// Scheme of all messages whose workload sets none: the name of a scheme, or a table whose `base` is a name and
    /// whose other fields replace the preset's. Default "rps".
    pub scheme: NamedScheme,
    /// Sets of hosts, each for workloads that select it with `pool`: `name = number of hosts`, drawn with the seed;
    /// `name = "srv[0-3].gpu*"`, a pattern of names; a list of numbers, names and patterns; or a table. Disjoint unless
    /// `overlaps` allows it. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, Pool>,
    /// Traffic of the run: at least one workload.
    pub workload: Vec<WorkloadEntry>,
    /// Faults of links, switches and hosts during the run. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<FaultConfig>,
    /// End and execution of the run. By default it ends when all foreground messages are done.
    #[serde(default)]
    pub run: RunConfig,
    /// Observations recorded in addition to one record for each flow, job and link.
    #[serde(default)]
    pub observe: ObserveConfig,
}

fn one() -> u64 {
    1
}
