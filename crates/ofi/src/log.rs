//! What is said on standard error, as libfabric's own variable `FI_LOG_LEVEL` wants it. libfabric's functions for it are
//! not used: the process may have another libfabric than the one that loaded us.

use std::collections::BTreeSet;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// As libfabric names them, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Something is wrong.
    Warn,
    /// Why something is as it is.
    Info,
}

/// Messages that were said already, of those said once. Bounded.
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

/// Says it if the variable wants this level.
pub(crate) fn say(level: Level, message: Arguments<'_>) {
    if wanted(level) {
        write(message);
    }
}

/// Says it whatever the variable, but once a process: applications ask again and again.
pub(crate) fn say_once(message: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < MOST_REMEMBERED && said.insert(message.to_owned()) {
        write(format_args!("{message}"));
    }
}

fn write(message: Arguments<'_>) {
    // Nobody can be told that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{}: {message}", crate::NAME);
}
