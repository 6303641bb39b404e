//! How a command can end, and the exit code of each.

use pathweave_scenario::{Diagnostics, Style};

/// Exit code where input, or the place for output, is at fault.
pub(crate) const NOT_USABLE: u8 = 2;

/// A command that did what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Done.
    Done,
    /// A run ended with unfinished flows. The command has said which and why.
    Unfinished,
    /// The user interrupted it.
    Interrupted,
    /// Figures are farther from those of others than they may be. The command has said which.
    OutOfBand,
    /// A command of the user's ran and ended with this exit code.
    Command(u8),
}

/// A command that could not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The scenario or a file it names is wrong.
    Scenario(Diagnostics),
    /// Anything else about the input or the place for the output; the text says what, where, and what to do.
    Input(String),
    /// A bug.
    Internal(String),
    /// Of one of several ranks: it cannot go on, and rank 0 says why.
    SaidByLead,
}

impl Outcome {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Unfinished => 3,
            Outcome::OutOfBand => 1,
            Outcome::Interrupted => 130,
            Outcome::Command(code) => code,
        }
    }
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Scenario(_) | Failure::Input(_) | Failure::SaidByLead => NOT_USABLE,
            Failure::Internal(_) => 1,
        }
    }
    pub(crate) fn render(&self, style: Style) -> String {
        match self {
            Failure::Scenario(findings) => findings.render(style),
            Failure::Input(what) => format!("error: {what}"),
            Failure::Internal(what) => format!("internal error: {what}"),
            Failure::SaidByLead => String::new(),
        }
    }
}

impl From<Diagnostics> for Failure {
    fn from(findings: Diagnostics) -> Self {
        Failure::Scenario(findings)
    }
}
