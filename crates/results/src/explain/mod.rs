//! What limited a run, in words, from the folder it left: each sentence with the table and the columns it stands on.

mod findings;
mod table;

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use table::Table;

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What it is about: "result", "busiest links", "balance", "pauses", "losses", "late flows", "faults".
    pub about: &'static str,
    /// What was found.
    pub words: String,
    /// File and columns that say so.
    pub evidence: &'static str,
}

/// Why a folder cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A table is missing or is no Parquet file of ours.
    #[error("{}: {source}; name the folder of one run", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: ParquetError,
    },
}

/// What limited the run whose results are in `folder`, the verdict first.
///
/// # Errors
/// If `folder` lacks `flows.parquet`, `links.parquet` or `events.parquet`, or they cannot be read.
pub fn explain(folder: &Path) -> Result<Vec<Finding>, ExplainError> {
    let read = |name: &str, columns: &[&str]| {
        let path = folder.join(name);
        Table::read(&path, columns).map_err(|source| ExplainError::Table { path, source })
    };
    let run = findings::Run {
        flows: read("flows.parquet", findings::FLOW_COLUMNS)?,
        links: read("links.parquet", findings::LINK_COLUMNS)?,
        events: read("events.parquet", findings::EVENT_COLUMNS)?,
    };
    Ok(run.findings())
}
