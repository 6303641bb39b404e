//! Definition of the command line.

// Doc comments of arguments are their help texts, in which brackets are plain text.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{
    CheckArgs, CompareArgs, ConvertArgs, DemoArgs, DiffArgs, ExplainArgs, FitArgs, ListArgs, ManArgs,
    NcclArgs, PaperArgs, PlanArgs, RunArgs, ScanPeriodArgs, ShowArgs, SweepArgs, ValidateArgs,
};
use crate::options::Colour;

/// Simulates transports of AI-cluster fabrics, packet by packet
#[derive(Debug, Parser)]
#[command(name = "pathweave", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Use of colours in the output
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

/// Parses a command line, the first word of which is the program's name. Ends the process if the command line is wrong
/// or asks for help.
pub(crate) fn parse(words: &[OsString]) -> Cli {
    let matches = with_negative_numbers(Cli::command()).get_matches_from(words);
    Cli::from_arg_matches(&matches).unwrap_or_else(|why| why.exit())
}

/// Returns the command with options that take `-1` for a value, so that an error names what is allowed instead.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_number = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| match takes_number(&arg) {
        true => arg.allow_negative_numbers(true),
        false => arg,
    });
    command.mut_subcommands(with_negative_numbers)
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    internal error; of validate: a ratio left its band
  2    bad input: scenario, a file it names, command line, or output that cannot be written
  3    the run ended with unfinished flows, or runs of a sweep failed and why
  130  interrupted (Ctrl-C); what was finished is written and marked partial";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and write a result folder
    Run(RunArgs),
    /// Run scenarios under several schemes: same traffic, same seed, side by side
    Compare(CompareArgs),
    /// Check a scenario without running it; print its resolved values, size, bounds and cost
    Check(CheckArgs),
    /// Explain in words what limited a run, and which tables and columns show it
    Explain(ExplainArgs),
    /// Compare two result folders: settings that differ, and results by how much
    Diff(DiffArgs),
    /// List all that a scenario can name: schemes, topologies, workloads, faults, models, ...
    List(ListArgs),
    /// Show one of them with its settings
    Show(ShowArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Write a topology, a list of flows or the messages of a trace in another format
    Convert(ConvertArgs),
    /// Compare published systems and weave with ECMP, each on the traffic it was designed for
    Demo(DemoArgs),
    /// Repeat a published evaluation and compare every number that it states
    Paper(PaperArgs),
    /// Compare runs with other simulators and with exact laws
    Validate(ValidateArgs),
    /// Run a scenario with all combinations of field values; resume an interrupted sweep
    Sweep(SweepArgs),
    /// Compare fabrics, schemes and parallelism by tokens or time, and cost; resume an interrupted plan
    Plan(PlanArgs),
    /// Choose the scan period of ERD receivers by its cost, equation (1) of the paper
    ScanPeriod(ScanPeriodArgs),
    /// Print the times of a collective over sizes as nccl-tests does, with NCCL's choices
    Nccl(NcclArgs),
    /// Fit simulated NCCL collectives to the output of nccl-tests on a real cluster
    Fit(FitArgs),
    /// Serve a results folder to a browser on this machine: index, reports, runs in progress
    View(crate::view::ViewArgs),
    #[command(flatten)]
    Real(crate::real::Command),
    /// Write manual pages
    Man(ManArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}
