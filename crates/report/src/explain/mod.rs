//! Explanation in words of the limits of a run, from its result folder. Each sentence names the table and the columns
//! that support it.

mod accounting;
mod at_once;
mod causes;
mod cut;
mod facts;
mod faults;
mod findings;
mod jobs;
mod losses;
mod outage;
mod paths;
mod room;
mod scale_up;
mod settings;
mod slow_nic;
mod table;
mod trips;
mod verdict;
mod weigh;
mod work;

use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use pathweave_records::{ACTIVITIES, CRITICAL, EVENTS, LINKS, RunResult, WAITS};

use facts::{Facts, LINK_COLUMNS, WAIT_COLUMNS};
use findings::{EVENT_COLUMNS, FLOW_COLUMNS};
use jobs::Summary;
use outage::Trip;
use scale_up::late_flows;
use settings::Settings;
use table::Table;
use work::{ACTIVITY_COLUMNS, CRITICAL_COLUMNS};

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Subject: "limited by", "result", "iteration", "critical path", "time of slow flows", "busiest links",
    /// "balance", "pauses", "losses", "late flows", "faults", "fidelity", "warning".
    pub about: &'static str,
    /// The finding in words.
    pub words: String,
    /// File and columns that support the finding.
    pub evidence: &'static str,
}

/// Reason why a folder cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A table is missing, or is no Parquet file of pathweave.
    #[error("{}: {source}; name the folder of one run", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Reason why the file cannot be read.
        source: ParquetError,
    },
    /// The summary is missing, or is not that of a run.
    #[error("{}: {why}; name the folder of one run", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// Description of the error.
        why: String,
    },
    /// A table is that of another run than the summary.
    #[error(
        "{}: digest = \"{digest}\" is that of another run; that of summary.json beside it is \"{of_summary}\"; take all \
         files from the folder of one run", path.display()
    )]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// Digest of the run that wrote it.
        digest: String,
        /// Digest of the run of the summary.
        of_summary: String,
    },
}

/// Returns the limits of a run and its faults, from data that is in memory anyway, at the cost of a few bytes a flow.
pub(crate) fn in_brief(run: &RunResult) -> Vec<Finding> {
    let links = Table::of(run, LINKS, &run.links, LINK_COLUMNS);
    let waits = Table::of(run, WAITS, &run.waits, WAIT_COLUMNS);
    let events = Table::of(run, EVENTS, &run.events, EVENT_COLUMNS);
    let figures = run.figures();
    let found = findings::Run {
        facts: Facts {
            ignoring_marks: run.info.ignoring_marks.clone(),
            ..Facts::new(&links, &waits, &events, Settings::new(&run.info.scenario_toml))
        },
        flows: Table::of_flows(&figures, run.of_packets(()).is_some()),
        times_recorded: u64::from(run.info.times_recorded()),
        late: figures.late().clone(),
        trips: Trip::of_run(run, &figures),
        critical: Table::of(run, CRITICAL, &run.critical, CRITICAL_COLUMNS),
        activities: Table::of(run, ACTIVITIES, &run.activities, ACTIVITY_COLUMNS),
        links,
        events,
    };
    found.in_brief()
}

/// Explains the limits of the run whose results are in `folder`. The verdict comes first.
///
/// # Errors
/// `folder` lacks `summary.json`, `flows.parquet`, `links.parquet` or `events.parquet`, or they cannot be read.
pub fn explain(folder: &Path) -> Result<Vec<Finding>, ExplainError> {
    // A folder that is not of a run lacks it, or has another one.
    let summary = Summary::read(folder)?;
    let read = |name: &str, columns: &[&str]| {
        let path = folder.join(name);
        let table = Table::read(&path, columns);
        let table = table.map_err(|source| ExplainError::Table { path: path.clone(), source })?;
        match &table.digest {
            Some(digest) if *digest != summary.run.digest && !summary.run.digest.is_empty() => {
                Err(ExplainError::OtherRun {
                    path,
                    digest: digest.clone(),
                    of_summary: summary.run.digest.clone(),
                })
            }
            _ => Ok(table),
        }
    };
    // Folders of earlier versions lack some tables.
    let read_if_there = |name: &str, columns: &[&str]| {
        if folder.join(name).exists() { read(name, columns) } else { Ok(Table::default()) }
    };
    let flows = read("flows.parquet", FLOW_COLUMNS)?;
    let links = read("links.parquet", LINK_COLUMNS)?;
    let events = read("events.parquet", EVENT_COLUMNS)?;
    let waits = read_if_there("waits.parquet", WAIT_COLUMNS)?;
    let scenario = std::fs::read_to_string(folder.join("scenario.toml")).unwrap_or_default();
    let run = findings::Run {
        facts: Facts {
            ignoring_marks: summary.run.ignoring_marks.clone(),
            ..Facts::new(&links, &waits, &events, Settings::new(&scenario))
        },
        late: late_flows(&flows),
        trips: Trip::of_table(&flows),
        critical: read_if_there("critical.parquet", CRITICAL_COLUMNS)?,
        activities: read_if_there("activities.parquet", ACTIVITY_COLUMNS)?,
        flows,
        times_recorded: summary.run.stands_for.unwrap_or(1),
        links,
        events,
    };
    let mut found = run.findings();
    // After the verdict and the result.
    let at = found.len().min(2);
    found.splice(at..at, jobs::findings(&summary));
    found.extend(fidelity(&summary.run));
    let warning = |words: &String| Finding {
        about: "warning",
        words: words.trim_end_matches('.').to_owned(),
        evidence: "summary.json: run.warnings",
    };
    found.splice(at..at, summary.run.warnings.iter().map(warning));
    if !folder.join("waits.parquet").exists() {
        let words = "waits.parquet is missing, so the verdict rests on links, faults and the times of flows"
            .to_owned();
        found.insert(at, Finding { about: "warning", words, evidence: "waits.parquet" });
    }
    Ok(found)
}

/// Describes the figures of a run that did not simulate packets, from its summary.
fn fidelity(run: &jobs::Run) -> Option<Finding> {
    if run.label.is_empty() {
        return None;
    }
    let mut words = run.label.trim_start_matches("fidelity: ").to_owned();
    for reason in &run.outside {
        words += &format!("; outside of the model: {reason}");
    }
    Some(Finding { about: "fidelity", words, evidence: "summary.json: run.fidelity, run.label, run.outside" })
}
