//! `pathweave compare`: several schemes on the same traffic, simulated with packets, with flows, or both.

use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pathweave_records::{RunResult, Summary};
use pathweave_report::{
    ResultFolder, SchemeComparison, Verdict, brief_comparison, comparison_table, differences_table, sentence,
    unlike_idle_times,
};
use pathweave_scenario::{Changes, Loaded, Prepared, Records};
use pathweave_sim::{SimSpec, Tap};
use serde::Serialize;

use super::{Names, default_folder, output, safe_name, scheme_names};
use crate::batch::{self, Batch};
use crate::execute::{Finished, Observers, execute};
use crate::failure::{Failure, Outcome};
use crate::flow_stream::FlowStream;
use crate::index_page;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::memory::MemoryBudget;
use crate::options::{Cores, OutputOptions};
use crate::progress::{Reporter, RunProgress};
use crate::scenario_input;
use crate::terminal;
use crate::traces::{TraceArgs, Traces};

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Scenario files (TOML); - is standard input
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<PathBuf>,
    /// Schemes to compare, in order. Ratios refer to the first
    #[arg(long, value_delimiter = ',', required_unless_present = "fidelity", value_name = "A,B,...",
        value_parser = Names(scheme_names), hide_possible_values = true)]
    pub(crate) schemes: Vec<String>,
    /// Simulation models to compare, each for every scheme: packet, flow
    #[arg(long, value_delimiter = ',', value_name = "F,...", value_parser = ["packet", "flow"], hide_possible_values = true)]
    pub(crate) fidelity: Vec<String>,
    #[command(flatten)]
    pub(crate) changes: crate::options::Changes,
    /// Result folder [default: results/NAME-compare-seedN]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cores: Cores,
    #[command(
        flatten,
        next_help_heading = "Files for other programs, one per run; the scheme is inserted before the extension"
    )]
    pub(crate) traces: TraceArgs,
    /// Print every figure, not only the table of the most important ones
    #[arg(long, conflicts_with_all = ["quiet", "json"], help_heading = "Options")]
    pub(crate) all: bool,
    #[command(flatten, next_help_heading = "Options")]
    pub(crate) talk: OutputOptions,
}

pub(crate) fn compare(args: &CompareArgs) -> Result<Outcome, Failure> {
    check_names("--schemes", &args.schemes)?;
    check_names("--fidelity", &args.fidelity)?;
    let changes = super::changes(&args.changes);
    let variants = variants(&args.schemes, &args.fidelity);
    let names: Vec<String> = variants.iter().map(|variant| variant.name.clone()).collect();
    let read = |path: &PathBuf| {
        Comparison::plan(&names, |name| {
            let variant = variants.iter().find(|variant| variant.name == name).expect("it is one of these");
            let mut changes = Changes { scheme: variant.scheme.clone(), ..changes.clone() };
            changes.set.extend(variant.fidelity.iter().map(|fidelity| format!("run.fidelity={fidelity}")));
            scenario_input::read(path, &changes)
        })
    };
    let comparisons = args.scenarios.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let inputs = args.scenarios.iter().zip(&comparisons).fold(Inputs::default(), |inputs, (path, all)| {
        all.runs.iter().fold(inputs, |inputs, run| inputs.with_scenario(path, &run.loaded))
    });
    let first = &comparisons[0].runs[0].prepared.spec;
    let name = if comparisons.len() == 1 { comparisons[0].name.as_str() } else { "comparison" };
    let target =
        args.out.clone().unwrap_or_else(|| default_folder(&format!("{name}-compare-seed{}", first.seed)));
    let tells = if args.all { TerminalOutput::Tables } else { TerminalOutput::Brief };
    let heading = Heading { title: "Comparison", description: "", tells };
    run_comparisons(&comparisons, &target, args.cores, (&args.traces, &inputs), &args.talk, &heading)
}

/// A scenario with one scheme and one fidelity of a comparison.
struct Variant {
    name: String,
    /// Name of the scheme. `None`: the scheme of the scenario.
    scheme: Option<String>,
    fidelity: Option<String>,
}

