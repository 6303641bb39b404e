//! `pathweave paper`: the evaluation of a publication, run again.

use pathweave_paper::{
    Catalogue, Destination, Look, PaperError, Plan, Settings, Size, claims_text, json, rankings_text,
    verdicts,
};
use serde::Serialize;
use std::sync::Mutex;

use crate::args::{Bar, PaperArgs};
use crate::batch::{Batch, in_threads};
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::terminal;

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
    let plan = Plan::new(paper, args.figure.as_deref(), size, args.seeds).map_err(failure)?;
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
    } else if !args.quiet {
        let page = args.out.join(&args.name).join("index.html");
        let text = format!("{}{}\npage: {}\n", claims_text(&verdicts), rankings_text(&plan), page.display());
        terminal::out(&text);
    }
    Ok(outcome)
}

/// The same results again.
fn command(args: &PaperArgs, size: Size) -> String {
    let mut text = format!("pathweave paper {} {}", args.name, size.flag());
    if let Some(figure) = &args.figure {
        text.push_str(&format!(" --figure {figure}"));
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

/// Runs what `plan` asks for, `jobs` at a time. Whether all of it ran.
fn run_all(mut plan: Plan, args: &PaperArgs, interrupt: &Interrupt) -> Result<(Plan, bool), Failure> {
    let looks: Mutex<Vec<Result<Look, Failure>>> = Mutex::new(Vec::new());
    let costs = plan.runs.iter().map(|run| run.cost).collect();
    let labels = plan.runs.iter().map(|run| run.label.clone()).collect();
    let batch = Batch::new(costs, labels, args.quiet, Bar::Auto);
    // The longest first, so that none is left alone at the end.
    let mut order: Vec<usize> = (0..plan.runs.len()).collect();
    order.sort_by(|&a, &b| plan.runs[b].cost.total_cmp(&plan.runs[a].cost).then(a.cmp(&b)));
    in_threads(usize::from(args.jobs), &order, interrupt, |index| {
        let look = run_one(&plan, index, &batch, interrupt);
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
fn run_one(plan: &Plan, index: usize, batch: &Batch, interrupt: &Interrupt) -> Result<Option<Look>, Failure> {
    let run = &plan.runs[index];
    let prepared = run.loaded.prepare()?;
    let mut watcher = batch.watch(index, interrupt);
    let result = pathweave_sim::run(&prepared.spec, &mut watcher);
    let result = result.map_err(|why| Failure::Scenario(run.loaded.sim_error(&why)))?;
    batch.update(index, None);
    if result.info.ended == pathweave_results::EndReason::Interrupted {
        return Ok(None);
    }
    Ok(Some(plan.look(index, &result)))
}
