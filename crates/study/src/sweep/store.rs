//! Folder of finished runs. Each run is a folder of its own that is created atomically. Sweeps and papers store their
//! runs in it, so that a killed process loses no finished run.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::sweep::error::{SweepError, io_error};
use crate::sweep::record::Files;

/// Folder of runs. Each run is a folder `run=KEY` in it, as in partitioned datasets.
pub const RUNS: &str = "runs";
/// File that the writing process holds locked.
pub const LOCK: &str = ".lock";

/// Finished runs below a folder. This process holds the folder's lock while the value lives.
#[derive(Debug)]
pub struct RunStore {
    path: PathBuf,
    runs: PathBuf,
    /// Lock file. It is held open and never read; the system releases the lock even if the process is killed.
    _lock: File,
}

impl RunStore {
    /// Opens the runs below `path`, which is created if it does not exist. Partial output of a killed process is
    /// removed.
    ///
    /// # Errors
    /// If another process writes there, or if the folder cannot be written.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let path = std::path::absolute(path).map_err(io_error(path, "find the folder"))?;
        let runs = path.join(RUNS);
        fs::create_dir_all(&runs).map_err(io_error(&runs, "create the folder"))?;
        let lock = path.join(LOCK);
        let held = File::create(&lock).map_err(io_error(&lock, "write"))?;
        match held.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(SweepError::Busy { path }),
            // Some network file systems cannot lock. Runs are created atomically there as well.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        let store = RunStore { path, runs, _lock: held };
        for name in store.names()?.iter().filter(|name| name.starts_with('.')) {
            let left = store.runs.join(name);
            let removed = if left.is_dir() { fs::remove_dir_all(&left) } else { fs::remove_file(&left) };
            removed.map_err(io_error(&left, "remove"))?;
        }
        Ok(store)
    }

    /// Returns the absolute path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of a run, which need not exist.
    pub fn folder(&self, key: &str) -> PathBuf {
        self.runs.join(format!("run={key}"))
    }

    /// Stores the files of a finished run, and replaces those already stored.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn put(&self, key: &str, files: &Files) -> Result<(), SweepError> {
        let folder = self.folder(key);
        let partial = self.runs.join(format!(".run={key}"));
        fs::create_dir(&partial).map_err(io_error(&partial, "create the folder"))?;
        for (name, content) in files {
            let path = partial.join(name);
            write_synced(&path, content).map_err(io_error(&path, "write"))?;
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(io_error(&folder, "remove"))?;
        }
        fs::rename(&partial, &folder).map_err(io_error(&folder, "put the run in place"))
    }

    /// Removes a run by the name of its folder.
    pub(crate) fn remove(&self, name: &str) -> Result<(), SweepError> {
        let path = self.runs.join(name);
        fs::remove_dir_all(&path).map_err(io_error(&path, "remove"))
    }

    /// Returns the names in the folder of runs, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, SweepError> {
        names(&self.runs).map_err(io_error(&self.runs, "read the folder"))
    }

    /// Writes a file beside the folder of runs atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn file(&self, name: &str, content: &[u8]) -> Result<(), SweepError> {
        let partial = self.runs.join(format!(".{name}"));
        let path = self.path.join(name);
        write_synced(&partial, content)
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(io_error(&path, "write"))
    }
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