/// Returns each scheme with each fidelity, grouped by scheme. Names omit a scheme or fidelity of which there is at
/// most one.
fn variants(schemes: &[String], fidelities: &[String]) -> Vec<Variant> {
    let or_own = |names: &[String]| match names {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let mut all = Vec::new();
    for scheme in or_own(schemes) {
        for fidelity in or_own(fidelities) {
            let name = match (&scheme, &fidelity) {
                (Some(scheme), Some(fidelity)) if fidelities.len() > 1 => format!("{scheme} {fidelity}"),
                (Some(name), _) | (None, Some(name)) => name.clone(),
                (None, None) => String::new(),
            };
            all.push(Variant { name, scheme: scheme.clone(), fidelity });
        }
    }
    all
}

/// Head of the page of several comparisons, and the kind of terminal output.
pub(crate) struct Heading<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: &'a str,
    pub(crate) tells: TerminalOutput,
}

/// Terminal output for finished comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TerminalOutput {
    /// All figures.
    Tables,
    /// One table of the most important figures.
    Brief,
    /// One sentence for each comparison.
    Sentences,
}

/// One scenario under several schemes.
pub(crate) struct Comparison {
    name: String,
    /// Title on the page. Default: the name.
    pub(crate) title: String,
    /// Description of the scenario.
    pub(crate) says: String,
    runs: Vec<Planned>,
}

struct Planned {
    scheme: String,
    loaded: Loaded,
    prepared: Prepared,
}

impl Comparison {
    /// Loads a scenario under each scheme, so that errors are found before any run starts. [`Comparison::try_out`]
    /// finds the errors that only the simulator detects.
    pub(crate) fn plan<E>(
        schemes: &[String],
        load: impl Fn(&str) -> Result<Loaded, E>,
    ) -> Result<Self, Failure>
    where
        Failure: From<E>,
    {
        let (name, title, says) = (String::new(), String::new(), String::new());
        let mut comparison = Comparison { name, title, says, runs: Vec::new() };
        for scheme in schemes {
            let loaded = load(scheme)?;
            let mut prepared = loaded.draft()?;
            // In a comparison, runs are named after their scheme.
            let name = run_name(scheme, &loaded.scenario.scheme.name);
            comparison.name = std::mem::replace(&mut prepared.spec.name, name.clone());
            comparison.runs.push(Planned { scheme: name, loaded, prepared });
        }
        comparison.title.clone_from(&comparison.name);
        Ok(comparison)
    }

    /// Builds each run on `on_cores` threads to find errors that only the simulator detects. Runs are built one at a
    /// time, because each needs memory.
    pub(crate) fn try_out(
        &self,
        room: &MemoryBudget,
        records: Records,
        on_cores: impl Fn(&SimSpec) -> SimSpec,
    ) -> Result<(), Failure> {
        for run in &self.runs {
            let admitted = room.reserve(&run.prepared, records, &on_cores);
            let (spec, _taken) = admitted.map_err(|why| why.of(&format!("{} {}", self.name, run.scheme)))?;
            run.loaded.try_out(&spec)?;
        }
        Ok(())
    }
}

/// Returns the name of the run of a variant, whose scenario has this scheme. A scheme that settings change has a star,
/// as in single runs.
fn run_name(variant: &str, scheme: &str) -> String {
    let rest = scheme.strip_suffix('*').and_then(|base| variant.strip_prefix(base));
    match rest {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => format!("{scheme}{rest}"),
        _ => variant.to_owned(),
    }
}

/// Returns an error for duplicate names, because two columns of one name would be indistinguishable.
fn check_names(option: &str, names: &[String]) -> Result<(), Failure> {
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(Failure::Input(format!("{option} names \"{name}\" twice; name each once")));
        }
    }
    Ok(())
}

