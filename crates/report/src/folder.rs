//! A result folder, which appears under its final name only when it is complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use pathweave_records::{RunResult, SCHEMA_NAME, SCHEMA_VERSION, Summary};
use serde::Serialize;

use crate::comparison::{COMPARISON_FILE, Verdict};
use crate::flow_file::FlowFile;
use crate::parquet_file::{self, RunTable, table_bytes};
use crate::partial::PartialFolder;
use crate::progress::Progress;
use crate::report;

/// Files of a run. A folder with any other file is not replaced.
pub const FILES: &[(&str, &str)] = &[
    ("scenario.toml", "The scenario with every default filled in; running it again gives the same digest."),
    ("summary.json", "The figures of the run."),
    ("flows.parquet", "One row a flow."),
    ("jobs.parquet", "One row a job."),
    (
        "activities.parquet",
        "Activities of each host: computations, and its parts in collectives and exchanges.",
    ),
    (
        "collectives.parquet",
        "One row a collective: begin and end of its ranks, its bandwidth, its exposed time.",
    ),
    ("layers.parquet", "Computation and communication of ranks for each layer, and the exposed part."),
    ("critical.parquet", "Critical path of each job, step by step."),
    ("waits.parquet", "Time of the slowest flows by cause and link."),
    ("series.parquet", "Samples over time."),
    ("events.parquet", "Drops, pauses, retransmissions, timeouts, faults."),
    ("links.parquet", "One row a directed link."),
    ("report.html", "All of it as pictures, in one file that needs no network."),
];

/// Reason why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The destination exists and is not a result folder of pathweave.
    #[error("{}: exists and is not a result folder ({found}); choose another name or remove it", path.display())]
    Occupied {
        /// Path of the destination.
        path: PathBuf,
        /// Description of the existing entry.
        found: String,
    },
    /// A file or folder could not be created or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// Path that was accessed.
        path: PathBuf,
        /// Action that failed.
        action: &'static str,
        /// Reason of the failure.
        source: io::Error,
    },
    /// A Parquet file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Reason of the failure.
        source: ParquetError,
    },
}

fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> OutputError {
    move |source| OutputError::Io { path: path.to_owned(), action, source }
}

/// A folder that is filled beside its final name. Create it before the run, so that an unwritable destination is
/// found before the work and not after it. A folder dropped without [`ResultFolder::commit`] is removed.
#[derive(Debug)]
pub struct ResultFolder {
    destination: PathBuf,
    partial: PartialFolder,
}

impl ResultFolder {
    /// Creates a folder that will become `destination`. Missing parents are created, and what killed processes have
    /// left of `destination` is removed.
    ///
    /// # Errors
    /// `destination` cannot be written, or exists and is neither an empty folder nor a result folder.
    pub fn create(destination: &Path) -> Result<Self, OutputError> {
        check_replaceable(destination)?;
        let full = std::path::absolute(destination).map_err(io_error(destination, "find the folder"))?;
        let (Some(parent), Some(_)) = (full.parent(), full.file_name()) else {
            let found = "the root of the file system".to_owned();
            return Err(OutputError::Occupied { path: destination.to_owned(), found });
        };
        fs::create_dir_all(parent).map_err(io_error(parent, "create the folder"))?;
        let partial = PartialFolder::beside(&full).map_err(io_error(parent, "write to the folder"))?;
        Ok(ResultFolder { destination: full, partial })
    }

