//! Options shared by several commands.

use std::num::NonZeroU16;
use std::ops::RangeInclusive;

use clap::{Args, ValueEnum};
use pathweave_sim::SimSpec;

use crate::memory::MemoryBudget;

/// Changes of a scenario made on the command line.
#[derive(Args, Debug, Default)]
pub(crate) struct Changes {
    #[allow(
        rustdoc::broken_intra_doc_links,
        reason = "the text is help, and the brackets are part of a field's name"
    )]
    /// Set a field: topology.pods=4, workload[0].size=2MB, run.until=5ms. Values are TOML; strings need no quotes
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams; short for --set seed=N
    #[arg(long, value_name = "N", value_parser = whole(SEEDS))]
    pub(crate) seed: Option<u64>,
}

/// Seeds, which are limited by the signed integers of scenario files.
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX as u64;

/// Returns a parser of whole numbers in `range`, whose error is the range.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Number of threads of a run.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Threads {
    /// Threads per run [default: run.threads, or the cores that concurrent runs leave free, at most one per 64 hosts,
    /// and no more than fit into memory]. Does not affect results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Threads {
    /// Returns the run with half as many threads. Returns `None` if it has one thread, or if these options or the
    /// scenario set the number.
    pub(crate) fn halved(self, scenario: &SimSpec, now: &SimSpec) -> Option<SimSpec> {
        let free = self.threads.is_none() && scenario.threads.is_none();
        let half = now.threads.filter(|_| free).and_then(|threads| NonZeroU16::new(threads.get() / 2));
        half.map(|threads| SimSpec { threads: Some(threads), ..now.clone() })
    }

    /// Returns the run with its number of threads, if `at_a_time` runs are concurrent.
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

/// Division of the cores among runs.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Cores {
    /// Concurrent runs [default: number of cores]. Does not affect results
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    threads: Threads,
    /// Execute runs even if they may need more memory than is available
    #[arg(long)]
    force: bool,
}

impl Cores {
    /// Returns the memory that the runs share.
    pub(crate) fn room(self) -> MemoryBudget {
        MemoryBudget::now(self.force)
    }

    /// Returns the number of concurrent runs, out of `runs`.
    pub(crate) fn at_a_time(self, runs: usize) -> usize {
        self.jobs.map_or_else(cores, usize::from).min(runs)
    }

    /// Returns a run with its number of threads, as one of `runs`.
    pub(crate) fn of(self, spec: &SimSpec, runs: usize) -> SimSpec {
        self.threads.of(spec, self.at_a_time(runs))
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Output of a command during its runs.
#[derive(Args, Debug, Default)]
pub(crate) struct OutputOptions {
    /// Print only errors and the path of the report
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Use of a progress bar. Without one, progress is printed as plain lines on standard error
    #[arg(long, value_enum, default_value_t = ProgressBarMode::Auto, value_name = "WHEN")]
    pub(crate) progress: ProgressBarMode,
}

/// Use of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Use of a progress bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressBarMode {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never: plain lines
    Never,
}
