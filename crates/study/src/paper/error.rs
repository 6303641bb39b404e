//! Errors in papers and in requests about them.

use pathweave_scenario::{Diagnostics, UnknownName};

use crate::sweep::SweepError;
use crate::text_files::FileError;

/// Reason why a paper cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The requested paper, figure, panel or curve does not exist.
    #[error(transparent)]
    Unknown(UnknownName),
    /// The selected figures have no panels to select from.
    #[error("--panel: figure {figures} has no panels; leave --panel out")]
    NoPanels {
        /// Ids of the figures, separated by commas.
        figures: String,
    },
    /// The request is to repeat something in a lab that was not measured on a testbed.
    #[error("--testbed: {what} of a testbed; {known}")]
    NoTestbed {
        /// The request, with a verb.
        what: String,
        /// Figures or papers that can be repeated.
        known: String,
    },
    /// A file of a paper is invalid.
    #[error("{file}: {message}")]
    File {
        /// Name of the file.
        file: String,
        /// Description of the mistake.
        message: String,
    },
    /// A scenario of a paper is invalid.
    #[error("{label}: {findings}")]
    Scenario {
        /// Figure and curve of the scenario.
        label: String,
        /// Mistakes found in the scenario.
        findings: Diagnostics,
    },
    /// A picture could not be drawn.
    #[error("cannot draw {figure}: {message}")]
    Plot {
        /// Name of the figure.
        figure: String,
        /// Description of the failure.
        message: String,
    },
    /// Results could not be written.
    #[error("cannot write results: {}: {source}", path.display())]
    Output {
        /// Path of the file or folder.
        path: std::path::PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Finished runs could not be stored.
    #[error(transparent)]
    Keep(SweepError),
    /// Another process writes to the output folder.
    #[error("cannot write results: {}: another run of a paper is writing here", path.display())]
    Busy {
        /// Path of the folder.
        path: std::path::PathBuf,
    },
    /// The output folder holds something that this program did not write.
    #[error("cannot write results: {} exists and is not a folder of paper results (it holds \"{found}\"); choose another --out", path.display())]
    Occupied {
        /// Path of the folder.
        path: std::path::PathBuf,
        /// Name of the foreign entry.
        found: String,
    },
}

impl From<SweepError> for PaperError {
    fn from(why: SweepError) -> Self {
        match why {
            SweepError::Busy { path } => PaperError::Busy { path },
            other => PaperError::Keep(other),
        }
    }
}

impl From<FileError> for PaperError {
    fn from(FileError { file, message }: FileError) -> Self {
        PaperError::File { file, message }
    }
}

/// Builds the error that `name` is none of `names`.
pub(crate) fn unknown<'a>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> PaperError {
    PaperError::Unknown(UnknownName::new(kind, name, names))
}
