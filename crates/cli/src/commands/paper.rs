//! `pathweave paper`: repetition of the evaluation of a publication.

mod archive;

use clap::Args;
use pathweave_study::paper::{
    Catalogue, Destination, Observations, PaperError, Plan, Record, RunCache, Selection, Settings, Size,
    claims_text, json, overview_html, rankings_text, scores_text, verdicts,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use archive::OpenArchive;

use crate::batch::Batch;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::{Cores, ProgressBarMode};
use crate::output::Output;
use crate::real::{Testbed, TestbedArgs};
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct PaperArgs {
    /// Name of a paper, "list" for all papers with their figures, or "overview" for a page that compares every
    /// published claim with the recorded results
    pub(crate) name: String,
    /// Run only this figure or table: 6a, table-1
    #[arg(long, value_name = "ID")]
    pub(crate) figure: Option<String>,
    /// Run only these panels, which are the rows of a heat map: names, headings or tags
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) panel: Vec<String>,
    /// Run only these curves, which are the columns of a heat map
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) series: Vec<String>,
    /// Minutes instead of hours: shorter messages and fewer seeds. The page states what was shortened [default]
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Use the published sizes
    #[arg(long)]
    pub(crate) full: bool,
    /// Use seeds 1 to N for every figure [default: as many seeds as the paper's folder specifies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Run only what the claims of the judged variant need, judge them after 3, 6, 10 and 20 seeds (N at most), and
    /// stop when they are decided. The intervals of all these looks hold together
    #[arg(long, conflicts_with_all = ["panel", "series", "testbed"])]
    pub(crate) until_decided: bool,
    #[command(flatten)]
    pub(crate) cores: Cores,
    /// Folder of results, DIR/NAME. Runs that are finished there are not repeated
    #[arg(long, value_name = "DIR", default_value = "results/papers")]
    pub(crate) out: PathBuf,
    /// Repeat all runs, including finished ones
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Read papers from this folder instead of those built into the program
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<PathBuf>,
    /// Record the result of each figure in FILE and keep its other entries: papers/NAME/results.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["panel", "series"])]
    pub(crate) record: Option<PathBuf>,
    /// Take finished runs from FILE, and add those of this command: papers/NAME/runs.jsonl.gz
    #[arg(long, value_name = "FILE", conflicts_with = "fresh")]
    pub(crate) archive: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) testbed: TestbedArgs,
    /// Print only errors and the path of the page
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print the claims as JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn paper(args: &PaperArgs) -> Result<Outcome, Failure> {
    let catalogue = match &args.papers {
        Some(folder) => Catalogue::read(folder).map_err(failure)?,
        None => Catalogue::embedded(),
    };
    if args.name == "list" {
        return list(&catalogue, args.json);
    }
    if args.name == "overview" {
        return overview(&catalogue, args);
    }
    let paper = catalogue.paper(&args.name).map_err(failure)?;
    let size = if args.full { Size::Full } else { Size::Quick };
    let selection =
        Selection { figure: args.figure.clone(), panels: args.panel.clone(), series: args.series.clone() };
    let record = args.record.as_deref().map(|path| {
        let record = Record::read(path).map_err(failure)?;
        Ok::<_, Failure>((Output::create(path)?, record))
    });
    let record = record.transpose()?;
    let archive = args.archive.as_deref().map(OpenArchive::open).transpose()?;
    if let (Some((record, _)), Some(archive)) = (&record, &archive)
        && archive.is_in(record)
    {
        let name = record.name().display();
        return Err(Failure::Input(format!("--record and --archive are both {name}; name two files")));
    }
    let (plan, testbed) = if args.testbed.is_wanted() {
        // Errors are found before anything is created.
        paper.clone().on_testbed(&catalogue, args.figure.as_deref(), "").map_err(failure)?;
        let testbed = Testbed::open(&args.testbed, args.quiet)?;
        let paper =
            paper.on_testbed(&catalogue, args.figure.as_deref(), testbed.carrier()).map_err(failure)?;
        let plan =
            Plan::measured(paper, &selection, size, args.seeds, &testbed.settings_text()).map_err(failure)?;
        (plan, Some(testbed))
    } else {
        let plan = Plan::new(paper, &selection, size, args.seeds).map_err(failure)?;
        (if args.until_decided { plan.until_decided() } else { plan }, None)
    };
    let folder = args.out.join(folder(args));
    let destination = Destination::open(&folder).map_err(failure)?;
    let interrupt = Interrupt::listen_saying("stopping: finished runs are kept; Ctrl-C again stops at once")?;
    let kept = destination.kept();
    let archive = archive
        .map(|mut archive| archive.restore(&plan, kept, args, &interrupt).map(|()| archive))
        .transpose()?;
    let (plan, finished) = run_looks(plan, args, kept, testbed.as_ref(), &interrupt)?;
    if let Some(archive) = archive {
        archive.store(&plan, kept, args)?;
    }
    let outcome = if finished { Outcome::Done } else { Outcome::Interrupted };

    let verdicts = verdicts(&plan);
    let settings = Settings {
        command: command(args, size),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        partial: !finished,
    };
    destination.write(&plan, &verdicts, &settings).map_err(failure)?;
    // A figure with missing runs gives no result.
    if let Some((output, record)) = record.filter(|_| finished) {
        let record = record.replace_figures(&plan, &verdicts, &settings.version);
        output.write(|out| record.write(out))?;
    }
    if args.json {
        terminal::out(&json(&verdicts));
    } else {
        if !args.quiet {
            let tables = [claims_text(&verdicts), rankings_text(&plan), scores_text(&plan)].concat();
            terminal::out(&format!("{tables}\n"));
        }
        terminal::out(&format!("page: {}\n", folder.join("index.html").display()));
    }
    Ok(outcome)
}

