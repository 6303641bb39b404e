//! The command line.

// What documents an argument is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pathweave_scenario::units::{Bytes, Duration, Rate};

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
    /// List what scenarios can name
    List(ListArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Write a topology, a list of flows or the messages of a trace in another format
    Convert(ConvertArgs),
    /// Compare four transports on the 320-host fat tree of the UDMP paper
    Demo(DemoArgs),
    /// Run the evaluation of a publication again and compare every number it states
    Paper(PaperArgs),
    /// Run a scenario with every combination of the values its fields are given; goes on where it was stopped
    Sweep(SweepArgs),
    /// Choose the period at which ERD receivers look for missing packets: what it costs, equation (1) of the paper
    ScanPeriod(ScanPeriodArgs),
    /// Make a small real network on this machine from a scenario or a topology file
    Lab(crate::lab::LabArgs),
    /// Measure the real datapath between two hosts
    Perf(crate::perf::PerfArgs),
    /// Survey the paths to a `pathweave perf server`: round-trip times, losses, marks
    Ping(crate::ping::PingArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// How a scenario is changed from outside its file.
#[derive(Args, Debug, Default)]
pub(crate) struct Changes {
    /// Set a field: topology.pods=4, workload[0].size=2MB, run.until=5ms. Values are TOML; texts need no quotes
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams; short for --set seed=N
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What a run says while it runs.
#[derive(Args, Debug, Default)]
pub(crate) struct Talk {
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// When to draw a progress bar; otherwise progress comes as plain lines on standard error
    #[arg(long, value_enum, default_value_t = Bar::Auto, value_name = "WHEN")]
    pub(crate) progress: Bar,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML)
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Result folder [default: results/NAME-seedN]. An existing one is replaced only if it holds results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Files for other programs")]
    pub(crate) traces: crate::traces::TraceArgs,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Scenario files (TOML)
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<PathBuf>,
    /// Schemes to compare, in order; ratios are against the first
    #[arg(long, value_delimiter = ',', required = true, value_name = "A,B,...")]
    pub(crate) schemes: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Result folder [default: results/NAME-compare-seedN]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs at a time [default: number of cores]. Results do not depend on it
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(
        flatten,
        next_help_heading = "Files for other programs, one a run: its scheme is put before the extension"
    )]
    pub(crate) traces: crate::traces::TraceArgs,
    #[command(flatten, next_help_heading = "Options")]
    pub(crate) talk: Talk,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Scenario file (TOML)
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Print it all as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The share of time that negative acknowledgements cost a receiver of reliable datagrams which looks for missing packets
/// once in a period T: eta = T_nack / ((P T / S - 1) RTT). The paper asks for "no less than 0.996", which is 1 - eta: as
/// printed the period would be shorter than a round trip, which the paper rules out.
#[derive(Args, Debug)]
pub(crate) struct ScanPeriodArgs {
    /// Rate at which packets arrive (P)
    #[arg(long, value_name = "RATE", default_value = "200Gbps")]
    pub(crate) rate: Rate,
    /// Bytes of a packet (S): 64 B to 64 KB
    #[arg(long, value_name = "SIZE", default_value = "4096B")]
    pub(crate) packet: Bytes,
    /// Round-trip time
    #[arg(long, value_name = "TIME", default_value = "5us")]
    pub(crate) rtt: Duration,
    /// Time to hand one NACK over, across PCIe (T_nack)
    #[arg(long, value_name = "TIME", default_value = "2us")]
    pub(crate) nack: Duration,
    /// The largest share of time that NACKs may cost, above 0, below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.004)]
    pub(crate) share: f64,
    /// A period to look at besides; several with commas
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    pub(crate) period: Vec<Duration>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list
    pub(crate) what: What,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = crate::commands::formats_help())]
pub(crate) struct ConvertArgs {
    /// File to read; of a Chakra trace the folder, or folder and prefix
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// File to write. It appears when it is complete
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Format of IN [default: by its extension or first line]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Format of OUT [default: by its extension]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Set a field of the workload that a trace becomes, or of the scenario: gpus=32, tp=4, hosts=[1,0]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Write what the format can say, and list what it cannot, instead of refusing
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Result folder
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub(crate) out: PathBuf,
    /// Seed of all random streams
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Runs at a time [default: number of cores]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

#[derive(Args, Debug)]
pub(crate) struct PaperArgs {
    /// Paper, or "list" for all there are with their figures
    pub(crate) name: String,
    /// Only this figure or table: 6a, table-1
    #[arg(long, value_name = "ID")]
    pub(crate) figure: Option<String>,
    /// Minutes instead of hours: shorter messages, fewer seeds; the page says what was shortened [default]
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The paper's own size
    #[arg(long)]
    pub(crate) full: bool,
    /// Seeds 1 to N for every figure, instead of as many as the paper's folder says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Runs at a time. Results do not depend on it
    #[arg(long, short, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: u16,
    /// Results go to DIR/NAME; an older one there is replaced
    #[arg(long, value_name = "DIR", default_value = "results/papers")]
    pub(crate) out: PathBuf,
    /// Read papers from this folder instead of those that are part of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the claims as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// Sweep file (TOML)
    pub(crate) sweep: PathBuf,
    /// Folder of the dataset [default: results/NAME-sweep]. Runs that are finished there are not run again
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs at a time [default: number of cores]. Results do not depend on it
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Make at most N runs, then stop; the next call goes on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// Say what would run, and what is finished; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove runs from the folder that the sweep no longer asks for
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Schemes: a policy with its loss recovery, acknowledgements and queue pairs
    Schemes,
    /// Kinds of topology
    Topologies,
    /// Kinds of workload
    Workloads,
    /// Topologies of published evaluations
    Presets,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// When to draw a progress bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bar {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never: plain lines
    Never,
}
