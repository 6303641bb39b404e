//! Stored data of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pathweave_records::{FlowStatus, RunResult, Summary};
use pathweave_report::{FILES, Needs, figures, run_files, table_bytes};
use pathweave_scenario::{Changes, Diagnostics, Loaded};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::sweep::ENGINE;
use crate::sweep::error::SweepError;
use crate::sweep::model::TableName;

/// Format identifier of `run.json`.
const SCHEMA: &str = "pathweave.sweep-run";
/// Version of the format, part of every key. Increase it if a field is renamed, removed or changes meaning; older
/// runs then run again.
const SCHEMA_VERSION: u32 = 1;
/// File whose presence marks a run as finished.
pub(crate) const MARK: &str = "run.json";
/// Figure by which runs with jobs are judged, and that of other runs.
pub(crate) const JOB_TIME: &str = "job_time_ns";
pub(crate) const TAIL_SLOWDOWN: &str = "slowdown_p99";
pub(crate) const ITERATION: &str = "iteration_ns";
pub(crate) const TOKENS_PER_SECOND: &str = "tokens_per_second";
pub(crate) const TAIL_TIME: &str = "fct_p99_ns";
pub(crate) const IDEAL_TIME: &str = "ideal_fct_mean_ns";
const UNFINISHED_JOBS: &str = "unfinished_jobs";
/// File with the complete scenario of a run.
const SCENARIO: &str = "scenario.toml";

/// Contents of the files of a run, by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// Finished run, the content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    schema_version: u32,
    /// Digest of everything that the outcome depends on; see [`Run::key`](crate::sweep::Run::key).
    pub key: String,
    /// Version of the engine.
    pub engine: String,
    /// Seed.
    pub seed: u64,
    /// Digest of the event trace, 16 hexadecimal digits.
    pub digest: String,
    /// Reason why the run ended.
    pub ended: String,
    /// Detail of that reason. May be empty.
    pub ended_detail: String,
    /// Number of foreground flows.
    pub flows: u64,
    /// Number of foreground flows that did not finish.
    pub open_flows: u64,
    /// CPU time of the run in seconds.
    pub cpu_s: f64,
    /// Every figure of the run that has a value.
    pub metrics: BTreeMap<String, f64>,
}

impl Record {
    fn from_run(key: &str, run: &RunResult, summary: &Summary) -> Self {
        let value = |figure: pathweave_report::Figure| Some((figure.name, figure.value?));
        let open = run.foreground().filter(|flow| flow.status != FlowStatus::Finished).count();
        Record {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            key: key.to_owned(),
            engine: ENGINE.to_owned(),
            seed: run.info.seed,
            digest: run.info.digest_hex(),
            ended: run.info.ended.name().to_owned(),
            ended_detail: run.info.ended_detail.clone(),
            flows: run.foreground().count() as u64,
            open_flows: open as u64,
            cpu_s: run.info.cpu_s,
            metrics: figures(summary).into_iter().filter_map(value).collect(),
        }
    }

    /// Returns true if the run has jobs, finished or not.
    pub(crate) fn has_jobs(&self) -> bool {
        self.metrics.contains_key(JOB_TIME) || self.metrics.contains_key(UNFINISHED_JOBS)
    }

    /// Returns a figure that stands for the run. A figure of the work that finished does not if other work is left: it
    /// lacks the slowest.
    pub(crate) fn comparable(&self, figure: &str, needs: Needs) -> Option<f64> {
        self.metrics.get(figure).copied().filter(|_| !self.lacks(needs))
    }

    /// Returns true if the run has left work that a figure is of.
    pub(crate) fn lacks(&self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => false,
            Needs::Flows => self.open_flows > 0,
            Needs::Jobs => self.metrics.contains_key(UNFINISHED_JOBS),
        }
    }

    /// Returns true if all flows and jobs finished.
    pub(crate) fn is_whole(&self) -> bool {
        !self.lacks(Needs::Flows) && !self.lacks(Needs::Jobs)
    }

    /// Parses a `run.json`. Returns `None` if it is invalid, incomplete, or of another run.
    pub(crate) fn parse(text: &[u8], key: &str) -> Option<Self> {
        let record: Record = serde_json::from_slice(text).ok()?;
        let ours = record.schema == SCHEMA && record.schema_version == SCHEMA_VERSION && record.key == key;
        ours.then_some(record)
    }
}

/// Data stored for a run in addition to its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredFiles {
    /// The scenario and these tables.
    Tables(Vec<TableName>),
    /// Everything that `pathweave run` writes, including its report.
    Whole,
}

impl StoredFiles {
    /// Returns the names of the files.
    pub fn files(&self) -> Vec<&'static str> {
        match self {
            StoredFiles::Tables(tables) => {
                tables.iter().map(|table| table.file()).chain([SCENARIO]).collect()
            }
            StoredFiles::Whole => FILES.iter().map(|(name, _)| *name).collect(),
        }
    }
}

/// Returns the files of a finished run: the record with its figures, and the files that `keep` selects.
///
/// # Errors
/// If a table cannot be encoded.
pub fn encode_files(
    key: &str,
    run: &RunResult,
    summary: &Summary,
    keep: &StoredFiles,
) -> Result<Files, SweepError> {
    let record = Record::from_run(key, run, summary);
    let mark = serde_json::to_vec_pretty(&record).expect("plain data with text keys serialises");
    let mut files = vec![(MARK.to_owned(), mark)];
    let failed =
        |name: &str, why: &dyn ToString| SweepError::Table { name: name.to_owned(), why: why.to_string() };
    match keep {
        StoredFiles::Tables(tables) => {
            files.push((SCENARIO.to_owned(), run.info.scenario_toml.clone().into_bytes()));
            for name in tables {
                let bytes = table_bytes(run, name.table()).map_err(|why| failed(name.file(), &why))?;
                files.push((name.file().to_owned(), bytes));
            }
        }
        StoredFiles::Whole => files.extend(run_files(run, summary).map_err(|why| failed("of a run", &why))?),
    }
    Ok(files)
}

/// Returns the record and the scenario of the run stored in `folder`, a folder of a sweep's runs. Returns `None` if
/// it is not such a folder.
pub fn read_stored_run(folder: &Path) -> Option<(Record, String)> {
    let key = folder.file_name()?.to_str()?.strip_prefix("run=")?;
    let record = Record::parse(&fs::read(folder.join(MARK)).ok()?, key)?;
    Some((record, fs::read_to_string(folder.join(SCENARIO)).ok()?))
}

/// Returns the digest of everything that decides a run: its scenario and the engine.
pub(crate) fn key_of(identity: &str) -> String {
    run_key("sweep", SCHEMA_VERSION, identity)
}

/// Returns the key under which `kind` stores a run in version `version` of its format. The key is a digest of the
/// engine and of `identity`, which is [`Loaded::identity`].
pub fn run_key(kind: &str, version: u32, identity: &str) -> String {
    digest(&format!("pathweave {kind} {version}\nengine {ENGINE}\n{identity}"))
}

/// Returns the key of a resolved scenario. On another machine it differs if the engine differs, or if a file that the
/// scenario references has other contents there.
pub fn task_key(scenario: &str) -> Result<String, Diagnostics> {
    Ok(key_of(&Loaded::parse(scenario, "scenario.toml", "", &Changes::default())?.identity()?))
}

/// Returns the first half of a SHA-256 digest, as 32 hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
