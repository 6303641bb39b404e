//! Writes folders of small sweeps, for browser tests of their reports and for inspection: `cargo run -p
//! pathweave-study --example sample_sweeps -- FOLDER`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use pathweave_records::Summary;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;
use pathweave_study::sweep::{Dataset, Outcome, Plan, Run, SweepSummary, encode_files};

const SCENARIO: &str = "
[scenario.topology]
kind = 'leaf-spine'
leaves = 2
spines = 2
hosts_per_leaf = 4
[[scenario.workload]]
kind = 'permutation'
size = '64KB'
";

/// Grid of three axes, two of them numeric.
const GRID: &str = "
seeds = 3
grid = [
    { key = 'scheme', values = ['ecmp', 'qp16', 'rps'] },
    { key = 'workload[0].size', values = ['16KB', '64KB', '256KB', '1MB'] },
    { key = 'topology.spines', values = [1, 2, 4] },
]
[report]
metric = 'fct_max_ns'
";

/// Points of a hypercube that each scheme runs.
const CUBE: &str = "
seeds = 2
grid = [{ key = 'scheme', values = ['ecmp', 'rps'] }]
[latin-hypercube]
samples = 20
[[latin-hypercube.axis]]
key = 'workload[0].size'
from = '10KB'
to = '1000KB'
scale = 'log'
[[latin-hypercube.axis]]
key = 'topology.leaf_spine_links'
from = 1
to = 3
";

/// Special cases: a cell that cannot run, because two hosts have no four pairs; values that are not numbers; a single
/// seed; reports of runs.
const NAMED: &str = "
list = [
    { name = '<plain>' },
    { name = 'long & \"quoted\"', set = { 'workload[0].flows' = 4 } },
]
grid = [{ key = 'topology.hosts_per_leaf', values = [1, 4] }]
[report]
runs = 'kept'
";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    for (name, text) in [("sweep-grid", GRID), ("sweep-cube", CUBE), ("sweep-named", NAMED)] {
        let plan = Plan::parse(&format!("{text}{SCENARIO}"), &format!("{name}.toml"), Path::new(""))?;
        let path = Path::new(&folder).join(name);
        let dataset = Dataset::open(&path)?;
        let mut outcomes = BTreeMap::new();
        for (number, run) in plan.runs.iter().enumerate() {
            let outcome = match dataset.record(&plan, &run.key) {
                Some(record) => Outcome::Finished(record),
                None => made(&plan, run, &dataset)?,
            };
            outcomes.insert(number, outcome);
        }
        dataset.write(&plan, &SweepSummary::from_outcomes(&plan, outcomes))?;
    }
    Ok(())
}

fn made(plan: &Plan, run: &Run, dataset: &Dataset) -> Result<Outcome, Box<dyn Error>> {
    let loaded = Loaded::parse(&run.scenario, "scenario.toml", "", &Changes::default())?;
    let result = loaded.prepare().and_then(|prepared| {
        pathweave_scenario::run(&prepared.spec, &mut NoMonitor).map_err(|why| loaded.sim_error(&why))
    });
    Ok(match result {
        Ok(result) => {
            let files = encode_files(&run.key, &result, &Summary::from_run(&result), &plan.keep)?;
            Outcome::Finished(dataset.store(&run.key, &files)?)
        }
        Err(why) => Outcome::Failed(why.to_string()),
    })
}
