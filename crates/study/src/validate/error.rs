//! What can be wrong with cases and with what is asked of them.

use pathweave_scenario::{Diagnostics, Unknown};

/// Why a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// What was asked for does not exist.
    #[error(transparent)]
    Unknown(Unknown),
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

/// That nothing of this name exists.
pub(crate) fn unknown<'a>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> ValidateError {
    ValidateError::Unknown(Unknown::new(kind, name, names))
}

/// That a file of the catalogue is wrong.
pub(crate) fn in_file(file: impl Into<String>, message: impl Into<String>) -> ValidateError {
    ValidateError::File { file: file.into(), message: message.into() }
}
