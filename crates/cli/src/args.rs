//! The command line.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{
    CheckArgs, CompareArgs, ConvertArgs, DemoArgs, ExplainArgs, ListArgs, ManArgs, PaperArgs, PlanArgs,
    RunArgs, ScanPeriodArgs, ShowArgs, SweepArgs,
};
use crate::options::Colour;

/// Simulates transports of AI-cluster fabrics, packet by packet.
#[derive(Debug, Parser)]
#[command(name = "pathweave", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    internal error
  2    bad input: scenario, a file it names, command line, or output that cannot be written
  3    the run ended with unfinished flows, or runs of a sweep failed; it says which and why
  130  interrupted (Ctrl-C); what was finished is written and marked partial";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and write a result folder
    Run(RunArgs),
    /// Run scenarios under several schemes: same traffic, same seed, side by side
    Compare(CompareArgs),
    /// Check a scenario without running it: what it resolves to, its size, its bounds, what a run costs
    Check(CheckArgs),
    /// Say in words what limited a run, with the tables and columns that show it
    Explain(ExplainArgs),
    /// List what scenarios can name
    List(ListArgs),
    /// Show one of what scenarios can name, with its settings
    Show(ShowArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Write a topology, a list of flows or the messages of a trace in another format
    Convert(ConvertArgs),
    /// Compare published systems and our default with ECMP, each on the traffic it was made for
    Demo(DemoArgs),
    /// Run the evaluation of a publication again and compare every number it states
    Paper(PaperArgs),
    /// Run a scenario with every combination of the values its fields are given; goes on where it was stopped
    Sweep(SweepArgs),
    /// Hold fabrics, rates and schemes against what they cost: a workload on each, goes on where it was stopped
    Plan(PlanArgs),
    /// Choose the period at which ERD receivers look for missing packets: what it costs, equation (1) of the paper
    ScanPeriod(ScanPeriodArgs),
    /// Serve a folder of results to a browser on this machine: an index, reports, runs under way
    View(crate::view::ViewArgs),
    /// Make a small real network on this machine from a scenario or a topology file
    Lab(crate::lab::LabArgs),
    /// Measure the real datapath between two hosts
    Perf(crate::perf::PerfArgs),
    /// Survey the paths to a `pathweave perf server`: round-trip times, losses, marks
    Ping(crate::ping::PingArgs),
    /// The libfabric provider: variables for a shell, and what it offers
    Ofi(crate::ofi::OfiArgs),
    /// Write manual pages
    Man(ManArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}
