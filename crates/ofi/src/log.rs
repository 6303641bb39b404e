//! Messages on standard error, filtered by libfabric's variable `FI_LOG_LEVEL`. libfabric's log functions are
//! not used, because the process may contain another libfabric than the one that loaded the provider.

use std::fmt::Arguments;
use std::io::Write;

pub(crate) use pathweave_door::say_once as log_once;

/// Log levels, named as in libfabric, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Errors.
    Warn,
    /// Explanations.
    Info,
}

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

fn write(message: Arguments<'_>) {
    // An error of standard error cannot be reported.
    let _ = writeln!(std::io::stderr(), "{}: {message}", crate::NAME);
}
