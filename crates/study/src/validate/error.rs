//! Errors in cases and in requests for them.

use pathweave_scenario::{Diagnostics, UnknownName};

use crate::text_files::FileError;

/// Reason why a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// The requested case or peer does not exist.
    #[error(transparent)]
    Unknown(UnknownName),
    /// A file is invalid or cannot be read.
    #[error("{file}: {message}")]
    File {
        /// Name of the file.
        file: String,
        /// Description of the mistake, with the allowed values.
        message: String,
    },
    /// The scenario of a case is invalid.
    #[error("case {case}: {findings}")]
    Scenario {
        /// Name of the case.
        case: String,
        /// Mistakes found in the scenario.
        findings: Diagnostics,
    },
}

impl From<FileError> for ValidateError {
    fn from(FileError { file, message }: FileError) -> Self {
        ValidateError::File { file, message }
    }
}

/// Builds the error that nothing of this name exists.
pub(crate) fn unknown<'a>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> ValidateError {
    ValidateError::Unknown(UnknownName::new(kind, name, names))
}

/// Builds the error that a file of the catalogue is invalid.
pub(crate) fn in_file(file: impl Into<String>, message: impl Into<String>) -> ValidateError {
    ValidateError::File { file: file.into(), message: message.into() }
}

/// Reason why a case was not completed.
#[derive(Debug)]
pub enum RunError {
    /// The user interrupted the program.
    Interrupted,
    /// The case cannot be run.
    Failed(ValidateError),
}

impl From<ValidateError> for RunError {
    fn from(why: ValidateError) -> Self {
        RunError::Failed(why)
    }
}
