//! `pathweave explain`: what limited a run, in words.

use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::folder;
use crate::terminal::{self, wrapped};

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// Result folder of a run
    pub(crate) run: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<Outcome, Failure> {
    folder::existing(&args.run, "explain")?;
    let found = pathweave_results::explain(&args.run)
        .map_err(|why| Failure::Input(format!("{why}{}", runs_within(&args.run))))?;
    if args.json {
        terminal::out(&super::json(&found));
        return Ok(Outcome::Done);
    }
    for finding in found {
        let words = wrapped(&format!("{}: {}.", finding.about, finding.words), "", "  ");
        terminal::out(&format!("{words}\n{}\n", wrapped(&format!("[{}]", finding.evidence), "    ", "    ")));
    }
    Ok(Outcome::Done)
}

/// Runs named at most.
const NAMED: usize = 6;

/// Where a folder holds those of runs, as that of a comparison does: which ones.
fn runs_within(folder: &Path) -> String {
    let is_run = |path: &Path| path.join("flows.parquet").is_file();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| is_run(path))
        .map(|path| path.display().to_string())
        .collect();
    runs.sort();
    let more = if runs.len() > NAMED { ", ..." } else { "" };
    runs.truncate(NAMED);
    if runs.is_empty() { String::new() } else { format!("; here: {}{more}", runs.join(", ")) }
}