    /// Creates `flows.parquet` for a run that begins. [`ResultFolder::write_run`] keeps the file if the run's records
    /// were streamed to it. `run` must have the fields that [`FlowFile::create`] needs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flow_file(&self, run: RunResult) -> Result<FlowFile, OutputError> {
        FlowFile::create(self.partial(), run)
    }

    /// Creates `flows.parquet` for a run of a comparison, in the folder that [`ResultFolder::write_comparison`] gives
    /// it. Returns `None` if another run has that folder already, because the names map to the same folder name. The
    /// records of this run must then be kept in memory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn comparison_flow_file(&self, run: RunResult) -> Result<Option<FlowFile>, OutputError> {
        let folder = self.partial().join(folder_name(&run.info.name));
        match fs::create_dir(&folder) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            made => {
                made.map_err(io_error(&folder, "create the folder"))?;
                FlowFile::create(&folder, run).map(Some)
            }
        }
    }

    /// Writes every file of a run, including its report.
    pub fn write_run(&self, run: &RunResult, summary: &Summary) -> Result<(), OutputError> {
        self.write_files(self.partial(), run, summary)
    }

    /// Writes the runs of a comparison: a folder each, named after the run, and a report, a summary and a table of all.
    /// The first run is the baseline.
    ///
    /// # Panics
    /// Panics without a run.
    pub fn write_comparison(&self, runs: &[(&RunResult, &Summary)]) -> Result<(), OutputError> {
        for (run, summary) in runs {
            let name = folder_name(&run.info.name);
            let folder = if run.streamed.is_some() {
                self.partial().join(name)
            } else {
                let numbered = (2..).map(|n| format!("{name}-{n}"));
                let mut candidates =
                    std::iter::once(name.clone()).chain(numbered).map(|n| self.partial().join(n));
                let free = candidates.find(|f| !f.exists()).expect("the numbers do not run out");
                fs::create_dir(&free).map_err(io_error(&free, "create the folder"))?;
                free
            };
            self.write_files(&folder, run, summary)?;
        }
        #[derive(Serialize)]
        struct Comparison<'a> {
            schema: &'static str,
            schema_version: u32,
            verdict: &'a Verdict,
            runs: &'a [&'a Summary],
        }
        let summaries: Vec<&Summary> = runs.iter().map(|(_, summary)| *summary).collect();
        let verdict = Verdict::of(&summaries);
        let all = Comparison {
            schema: "pathweave.comparison",
            schema_version: SCHEMA_VERSION,
            verdict: &verdict,
            runs: &summaries,
        };
        write_file(&self.partial().join("summary.json"), &json(&all))?;
        write_file(&self.partial().join(COMPARISON_FILE), &verdict.csv(&summaries))?;
        write_file(&self.partial().join("report.html"), &report::html(runs))
    }

    /// Returns the path of the files before [`ResultFolder::commit`], for [`Progress`] during the runs.
    pub fn partial(&self) -> &Path {
        self.partial.path()
    }

    /// Renames the folder to its final name. An older result there is replaced in one step.
    pub fn commit(self) -> Result<PathBuf, OutputError> {
        let destination = self.destination.clone();
        // The destination may have changed since `create`.
        check_replaceable(&destination)?;
        let partial = self.partial.path();
        Progress::remove(partial)
            .and_then(|()| self.partial.complete())
            .map_err(io_error(partial, "finish"))?;
        let failed = |e| io_error(&destination, "put the results in place")(e);
        if destination.exists() {
            exchange(partial, &destination).map_err(failed)?;
            // `partial` is the old result now, and is removed with `self`.
        } else {
            fs::rename(partial, &destination).map_err(failed)?;
        }
        Ok(destination)
    }

    fn write_files(&self, folder: &Path, run: &RunResult, summary: &Summary) -> Result<(), OutputError> {
        write_file(&folder.join("scenario.toml"), &run.info.scenario_toml)?;
        write_file(&folder.join("summary.json"), &json(summary))?;
        let written = |table: &RunTable| run.streamed.is_some() && *table == RunTable::Flows;
        for table in RunTable::ALL.into_iter().filter(|table| !written(table)) {
            let path = folder.join(table.file());
            parquet_file::write_table(&path, run, table)
                .map_err(|source| OutputError::Parquet { path, source })?;
        }
        write_file(&folder.join("report.html"), &report::html(&[(run, summary)]))
    }
}

/// Returns the files of the folder of a run, named as in [`FILES`], for callers that do not use a [`ResultFolder`].
///
/// # Errors
/// A table cannot be encoded.
pub fn run_files(run: &RunResult, summary: &Summary) -> Result<Vec<(String, Vec<u8>)>, ParquetError> {
    let text = |name: &str, text: String| (name.to_owned(), text.into_bytes());
    let mut files = vec![
        text("scenario.toml", run.info.scenario_toml.clone()),
        text("summary.json", json(summary)),
        text("report.html", report::html(&[(run, summary)])),
    ];
    for table in RunTable::ALL {
        files.push((table.file().to_owned(), table_bytes(run, table)?));
    }
    Ok(files)
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

fn write_file(path: &Path, text: &str) -> Result<(), OutputError> {
    fs::write(path, text).map_err(io_error(path, "write"))
}

/// Returns the name of a run as the name of a folder. Characters that are not allowed become "_".
fn folder_name(name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' }).collect();
    if safe.is_empty() || safe.starts_with('.') { format!("_{safe}") } else { safe }
}

/// Swaps two folders atomically: one of them always has the final name.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
            // Some network file systems cannot swap.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {}
            result => return result.map_err(io::Error::from),
        }
    }
    let mut aside = new.as_os_str().to_owned();
    aside.push(".old");
    fs::rename(old, &aside)?;
    if let Err(error) = fs::rename(new, old) {
        fs::rename(&aside, old)?;
        return Err(error);
    }
    fs::remove_dir_all(&aside)
}

/// Checks that `path` is free, an empty folder, or a result folder without foreign files.
fn check_replaceable(path: &Path) -> Result<(), OutputError> {
    let occupied = |found: String| Err(OutputError::Occupied { path: path.to_owned(), found });
    let metadata = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result.map_err(io_error(path, "look at it"))?,
    };
    if metadata.is_symlink() {
        return occupied("a symbolic link".to_owned());
    }
    if !metadata.is_dir() {
        return occupied("a file".to_owned());
    }
    match foreign_entry(path, true).map_err(io_error(path, "read the folder"))? {
        Some(entry) => occupied(format!("it holds \"{entry}\"")),
        None => Ok(()),
    }
}

/// Returns the first entry of a folder that pathweave did not write. Folders of a comparison hold results one level
/// below.
fn foreign_entry(folder: &Path, may_hold_runs: bool) -> io::Result<Option<String>> {
    let mut names: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in &names {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = if entry.file_type()?.is_dir() {
            may_hold_runs && foreign_entry(&entry.path(), false)?.is_none()
        } else {
            FILES.iter().any(|(file, _)| *file == name) || (may_hold_runs && name == COMPARISON_FILE)
        };
        if !ours {
            return Ok(Some(name));
        }
    }
    let is_marked = || -> io::Result<bool> {
        let text = match fs::read_to_string(folder.join("summary.json")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            text => text?,
        };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let schema = value.get("schema").and_then(serde_json::Value::as_str);
        Ok(schema == Some(SCHEMA_NAME) || schema == Some("pathweave.comparison"))
    };
    match names.first() {
        Some(first) if !is_marked()? => Ok(Some(first.file_name().to_string_lossy().into_owned())),
        _ => Ok(None),
    }
}
