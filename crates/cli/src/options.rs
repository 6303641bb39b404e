//! Options that several commands have.

use clap::{Args, ValueEnum};

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
    /// Say nothing but errors and where the report is
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