/// Executes all runs, as many in parallel as `cores` allows, and writes and prints the results. One scenario is
/// written into `target`; several are written into a folder each inside it, with an index page. No file of `traces` may
/// be one of `inputs`.
pub(crate) fn run_comparisons(
    comparisons: &[Comparison],
    target: &Path,
    cores: Cores,
    (traces, inputs): (&TraceArgs, &Inputs),
    talk: &OutputOptions,
    heading: &Heading<'_>,
) -> Result<Outcome, Failure> {
    let several = comparisons.len() > 1 || heading.tells == TerminalOutput::Sentences;
    check_scenario_names(comparisons)?;
    traces.check_files()?;
    if several {
        index_page::check(target)?;
    }
    let place = |comparison: &Comparison| {
        if several { target.join(safe_name(&comparison.name)) } else { target.to_owned() }
    };
    let planned = planned(comparisons);
    for place in comparisons.iter().map(place) {
        planned.iter().try_for_each(|(label, _)| traces.of_run(label).check_places(inputs, &place))?;
    }
    let room = cores.room();
    let records = traces.records();
    for comparison in comparisons {
        comparison.try_out(&room, records, |spec| cores.of(spec, planned.len()))?;
    }
    let mut folders = Vec::new();
    for comparison in comparisons {
        folders.push(ResultFolder::create(&place(comparison)).map_err(output)?);
    }
    let mut traces = open_traces(&planned, traces)?;
    let reporter = Reporter::new(talk);
    for comparison in comparisons {
        let of = if several { format!("{}: ", comparison.name) } else { String::new() };
        notes(comparison).iter().for_each(|note| reporter.print_line(&format!("note: {of}{note}")));
    }
    let interrupt = Interrupt::listen()?;
    let batch = several.then(|| {
        let costs = planned.iter().map(|(_, run)| run.prepared.inspect().estimate.cpu_s).collect();
        let labels = planned.iter().map(|(label, _)| label.clone()).collect();
        Arc::new(Batch::new(costs, labels, talk.quiet, talk.progress))
    });
    let width = planned.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let live = progress_files(comparisons, &folders);
    let progress = |index: usize| {
        let shown = match &batch {
            Some(batch) => RunProgress::part(batch, index),
            None => reporter.start(&planned[index].0, width),
        };
        let (live, number) = &live[index];
        shown.telling(live, *number)
    };
    let folder_of =
        comparisons.iter().zip(&folders).flat_map(|(all, folder)| all.runs.iter().map(move |_| folder));
    let written = (records == Records::Written).then(|| folder_of.collect::<Vec<_>>());
    let finished = run_all(&planned, &mut traces, written.as_deref(), (cores, &room), &progress, &interrupt)?;
    live.iter().for_each(|(live, _)| live.close());
    if let Some(batch) = batch {
        batch.finish();
    }
    for (((label, _), run), traces) in planned.iter().zip(&finished).zip(traces) {
        for note in run.as_ref().map_or(Ok(Vec::new()), |run| traces.write(&run.run))? {
            reporter.print_line(&format!("note: {label}: {note}"));
        }
    }
    drop(reporter);
    let mut finished = finished.into_iter();
    let finished: Results = comparisons
        .iter()
        .map(|comparison| finished.by_ref().take(comparison.runs.len()).collect())
        .collect();

    let mut outcome = Outcome::Done;
    let mut pages = Vec::new();
    for ((comparison, runs), folder) in comparisons.iter().zip(&finished).zip(folders) {
        let done: Vec<&Finished> = runs.iter().flatten().collect();
        if done.len() < runs.len() {
            outcome = Outcome::Interrupted;
        }
        if done.is_empty() {
            continue;
        }
        outcome = done.iter().map(|run| run.outcome()).fold(outcome, Outcome::max);
        let results: Vec<_> = done.iter().map(|run| (&run.run, &run.summary)).collect();
        folder.write_comparison(&results).map_err(output)?;
        folder.commit().map_err(output)?;
        let missing = comparison.runs.iter().zip(runs).filter(|(_, run)| run.is_none());
        pages.push(Page {
            comparison,
            runs: done.iter().map(|run| (&run.run, &run.summary)).collect(),
            missing: missing.map(|(planned, _)| planned.scheme.clone()).collect(),
        });
    }
    if several {
        let situations: Vec<_> = pages.iter().map(Page::situation).collect();
        let missing = finished.iter().flatten().filter(|run| run.is_none()).count();
        let stopped = if missing > 0 {
            format!(" Stopped before the end: {missing} of {} runs are missing.", planned.len())
        } else {
            String::new()
        };
        let description = format!("{}{stopped}", heading.description);
        index_page::write(target, heading.title, &description, &situations)?;
    }
    show(&pages, target, several, talk, heading.tells);
    for complaint in finished.iter().flatten().flatten().filter_map(Finished::failure_message) {
        terminal::note(&complaint);
    }
    Ok(outcome)
}

