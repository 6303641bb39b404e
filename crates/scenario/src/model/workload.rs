//! Workload of a scenario.

use pathweave_units::Duration;
use pathweave_workload::{MessageConnections, Stragglers, Traffic, WorkloadConfig, between_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NamedScheme, Role};

/// Traffic that is reported together and carried by one scheme. Several workloads run at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadEntry {
    /// Name of the workload in reports. Its random streams depend on the name. Workloads with the same name are
    /// reported together. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Scheme of the messages, in the form of the scenario's `scheme`. Default: the scenario's `scheme`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<NamedScheme>,
    /// Scheme of messages to another data centre. They are reported as a separate group, "NAME between sites".
    /// Default: the workload's scheme, without a separate group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_sites: Option<NamedScheme>,
    /// Start of the workload, since the start of the run. Default 0s.
    #[serde(default)]
    pub start: Duration,
    /// Traffic class of the data packets: 1 to the number of `switch.weights`. Default 1.
    #[serde(default = "first_class")]
    pub class: u8,
    /// Role of the workload: "foreground" (default) or "background". The run waits for the foreground, and its
    /// figures describe it. Background traffic competes with it, is cut off when the foreground is done, and is
    /// reported separately.
    #[serde(default, skip_serializing_if = "is_foreground")]
    pub role: Role,
    /// Name of the entry in `[pools]` whose hosts the workload uses. It numbers these hosts from 0. Default: all
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Connections of the messages: "of-kind" (default) or "own". With "of-kind" most kinds have one connection for
    /// each pair of processes. With "own" each message has its own connection and begins at the rate of a new
    /// connection, as in ASTRA-sim with ns-3.
    #[serde(default, skip_serializing_if = "MessageConnections::is_of_kind")]
    pub connections: MessageConnections,
    /// Variation of the computation times between hosts: slow hosts, jitter, measured factors. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<Stragglers>,
    /// Messages and computations of the workload.
    #[serde(flatten)]
    pub traffic: Traffic,
}

fn is_foreground(role: &Role) -> bool {
    *role == Role::Foreground
}

fn first_class() -> u8 {
    1
}

impl WorkloadEntry {
    /// Returns the name under which the workload is reported.
    pub fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(self.traffic.kind())
    }
    /// Returns true if the group of messages belongs to this workload.
    pub fn has_group(&self, name: &str) -> bool {
        let own = self.group_name();
        own == name || self.between_sites.is_some() && between_name(own) == name
    }
    /// Returns the file names in the workload, each with its field.
    pub fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        let trace = self.stragglers.as_mut().and_then(|stragglers| stragglers.trace.as_mut());
        let trace = trace.map(|file| ("stragglers", file));
        self.traffic.files().into_iter().chain(trace).collect()
    }
    /// Converts the entry to the configuration of the workload crate.
    pub fn to_config(&self) -> WorkloadConfig {
        let name = |scheme: &Option<NamedScheme>| scheme.as_ref().map(|scheme| scheme.name.clone());
        WorkloadConfig {
            group: self.group.clone(),
            scheme: name(&self.scheme),
            between_sites: name(&self.between_sites),
            start: self.start,
            connections: self.connections,
            stragglers: self.stragglers.clone(),
            traffic: self.traffic.clone(),
        }
    }
}
