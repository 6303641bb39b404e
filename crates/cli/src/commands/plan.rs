//! `pathweave plan`: comparison of fabrics, rates, parallelism and schemes for a workload, with their costs.

use clap::Args;
use std::path::PathBuf;

use pathweave_study::sweep::{Choices, ClusterPlan};

use super::sweep::{ExecutionOptions, execute_search, failure};
use crate::failure::{Failure, Outcome};
use crate::scenario_input;
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// Cluster file (TOML): the workload, the candidate fabrics, and prices
    pub(crate) cluster: PathBuf,
    /// Result folder [default: results/NAME-plan]. Runs that are finished there are not repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) making: ExecutionOptions,
}

pub(crate) fn plan(args: &PlanArgs) -> Result<Outcome, Failure> {
    scenario_input::check_is_file(&args.cluster)?;
    let cluster = ClusterPlan::read(&args.cluster).map_err(failure)?;
    let folder = || super::default_folder(&format!("{}-plan", cluster.plan.name));
    let path = args.out.clone().unwrap_or_else(folder);
    let made = execute_search(&args.making, &cluster.plan, &path, |outcomes| cluster.next_runs(outcomes))?;
    let Some(made) = made else { return Ok(Outcome::Done) };
    let choices = Choices::new(&cluster, &made.summary);
    made.dataset.write_choices(&choices).map_err(failure)?;
    if args.making.talk.json {
        terminal::out(&super::json(&choices));
    } else {
        if !args.making.talk.quiet {
            terminal::out(&choices.table());
        }
        terminal::out(&format!("picture: {}\n", path.join("plan.html").display()));
    }
    Ok(made.outcome())
}
