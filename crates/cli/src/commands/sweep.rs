//! `pathweave sweep`: runs of a scenario with several values of its fields.

use clap::Args;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use pathweave_heap::usage;
use pathweave_results::{EndReason, Summary};
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::SimSpec;
use pathweave_study::sweep::{
    Dataset, Files, Outcome as RunOutcome, Plan, Run, StoredFiles, SweepError, SweepSummary, encode_files,
};

use crate::batch::{Batch, Watcher, in_threads};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::memory::MemoryBudget;
use crate::options::{Cores, OutputOptions};
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

/// Executes the runs of a plan that its folder lacks. Returns `None` if they were only to be listed.
pub(crate) fn execute_plan(
    args: &ExecutionOptions,
    plan: &Plan,
    path: &Path,
) -> Result<Option<ExecutedDataset>, Failure> {
    if args.dry_run && !path.exists() {
        list(plan, &BTreeMap::new());
        return Ok(None);
    }
    let dataset = Dataset::open(path).map_err(failure)?;
    let kept = kept(plan, &dataset);
    if args.dry_run {
        list(plan, &kept);
        return Ok(None);
    }
    tell(args, plan, &dataset, kept.len())?;
    let mut todo: Vec<usize> = (0..plan.runs.len()).filter(|run| !kept.contains_key(run)).collect();
    todo.truncate(args.most.map_or(usize::MAX, |most| most as usize));

    let interrupt = Interrupt::listen_saying("stopping: finished runs are kept; Ctrl-C again stops at once")?;
    let outcomes = run_all(args, plan, &dataset, kept, &todo, &interrupt)?;
    let summary = SweepSummary::from_outcomes(plan, outcomes);
    dataset.write(plan, &summary).map_err(failure)?;
    if args.prune {
        dataset.prune(plan).map_err(failure)?;
    }
    Ok(Some(ExecutedDataset { dataset, summary, interrupted: interrupt.requested() }))
}

/// Lists the runs that would be executed.
fn list(plan: &Plan, kept: &BTreeMap<usize, RunOutcome>) {
    let todo = plan.runs.iter().enumerate().filter(|(run, _)| !kept.contains_key(run));
    let lines: String = todo.map(|(_, run)| format!("{}\n", run.label)).collect();
    let (cells, runs) = (plan.cells.len(), plan.runs.len());
    terminal::out(&format!("{cells} cells, {runs} runs, {} of them finished before\n{lines}", kept.len()));
}

/// Returns the runs that an earlier call finished.
fn kept(plan: &Plan, dataset: &Dataset) -> BTreeMap<usize, RunOutcome> {
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
    kept: BTreeMap<usize, RunOutcome>,
    todo: &[usize],
    interrupt: &Interrupt,
) -> Result<BTreeMap<usize, RunOutcome>, Failure> {
    // The cost of a run is known only after its network is built, which is a large part of the cost of a small run.
    let labels: Vec<String> = todo.iter().map(|&run| plan.runs[run].label.clone()).collect();
    let told = labels.iter().map(|label| (label.clone(), 1.0)).collect();
    let live = ProgressFile::new(dataset.path().to_owned(), "sweep", &plan.name, None, told);
    let batch = Batch::new(vec![1.0; todo.len()], labels, args.talk.quiet, args.talk.progress)
        .with_progress_file(live);
    let outcomes = Mutex::new(kept);
    let broken: Mutex<Option<SweepError>> = Mutex::new(None);
    let places: Vec<usize> = (0..todo.len()).collect();
    let on_cores = |spec: &SimSpec| args.cores.of(spec, todo.len());
    let room = args.cores.room();
    in_threads(args.cores.at_a_time(todo.len()), &places, interrupt, |place| {
        let run = todo[place];
        // A run that hits a bug must not affect the others.
        let made = catch_unwind(AssertUnwindSafe(|| {
            run_one(&plan.runs[run], &plan.keep, &on_cores, &room, batch.watch(place, interrupt))
        }));
        let made =
            made.unwrap_or_else(|_| Err("a bug in the simulator; the lines above have its place".to_owned()));
        let outcome = match made.transpose() {
            None => return,
            Some(Err(why)) => RunOutcome::Failed(why),
            Some(Ok(files)) => match dataset.store(&plan.runs[run].key, &files) {
                Ok(record) => RunOutcome::Finished(record),
                // A full disk affects all runs.
                Err(why) => {
                    broken.lock().expect("no thread panics while it holds the lock").get_or_insert(why);
                    interrupt.request();
                    return;
                }
            },
        };
        batch.update(place, None);
        outcomes.lock().expect("no thread panics while it holds the lock").insert(run, outcome);
    });
    batch.finish();
    match broken.into_inner().expect("every thread has ended well") {
        Some(why) => Err(failure(why)),
        None => Ok(outcomes.into_inner().expect("every thread has ended well")),
    }
}

/// Returns the files of a run, or `None` if it was interrupted, because an incomplete run gives no result. The error
/// is a message for the user.
fn run_one(
    run: &Run,
    keep: &StoredFiles,
    on_cores: &impl Fn(&SimSpec) -> SimSpec,
    room: &MemoryBudget,
    mut watcher: Watcher<'_>,
) -> Result<Option<Files>, String> {
    let told = |findings: pathweave_scenario::Diagnostics| findings.to_string();
    let loaded = Loaded::parse(&run.scenario, "scenario.toml", "", &Changes::default()).map_err(told)?;
    let (spec, _taken) = room.prepare(&loaded, on_cores).map_err(|why| why.to_string())?;
    let (wall, cpu_s) = (Instant::now(), usage::thread_cpu_s());
    let result = pathweave_scenario::run(&spec, &mut watcher);
    let mut result = result.map_err(|why| told(loaded.sim_error(&why)))?;
    if result.info.ended == EndReason::Interrupted {
        return Ok(None);
    }
    result.info.wall_s = wall.elapsed().as_secs_f64();
    result.info.cpu_s += usage::thread_cpu_s() - cpu_s;
    result.info.version = pathweave_study::sweep::ENGINE.to_owned();
    let summary = Summary::from_run(&result);
    encode_files(&run.key, &result, &summary, keep).map(Some).map_err(|why| why.to_string())
}

/// Prints the cells that failed or have unfinished flows, with the reasons.
fn print_failures(summary: &SweepSummary) {
    let mut lines = Vec::new();
    for cell in &summary.cells {
        lines.extend(cell.failed.iter().map(|why| format!("failed: {}: {}", cell.label, why.trim_end())));
        if cell.open_flows > 0 {
            lines.push(format!("unfinished: {}: {} flows", cell.label, cell.open_flows));
        }
    }
    for line in lines.iter().take(SHOWN) {
        terminal::note(line);
    }
    if lines.len() > SHOWN {
        terminal::note(&format!("and {} more: see summary.json", lines.len() - SHOWN));
    }
    if summary.partial {
        let missing = summary.runs - summary.finished_runs - summary.failed_runs;
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
