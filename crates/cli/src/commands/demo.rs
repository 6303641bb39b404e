//! `pathweave demo`: four transports on the 320-host fat tree of the UDMP paper.

use pathweave_scenario::{Changes, Loaded};

use super::compare::{Comparison, carry_out};
use crate::args::DemoArgs;
use crate::failure::{Failure, Outcome};
use crate::traces::TraceArgs;

/// The demo is data: these files, compared over these schemes.
const SCENARIOS: [(&str, &str); 3] = [
    ("demo-permutation.toml", include_str!("../../../../scenarios/demo-permutation.toml")),
    ("demo-websearch.toml", include_str!("../../../../scenarios/demo-websearch.toml")),
    ("demo-alistorage.toml", include_str!("../../../../scenarios/demo-alistorage.toml")),
];
const SCHEMES: [&str; 4] = ["ecmp", "qp16", "rps", "rps-nocc"];

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
