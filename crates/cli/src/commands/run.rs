//! `pathweave run`.

use clap::Args;
use pathweave_results::{ResultFolder, differences_table, summary_table};
use pathweave_scenario::Loaded;
use pathweave_sim::Tap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{default_folder, output};
use crate::execute::execute;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::memory;
use crate::options::{Changes, Talk, Threads};
use crate::progress::Reporter;
use crate::terminal;
use crate::traces::{TraceArgs, Traces};

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML)
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Result folder [default: results/NAME-seedN]. An existing one is replaced only if it holds results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Files for other programs")]
    pub(crate) traces: TraceArgs,
    /// Run even if the scenario may need more memory than is available
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let loaded = Loaded::read(&args.scenario, &super::changes(&args.changes))?;
    let prepared = loaded.draft()?;
    let spec = &args.threads.of(&prepared.spec, 1);
    if !args.force
        && let Some(why) = memory::refusal(&prepared.memory_in(memory::process(spec)))
    {
        return Err(Failure::Input(format!("{why}; --force runs it anyway")));
    }
    loaded.try_out(spec)?;
    let target =
        args.out.clone().unwrap_or_else(|| default_folder(&format!("{}-seed{}", spec.name, spec.seed)));
    let folder = ResultFolder::create(&target).map_err(output)?;
    let mut traces = Traces::open(&args.traces, spec)?;
    let tell = if traces.take_stdout() { terminal::note } else { terminal::out };
    if args.talk.json && traces.take_stdout() {
        let what = "--json and a file named - would both be standard output; name a file for one";
        return Err(Failure::Input(what.to_owned()));
    }
    let reporter = Reporter::new(&args.talk);
    for note in &prepared.notes {
        reporter.say(&format!("note: {note}"));
    }
    let interrupt = Interrupt::listen()?;
    let runs = vec![(spec.name.clone(), 1.0)];
    let live = Arc::new(Live::new(folder.partial().to_owned(), "run", &spec.name, Some(spec.seed), runs));
    let progress = reporter.start(&spec.name, spec.name.len()).telling(&live, 0);
    let tap = traces.capture.as_mut().map(|capture| capture as &mut dyn Tap);
    let finished = execute(&loaded, spec, progress, &interrupt, tap)?;
    live.close();
    folder.write_run(&finished.run, &finished.summary).map_err(output)?;
    folder.commit().map_err(output)?;
    for note in traces.write(&finished.run)? {
        reporter.say(&format!("note: {note}"));
    }
    if args.talk.json {
        terminal::out(&super::json(&finished.summary));
    } else {
        if !args.talk.quiet {
            let tables = summary_table(&finished.summary) + &differences_table(&[&finished.run.info]);
            tell(&format!("{tables}\n"));
        }
        tell(&format!("report: {}\n", target.join("report.html").display()));
    }
    if let Some(complaint) = finished.complaint() {
        terminal::note(&complaint);
    }
    Ok(finished.outcome())
}
