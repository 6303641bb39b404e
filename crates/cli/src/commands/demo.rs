//! `pathweave demo`: four transports on the 320-host fat tree of the UDMP paper.

use clap::Args;
use pathweave_scenario::{Changes, Loaded};
use std::path::PathBuf;

use super::compare::{Comparison, carry_out};
use crate::failure::{Failure, Outcome};
use crate::options::Talk;
use crate::traces::TraceArgs;

/// The demo is data: these files, compared over these schemes.
const SCENARIOS: [(&str, &str); 3] = [
    ("demo-permutation.toml", include_str!("../../../../scenarios/demo-permutation.toml")),
    ("demo-websearch.toml", include_str!("../../../../scenarios/demo-websearch.toml")),
    ("demo-alistorage.toml", include_str!("../../../../scenarios/demo-alistorage.toml")),
];
const SCHEMES: [&str; 4] = ["ecmp", "qp16", "rps", "rps-nocc"];

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

pub(crate) fn demo(args: &DemoArgs) -> Result<Outcome, Failure> {
    let schemes = SCHEMES.map(str::to_owned);
    let mut comparisons = Vec::new();
    for (name, text) in SCENARIOS {
        comparisons.push(Comparison::plan(&schemes, |scheme| {
            let changes = Changes { seed: args.seed, scheme: Some(scheme.to_owned()), ..Changes::default() };
            Loaded::parse(text, name, "", &changes)
        })?);
    }
    carry_out(&comparisons, &args.out, args.jobs, &TraceArgs::default(), &args.talk)
}
