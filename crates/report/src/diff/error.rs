//! Errors of comparisons of result folders.

use std::path::PathBuf;

/// Reason why two folders cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A folder has no results.
    #[error("{}: it has no results: {why}; name a folder that `pathweave run`, `compare` or `sweep` wrote{}", path.display(), here(found))]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// Description of the reason.
        why: String,
        /// Result folders inside of it.
        found: Vec<String>,
    },
    /// A file of a folder is not as this program writes it.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        why: String,
    },
    /// A folder has several runs where one is needed.
    #[error("{}: it has the results of {kind}; name the folder of one run{}", path.display(), colon(found))]
    Several {
        /// The folder.
        path: PathBuf,
        /// Kind of results.
        kind: String,
        /// Folders of its runs.
        found: Vec<String>,
    },
    /// No run of one folder has a counterpart in the other.
    #[error("no run is in both folders: A has {a}; B has {b}")]
    NothingInCommon {
        /// Names of the runs of the first folder.
        a: String,
        /// Names of the runs of the second folder.
        b: String,
    },
}

fn here(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!("; here: {}", found.join(", ")) }
}

fn colon(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(": {}", found.join(", ")) }
}
