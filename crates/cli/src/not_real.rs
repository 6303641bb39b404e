//! Replacement of `real` in a program without the datapath. Its commands print how to get the full program.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use pathweave_records::RunResult;
use pathweave_scenario::Loaded;

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;

/// Arguments after the command, which are ignored.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Ignored {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a small real network on this machine (not in this build)
    Lab(Ignored),
    /// Measure the real datapath between two hosts (not in this build)
    Perf(Ignored),
    /// Survey the paths to a `pathweave perf server` (not in this build)
    Ping(Ignored),
    /// Make the key file of a cluster (not in this build)
    Key(Ignored),
    /// Set up the libfabric provider (not in this build)
    Ofi(Ignored),
}

pub(crate) fn dispatch(command: &Command) -> Result<Outcome, Failure> {
    let (name, ignored) = match command {
        Command::Lab(rest) => ("lab", rest),
        Command::Perf(rest) => ("perf", rest),
        Command::Ping(rest) => ("ping", rest),
        Command::Key(rest) => ("key", rest),
        Command::Ofi(rest) => ("ofi", rest),
    };
    Err(not_here(&words(name, ignored)))
}

pub(crate) mod nccl {
    use clap::Subcommand;

    use super::{Failure, Ignored, Outcome, words};

    #[derive(Debug, Subcommand)]
    pub(crate) enum NcclCommand {
        /// Print the variables with which NCCL loads the plugin (not in this build)
        Env(Ignored),
    }

    pub(crate) fn run(command: &NcclCommand) -> Result<Outcome, Failure> {
        let NcclCommand::Env(ignored) = command;
        Err(super::not_here(&words("nccl env", ignored)))
    }
}

/// Returns a command with the arguments after it.
fn words(name: &str, Ignored { rest }: &Ignored) -> String {
    let words = rest.iter().map(|word| word.to_string_lossy());
    [name.into()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the error for a command that this build does not have.
fn not_here(command: &str) -> Failure {
    Failure::Input(format!(
        "`pathweave {command}`: this program simulates only, as `make demo` builds it; `make build` builds the one with the datapath"
    ))
}

/// Options for testbed figures, which need the datapath.
#[derive(Args, Debug, Default)]
pub(crate) struct TestbedArgs {
    /// Run only figures that were measured on a testbed, on real hosts (not in this build)
    #[arg(long)]
    testbed: bool,
}

impl TestbedArgs {
    /// Returns true if only testbed figures are requested.
    pub(crate) fn is_wanted(&self) -> bool {
        self.testbed
    }

    /// Returns these options as words of a command.
    pub(crate) fn words(&self) -> String {
        if self.testbed { " --testbed".to_owned() } else { String::new() }
    }
}

/// Environment that measures testbed figures. There is none in this build.
pub(crate) enum Testbed {}

/// Measured run. There is none in this build.
pub(crate) struct MeasuredRun {
    pub(crate) result: RunResult,
    pub(crate) said: String,
}

impl Testbed {
    /// # Errors
    /// This build has no datapath.
    pub(crate) fn open(_: &TestbedArgs, _quiet: bool) -> Result<Self, Failure> {
        Err(not_here("paper --testbed"))
    }

    /// Returns a description of the packet backend.
    pub(crate) fn carrier(&self) -> &'static str {
        match *self {}
    }

    /// Returns the settings, besides the scenario, that measured runs depend on.
    pub(crate) fn settings_text(&self) -> String {
        match *self {}
    }

    /// Runs a scenario on a lab.
    ///
    /// # Errors
    /// Never returns: no value of this type exists.
    pub(crate) fn measure(
        &self,
        _: &str,
        _: &Loaded,
        _: &Interrupt,
        _: &mut dyn FnMut(f64),
    ) -> Result<Option<MeasuredRun>, Failure> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    #[derive(Debug, Parser)]
    struct NcclLine {
        #[command(subcommand)]
        command: nccl::NcclCommand,
    }

    #[test]
    fn a_command_within_another_says_how_to_get_it() {
        let line = NcclLine::parse_from(["nccl", "env", "--plugin", "x"]);
        let Err(Failure::Input(why)) = nccl::run(&line.command) else { panic!("it is not in this build") };
        assert!(why.starts_with("`pathweave nccl env --plugin x`") && why.contains("`make build`"), "{why}");
    }

    #[test]
    fn commands_of_the_datapath_say_how_to_get_them_whatever_follows() {
        for words in ["lab up FILE.toml", "perf server --port 7", "ping --help", "ofi -x -- y", "ping"] {
            let line = ["pathweave"].into_iter().chain(words.split(' '));
            let Err(Failure::Input(why)) = dispatch(&Line::parse_from(line).command) else {
                panic!("{words}")
            };
            let parts = [&format!("`pathweave {words}`"), "`make build` builds the one with the datapath"];
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        }
    }
}
