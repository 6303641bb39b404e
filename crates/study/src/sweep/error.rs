//! Errors of sweeps.

use std::io;
use std::path::{Path, PathBuf};

use pathweave_scenario::Diagnostics;

/// Reason why a sweep cannot be planned or its results stored.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The sweep file is invalid.
    #[error("{0}")]
    File(#[from] Diagnostics),
    /// The scenario is invalid with the settings of a cell.
    #[error("{label}: {findings}")]
    Scenario {
        /// Label of the cell.
        label: String,
        /// Mistakes found in the scenario.
        findings: Diagnostics,
    },
    /// The output folder holds something that a sweep did not write.
    #[error("{}: exists and is not the folder of a sweep ({found}); choose another name or remove it", path.display())]
    Occupied {
        /// Path of the folder.
        path: PathBuf,
        /// Description of the foreign content.
        found: String,
    },
    /// Another process writes to the output folder.
    #[error("{}: another sweep is writing here", path.display())]
    Busy {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Operation that failed.
        action: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A table could not be encoded.
    #[error("cannot make the table \"{name}\": {why}")]
    Table {
        /// Name of the table.
        name: String,
        /// Description of the failure.
        why: String,
    },
}

pub(crate) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SweepError {
    move |source| SweepError::Io { path: path.to_owned(), action, source }
}
