//! `pathweave sweep`: runs of a scenario with several values of its fields.

use clap::Args;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pathweave_records::Summary;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::SimSpec;
use pathweave_study::sweep::{
    Dataset, Files, Outcome as RunOutcome, Plan, Run, SearchStep, StoredFiles, SweepError, SweepSummary,
    encode_files,
};

use crate::batch::{Batch, Watcher};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::memory::MemoryBudget;
use crate::options::{Cores, OutputOptions};
use crate::scenario_input;
use crate::terminal;

/// Largest number of failures printed. The report and `summary.json` list all of them.
const SHOWN: usize = 10;

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// Sweep file (TOML)
    pub(crate) sweep: PathBuf,
    /// Folder of the dataset [default: results/NAME-sweep]. Runs that are finished there are not repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) making: ExecutionOptions,
}

/// Options for the execution of a sweep or plan.
#[derive(Args, Debug)]
pub(crate) struct ExecutionOptions {
    #[command(flatten)]
    pub(crate) cores: Cores,
    /// Execute at most N runs, then stop. The same command resumes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// List finished and missing runs without executing any
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove runs from the folder that the sweep no longer includes
    #[arg(long)]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) talk: OutputOptions,
}

pub(crate) fn sweep(args: &SweepArgs) -> Result<Outcome, Failure> {
    scenario_input::check_is_file(&args.sweep)?;
    let plan = Plan::read(&args.sweep).map_err(failure)?;
    let path = args.out.clone().unwrap_or_else(|| super::default_folder(&format!("{}-sweep", plan.name)));
    let Some(made) = execute_plan(&args.making, &plan, &path)? else { return Ok(Outcome::Done) };
    if args.making.talk.json {
        terminal::out(&super::json(&made.summary));
    } else {
        if !args.making.talk.quiet {
            let table = pathweave_study::sweep::table(&plan, &made.summary);
            terminal::out(&format!("{table}dataset digest: {}\n", made.summary.digest));
        }
        terminal::out(&format!("report: {}\n", path.join("report.html").display()));
    }
    Ok(made.outcome())
}

/// Dataset with all runs that could be executed.
pub(crate) struct ExecutedDataset {
    pub(crate) dataset: Dataset,
    pub(crate) summary: SweepSummary,
    interrupted: bool,
}

impl ExecutedDataset {
    /// Returns the outcome, after printing failed runs and missing results.
    pub(crate) fn outcome(&self) -> Outcome {
        print_failures(&self.summary);
        match () {
            () if self.interrupted && self.summary.partial => Outcome::Interrupted,
            () if self.summary.partial || self.summary.has_failures() => Outcome::Unfinished,
            () => Outcome::Done,
        }
    }
}

/// Outcomes of runs by index.
pub(crate) type Outcomes = BTreeMap<usize, RunOutcome>;

/// Executes the runs of a plan that its folder lacks. Returns `None` if they were only to be listed.
pub(crate) fn execute_plan(
    args: &ExecutionOptions,
    plan: &Plan,
    path: &Path,
) -> Result<Option<ExecutedDataset>, Failure> {
    execute_search(args, plan, path, |outcomes| {
        let missing: Vec<usize> = (0..plan.runs.len()).filter(|run| !outcomes.contains_key(run)).collect();
        if missing.is_empty() { SearchStep::Done(BTreeMap::new()) } else { SearchStep::Run(missing) }
    })
}

/// Executes those runs of a plan that `next` selects, step by step, unless its folder has them.
pub(crate) fn execute_search(
    args: &ExecutionOptions,
    plan: &Plan,
    path: &Path,
    next: impl Fn(&Outcomes) -> SearchStep,
) -> Result<Option<ExecutedDataset>, Failure> {
    if args.dry_run && !path.exists() {
        list(plan, &BTreeMap::new(), &next);
        return Ok(None);
    }
    let dataset = Dataset::open(path).map_err(failure)?;
    let kept = kept(plan, &dataset);
    if args.dry_run {
        list(plan, &kept, &next);
        return Ok(None);
    }
    tell(args, plan, &dataset, kept.len())?;
    let interrupt = Interrupt::listen_saying("stopping: finished runs are kept; Ctrl-C again stops at once")?;
    let mut outcomes = kept;
    let mut room = args.most.map_or(usize::MAX, |most| most as usize);
    let mut waves = 0;
    let left_out = loop {
        match next(&outcomes) {
            SearchStep::Done(left_out) => break left_out,
            SearchStep::Run(mut runs) => {
                runs.truncate(room);
                if runs.is_empty() || interrupt.requested() {
                    break BTreeMap::new();
                }
                room -= runs.len();
                outcomes = run_all(args, plan, &dataset, outcomes, &runs, &interrupt)?;
                waves += 1;
            }
        }
    };
    if waves == 0 {
        // Says that nothing ran.
        outcomes = run_all(args, plan, &dataset, outcomes, &[], &interrupt)?;
    }
    for (cell, why) in left_out {
        for &run in plan.runs_of[cell].iter().flatten() {
            outcomes.entry(run).or_insert_with(|| RunOutcome::LeftOut(why.clone()));
        }
    }
    let summary = SweepSummary::from_outcomes(plan, outcomes);
    dataset.write(plan, &summary).map_err(failure)?;
    if args.prune {
        dataset.prune(plan).map_err(failure)?;
    }
    Ok(Some(ExecutedDataset { dataset, summary, interrupted: interrupt.requested() }))
}

