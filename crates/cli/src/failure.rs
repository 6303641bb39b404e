//! Outcomes and failures of commands, and their exit codes.

use pathweave_scenario::{Diagnostics, Style};

/// Exit code for errors in the input, and for output that cannot be written.
pub(crate) const NOT_USABLE: u8 = 2;

/// Outcome of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The command is complete.
    Done,
    /// A run ended with unfinished flows. The command has printed which, and why.
    Unfinished,
    /// The user interrupted the command.
    Interrupted,
    /// Figures are out of their bands in a comparison. The command has printed which.
    OutOfBand,
    /// A command of the user ran and ended with this exit code.
    Command(u8),
}

/// Error that kept a command from being carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The scenario or a file that it names is wrong.
    Scenario(Diagnostics),
    /// Another error of the input or the output. The text describes the error, where it is, and how to correct it.
    Input(String),
    /// A bug.
    Internal(String),
    /// A rank other than 0 cannot continue. Rank 0 prints the reason.
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
