//! Flow lists of this and other programs. Parsers take text, never panic, and use memory in proportion to it.

mod chakra;
mod csv_list;
mod goal;
mod goal_binary;
mod htsim_cm;
mod ns3;
#[cfg(test)]
mod silence;
mod simai;
mod write;

pub(crate) use chakra::short;
#[cfg(test)]
pub(crate) use chakra::tests as chakra_tests;
pub use chakra::{
    ChakraAct, ChakraAmong, ChakraGroup, ChakraNode, ChakraOperation, ChakraReader, process_groups_file,
    write_chakra_rank,
};
pub use csv_list::parse_csv;
pub use goal::{GoalAct, GoalFile, GoalOp, GoalRank, GoalUntil, GoalWait, parse_goal};
pub(crate) use goal_binary::HEAD_BYTES;
pub use goal_binary::{is_goal_binary, parse_goal_binary};
pub use htsim_cm::{HtsimDialect, parse_htsim_cm};
pub use ns3::{Ns3Dialect, parse_ns3};
pub use simai::{
    Again, EmbeddingGradients, Groups, Policy, SimAiComm, SimAiFile, SimAiLayer, SimAiPhase, Span,
    parse_simai,
};
pub use write::{write_csv, write_htsim_cm, write_ns3};

use pathweave_units::{Duration, Time};

use crate::graph::Moment;

/// A flow as a list has it; hosts are the list's identifiers, not yet checked against a fabric.
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
    /// Flows that must be over before.
    pub after: Vec<After>,
    /// How many of them suffice, if not all have to be over.
    pub needs: Option<u32>,
    /// Time from the last of them to this one.
    pub delay: Duration,
    /// Flows with the same number between the same hosts share a connection.
    pub connection: Option<u32>,
}

/// A flow that another waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct After {
    /// Its name.
    pub id: String,
    /// Time from that moment until it counts as over.
    pub delay: Duration,
    /// What of it is waited for.
    pub moment: Moment,
}

impl From<&str> for After {
    fn from(id: &str) -> Self {
        After { id: id.to_owned(), ..After::default() }
    }
}

/// How many hosts a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCount {
    /// What the list calls it.
    pub field: &'static str,
    /// The line that says so, from 1.
    pub line: Option<u64>,
    /// How many there are.
    pub count: u64,
}

/// The content of a flow list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFile {
    /// Its flows, in order.
    pub flows: Vec<FlowRecord>,
    /// How many hosts there are, if the list says so.
    pub hosts: Option<HostCount>,
    /// What the user should know, such as lines not read.
    pub notes: Vec<String>,
    /// What the list says about its flows that is not used.
    pub unused: Vec<String>,
}

/// A decimal number of a unit as exact picoseconds. The error says what is allowed.
fn exact_time(number: &str, unit: &str) -> Result<Duration, String> {
    let plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let parsed = if plain { format!("{number}{unit}").parse::<Duration>().ok() } else { None };
    parsed.ok_or_else(|| {
        format!("expected a number of {unit} at or above 0, exact to the picosecond, at most 213 days")
    })
}
