//! What is kept of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pathweave_results::{FILES, FlowStatus, RunResult, Summary, figures, run_files, table_bytes};
use pathweave_scenario::{Changes, Diagnostics, Loaded};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::sweep::ENGINE;
use crate::sweep::error::SweepError;
use crate::sweep::model::TableName;

/// Marks a `run.json` as ours.
const SCHEMA: &str = "pathweave.sweep-run";
/// Rises when a field is renamed, removed or changes meaning. Part of every key, so that older runs run again.
const SCHEMA_VERSION: u32 = 1;
/// The file that says a run is finished.
pub(crate) const MARK: &str = "run.json";
/// The scenario of a run, complete.
const SCENARIO: &str = "scenario.toml";

/// Files of a run by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// A finished run: `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    schema_version: u32,
    /// What its outcome depends on; see [`Run::key`](crate::sweep::Run::key).
    pub key: String,
    /// Version of the engine.
    pub engine: String,
    /// Seed.
    pub seed: u64,
    /// Digest of the event trace, 16 hexadecimal digits.
    pub digest: String,
    /// Why the run ended.
    pub ended: String,
    /// More on why; may be empty.
    pub ended_detail: String,
    /// Flows the run was about.
    pub flows: u64,
    /// Those of them that did not finish.
    pub open_flows: u64,
    /// CPU time of the run, seconds.
    pub cpu_s: f64,
    /// Every figure of the run that has a value.
    pub metrics: BTreeMap<String, f64>,
}

impl Record {
    fn from_run(key: &str, run: &RunResult, summary: &Summary) -> Self {
        let value = |figure: pathweave_results::Figure| Some((figure.name, figure.value?));
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

    /// From the text of a `run.json`. `None` if it is not one, or not whole, or of another run.
    pub(crate) fn parse(text: &[u8], key: &str) -> Option<Self> {
        let record: Record = serde_json::from_slice(text).ok()?;
        let ours = record.schema == SCHEMA && record.schema_version == SCHEMA_VERSION && record.key == key;
        ours.then_some(record)
    }
}

/// What is kept of a run beside its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its scenario and these tables.
    Tables(Vec<TableName>),
    /// All that `pathweave run` writes, its report among it.
    Whole,
}

impl Keep {
    /// Names of the files.
    pub fn files(&self) -> Vec<&'static str> {
        match self {
            Keep::Tables(tables) => tables.iter().map(|table| table.file()).chain([SCENARIO]).collect(),
            Keep::Whole => FILES.iter().map(|(name, _)| *name).collect(),
        }
    }
}

/// The files of a finished run: the mark with its figures, and what `keep` names.
///
/// # Errors
/// If a table cannot be encoded.
pub fn pack(key: &str, run: &RunResult, summary: &Summary, keep: &Keep) -> Result<Files, SweepError> {
    let record = Record::from_run(key, run, summary);
    let mark = serde_json::to_vec_pretty(&record).expect("plain data with text keys serialises");
    let mut files = vec![(MARK.to_owned(), mark)];
    let failed =
        |name: &str, why: &dyn ToString| SweepError::Table { name: name.to_owned(), why: why.to_string() };
    match keep {
        Keep::Tables(tables) => {
            files.push((SCENARIO.to_owned(), run.info.scenario_toml.clone().into_bytes()));
            for name in tables {
                let bytes = table_bytes(run, name.table()).map_err(|why| failed(name.file(), &why))?;
                files.push((name.file().to_owned(), bytes));
            }
        }
        Keep::Whole => files.extend(run_files(run, summary).map_err(|why| failed("of a run", &why))?),
    }
    Ok(files)
}

/// The record of the run that is kept in `folder`, a folder of a sweep's runs, and its scenario. `None` if it is no such
/// folder.
pub fn kept_run(folder: &Path) -> Option<(Record, String)> {
    let key = folder.file_name()?.to_str()?.strip_prefix("run=")?;
    let record = Record::parse(&fs::read(folder.join(MARK)).ok()?, key)?;
    Some((record, fs::read_to_string(folder.join(SCENARIO)).ok()?))
}

/// The digest of what decides a run: its scenario, and the engine.
pub(crate) fn key_of(identity: &str) -> String {
    run_key("sweep", SCHEMA_VERSION, identity)
}

/// The key under which `kind`, in its layout `version`, keeps a run: a digest of what decides the run, and of the engine.
/// `identity` is [`Loaded::identity`].
pub fn run_key(kind: &str, version: u32, identity: &str) -> String {
    digest(&format!("pathweave {kind} {version}\nengine {ENGINE}\n{identity}"))
}

/// The key of a resolved scenario. Elsewhere than where the sweep was planned it differs if the engine is another one,
/// or a file that the scenario names has other contents there.
pub fn task_key(scenario: &str) -> Result<String, Diagnostics> {
    Ok(key_of(&Loaded::parse(scenario, "scenario.toml", "", &Changes::default())?.identity()?))
}

/// The first half of SHA-256, as 32 hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
