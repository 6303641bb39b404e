//! `pathweave demo`: published systems compared with ECMP, each on the traffic it was designed for.

use clap::Args;
use include_dir::{Dir, include_dir};
use pathweave_scenario::{Changes, Loaded};
use serde::Deserialize;
use std::path::PathBuf;

use super::compare::{Comparison, Heading, TerminalOutput, run_comparisons};
use crate::failure::{Failure, Outcome};
use crate::inputs::Inputs;
use crate::options::{Cores, OutputOptions, SEEDS, whole};
use crate::traces::TraceArgs;

/// The demo is defined by data: a table of situations, and their scenarios.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");
const TABLE: &str = "demo.toml";

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Situations, by the names of their scenarios [default: all]
    #[arg(value_name = "SITUATION", value_parser = situations())]
    pub(crate) situations: Vec<String>,
    /// Result folder
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub(crate) out: PathBuf,
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = whole(SEEDS))]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) cores: Cores,
    #[command(flatten)]
    pub(crate) talk: OutputOptions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Demo {
    title: String,
    says: String,
    situation: Vec<Situation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Situation {
    /// Name of the scenario. The file has the same name.
    scenario: String,
    title: String,
    /// Description of the situation in one to three sentences.
    says: String,
    /// Schemes to compare. The first is the reference.
    schemes: Vec<String>,
}

impl Demo {
    fn embedded() -> Demo {
        toml::from_str(text(TABLE)).expect("the table is embedded, and a test reads it")
    }
}

fn text(name: &str) -> &'static str {
    let file = FILES.get_file(name).and_then(include_dir::File::contents_utf8);
    file.expect("the demo's files are embedded, and a test reads them")
}

/// Returns the names of situations that the user may specify.
fn situations() -> clap::builder::PossibleValuesParser {
    Demo::embedded().situation.into_iter().map(|situation| situation.scenario).collect::<Vec<_>>().into()
}

pub(crate) fn demo(args: &DemoArgs) -> Result<Outcome, Failure> {
    let demo = Demo::embedded();
    let mut comparisons = Vec::new();
    for situation in demo.situation {
        if !args.situations.is_empty() && !args.situations.contains(&situation.scenario) {
            continue;
        }
        let file = format!("{}.toml", situation.scenario);
        let mut comparison = Comparison::plan(&situation.schemes, |scheme| {
            let changes = Changes { seed: args.seed, scheme: Some(scheme.to_owned()), ..Changes::default() };
            Loaded::parse(text(&file), &file, "", &changes)
        })?;
        comparison.title = situation.title;
        comparison.says = situation.says;
        comparisons.push(comparison);
    }
    let heading = Heading { title: &demo.title, description: &demo.says, tells: TerminalOutput::Sentences };
    let no_files = (&TraceArgs::default(), &Inputs::default());
    run_comparisons(&comparisons, &args.out, args.cores, no_files, &args.talk, &heading)
}

#[cfg(test)]
mod tests {
    use pathweave_scenario::Records;
    use pathweave_sim::SimSpec;

    use super::*;
    use crate::memory::MemoryBudget;

    #[test]
    fn every_situation_can_be_planned_and_every_file_is_of_one() {
        let demo = Demo::embedded();
        let mut files: Vec<String> =
            demo.situation.iter().map(|situation| format!("{}.toml", situation.scenario)).collect();
        for situation in &demo.situation {
            let file = format!("{}.toml", situation.scenario);
            let plan = Comparison::plan(&situation.schemes, |scheme| {
                let changes = Changes { scheme: Some(scheme.to_owned()), ..Changes::default() };
                Loaded::parse(text(&file), &file, "", &changes)
            });
            let plan = plan.unwrap();
            plan.try_out(&MemoryBudget::now(true), Records::Kept, SimSpec::clone).unwrap();
            assert_eq!(plan.title, situation.scenario, "the scenario is named after its file");
            assert_eq!(situation.schemes[0], "ecmp");
            assert!(situation.schemes.iter().any(|scheme| scheme == "weave"), "our own is in each");
        }
        let mut embedded: Vec<_> =
            FILES.files().map(|file| file.path().to_string_lossy().into_owned()).collect();
        files.push(TABLE.to_owned());
        files.sort();
        embedded.sort();
        assert_eq!(embedded, files);
    }
}
