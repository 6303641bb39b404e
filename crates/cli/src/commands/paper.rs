//! `pathweave paper`: the evaluation of a publication, run again.

use clap::Args;
use pathweave_paper::{
    Catalogue, Destination, Look, PaperError, Plan, Selection, Settings, Size, claims_text, json,
    rankings_text, scores_text, verdicts,
};
use pathweave_sim::SimSpec;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::batch::{Batch, Watcher, in_threads};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::options::{Bar, Cores};
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct PaperArgs {
    /// Paper, or "list" for all there are with their figures
    pub(crate) name: String,
    /// Only this figure or table: 6a, table-1
    #[arg(long, value_name = "ID")]
    pub(crate) figure: Option<String>,
    /// Only these panels, which are the rows of a heat map: names, headings or tags
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) panel: Vec<String>,
    /// Only these curves, which are the columns of a heat map
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) series: Vec<String>,
    /// Minutes instead of hours: shorter messages, fewer seeds; the page says what was shortened [default]
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// The paper's own size
    #[arg(long)]
    pub(crate) full: bool,
    /// Seeds 1 to N for every figure, instead of as many as the paper's folder says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) cores: Cores,
    /// Results go to DIR/NAME; an older one there is replaced
    #[arg(long, value_name = "DIR", default_value = "results/papers")]
    pub(crate) out: PathBuf,
    /// Read papers from this folder instead of those that are part of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<PathBuf>,
    /// Say nothing but errors and where the page is
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
    let paper = catalogue.paper(&args.name).map_err(failure)?;
    let size = if args.full { Size::Full } else { Size::Quick };
    let selection =
        Selection { figure: args.figure.clone(), panels: args.panel.clone(), series: args.series.clone() };
    let plan = Plan::new(paper, &selection, size, args.seeds).map_err(failure)?;
    let destination = Destination::create(&args.out.join(&args.name)).map_err(failure)?;
    let interrupt = Interrupt::listen()?;
    let (plan, finished) = run_all(plan, args, &interrupt)?;
    let outcome = if finished { Outcome::Done } else { Outcome::Interrupted };

    let verdicts = verdicts(&plan);
    let settings = Settings {
        command: command(args, size),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        partial: !finished,
    };
    destination.write(&plan, &verdicts, &settings).map_err(failure)?;
    if args.json {
        terminal::out(&json(&verdicts));
    } else {
        if !args.quiet {
            let tables = [claims_text(&verdicts), rankings_text(&plan), scores_text(&plan)].concat();
            terminal::out(&format!("{tables}\n"));
        }
        terminal::out(&format!("page: {}\n", args.out.join(&args.name).join("index.html").display()));
    }
    Ok(outcome)
}

/// The same results again.
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
    text
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

/// Runs what `plan` asks for, as many at a time as asked for. Whether all of it ran.
fn run_all(mut plan: Plan, args: &PaperArgs, interrupt: &Interrupt) -> Result<(Plan, bool), Failure> {
    let looks: Mutex<Vec<Result<Look, Failure>>> = Mutex::new(Vec::new());
    let costs = plan.runs.iter().map(|run| run.cost).collect();
    let labels = plan.runs.iter().map(|run| run.label.clone()).collect();
    let batch = Batch::new(costs, labels, args.quiet, Bar::Auto);
    // The longest first, so that none is left alone at the end.
    let mut order: Vec<usize> = (0..plan.runs.len()).collect();
    order.sort_by(|&a, &b| plan.runs[b].cost.total_cmp(&plan.runs[a].cost).then(a.cmp(&b)));
    let on_cores = |spec: &SimSpec| args.cores.of(spec, order.len());
    in_threads(args.cores.at_a_time(order.len()), &order, interrupt, |index| {
        let look = run_one(&plan, index, on_cores, batch.watch(index, interrupt));
        batch.update(index, None);
        looks.lock().expect("no thread panics while it holds the lock").extend(look.transpose());
    });
    batch.finish();
    let looks = looks.into_inner().expect("every thread has ended well");
    let finished = looks.len() == plan.runs.len();
    for look in looks {
        plan.record(look?);
    }
    Ok((plan, finished))
}

/// `None` if it was interrupted: half a run says nothing.
fn run_one(
    plan: &Plan,
    index: usize,
    on_cores: impl Fn(&SimSpec) -> SimSpec,
    mut watcher: Watcher<'_>,
) -> Result<Option<Look>, Failure> {
    let run = &plan.runs[index];
    let prepared = run.loaded.prepare()?;
    let result = pathweave_sim::run(&on_cores(&prepared.spec), &mut watcher);
    let result = result.map_err(|why| Failure::Scenario(run.loaded.sim_error(&why)))?;
    if result.info.ended == pathweave_results::EndReason::Interrupted {
        return Ok(None);
    }
    Ok(Some(plan.look(index, &result)))
}
