//! What limited a run, in words, from the folder it left: each sentence with the table and the columns it stands on.

mod findings;
mod jobs;
mod table;

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::columns;
use crate::records::RunResult;
use jobs::Summary;
use table::Table;

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What it is about: "limited by", "result", "iteration", "critical path", "busiest links", "balance", "pauses", "losses",
    /// "late flows", "faults", "fidelity".
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

/// What limited a run and which faults it met, briefly: of what is in memory anyway, in few more bytes a flow.
pub(crate) fn in_brief(run: &RunResult) -> Vec<Finding> {
    let links =
        ["from", "to", "from_node", "tier", "direction", "tx_bytes", "utilisation_ratio", "dropped_packets"];
    let found = findings::Run {
        flows: Table::of_flows(&run.figures(), run.of_packets(()).is_some()),
        links: Table::of(run, columns::LINKS, &run.links, &links),
        events: Table::of(run, columns::EVENTS, &run.events, findings::EVENT_COLUMNS),
    };
    found.in_brief()
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
    let mut found = run.findings();
    // Behind the verdict and the result.
    let at = found.len().min(2);
    let summary = Summary::read(folder);
    found.splice(at..at, jobs::findings(&summary));
    found.extend(fidelity(&summary.run));
    Ok(found)
}

/// What the figures of a run are, where they are not those of packets, as its summary says.
fn fidelity(run: &jobs::Run) -> Option<Finding> {
    if run.label.is_empty() {
        return None;
    }
    let mut words = run.label.clone();
    for reason in &run.outside {
        words += &format!("; outside of the model: {reason}");
    }
    Some(Finding { about: "fidelity", words, evidence: "summary.json: run.fidelity, run.label, run.outside" })
}
