//! Flow lists of pathweave and of other programs. Parsers take text, never panic, and use memory proportional
//! to the text.

mod chakra;
mod csv_list;
mod goal;
mod goal_binary;
mod htsim_cm;
#[cfg(test)]
mod no_word_ignored;
mod ns3;
mod simai;
mod write;

pub(crate) use chakra::short;
#[cfg(test)]
pub(crate) use chakra::tests as chakra_tests;
pub use chakra::{
    ChakraAction, ChakraGroup, ChakraNode, ChakraOperation, ChakraRanks, ChakraReader, process_groups_file,
    write_chakra_rank,
};
pub use csv_list::parse_csv;
pub use goal::{GoalAction, GoalDependency, GoalDependencyKind, GoalFile, GoalOp, GoalRank, parse_goal};
pub(crate) use goal_binary::HEAD_BYTES;
pub use goal_binary::{is_goal_binary, parse_goal_binary};
pub use htsim_cm::{HtsimDialect, parse_htsim_cm};
pub use ns3::{Ns3Dialect, parse_ns3};
pub use simai::{
    EmbeddingGradients, Groups, Policy, Recompute, SimAiComm, SimAiFile, SimAiLayer, SimAiPhase, Span,
    parse_simai,
};
pub use write::{write_csv, write_htsim_cm, write_ns3};

use pathweave_units::{Duration, Time};

use crate::graph::Moment;

/// A flow of a list. Its hosts are the list's identifiers, not yet checked against a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// Line of the file, from 1.
    pub line: u64,
    /// Name by which other flows refer to this one.
    pub id: Option<String>,
    /// Sending host.
    pub src: u64,
    /// Receiving host.
    pub dst: u64,
    /// Payload, bytes.
    pub size_bytes: u64,
    /// Earliest start.
    pub start: Time,
    /// Flows that must end before this one begins.
    pub after: Vec<FlowDependency>,
    /// Number of flows in `after` that suffice; `None` if all must end.
    pub needs: Option<u32>,
    /// Delay between the last of these ends and the begin of this flow.
    pub delay: Duration,
    /// Number of the connection. Flows with the same number between the same hosts share it; `None` gives the
    /// flow its own.
    pub connection: Option<u32>,
}

/// A flow that another flow waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowDependency {
    /// Identifier of the flow.
    pub id: String,
    /// Delay after that moment until the dependency is satisfied.
    pub delay: Duration,
    /// Moment of the flow that is waited for.
    pub moment: Moment,
}

impl From<&str> for FlowDependency {
    fn from(id: &str) -> Self {
        FlowDependency { id: id.to_owned(), ..FlowDependency::default() }
    }
}

/// Number of hosts that a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCount {
    /// Name of the number in the list.
    pub field: &'static str,
    /// Line that states it, from 1.
    pub line: Option<u64>,
    /// Number of hosts.
    pub count: u64,
}

/// Content of a flow list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFile {
    /// Flows in the order of the list.
    pub flows: Vec<FlowRecord>,
    /// Number of hosts, if the list states it.
    pub hosts: Option<HostCount>,
    /// Notes for the user, such as lines that were not read.
    pub notes: Vec<String>,
    /// Notes on attributes of flows that are not used.
    pub unused: Vec<String>,
}

/// Parses a decimal number of a unit, exact to the picosecond. The error states what is allowed.
fn exact_time(number: &str, unit: &str) -> Result<Duration, String> {
    let plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let parsed = if plain { format!("{number}{unit}").parse::<Duration>().ok() } else { None };
    parsed.ok_or_else(|| {
        format!("expected a number of {unit} at or above 0, exact to the picosecond, at most 213 days")
    })
}