/// Lists the runs that would be executed, and the number of those that depend on the results of others.
fn list(plan: &Plan, kept: &Outcomes, next: &impl Fn(&Outcomes) -> SearchStep) {
    let missing = plan.runs.len() - kept.len();
    let (todo, rest) = match next(kept) {
        SearchStep::Done(_) => (Vec::new(), "left out, since they cannot be the best"),
        SearchStep::Run(runs) => (runs, "follow, unless the results show that they cannot be the best"),
    };
    let rest = match missing - todo.len() {
        0 => String::new(),
        number => format!("{number} {rest}\n"),
    };
    let lines: String = todo.iter().map(|&run| format!("{}\n", plan.runs[run].label)).collect();
    let (cells, runs) = (plan.cells.len(), plan.runs.len());
    terminal::out(&format!(
        "{cells} cells, {runs} runs, {} of them finished before\n{lines}{rest}",
        kept.len()
    ));
}

/// Returns the runs that an earlier call finished.
fn kept(plan: &Plan, dataset: &Dataset) -> Outcomes {
    let record =
        |(number, run): (usize, &Run)| Some((number, RunOutcome::Finished(dataset.record(plan, &run.key)?)));
    plan.runs.iter().enumerate().filter_map(record).collect()
}

fn tell(args: &ExecutionOptions, plan: &Plan, dataset: &Dataset, kept: usize) -> Result<(), Failure> {
    if args.talk.quiet {
        return Ok(());
    }
    let (cells, runs) = (plan.cells.len(), plan.runs.len());
    terminal::note(&format!("{cells} cells, {runs} runs, {kept} of them finished before"));
    let strangers = dataset.foreign_runs(plan).map_err(failure)?.len();
    if strangers > 0 && !args.prune {
        terminal::note(&format!(
            "note: {strangers} more runs in the folder belong to no cell; --prune removes them"
        ));
    }
    Ok(())
}

/// Executes the runs `todo` and stores each as soon as it is finished.
fn run_all(
    args: &ExecutionOptions,
    plan: &Plan,
    dataset: &Dataset,
    mut kept: Outcomes,
    todo: &[usize],
    interrupt: &Interrupt,
) -> Result<Outcomes, Failure> {
    // The cost of a run is known only after its network is built, which is a large part of the cost of a small run.
    let labels: Vec<String> = todo.iter().map(|&run| plan.runs[run].label.clone()).collect();
    let told = labels.iter().map(|label| (label.clone(), 1.0)).collect();
    let live = ProgressFile::new(dataset.path().to_owned(), "sweep", &plan.name, None, told);
    let batch = Batch::new(vec![1.0; todo.len()], labels, args.talk.quiet, args.talk.progress)
        .with_progress_file(live);
    let on_cores = |spec: &SimSpec| args.cores.of(spec, todo.len());
    let room = args.cores.room();
    let made = batch.run_all(args.cores.at_a_time(todo.len()), interrupt, |place| {
        let run = &plan.runs[todo[place]];
        // A run that hits a bug must not affect the others.
        let made = catch_unwind(AssertUnwindSafe(|| {
            run_one(run, &plan.keep, &on_cores, &room, batch.watch(place, interrupt))
        }));
        let made =
            made.unwrap_or_else(|_| Err("a bug in the simulator; the lines above have its place".to_owned()));
        match made {
            Ok(None) => Ok(None),
            Err(why) => Ok(Some(RunOutcome::Failed(why))),
            // A full disk affects all runs.
            Ok(Some(files)) => {
                Ok(Some(RunOutcome::Finished(dataset.store(&run.key, &files).map_err(failure)?)))
            }
        }
    });
    kept.extend(made?.into_iter().map(|(place, outcome)| (todo[place], outcome)));
    Ok(kept)
}

/// Returns the files of a run, or `None` if it was interrupted. The error is a message for the user.
fn run_one(
    run: &Run,
    keep: &StoredFiles,
    on_cores: &impl Fn(&SimSpec) -> SimSpec,
    room: &MemoryBudget,
    mut watcher: Watcher<'_>,
) -> Result<Option<Files>, String> {
    let loaded = Loaded::parse(&run.scenario, "scenario.toml", "", &Changes::default());
    let loaded = loaded.map_err(|findings| findings.to_string())?;
    let result = watcher.run(&loaded, room, on_cores).map_err(|why| why.to_string())?;
    let Some(mut result) = result else { return Ok(None) };
    result.info.version = pathweave_study::sweep::ENGINE.to_owned();
    let summary = Summary::from_run(&result);
    encode_files(&run.key, &result, &summary, keep).map(Some).map_err(|why| why.to_string())
}

/// Prints the cells that failed or have unfinished flows or jobs, with the reasons.
fn print_failures(summary: &SweepSummary) {
    let mut lines = Vec::new();
    for cell in &summary.cells {
        lines.extend(cell.failed.iter().map(|why| format!("failed: {}: {}", cell.label, why.trim_end())));
        if cell.open_flows > 0 {
            lines.push(format!("unfinished: {}: {} flows", cell.label, cell.open_flows));
        } else if !cell.withheld.is_empty() {
            lines.push(format!("unfinished: {}: jobs", cell.label));
        }
    }
    for line in lines.iter().take(SHOWN) {
        terminal::note(line);
    }
    if lines.len() > SHOWN {
        terminal::note(&format!("and {} more: see summary.json", lines.len() - SHOWN));
    }
    if summary.partial {
        let missing = summary.runs - summary.finished_runs - summary.failed_runs - summary.left_out_runs;
        terminal::note(&format!(
            "PARTIAL: {missing} of {} runs are missing; the same command continues",
            summary.runs
        ));
    }
}

pub(crate) fn failure(why: SweepError) -> Failure {
    match why {
        SweepError::File(findings) => Failure::Scenario(findings),
        SweepError::Table { .. } => Failure::Internal(why.to_string()),
        SweepError::Scenario { .. }
        | SweepError::Occupied { .. }
        | SweepError::Busy { .. }
        | SweepError::Io { .. } => Failure::Input(why.to_string()),
    }
}
