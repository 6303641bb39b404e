//! `pathweave run`.

use clap::Args;
use pathweave_report::{ResultFolder, brief_run, differences_table, run_in_words, summary_table};
use pathweave_scenario::{Loaded, Records};
use pathweave_sim::{Arrival, SimSpec, Tap};
use std::path::PathBuf;
use std::sync::Arc;

use super::{default_folder, output};
use crate::execute::{Finished, Observers, execute, execute_rank};
use crate::failure::{Failure, NOT_USABLE, Outcome};
use crate::flow_stream::FlowStream;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::memory::{self, ThreadChoice};
use crate::options::{Changes, OutputOptions, Threads};
use crate::progress::{Reporter, RunProgress};
use crate::ranks::{self, RankGroup};
use crate::scenario_input;
use crate::terminal;
use crate::traces::{TraceArgs, Traces};

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); - is standard input
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Result folder [default: results/NAME-seedN]. An existing folder is replaced only if it holds results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Files for other programs")]
    pub(crate) traces: TraceArgs,
    /// Run even if the scenario may need more memory than is available
    #[arg(long)]
    pub(crate) force: bool,
    /// Print every figure, not only the table of the most important ones
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) talk: OutputOptions,
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    match ranks::connect()? {
        None => alone(args),
        Some(mut company) => run_over_ranks(args, &mut company),
    }
}

fn alone(args: &RunArgs) -> Result<Outcome, Failure> {
    let ready = PreparedRun::new(args, 1, 1)?;
    let mut desk = RunOutputs::new(args, &ready)?;
    let interrupt = Interrupt::listen()?;
    let progress = desk.start();
    let finished = execute(&ready.loaded, &ready.spec, progress, &interrupt, desk.seers())?;
    desk.write(args, &finished)
}

/// Executes a run over several processes. Rank 0 writes the results and prints all messages.
fn run_over_ranks(args: &RunArgs, company: &mut RankGroup) -> Result<Outcome, Failure> {
    // Only one rank has the standard input of the launcher.
    company.all_or_none(scenario_input::check_is_file(&args.scenario))?;
    let ready = PreparedRun::new(args, company.sharing(), company.on_this_machine());
    let ready = company.all_or_none(ready)?;
    let desk = if company.is_lead() { RunOutputs::new(args, &ready).map(Some) } else { Ok(None) };
    let Some(mut desk) = company.all_or_none(desk)? else {
        let interrupt = Interrupt::listen_quietly()?;
        let mut blind = IgnoreTap;
        let tap = args.traces.shows_packets().then_some(&mut blind as &mut dyn Tap);
        let seers = Observers { tap, ..Observers::default() };
        execute_rank(company, &ready.loaded, &ready.spec, RunProgress::silent(), &interrupt, seers)?;
        return Ok(company.outcome(None));
    };
    desk.reporter.print_line(&format!("note: {}", company.table()));
    let interrupt = Interrupt::listen()?;
    let progress = desk.start();
    let finished = execute_rank(company, &ready.loaded, &ready.spec, progress, &interrupt, desk.seers())?;
    let outcome = desk.write(args, &finished.expect("rank 0 has the result"));
    // Other ranks do not need the reason why results could not be written.
    company.outcome(Some(*outcome.as_ref().unwrap_or(&Outcome::Command(NOT_USABLE))));
    outcome
}

/// Tap of a rank other than 0, which ignores packets. The tap of rank 0 gets the packets of all ranks.
struct IgnoreTap;

