//! `pathweave explain`: what limited a run, in words.

use clap::Args;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
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
    let found = pathweave_results::explain(&args.run).map_err(|why| Failure::Input(why.to_string()))?;
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
