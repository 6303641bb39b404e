//! What can be wrong with papers and with what is asked of them.

use crate::sweep::SweepError;
use pathweave_scenario::{Diagnostics, Unknown};

/// Why a paper cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// What was asked for does not exist.
    #[error(transparent)]
    Unknown(Unknown),
    /// Something that a lab is to repeat was not measured on a testbed.
    #[error("--testbed: {what} of a testbed; {known}")]
    NoTestbed {
        /// What was asked for, with a verb.
        what: String,
        /// What there is instead.
        known: String,
    },
    /// A file of a paper is wrong.
    #[error("{file}: {message}")]
    File {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A scenario of a paper is wrong.
    #[error("{label}: {findings}")]
    Scenario {
        /// Figure and curve.
        label: String,
        /// What is wrong.
        findings: Diagnostics,
    },
    /// A picture could not be drawn.
    #[error("cannot draw {figure}: {message}")]
    Plot {
        /// The figure.
        figure: String,
        /// Why not.
        message: String,
    },
    /// Results could not be written.
    #[error("cannot write results: {}: {source}", path.display())]
    Output {
        /// Where.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Finished runs could not be kept.
    #[error(transparent)]
    Keep(SweepError),
    /// Another process is writing there.
    #[error("cannot write results: {}: another run of a paper is writing here", path.display())]
    Busy {
        /// The folder.
        path: std::path::PathBuf,
    },
    /// The folder holds something that is not ours to replace.
    #[error("cannot write results: {} exists and is not a folder of paper results (it holds \"{found}\"); choose another --out", path.display())]
    Occupied {
        /// The folder.
        path: std::path::PathBuf,
        /// What is there.
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

/// `name` is none of `names`.
pub(crate) fn unknown<'a>(
    kind: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> PaperError {
    PaperError::Unknown(Unknown::new(kind, name, names))
}
