//! Errors of workloads.

use pathweave_units::HostId;

use crate::graph::MAX_MESSAGE_SIZE;

/// A workload that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A field of the configuration has a wrong value.
    #[error("workload \"{group}\": {field} = {value}: {allowed}")]
    Field {
        /// Name of the workload's group.
        group: String,
        /// Name of the field.
        field: &'static str,
        /// Value found.
        value: String,
        /// Values allowed.
        allowed: String,
    },
    /// The trace has more ranks than the topology has hosts, and no field places them.
    #[error("workload \"{group}\": the trace has {ranks} ranks, the topology {hosts} hosts: {remedy}")]
    TooFewHosts {
        /// Name of the workload's group.
        group: String,
        /// Number of ranks of the trace.
        ranks: usize,
        /// Number of hosts of the topology.
        hosts: u32,
        /// Change that the user can make.
        remedy: &'static str,
    },
    /// A flow of an inline list is wrong.
    #[error("workload \"{group}\": flows[{index}]: {message}")]
    Flow {
        /// Name of the workload's group.
        group: String,
        /// Index of the flow, from 0.
        index: u64,
        /// Field of the flow, if the error is about one.
        field: Option<&'static str>,
        /// Field, value and what is allowed.
        message: String,
    },
    /// A file has wrong content or cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The messages do not form a valid graph.
    #[error("workload \"{group}\": {error}")]
    Graph {
        /// Name of the workload's group.
        group: String,
        /// Error of the graph.
        error: GraphError,
    },
}

/// Wrong content of a file, or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", .line.map_or(String::new(), |l| format!(":{l}")))]
pub struct FileError {
    /// Name of the file as the user wrote it.
    pub file: String,
    /// Line, from 1. `None` if the error is about the whole file.
    pub line: Option<u64>,
    /// Field, value and what is allowed.
    pub message: String,
}

impl FileError {
    /// Makes an error at a line.
    pub(crate) fn at(file: &str, line: u64, message: impl Into<String>) -> Self {
        FileError { file: file.to_owned(), line: Some(line), message: message.into() }
    }
    /// Makes an error about the whole file.
    pub(crate) fn whole(file: &str, message: impl Into<String>) -> Self {
        FileError { file: file.to_owned(), line: None, message: message.into() }
    }
}

/// Returns a word of a file, shortened to 40 characters for an error message.
pub(crate) fn shorten(word: &str) -> String {
    const SHOWN: usize = 40;
    match word.char_indices().nth(SHOWN) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}

/// Returns a text with the valid ranks, for errors about other ranks.
pub(crate) fn valid_ranks(ranks: u64) -> String {
    match ranks {
        0 => "there are no ranks".to_owned(),
        1 => "there is one rank, 0".to_owned(),
        _ => format!("ranks are 0 to {}", ranks - 1),
    }
}

/// Messages that do not form a valid graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A host does not exist.
    #[error("host {host} does not exist; hosts are 0 to {}", .hosts.saturating_sub(1))]
    NoSuchHost {
        /// Host that the input names.
        host: HostId,
        /// Number of hosts.
        hosts: u32,
    },
    /// A message has the same source and destination.
    #[error("host {host} sends to itself; source and destination must differ")]
    ToItself {
        /// Host of the message.
        host: HostId,
    },
    /// A message is empty or too large.
    #[error("message of {size} bytes from host {src} to host {dst}; allowed are 1 to {} bytes", MAX_MESSAGE_SIZE.get())]
    Size {
        /// Sending host.
        src: HostId,
        /// Receiving host.
        dst: HostId,
        /// Size of the message, bytes.
        size: u64,
    },
    /// The graph has more tasks, groups, edges or jobs than are supported.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Kind of item that is exceeded.
        what: &'static str,
        /// Largest number allowed.
        limit: usize,
    },
    /// The graph is too large, and no more ranks that are alike run once.
    #[error("more than {limit} {what}; ranks that are alike would run once, but {why}")]
    TooLarge {
        /// Kind of item that is exceeded.
        what: &'static str,
        /// Largest number allowed.
        limit: usize,
        /// Reason why no more ranks represent others.
        why: String,
    },
    /// A group is declared twice with different schemes.
    #[error("group \"{name}\" has scheme {first} and also {second}; use two group names or one scheme")]
    TwoSchemes {
        /// Name of the group.
        name: String,
        /// Scheme declared first.
        first: String,
        /// Scheme declared later.
        second: String,
    },
    /// Tasks wait for each other in a cycle.
    #[error("dependencies form a cycle: {0}")]
    Cycle(String),
    /// A start or delay exceeds the largest time that can be expressed.
    #[error("a task begins later than a run can reach (213 days)")]
    Time,
}
