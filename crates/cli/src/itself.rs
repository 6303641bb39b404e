//! How this program is started again, for the processes it needs beside itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::failure::Failure;

/// Set where the process is another program that has this one in a library.
static STARTED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says by which words this program is started; once a process, later calls change nothing.
pub(crate) fn started_by(words: Vec<OsString>) {
    let _ = STARTED_BY.set(words);
}

/// The file of the process.
///
/// # Errors
/// It cannot be found.
pub(crate) fn file() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|why| Failure::Internal(format!("this program cannot find itself: {why}")))
}

/// The words that start it, without arguments.
///
/// # Errors
/// Its file cannot be found.
pub(crate) fn words() -> Result<Vec<OsString>, Failure> {
    match STARTED_BY.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![file()?.into_os_string()]),
    }
}

/// A command that starts it, without arguments.
///
/// # Errors
/// Its file cannot be found.
pub(crate) fn command() -> Result<Command, Failure> {
    let words = words()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}