impl Tap for IgnoreTap {
    fn arrived(&mut self, _: &Arrival<'_>) {}
}

/// Run that is ready to start.
struct PreparedRun {
    loaded: Loaded,
    spec: SimSpec,
    notes: Vec<String>,
}

impl PreparedRun {
    /// Prepares a run for one of `sharing` processes that share the cores, and of `processes` on this machine.
    fn new(args: &RunArgs, sharing: usize, processes: usize) -> Result<Self, Failure> {
        let loaded = scenario_input::read(&args.scenario, &super::changes(&args.changes))?;
        let prepared = loaded.draft()?;
        let ThreadChoice { spec, note } =
            match memory::fit(&prepared, args.threads, sharing, processes, args.traces.records()) {
                Ok(fit) => fit,
                Err(_) if args.force => {
                    ThreadChoice { spec: args.threads.of(&prepared.spec, sharing), note: None }
                }
                Err(why) => return Err(Failure::Input(format!("{why}; --force runs it anyway"))),
            };
        loaded.try_out(&spec)?;
        Ok(PreparedRun { loaded, spec, notes: prepared.notes.into_iter().chain(note).collect() })
    }
}

/// Outputs of a run: its results, traces and messages.
struct RunOutputs {
    target: PathBuf,
    folder: ResultFolder,
    /// Stream of flow records, or `None` if another output needs all records.
    flows: Option<FlowStream>,
    traces: Traces,
    tell: fn(&str),
    reporter: Reporter,
    live: Arc<ProgressFile>,
    name: String,
}

impl RunOutputs {
    fn new(args: &RunArgs, ready: &PreparedRun) -> Result<Self, Failure> {
        let spec = &ready.spec;
        let target =
            args.out.clone().unwrap_or_else(|| default_folder(&format!("{}-seed{}", spec.name, spec.seed)));
        let inputs = Inputs::default().with_scenario(&args.scenario, &ready.loaded);
        args.traces.check_places(&inputs, &target)?;
        let folder = ResultFolder::create(&target).map_err(output)?;
        let traces = Traces::open(&args.traces, spec)?;
        let to_stdout = traces.take_stdout();
        if args.talk.json && to_stdout {
            let what = "--json and a file named - would both be standard output; name a file for one";
            return Err(Failure::Input(what.to_owned()));
        }
        let flows = match args.traces.records() {
            Records::Kept => None,
            Records::Written => FlowStream::for_run(&folder, spec).map_err(output)?,
        };
        let reporter = Reporter::new(&args.talk);
        for note in &ready.notes {
            reporter.print_line(&format!("note: {note}"));
        }
        let runs = vec![(spec.name.clone(), 1.0)];
        let live = ProgressFile::new(folder.partial().to_owned(), "run", &spec.name, Some(spec.seed), runs);
        Ok(RunOutputs {
            target,
            folder,
            flows,
            traces,
            tell: if to_stdout { terminal::note } else { terminal::out },
            reporter,
            live: Arc::new(live),
            name: spec.name.clone(),
        })
    }

    fn start(&self) -> RunProgress {
        self.reporter.start(&self.name, self.name.len()).telling(&self.live, 0)
    }

    fn seers(&mut self) -> Observers<'_> {
        Observers {
            tap: self.traces.capture.as_mut().map(|capture| capture as &mut dyn Tap),
            flows: self.flows.take(),
        }
    }

    fn write(self, args: &RunArgs, finished: &Finished) -> Result<Outcome, Failure> {
        let RunOutputs { target, folder, traces, tell, reporter, live, .. } = self;
        live.close();
        folder.write_run(&finished.run, &finished.summary).map_err(output)?;
        folder.commit().map_err(output)?;
        for note in traces.write(&finished.run)? {
            reporter.print_line(&format!("note: {note}"));
        }
        if args.talk.json {
            terminal::out(&super::json(&finished.summary));
        } else {
            if !args.talk.quiet {
                tell(&tables(finished, args.all));
            }
            tell(&format!("report: {}\n", target.join("report.html").display()));
        }
        if let Some(complaint) = finished.failure_message() {
            terminal::note(&complaint);
        }
        Ok(finished.outcome())
    }
}

/// Returns the result in words, and one table or every figure.
fn tables(finished: &Finished, all: bool) -> String {
    let Finished { run, summary, .. } = finished;
    let words = terminal::wrapped(&run_in_words(run, summary), "", "");
    let tables = match all {
        true => summary_table(summary) + &differences_table(&[&run.info]),
        false => brief_run(summary) + super::MORE,
    };
    format!("{words}\n{tables}\n")
}
