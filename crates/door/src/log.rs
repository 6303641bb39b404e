//! Messages on standard error that users see without asking for a log.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Messages that [`say_once`] has written. The set is bounded.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
const MOST_REMEMBERED: usize = 256;

/// Writes one line to standard error, once per process, because applications repeat their requests.
pub fn say_once(message: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < MOST_REMEMBERED && said.insert(message.to_owned()) {
        // One write, so that lines of several processes do not mix. An error of standard error cannot be reported.
        let _ = std::io::stderr().write_all(format!("pathweave: {message}\n").as_bytes());
    }
}