/// Returns the name of the result folder.
fn folder(args: &PaperArgs) -> String {
    if args.testbed.is_wanted() { format!("{}-testbed", args.name) } else { args.name.clone() }
}

/// Returns the command that reproduces the results.
fn command(args: &PaperArgs, size: Size) -> String {
    let mut text = format!("pathweave paper {} {}", args.name, size.flag());
    if let Some(figure) = &args.figure {
        text.push_str(&format!(" --figure {figure}"));
    }
    for (flag, names) in [("panel", &args.panel), ("series", &args.series)] {
        if !names.is_empty() {
            text.push_str(&format!(" --{flag} \"{}\"", names.join(",")));
        }
    }
    if let Some(seeds) = args.seeds {
        text.push_str(&format!(" --seeds {seeds}"));
    }
    if args.until_decided {
        text.push_str(" --until-decided");
    }
    if let Some(folder) = &args.papers {
        text.push_str(&format!(" --papers {}", super::quoted(folder)));
    }
    text + &args.testbed.words()
}

/// Writes the page of all papers, from their records.
fn overview(catalogue: &Catalogue, args: &PaperArgs) -> Result<Outcome, Failure> {
    let page = overview_html(catalogue).map_err(failure)?;
    std::fs::create_dir_all(&args.out)
        .map_err(|why| Failure::Input(format!("cannot write results: {}: {why}", args.out.display())))?;
    let path = args.out.join("overview.html");
    Output::create(&path)?.write(|out| out.write_all(page.as_bytes()))?;
    terminal::out(&format!("page: {}\n", path.display()));
    Ok(Outcome::Done)
}

fn list(catalogue: &Catalogue, as_json: bool) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct Entry {
        name: String,
        title: String,
        citation: String,
        figures: Vec<Item>,
    }
    #[derive(Serialize)]
    struct Item {
        id: String,
        title: String,
        claims: usize,
    }
    let mut entries = Vec::new();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).map_err(failure)?;
        let figures = paper.figures.iter().map(|figure| Item {
            id: figure.id.clone(),
            title: figure.file.title.clone(),
            claims: figure.file.claim.len(),
        });
        let figures = figures.collect();
        entries.push(Entry {
            name: name.to_owned(),
            title: paper.file.title,
            citation: paper.file.citation,
            figures,
        });
    }
    if as_json {
        terminal::out(&super::json(&entries));
        return Ok(Outcome::Done);
    }
    for entry in entries {
        terminal::out(&format!("{}: {}\n  {}\n", entry.name, entry.title, entry.citation));
        for item in entry.figures {
            terminal::out(&format!("  {:<10} {}\n", item.id, item.title));
        }
    }
    Ok(Outcome::Done)
}

fn failure(why: PaperError) -> Failure {
    match why {
        PaperError::Scenario { findings, .. } => Failure::Scenario(findings),
        PaperError::Plot { .. } => Failure::Internal(why.to_string()),
        other => Failure::Input(other.to_string()),
    }
}

