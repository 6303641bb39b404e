//! What can be wrong with cases and with what is asked of them.

use pathweave_scenario::{Diagnostics, nearest};

/// Why a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// What was asked for does not exist.
    #[error("no {kind} is named \"{name}\"{}; there are: {names}", did_you_mean(nearest.as_deref()))]
    Unknown {
        /// A case, a peer.
        kind: &'static str,
        /// As asked for.
        name: String,
        /// What there is.
        names: String,
        /// What comes closest.
        nearest: Option<String>,
    },
    /// A file is wrong or cannot be read.
    #[error("{file}: {message}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, what is allowed.
        message: String,
    },
    /// The scenario of a case is wrong.
    #[error("case {case}: {findings}")]
    Scenario {
        /// The case.
        case: String,
        /// What is wrong.
        findings: Diagnostics,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean \"{name}\"?)"))
}

/// That nothing of this name exists.
pub(crate) fn unknown<'a>(
    kind: &'static str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> ValidateError {
    ValidateError::Unknown {
        kind,
        name: name.to_owned(),
        nearest: nearest(name, names.clone()).map(str::to_owned),
        names: names.collect::<Vec<_>>().join(", "),
    }
}

/// That a file of the catalogue is wrong.
pub(crate) fn in_file(file: impl Into<String>, message: impl Into<String>) -> ValidateError {
    ValidateError::File { file: file.into(), message: message.into() }
}
