//! Files and folders under temporary names, `.NAME.partial-PID`, from which they are renamed when they are complete.
//!
//! A process holds a lock on each of its own. A process that is killed leaves them behind, and the next one that
//! writes to the same place removes them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// File in a folder under a temporary name that its process holds locked.
const LOCK: &str = ".lock";
/// Largest number of unfinished objects of one process beside a target.
const MOST: u32 = 1_000;
/// Lock of the interval in which an object of this process exists and is not locked yet.
static CREATION: Mutex<()> = Mutex::new(());

/// Folder under a temporary name. It is removed on drop, unless it has been renamed.
#[derive(Debug)]
pub struct PartialFolder {
    path: PathBuf,
    /// Lock file, held open and never read. `None` if the file system has no locks.
    _lock: Option<File>,
}

impl PartialFolder {
    /// Creates a folder under a temporary name beside `target`, in an existing folder. What killed processes have left
    /// of `target` is removed.
    ///
    /// # Errors
    /// The folder cannot be created, or `target` has no name.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let make = |path: &Path| {
            fs::create_dir(path)?;
            let lock = path.join(LOCK);
            let locked = File::create_new(&lock).ok().filter(|file| file.try_lock().is_ok());
            if locked.is_none() {
                // Some network file systems cannot lock. A file without a lock would look abandoned.
                let _ = fs::remove_file(&lock);
            }
            Ok(locked)
        };
        let (path, lock) = beside(target, make)?;
        Ok(PartialFolder { path, _lock: lock })
    }

    /// Returns the path under the temporary name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the lock file. The folder can then be renamed.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn complete(&self) -> io::Result<()> {
        match fs::remove_file(self.path.join(LOCK)) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // After a success the folder no longer exists. A failure cannot be handled here; the name shows that the folder
        // is incomplete.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates a file under a temporary name beside `target`, in an existing folder. What killed processes have left of
/// `target` is removed.
///
/// # Errors
/// The file cannot be created, or `target` has no name.
pub fn partial_file(target: &Path) -> io::Result<(PathBuf, File)> {
    beside(target, |path| {
        let file = File::create_new(path)?;
        // Without a lock, the file of a killed process stays.
        let _ = file.try_lock();
        Ok(file)
    })
}

/// Creates an object with `make` under the first free temporary name beside `target`.
fn beside<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let Some(name) = target.file_name() else { return Err(io::Error::other("it has no name")) };
    let _creation = CREATION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    remove_abandoned(target.parent().unwrap_or(Path::new("")), name);
    for attempt in 0..MOST {
        let mut hidden = prefix(name);
        hidden.push(std::process::id().to_string());
        if attempt > 0 {
            hidden.push(format!("-{attempt}"));
        }
        let path = target.with_file_name(hidden);
        match make(&path) {
            // In use by this process, or by one with the same number on another machine.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
    Err(io::Error::other("too many unfinished ones beside it"))
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".partial-");
    prefix
}

/// Removes the files and folders for `name` in `folder` whose processes are gone. Those that cannot be removed stay.
fn remove_abandoned(folder: &Path, name: &OsStr) {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = prefix(name);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let Some(process) = rest.and_then(process_of) else { continue };
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && is_abandoned(&path.join(LOCK), process) {
            let _ = fs::remove_dir_all(path);
        } else if kind.is_file() && is_abandoned(&path, process) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the number of the process in the end of a temporary name: `PID` or `PID-N`.
fn process_of(end: &[u8]) -> Option<u32> {
    let end = std::str::from_utf8(end).ok()?;
    let (process, attempt) = end.split_once('-').unwrap_or((end, "0"));
    attempt.parse::<u32>().ok()?;
    process.parse().ok()
}

/// Returns true if no process holds `lock`, and none has this number. Processes on other machines and in other
/// containers are known by their locks only.
fn is_abandoned(lock: &Path, process: u32) -> bool {
    let own = process == std::process::id();
    match File::options().write(true).open(lock) {
        Ok(file) => (own || !is_running(process)) && file.try_lock().is_ok(),
        Err(why) if why.kind() == io::ErrorKind::NotFound => !own && !is_running(process),
        Err(_) => false,
    }
}

#[cfg(target_os = "linux")]
fn is_running(process: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(target_os = "linux"))]
fn is_running(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number above those of processes (`kernel.pid_max` is at most 2^22).
    const GONE: u32 = 5_000_000;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn remains_of_processes_that_are_gone_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // The parent of this process runs.
        let parent = std::os::unix::process::parent_id();
        for (name, process) in [("a", GONE), ("a", parent), ("b", GONE)] {
            fs::create_dir(at(&format!(".{name}.partial-{process}"))).unwrap();
        }
        fs::write(at(&format!(".a.partial-{GONE}-1")), "file").unwrap();
        fs::create_dir(at(&format!(".a.partial-{GONE}.old"))).unwrap();
        // A process on another machine, where this number is in use.
        let far = at(&format!(".a.partial-{GONE}-2"));
        fs::create_dir(&far).unwrap();
        let held = File::create(far.join(LOCK)).unwrap();
        held.try_lock().unwrap();

        let made = PartialFolder::beside(&at("a")).unwrap();
        let second = PartialFolder::beside(&at("a")).unwrap();
        let own = std::process::id();
        let mut left = [
            format!(".a.partial-{GONE}-2"),
            format!(".a.partial-{GONE}.old"),
            format!(".a.partial-{own}"),
            format!(".a.partial-{own}-1"),
            format!(".a.partial-{parent}"),
            format!(".b.partial-{GONE}"),
        ];
        left.sort();
        assert_eq!(names(folder.path()), left);
        drop((made, second, held));
        let (path, _file) = partial_file(&at("a")).unwrap();
        assert_eq!(path, at(&format!(".a.partial-{own}")));
        assert!(!far.exists(), "its process has released the lock");
    }

    #[test]
    fn a_complete_folder_holds_what_was_put_there() {
        let folder = tempfile::tempdir().unwrap();
        let made = PartialFolder::beside(&folder.path().join("a")).unwrap();
        fs::write(made.path().join("file"), "").unwrap();
        made.complete().unwrap();
        assert_eq!(names(made.path()), ["file"]);
        fs::rename(made.path(), folder.path().join("a")).unwrap();
        drop(made);
        assert_eq!(names(folder.path()), ["a"]);
    }
}
