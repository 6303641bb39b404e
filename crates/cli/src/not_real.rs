//! In place of `real` in a program without the datapath: its commands say how to get them.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use crate::failure::{Failure, Outcome};

/// Whatever follows the command.
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
    /// Set up the libfabric provider (not in this build)
    Ofi(Ignored),
}

pub(crate) fn dispatch(command: &Command) -> Result<Outcome, Failure> {
    let (name, Ignored { rest }) = match command {
        Command::Lab(rest) => ("lab", rest),
        Command::Perf(rest) => ("perf", rest),
        Command::Ping(rest) => ("ping", rest),
        Command::Ofi(rest) => ("ofi", rest),
    };
    let words: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
    Err(Failure::Input(format!(
        "`pathweave {}`: this program simulates only, as `make demo` builds it; `make build` builds the one with the datapath",
        [&[name.into()], &words[..]].concat().join(" ")
    )))
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
