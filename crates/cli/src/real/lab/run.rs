//! `pathweave lab run`.

use std::time::Instant;

use pathweave_heap::usage;
use pathweave_lab::{LabNamespaces, LabRun, Plan, RunProgress, capacity_warning};
use pathweave_records::{EndReason, RunResult, Summary};
use pathweave_report::{ResultFolder, comparison_table, summary_table};
use pathweave_scenario::{Loaded, Prepared};

use super::args::RunArgs;
use super::backend::LabBackend;
use super::temporary::Temporary;
use super::up::Planned;
use crate::commands::{changes, default_folder, json, output};
use crate::execute::{Finished, Observers, execute};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::Threads;
use crate::progress::{Reporter, Snapshot};
use crate::terminal;

pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    args.backend.check()?;
    let loaded = Loaded::read(&args.scenario, &changes(&args.changes))?;
    let prepared = loaded.prepare()?;
    let Planned { plan, .. } =
        Planned::read(&args.scenario, args.name.clone(), &args.settings, &args.changes)?;
    let spec = &prepared.spec;
    let default = || default_folder(&format!("{}-lab-seed{}", spec.name, spec.seed));
    let target = args.out.clone().unwrap_or_else(default);
    let folder = ResultFolder::create(&target).map_err(output)?;
    let workplace = super::workplace_to_make()?;
    let reporter = Reporter::new(&args.talk);
    prepared.notes.iter().for_each(|note| reporter.print_line(&format!("note: {note}")));
    let interrupt = Interrupt::listen()?;
    let real = in_a_lab(plan, &prepared, args.backend, workplace, &reporter, &interrupt)?;
    let mut runs = vec![real];
    if args.simulate && !interrupt.requested() {
        let progress = reporter.start("simulated", LABEL_WIDTH);
        let mut simulated =
            execute(&loaded, &Threads::default().of(spec, 1), progress, &interrupt, Observers::default())?;
        rename(&mut simulated, "simulated");
        rename(&mut runs[0], "lab");
        // The reference of the comparison comes first.
        runs.insert(0, simulated);
    }
    drop(reporter);
    write(folder, &runs)?;
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    if args.talk.json {
        let text = if let [one] = summaries[..] { json(one) } else { json(&summaries) };
        terminal::out(&text);
    } else {
        if !args.talk.quiet {
            let table =
                if let [one] = summaries[..] { summary_table(one) } else { comparison_table(&summaries) };
            terminal::out(&format!("{table}\n"));
        }
        terminal::out(&format!("report: {}\n", target.join("report.html").display()));
    }
    runs.iter().filter_map(Finished::failure_message).for_each(|complaint| terminal::note(&complaint));
    Ok(runs.iter().map(Finished::outcome).max().unwrap_or(Outcome::Done))
}

const LABEL_WIDTH: usize = "simulated".len();

/// Creates the lab, runs the scenario on it, and removes the lab in any case.
fn in_a_lab(
    plan: Plan,
    prepared: &Prepared,
    backend: LabBackend,
    workplace: LabNamespaces,
    reporter: &Reporter,
    interrupt: &Interrupt,
) -> Result<Finished, Failure> {
    let scale = plan.settings().rate_scale;
    let mut lab = Temporary::make(plan, workplace, &|| interrupt.requested())?;
    let lab = lab.lab();
    lab.notes().iter().for_each(|note| reporter.print_line(&format!("note: {note}")));
    reporter.print_line(&format!(
        "note: rates are {scale} of the scenario's; results are in the scenario's time"
    ));
    if let Some(shortage) = capacity_warning(&prepared.spec, lab.plan().settings()) {
        reporter.print_line(&format!("warning: {shortage}"));
    }
    let mut progress = reporter.start("lab", LABEL_WIDTH);
    let mut look = |seen: RunProgress| {
        let done = seen.bytes_done as f64 / (seen.bytes_total as f64).max(1.0);
        progress.update(Instant::now(), Snapshot { simulated: seen.now, done, ..Snapshot::default() });
        !interrupt.requested()
    };
    let open = |port: &_, config| backend.open(port, config);
    let LabRun { result: mut run, notes, .. } = pathweave_lab::run(lab, &prepared.spec, &open, &mut look)?;
    progress.finish(&run.info.ended.name().replace('_', " "));
    notes.iter().for_each(|note| reporter.print_line(&format!("note: {note}")));
    if !run.info.ended_detail.is_empty() {
        reporter.print_line(&format!("warning: {}", run.info.ended_detail));
    }
    if run.info.ended == EndReason::Stalled {
        let why = if run.info.ended_detail.is_empty() { "" } else { "; " };
        run.info.ended_detail = format!("nothing arrived for 30 s{why}{}", run.info.ended_detail);
    }
    run.info.peak_rss_bytes = usage::peak_rss_bytes();
    run.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let summary = Summary::from_run(&run);
    Ok(Finished { run, summary })
}

/// Renames a run. Columns of a comparison are named after runs.
fn rename(finished: &mut Finished, name: &str) {
    finished.run.info.name = name.to_owned();
    finished.summary = Summary::from_run(&finished.run);
}

fn write(folder: ResultFolder, runs: &[Finished]) -> Result<(), Failure> {
    let results: Vec<(&RunResult, &Summary)> = runs.iter().map(|run| (&run.run, &run.summary)).collect();
    match results[..] {
        [(run, summary)] => folder.write_run(run, summary),
        _ => folder.write_comparison(&results),
    }
    .map_err(output)?;
    folder.commit().map(drop).map_err(output)
}
