//! `pathweave explain`: explains in words what limited a run.

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
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<Outcome, Failure> {
    folder::existing(&args.run, "explain")?;
    let found = pathweave_report::explain(&args.run)
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

/// Largest number of runs that an error names.
const NAMED: usize = 6;

/// Returns a hint that names the runs inside a folder, as the folder of a comparison has them. Empty if there are
/// none.
fn runs_within(folder: &Path) -> String {
    let is_run = |path: &Path| path.join("flows.parquet").is_file();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // Results that are not complete have hidden names.
    let is_shown = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut runs: Vec<String> = entries
        .filter(is_shown)
        .map(|entry| entry.path())
        .filter(|path| is_run(path))
        .map(|path| path.display().to_string())
        .collect();
    runs.sort();
    let more = if runs.len() > NAMED { ", ..." } else { "" };
    runs.truncate(NAMED);
    if runs.is_empty() { String::new() } else { format!("; here: {}{more}", runs.join(", ")) }
}