/// Executes the runs of each look. Returns the plan, and true if all runs are finished.
fn run_looks(
    mut plan: Plan,
    args: &PaperArgs,
    kept: &RunCache,
    testbed: Option<&Testbed>,
    interrupt: &Interrupt,
) -> Result<(Plan, bool), Failure> {
    for look in 0.. {
        let Some(runs) = plan.runs_of_look(look) else { break };
        let finished;
        (plan, finished) = run_all(plan, &runs, args, kept, testbed, interrupt)?;
        if !finished {
            return Ok((plan, false));
        }
    }
    Ok((plan, true))
}

/// Executes those of `runs` that are not finished, and stores each as soon as it is finished. Measured runs come
/// first, one at a time, so that no other run uses their cores. Simulated runs follow, with the requested
/// parallelism. Returns the plan, and true if all runs are finished.
fn run_all(
    mut plan: Plan,
    runs: &[usize],
    args: &PaperArgs,
    kept: &RunCache,
    testbed: Option<&Testbed>,
    interrupt: &Interrupt,
) -> Result<(Plan, bool), Failure> {
    let before = |run: &usize| if args.fresh { None } else { kept.look(&plan, *run) };
    let finished: Vec<(usize, Observations)> =
        runs.iter().filter_map(|run| Some((*run, before(run)?))).collect();
    let todo: Vec<usize> = runs
        .iter()
        .copied()
        .filter(|run| finished.binary_search_by_key(run, |(run, _)| *run).is_err())
        .collect();
    if !args.quiet && !finished.is_empty() {
        terminal::note(&format!("{} runs, {} of them finished before", runs.len(), finished.len()));
    }
    finished.into_iter().for_each(|(_, look)| plan.record(look));
    let (measured, simulated): (Vec<usize>, Vec<usize>) =
        todo.into_iter().partition(|&run| plan.runs[run].measured);

    let mut looks = BTreeMap::new();
    if let Some(testbed) = testbed.filter(|_| !measured.is_empty()) {
        looks = execute_runs(&plan, &measured, 1, args, kept, interrupt, |place, batch| {
            let run = &plan.runs[measured[place]];
            let mut progress = |share| batch.update(place, Some(share));
            let done = testbed.measure(&run.label, &run.loaded, interrupt, &mut progress)?;
            Ok(done.map(|done| plan.observe_measured(measured[place], &done.result, &done.said)))
        })?;
    }
    if !interrupt.requested() {
        let (room, count) = (args.cores.room(), simulated.len());
        let at_a_time = args.cores.at_a_time(count);
        looks.extend(execute_runs(&plan, &simulated, at_a_time, args, kept, interrupt, |place, batch| {
            let run = &plan.runs[simulated[place]];
            let result =
                batch.watch(place, interrupt).run(&run.loaded, &room, |spec| args.cores.of(spec, count));
            let result = result.map_err(|why| why.of(&run.label))?;
            Ok(result.map(|result| plan.observe(simulated[place], &result)))
        })?);
    }
    let finished = looks.len() == measured.len() + simulated.len();
    looks.into_values().for_each(|look| plan.record(look));
    Ok((plan, finished))
}

/// Executes `runs` of `plan`, `at_a_time` in parallel, and stores each finished run. `one` executes the run at an
/// index of `runs` and returns `None` if it was interrupted. Returns the observations by run.
fn execute_runs(
    plan: &Plan,
    runs: &[usize],
    at_a_time: usize,
    args: &PaperArgs,
    kept: &RunCache,
    interrupt: &Interrupt,
    one: impl Fn(usize, &Batch) -> Result<Option<Observations>, Failure> + Sync,
) -> Result<BTreeMap<usize, Observations>, Failure> {
    let costs = runs.iter().map(|&run| plan.runs[run].cost).collect();
    let labels = runs.iter().map(|&run| plan.runs[run].label.clone()).collect();
    let batch = Batch::new(costs, labels, args.quiet, ProgressBarMode::Auto);
    let looks = batch.run_all(at_a_time, interrupt, |place| {
        let look = one(place, &batch)?;
        look.iter().try_for_each(|look| kept.put(plan, runs[place], look)).map_err(failure)?;
        Ok(look)
    });
    Ok(looks?.into_iter().map(|(place, look)| (runs[place], look)).collect())
}
