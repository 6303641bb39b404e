//! One workload of a scenario.

use pathweave_units::Duration;
use pathweave_workload::{MessageConnections, Stragglers, Traffic, WorkloadConfig, between_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NamedScheme;

/// Traffic that is reported together and carried alike. Several run side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadEntry {
    /// Name under which it is reported; its random streams depend on it. Workloads of one name are reported together.
    /// Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How its messages are carried, as `scheme` of the scenario, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<NamedScheme>,
    /// How those of its messages are carried that go to another data centre, which are
    /// reported as a group of their own, "NAME between sites". Default: like the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_sites: Option<NamedScheme>,
    /// When it starts, since the start of the run. Default 0s.
    #[serde(default)]
    pub start: Duration,
    /// Traffic class of its data packets: 1 (default) to the number of `switch.weights`.
    #[serde(default = "first_class")]
    pub class: u8,
    /// What it is to the run: "foreground" (default) is what the run waits for and what its figures are about;
    /// "background" is in its way, is cut off when the foreground is done, and is reported apart.
    #[serde(default, skip_serializing_if = "Role::is_foreground")]
    pub role: Role,
    /// The `[pools]` entry whose hosts it has, which it then numbers from 0. Default: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Connections of its messages: "of-kind" (default), for most kinds one for each pair of processes; "own", one for each
    /// message, which begins at the rate of a new connection, as ASTRA-sim has them with ns-3.
    #[serde(default, skip_serializing_if = "MessageConnections::is_of_kind")]
    pub connections: MessageConnections,
    /// How long its computations really take, where hosts differ: slow ones, jitter, measured factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<Stragglers>,
    /// What is sent.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// What a workload is to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The run waits for it.
    #[default]
    Foreground,
    /// The run does not.
    Background,
}

impl Role {
    /// The same, as the simulator takes it.
    pub fn to_sim(self) -> pathweave_sim::Role {
        match self {
            Role::Foreground => pathweave_sim::Role::Foreground,
            Role::Background => pathweave_sim::Role::Background,
        }
    }
    fn is_foreground(&self) -> bool {
        *self == Role::Foreground
    }
}

fn first_class() -> u8 {
    1
}

impl WorkloadEntry {
    /// The name under which it is reported.
    pub fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(self.traffic.kind())
    }
    /// Whether a group of messages is of this workload.
    pub fn has_group(&self, name: &str) -> bool {
        let own = self.group_name();
        own == name || self.between_sites.is_some() && between_name(own) == name
    }
    /// The files it names, with the field that does.
    pub fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        let trace = self.stragglers.as_mut().and_then(|stragglers| stragglers.trace.as_mut());
        let trace = trace.map(|file| ("stragglers", file));
        self.traffic.files().into_iter().chain(trace).collect()
    }
    /// The same, as the workload crate takes it.
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
