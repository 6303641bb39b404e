//! When a run ends and what it records.

use pathweave_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the run ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Simulated time at which the run ends whatever is left to do. Absent: when all is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// What ends the run before that. Default "all-finished".
    pub stop: StopWhen,
    /// Simulator events after which the run ends. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<u64>,
}

/// What ends a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopWhen {
    /// Every message is delivered and acknowledged, or has failed.
    #[default]
    AllFinished,
    /// Only `until`: the run goes on, idle, to show how queues and faults settle.
    Never,
}

/// What is recorded beyond one record a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ObserveConfig {
    /// Time between samples. Absent (default): no samples; the totals of every flow and link are kept all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Sample the egress queue of every link. Default true.
    pub queues: bool,
    /// Sample the utilisation of every link. Default true.
    pub links: bool,
    /// Sample the shared buffer of every switch. Default true.
    pub buffers: bool,
    /// Sample the payload rate every host receives. Default true.
    pub hosts: bool,
    /// Sample rate and bytes in flight of every flow that is under way. Default false.
    pub flows: bool,
    /// Events (drops, pauses, retransmissions, faults) kept in full; further ones are only counted. Default 100000.
    pub max_events: u64,
}

impl Default for ObserveConfig {
    fn default() -> Self {
        ObserveConfig {
            interval: None,
            queues: true,
            links: true,
            buffers: true,
            hosts: true,
            flows: false,
            max_events: 100_000,
        }
    }
}
