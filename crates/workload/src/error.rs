//! What can be wrong with a workload.

use pathweave_units::HostId;

use crate::graph::MAX_MESSAGE_SIZE;

/// A workload that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A field of the configuration.
    #[error("workload \"{group}\": {field} = {value}: {allowed}")]
    Field {
        /// The group, which names the workload.
        group: String,
        /// The field.
        field: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// More ranks than the topology has hosts, where nobody said which hosts they are.
    #[error("workload \"{group}\": the trace has {ranks} ranks, the topology {hosts} hosts: {remedy}")]
    TooFewHosts {
        /// The group, which names the workload.
        group: String,
        /// Ranks of the trace.
        ranks: usize,
        /// Hosts of the topology.
        hosts: u32,
        /// What to change.
        remedy: &'static str,
    },
    /// A flow of an inline list.
    #[error("workload \"{group}\": flows[{index}]: {message}")]
    Flow {
        /// The group, which names the workload.
        group: String,
        /// Which flow, from 0.
        index: u64,
        /// The field of the flow, where it is one.
        field: Option<&'static str>,
        /// Field, value and what is allowed.
        message: String,
    },
    /// A place in a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The messages do not form a valid graph.
    #[error("workload \"{group}\": {error}")]
    Graph {
        /// The group, which names the workload.
        group: String,
        /// What is wrong.
        error: GraphError,
    },
}

/// Bad content of a file, or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", .line.map_or(String::new(), |l| format!(":{l}")))]
pub struct FileError {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Field, value and what is allowed.
    pub message: String,
}

impl FileError {
    /// At a line.
    pub(crate) fn at(file: &str, line: u64, message: impl Into<String>) -> Self {
        FileError { file: file.to_owned(), line: Some(line), message: message.into() }
    }
    /// About the whole file.
    pub(crate) fn whole(file: &str, message: impl Into<String>) -> Self {
        FileError { file: file.to_owned(), line: None, message: message.into() }
    }
}

/// As much of a word of a file as an error has room for.
pub(crate) fn shown(word: &str) -> String {
    const SHOWN: usize = 40;
    match word.char_indices().nth(SHOWN) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}

/// Which ranks there are, for errors about others.
pub(crate) fn ranks_are(ranks: u64) -> String {
    match ranks {
        0 => "there are no ranks".to_owned(),
        1 => "there is one rank, 0".to_owned(),
        _ => format!("ranks are 0 to {}", ranks - 1),
    }
}

/// Messages that do not form a valid graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A host that does not exist.
    #[error("host {host} does not exist; hosts are 0 to {}", .hosts.saturating_sub(1))]
    NoSuchHost {
        /// The host named.
        host: HostId,
        /// Hosts there are.
        hosts: u32,
    },
    /// A message to its own sender.
    #[error("host {host} sends to itself; source and destination must differ")]
    ToItself {
        /// The host.
        host: HostId,
    },
    /// An empty or too large message.
    #[error("message of {size} bytes from host {src} to host {dst}; allowed are 1 to {} bytes", MAX_MESSAGE_SIZE.get())]
    Size {
        /// The sender.
        src: HostId,
        /// The receiver.
        dst: HostId,
        /// The size, bytes.
        size: u64,
    },
    /// More tasks, groups, edges or jobs than are supported.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
    /// A group declared twice with different schemes.
    #[error("group \"{name}\" has scheme {first} and also {second}; use two group names or one scheme")]
    TwoSchemes {
        /// The group.
        name: String,
        /// The scheme declared first.
        first: String,
        /// The other one.
        second: String,
    },
    /// Tasks that wait for each other.
    #[error("dependencies form a cycle: {0}")]
    Cycle(String),
    /// A start or delay beyond what time can express.
    #[error("a task begins later than a run can reach (213 days)")]
    Time,
}
