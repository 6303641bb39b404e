//! A folder of finished runs: each is a folder of its own, which appears whole or not at all. Sweeps and papers keep their
//! runs in one, so that nothing that is finished is lost when a process is killed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::sweep::error::{SweepError, io_error};
use crate::sweep::record::Files;

/// The folder of runs; within it each is `run=KEY`, as partitioned datasets are laid out.
pub const RUNS: &str = "runs";
/// The file that whoever writes holds locked.
pub const LOCK: &str = ".lock";

/// The finished runs below a folder, ours alone while this lives.
#[derive(Debug)]
pub struct RunStore {
    path: PathBuf,
    runs: PathBuf,
    /// Held, not read: the system lets go of it even if we are killed.
    _lock: File,
}

impl RunStore {
    /// The runs below `path`, which is made if it does not exist. What a killed process left unfinished is removed.
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
            // Some network file systems cannot lock; runs appear whole there, too.
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

    /// The folder that was opened, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the files of a run are, or would be.
    pub fn folder(&self, key: &str) -> PathBuf {
        self.runs.join(format!("run={key}"))
    }

    /// Keeps the files of a finished run, in place of what is kept of it.
    ///
    /// # Errors
    /// If they cannot be written.
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

    /// Removes one by the name of its folder.
    pub(crate) fn remove(&self, name: &str) -> Result<(), SweepError> {
        let path = self.runs.join(name);
        fs::remove_dir_all(&path).map_err(io_error(&path, "remove"))
    }

    /// Names in the folder of runs, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, SweepError> {
        names(&self.runs).map_err(io_error(&self.runs, "read the folder"))
    }

    /// A file beside the folder of runs that appears whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
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

/// Names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
