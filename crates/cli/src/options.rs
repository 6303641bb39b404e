//! Options that several commands have.

use std::num::NonZeroU16;

use clap::{Args, ValueEnum};
use pathweave_sim::SimSpec;

use crate::memory::Room;

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

/// By how many threads a run is made.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Threads {
    /// Threads per run [default: run.threads, or the cores that concurrent runs leave free, at most one per 64
    /// hosts, and so many that the memory suffices]. Does not affect results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Threads {
    /// A run by half as many threads as now; nothing where it has one, or where this or the scenario says how many.
    pub(crate) fn fewer(self, scenario: &SimSpec, now: &SimSpec) -> Option<SimSpec> {
        let free = self.threads.is_none() && scenario.threads.is_none();
        let half = now.threads.filter(|_| free).and_then(|threads| NonZeroU16::new(threads.get() / 2));
        half.map(|threads| SimSpec { threads: Some(threads), ..now.clone() })
    }

    /// The run as it is made where so many go at a time.
    pub(crate) fn of(self, spec: &SimSpec, at_a_time: usize) -> SimSpec {
        let cores = cores() / at_a_time.max(1);
        match self.threads {
            Some(threads) => SimSpec { threads: NonZeroU16::new(threads), ..spec.clone() },
            None => {
                spec.on_cores(u16::try_from(cores).ok().and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN))
            }
        }
    }
}

/// How the cores are shared among runs.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Cores {
    /// Concurrent runs [default: number of cores]. Does not affect results
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    threads: Threads,
    /// Make runs even if they may take more memory than there is
    #[arg(long)]
    force: bool,
}

impl Cores {
    /// The memory that the runs share.
    pub(crate) fn room(self) -> Room {
        Room::now(self.force)
    }

    /// How many of so many runs go at a time.
    pub(crate) fn at_a_time(self, runs: usize) -> usize {
        self.jobs.map_or_else(cores, usize::from).min(runs)
    }

    /// One of so many runs, as it is made.
    pub(crate) fn of(self, spec: &SimSpec, runs: usize) -> SimSpec {
        self.threads.of(spec, self.at_a_time(runs))
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a run says while it runs.
#[derive(Args, Debug, Default)]
pub(crate) struct Talk {
    /// Print only errors and the path of the report
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// When to draw a progress bar; otherwise progress comes as plain lines on standard error
    #[arg(long, value_enum, default_value_t = Bar::Auto, value_name = "WHEN")]
    pub(crate) progress: Bar,
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
