//! Output folder of a sweep: a folder per run, created atomically, and the files computed from all runs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use pathweave_report::{PROGRESS_FILE, Progress};

use crate::sweep::choice::Choices;
use crate::sweep::error::{SweepError, io_error};
use crate::sweep::plan::Plan;
use crate::sweep::record::{Files, MARK, Record};
use crate::sweep::report;
use crate::sweep::store::{LOCK, RUNS, RunStore, names};
use crate::sweep::summary::{SCHEMA, SweepSummary};

const SUMMARY: &str = "summary.json";
/// Results of a cluster plan.
const CHOICES: &str = "plan.json";
const CHOICES_PAGE: &str = "plan.html";
/// Files and folders of a dataset. A folder with any other entry was not written by a sweep.
const DATASET_ENTRIES: [&str; 10] = [
    RUNS,
    LOCK,
    SUMMARY,
    "report.html",
    "runs.parquet",
    "summary.parquet",
    CHOICES,
    CHOICES_PAGE,
    PROGRESS_FILE,
    ".progress.json",
];

/// Output folder of a sweep. This process holds its lock while the value lives.
#[derive(Debug)]
pub struct Dataset {
    store: RunStore,
}

impl Dataset {
    /// Opens the folder at `path`, a new one or one of an earlier sweep. Partial output of a killed sweep is removed.
    ///
    /// # Errors
    /// If `path` holds anything else, if another sweep writes there, or if it cannot be written.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        check(path)?;
        let store = RunStore::open(path)?;
        if !store.path().join(SUMMARY).exists() {
            store.file(SUMMARY, format!("{{\"schema\": \"{SCHEMA}\", \"partial\": true}}\n").as_bytes())?;
        }
        // Progress file of a sweep that was killed.
        Progress::remove(store.path()).map_err(io_error(store.path(), "remove"))?;
        Ok(Dataset { store })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Returns the record of a finished run that has every file `plan` keeps. `None` if it has to run.
    pub fn record(&self, plan: &Plan, key: &str) -> Option<Record> {
        let folder = self.store.folder(key);
        let complete = plan.keep.files().iter().all(|name| is_whole(&folder.join(name)));
        let record = Record::parse(&fs::read(folder.join(MARK)).ok()?, key)?;
        complete.then_some(record)
    }

    /// Stores the files of a finished run.
    ///
    /// # Errors
    /// If the files belong to another run, or cannot be written.
    pub fn store(&self, key: &str, files: &Files) -> Result<Record, SweepError> {
        let mark = files.iter().find(|(name, _)| name == MARK);
        let Some(record) = mark.and_then(|(_, text)| Record::parse(text, key)) else {
            let why = "it is not of this run, or made by another version".to_owned();
            return Err(SweepError::Table { name: MARK.to_owned(), why });
        };
        self.store.put(key, files)?;
        Ok(record)
    }

    /// Returns the runs in the folder that are not in `plan`. An earlier version of the sweep requested them.
    pub fn foreign_runs(&self, plan: &Plan) -> Result<Vec<String>, SweepError> {
        let ours: BTreeSet<String> = plan.runs.iter().map(|run| format!("run={}", run.key)).collect();
        Ok(self.store.names()?.into_iter().filter(|name| !ours.contains(name)).collect())
    }

    /// Removes the runs that are not in `plan`.
    pub fn prune(&self, plan: &Plan) -> Result<(), SweepError> {
        for name in self.foreign_runs(plan)? {
            self.store.remove(&name)?;
        }
        Ok(())
    }

    /// Writes the files computed from all runs: summary, tables and report.
    pub fn write(&self, plan: &Plan, summary: &SweepSummary) -> Result<(), SweepError> {
        for (name, frame) in
            [("runs.parquet", summary.runs_frame(plan)), ("summary.parquet", summary.frame())]
        {
            let metadata = [("sweep", plan.name.clone()), ("digest", summary.digest.clone())];
            let bytes = frame.parquet(&metadata);
            let bytes =
                bytes.map_err(|why| SweepError::Table { name: name.to_owned(), why: why.to_string() })?;
            self.store.file(name, &bytes)?;
        }
        self.store.file("report.html", report::html(plan, summary).as_bytes())?;
        let mut text = serde_json::to_vec_pretty(summary).expect("plain data with text keys serialises");
        text.push(b'\n');
        self.store.file(SUMMARY, &text)
    }

    /// Writes the results of a cluster plan in addition.
    pub fn write_choices(&self, choices: &Choices) -> Result<(), SweepError> {
        let mut text = serde_json::to_vec_pretty(choices).expect("plain data with text keys serialises");
        text.push(b'\n');
        self.store.file(CHOICES, &text)?;
        self.store.file(CHOICES_PAGE, choices.html().as_bytes())
    }
}

/// Returns true if a file is there and has an end: that of its format for a table.
fn is_whole(path: &Path) -> bool {
    const MAGIC: &[u8] = b"PAR1";
    let is_table = path.extension().is_some_and(|extension| extension == "parquet");
    let Ok(mut file) = fs::File::open(path) else { return false };
    let end = if is_table { MAGIC.len() as i64 } else { 1 };
    let mut last = Vec::new();
    let is_read = file.seek(SeekFrom::End(-end)).and_then(|_| file.read_to_end(&mut last)).is_ok();
    is_read && (!is_table || last == MAGIC)
}

/// Checks that `path` is free or empty, or is the folder of a sweep without foreign files.
fn check(path: &Path) -> Result<(), SweepError> {
    let occupied = |found: String| Err(SweepError::Occupied { path: path.to_owned(), found });
    match fs::symlink_metadata(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(io_error(path, "look at it")(why)),
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return occupied("a file".to_owned()),
    }
    let names = names(path).map_err(io_error(path, "read the folder"))?;
    if let Some(foreign) = names.iter().find(|name| !DATASET_ENTRIES.contains(&name.as_str())) {
        return occupied(format!("it holds \"{foreign}\""));
    }
    let text = fs::read(path.join(SUMMARY)).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    // A sweep that was killed early has left the lock and the folder of runs only.
    let begun = names.iter().all(|name| name == LOCK || name == RUNS);
    if summary["schema"] == SCHEMA || begun { Ok(()) } else { occupied(format!("it holds \"{}\"", names[0])) }
}
