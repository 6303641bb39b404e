//! `pathweave diff`: differences between two result folders.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::terminal::{self, wrapped};

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Result folder of `run`, `compare`, `demo` or `sweep`
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Result folder to compare with it. Changes are from A to B
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Print every figure with both values
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the differences as JSON
    #[arg(long, conflicts_with_all = ["all", "csv"])]
    pub(crate) json: bool,
    /// Print the figures as CSV: a line for each figure of each workload of each run
    #[arg(long, conflicts_with = "all")]
    pub(crate) csv: bool,
}

pub(crate) fn diff(args: &DiffArgs) -> Result<Outcome, Failure> {
    let found = pathweave_report::diff(&args.a, &args.b)
        .map_err(|why| Failure::Input(format!("cannot compare results: {why}")))?;
    if args.json {
        terminal::out(&super::json(&found));
        return Ok(Outcome::Done);
    }
    if args.csv {
        terminal::out(&found.csv());
        return Ok(Outcome::Done);
    }
    let side = |letter: &str, side: &pathweave_report::Side| {
        let versions = if side.versions.is_empty() { "unknown".to_owned() } else { side.versions.join(", ") };
        format!("{letter}: {} ({}, version {versions})\n", side.folder, side.kind)
    };
    let sentence = wrapped(&found.sentence, "", "");
    let tables = if args.all { found.long_table() } else { found.table() + super::MORE };
    terminal::out(&format!("{}{}{sentence}\n{tables}", side("A", &found.a), side("B", &found.b)));
    Ok(Outcome::Done)
}
