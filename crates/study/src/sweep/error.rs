//! What can be wrong with sweeps.

use std::io;
use std::path::{Path, PathBuf};

use pathweave_scenario::Diagnostics;

/// Why a sweep cannot be planned or its results kept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The sweep file is wrong.
    #[error("{0}")]
    File(#[from] Diagnostics),
    /// Its scenario is wrong with the settings of a cell.
    #[error("{label}: {findings}")]
    Scenario {
        /// The cell.
        label: String,
        /// What is wrong.
        findings: Diagnostics,
    },
    /// The folder holds something that is not ours to add to.
    #[error("{}: exists and is not the folder of a sweep ({found}); choose another name or remove it", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// Another process is writing there.
    #[error("{}: another sweep is writing here", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// What was accessed.
        path: PathBuf,
        /// What for.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A table could not be made.
    #[error("cannot make the table \"{name}\": {why}")]
    Table {
        /// Which.
        name: String,
        /// Why not.
        why: String,
    },
}

pub(crate) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> SweepError {
    move |source| SweepError::Io { path: path.to_owned(), action, source }
}