/// Returns the notes of the runs. A note that not all runs have names those that do.
fn notes(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<(&String, Vec<&str>)> = Vec::new();
    for run in &comparison.runs {
        for note in &run.prepared.notes {
            match all.iter_mut().find(|(known, _)| *known == note) {
                Some((_, runs)) => runs.push(run.scheme.as_str()),
                None => all.push((note, vec![run.scheme.as_str()])),
            }
        }
    }
    let words = |(note, runs): (&String, Vec<&str>)| {
        if runs.len() == comparison.runs.len() {
            note.clone()
        } else {
            format!("{}: {note}", runs.join(", "))
        }
    };
    all.into_iter().map(words).collect()
}

/// Returns for each run its progress file and its number there.
fn progress_files(comparisons: &[Comparison], folders: &[ResultFolder]) -> Vec<(Arc<ProgressFile>, usize)> {
    let each = |(comparison, folder): (&Comparison, &ResultFolder)| {
        let cost = |run: &Planned| (run.scheme.clone(), run.prepared.inspect().estimate.cpu_s);
        let runs: Vec<_> = comparison.runs.iter().map(cost).collect();
        let (place, seed) = (folder.partial().to_owned(), comparison.runs[0].prepared.spec.seed);
        let numbers = 0..runs.len();
        let live = Arc::new(ProgressFile::new(place, "comparison", &comparison.name, Some(seed), runs));
        numbers.map(move |number| (Arc::clone(&live), number)).collect::<Vec<_>>()
    };
    comparisons.iter().zip(folders).flat_map(each).collect()
}

/// Returns an error for duplicate scenario names, because folders are named after scenarios.
fn check_scenario_names(comparisons: &[Comparison]) -> Result<(), Failure> {
    for (i, comparison) in comparisons.iter().enumerate() {
        if comparisons[..i].iter().any(|other| other.name == comparison.name) {
            let name = &comparison.name;
            return Err(Failure::Input(format!(
                "two scenarios are named \"{name}\"; change the `name` of one"
            )));
        }
    }
    Ok(())
}

/// Comparison whose results have been written.
struct Page<'a> {
    comparison: &'a Comparison,
    runs: Vec<(&'a RunResult, &'a Summary)>,
    /// Names of the schemes that did not run.
    missing: Vec<String>,
}

impl<'a> Page<'a> {
    fn situation(&self) -> SchemeComparison<'a> {
        SchemeComparison {
            title: &self.comparison.title,
            description: &self.comparison.says,
            report: format!("{}/report.html", safe_name(&self.comparison.name)),
            runs: self.runs.clone(),
            missing: self.missing.clone(),
        }
    }

    fn summaries(&self) -> Vec<&'a Summary> {
        self.runs.iter().map(|(_, summary)| *summary).collect()
    }

    fn verdict(&self) -> String {
        let (name, verdict) = (&self.comparison.name, Verdict::of(&self.summaries()));
        let missing = self.situation().missing_words();
        terminal::wrapped(&format!("{name}: {}{missing}", verdict.sentence), "", "  ")
    }

    fn tables(&self) -> String {
        let infos: Vec<_> = self.runs.iter().map(|(run, _)| &run.info).collect();
        let table = comparison_table(&self.summaries());
        let (idle, differences) = (unlike_idle_times(&self.summaries()), differences_table(&infos));
        format!("{}\n{table}{idle}{differences}\n", self.verdict())
    }

    fn brief(&self) -> String {
        let infos: Vec<_> = self.runs.iter().map(|(run, _)| &run.info).collect();
        let table = brief_comparison(&self.summaries(), &infos);
        format!("{}\n{table}{}{}\n", self.verdict(), unlike_idle_times(&self.summaries()), super::MORE)
    }
}

