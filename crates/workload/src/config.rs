//! What a scenario says about its traffic, and the way from there to a graph.

use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

use crate::builder::GraphBuilder;
use crate::env::WorkloadEnv;
use crate::error::WorkloadError;
use crate::graph::MessageGraph;
use crate::kinds::Traffic;
use crate::sink::Sink;

/// One workload of a scenario. Several may run together, each with a scheme of its own.
///
/// ```toml
/// [[workload]]
/// kind = "permutation"
/// group = "foreground"
/// scheme = "rps"
/// size = "8MB"
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadConfig {
    /// Name under which results are reported; the random streams depend on it. Default: the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Name of the scheme of its connections. Default: that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// When it starts, since the start of the run.
    #[serde(default)]
    pub start: Duration,
    /// What is sent. Fields it does not know are refused there, as serde cannot do both here.
    #[serde(flatten)]
    pub traffic: Traffic,
}

impl WorkloadConfig {
    /// A workload with defaults for everything but its traffic.
    pub fn new(traffic: Traffic) -> Self {
        WorkloadConfig { group: None, scheme: None, start: Duration::ZERO, traffic }
    }
    /// The name under which results are reported.
    pub fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(self.traffic.kind())
    }
    /// Declares its messages.
    ///
    /// Depends on the seed, the group's name and the fields of the traffic, and neither on the scheme nor on
    /// other workloads (save earlier ones of the same group, from which it draws different numbers).
    pub fn generate(&self, env: &WorkloadEnv, out: &mut GraphBuilder) -> Result<(), WorkloadError> {
        let mut sink = Sink::new(env, out, self.group_name(), self.scheme.as_deref(), self.start)?;
        self.traffic.generate(&mut sink)
    }
}

/// A graph and what the user should know about how it was made.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The messages.
    pub graph: MessageGraph,
    /// Assumptions made, input not used.
    pub notes: Vec<String>,
}

/// The graph of all workloads of a scenario.
pub fn build(workloads: &[WorkloadConfig], env: &WorkloadEnv) -> Result<Workload, WorkloadError> {
    let mut builder = GraphBuilder::new(env.hosts);
    for workload in workloads {
        workload.generate(env, &mut builder)?;
    }
    let notes = builder.notes().to_vec();
    let whole = |error| WorkloadError::Graph {
        group: workloads.iter().map(WorkloadConfig::group_name).collect::<Vec<_>>().join(", "),
        error,
    };
    Ok(Workload { graph: builder.finish().map_err(whole)?, notes })
}
