//! Command that starts this program again, for the additional processes it needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::failure::Failure;

/// Words that start this program, if the process is another program that contains it as a library.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// Folder of the libraries for other programs, if this program is a part of a package.
static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();

/// Sets the words that start this program. Only the first call in a process has an effect.
pub(crate) fn started_by(words: Vec<OsString>) {
    let _ = STARTED_BY.set(words);
}

/// Sets the folder of the libraries for other programs. Only the first call in a process has an effect.
pub(crate) fn libraries_are_in(folder: PathBuf) {
    let _ = LIBRARIES.set(folder);
}

/// Returns the folder of the libraries for other programs, if this program is a part of a package.
pub(crate) fn libraries() -> Option<&'static Path> {
    LIBRARIES.get().map(PathBuf::as_path)
}

/// Returns the executable file of the process.
///
/// # Errors
/// The file cannot be found.
pub(crate) fn file() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|why| Failure::Internal(format!("this program cannot find itself: {why}")))
}

/// Returns the words that start this program, without arguments.
///
/// # Errors
/// The executable file cannot be found.
pub(crate) fn command_words() -> Result<Vec<OsString>, Failure> {
    match STARTED_BY.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![file()?.into_os_string()]),
    }
}

/// Returns a command that starts this program, without arguments.
///
/// # Errors
/// The executable file cannot be found.
pub(crate) fn command() -> Result<Command, Failure> {
    let words = command_words()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}