fn show(pages: &[Page<'_>], target: &Path, several: bool, talk: &OutputOptions, tells: TerminalOutput) {
    #[derive(Serialize)]
    struct Entry<'a> {
        scenario: &'a str,
        verdict: Verdict,
        runs: Vec<&'a Summary>,
    }
    if talk.json {
        let entries = pages.iter().map(|page| Entry {
            scenario: &page.comparison.name,
            verdict: Verdict::of(&page.summaries()),
            runs: page.summaries(),
        });
        terminal::out(&super::json(&entries.collect::<Vec<_>>()));
        return;
    }
    for page in pages.iter().filter(|_| !talk.quiet) {
        terminal::out(&match tells {
            TerminalOutput::Tables => page.tables(),
            TerminalOutput::Brief => page.brief(),
            TerminalOutput::Sentences => {
                format!("{}\n\n", terminal::wrapped(&sentence(&page.situation()), "", "  "))
            }
        });
    }
    let report = target.join(if several { "index.html" } else { "report.html" });
    terminal::out(&format!("report: {}\n", report.display()));
}

/// Results of the runs of every comparison, in order; `None` for runs that an interrupt kept from starting.
type Results = Vec<Vec<Option<Finished>>>;

/// Returns all runs with their labels.
fn planned(comparisons: &[Comparison]) -> Vec<(String, &Planned)> {
    let mut all = Vec::new();
    for comparison in comparisons {
        for run in &comparison.runs {
            let label = match comparisons.len() {
                1 => run.scheme.clone(),
                _ => format!("{} {}", comparison.name, run.scheme),
            };
            all.push((label, run));
        }
    }
    all
}

/// Creates the trace files of each run.
fn open_traces(planned: &[(String, &Planned)], args: &TraceArgs) -> Result<Vec<Traces>, Failure> {
    for (i, (label, _)) in planned.iter().enumerate().filter(|_| args.any()) {
        if let Some((other, _)) = planned[..i].iter().find(|(other, _)| safe_name(other) == safe_name(label))
        {
            let name = safe_name(label);
            return Err(Failure::Input(format!(
                "\"{other}\" and \"{label}\" would be \"{name}\" in names of files; name one otherwise"
            )));
        }
    }
    planned.iter().map(|(label, run)| Traces::open(&args.of_run(label), &run.prepared.spec)).collect()
}

/// Executes all runs. Each thread takes the next unclaimed run, and runs do not affect each other. If flow records
/// are not needed later, they are written during the runs into the folders in `written`, one for each run.
fn run_all(
    planned: &[(String, &Planned)],
    traces: &mut [Traces],
    written: Option<&[&ResultFolder]>,
    (cores, room): (Cores, &MemoryBudget),
    progress: &(impl Fn(usize) -> RunProgress + Sync),
    interrupt: &Interrupt,
) -> Result<Vec<Option<Finished>>, Failure> {
    let traces: Vec<_> = traces.iter_mut().map(Mutex::new).collect();
    let order: Vec<usize> = (0..planned.len()).collect();
    let mut finished = batch::run_all(&order, cores.at_a_time(planned.len()), interrupt, |index| {
        let (label, run) = &planned[index];
        // Only the thread that took the run locks its traces.
        let mut traces = traces[index].lock().expect("no thread panics while it holds the lock");
        let tap = traces.capture.as_mut().map(|capture| capture as &mut dyn Tap);
        let records = if written.is_some() { Records::Written } else { Records::Kept };
        let reserved = room.reserve(&run.prepared, records, |spec| cores.of(spec, planned.len()));
        let (spec, _taken) = reserved.map_err(|why| why.of(label))?;
        let flows = written.map(|folders| FlowStream::for_comparison(folders[index], &spec)).transpose();
        let seers = Observers { tap, flows: flows.map_err(output)?.flatten() };
        execute(&run.loaded, &spec, progress(index), interrupt, seers).map(Some)
    })?;
    Ok(order.iter().map(|index| finished.remove(index)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_that_settings_change_has_a_star() {
        let name = |variant: &str, scheme: &str| run_name(variant, scheme);
        assert_eq!(name("rps", "rps"), "rps");
        assert_eq!(name("rps", "rps*"), "rps*");
        assert_eq!(name("rps flow", "rps*"), "rps* flow");
        // Without --schemes, runs are named after their fidelity.
        assert_eq!(name("flow", "rps*"), "flow");
        assert_eq!(name("rps-nocc", "rps*"), "rps-nocc");
        assert_eq!(name("mine", "mine"), "mine");
    }
}
