//! Messages on standard error, filtered by libfabric's variable `FI_LOG_LEVEL`. libfabric's log functions are
//! not used, because the process may contain another libfabric than the one that loaded the provider.

use std::collections::BTreeSet;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Log levels, named as in libfabric, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Errors.
    Warn,
    /// Explanations.
    Info,
}

/// Messages that [`log_once`] has written. The set is bounded.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
const MOST_REMEMBERED: usize = 256;

fn wanted(level: Level) -> bool {
    let Ok(text) = std::env::var("FI_LOG_LEVEL") else { return false };
    match text.to_ascii_lowercase().as_str() {
        "warn" | "trace" => level <= Level::Warn,
        "info" | "debug" => level <= Level::Info,
        _ => false,
    }
}

/// Writes a message if the variable enables its level.
pub(crate) fn log(level: Level, message: Arguments<'_>) {
    if wanted(level) {
        write(message);
    }
}

/// Writes a message whatever the level, but once per process, because applications repeat their requests.
pub(crate) fn log_once(message: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < MOST_REMEMBERED && said.insert(message.to_owned()) {
        write(format_args!("{message}"));
    }
}

fn write(message: Arguments<'_>) {
    // An error of standard error cannot be reported.
    let _ = writeln!(std::io::stderr(), "{}: {message}", crate::NAME);
}
