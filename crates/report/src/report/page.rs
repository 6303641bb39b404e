//! Assembly of the page from template, assets, tables and data.

use std::borrow::Cow;

use pathweave_records::{CollectiveRecord, FlowStats, RunResult, Summary};
use serde::Serialize;

use super::Budget;
use super::collectives::{self, Collectives, CriticalPaths};
use super::curves::{Cdf, cdfs};
use super::fabric::{Fabric, fabric};
use super::faults::{Mark, marks};
use super::flows::{Flows, flows};
use super::frames::{TimePictures, frames};
use super::hosts::{Hosts, hosts};
use super::jobs::{Jobs, jobs};
use super::overview;
use super::pauses::{PauseTree, tree};
use super::series::{Chart, charts};
use super::tables::html_table;
use super::timeline::{Timeline, timeline};
use crate::grid;
use crate::overview::colour_of_run;
use crate::template::{escape, fill, script_json};
use pathweave_records::scheme_colours;

/// The viewer, built from `web/`. Built pages are part of the source, so that building the program does not require
/// Node.
pub(super) const VIEWER: &str = include_str!("../../viewer/report.html");

/// Largest size of a report in bytes.
const MOST_BYTES: usize = 5_000_000;

/// Data that the viewer draws, besides the summaries. `web/src/data.ts` has the same fields.
#[derive(Serialize)]
pub(super) struct RunPictures<'a> {
    name: &'a str,
    /// Number of the run's colour.
    colour: usize,
    simulated_ns: f64,
    groups: &'a [String],
    schemes: &'a [String],
    cdfs: Vec<Cdf>,
    charts: Vec<Chart>,
    fabric: Fabric,
    frames: TimePictures,
    flows: Flows,
    pauses: PauseTree,
    jobs: Jobs,
    hosts: Hosts,
    collectives: Collectives,
    critical_paths: CriticalPaths,
    timeline: Timeline,
    faults: Vec<Mark>,
}

/// Returns the report on one run, or on several side by side compared with the first.
///
/// # Panics
/// Panics if `runs` is empty.
pub fn html(runs: &[(&RunResult, &Summary)]) -> String {
    assert!(!runs.is_empty(), "a report needs a run");
    let collectives: Vec<_> = runs.iter().map(|(run, _)| collectives::by_exposure(run)).collect();
    let figures: Vec<_> = runs.iter().map(|(run, _)| run.figures()).collect();
    let mut budget = Budget::for_runs(runs.len());
    loop {
        let page = page(runs, &figures, &collectives, &budget);
        if page.len() <= MOST_BYTES || budget.points < 8 {
            return page;
        }
        budget = budget.halved();
    }
}

fn page(
    runs: &[(&RunResult, &Summary)],
    figures: &[Cow<'_, FlowStats>],
    collectives: &[Vec<CollectiveRecord>],
    budget: &Budget,
) -> String {
    let pictures: Vec<RunPictures> = runs
        .iter()
        .zip(figures)
        .zip(collectives)
        .zip(colours(runs))
        .map(|((((run, summary), figures), of_run), colour)| RunPictures {
            colour,
            ..pictures(run, summary, (figures, of_run), budget)
        })
        .collect();
    let summaries: Vec<Summary> = runs.iter().map(|(_, summary)| shortened(summary, budget)).collect();
    let scenarios =
        runs.iter().map(|(run, _)| overview::scenario(run, runs.len() == 1, budget)).collect::<String>();
    let texts = [
        ("title", escape(&overview::title(runs))),
        ("header", overview::header(runs)),
        ("first", overview::pictures(runs)),
        ("tables", tables(&summaries, runs[0].1.groups.len()) + &differences(runs)),
        ("scenarios", overview::costs(runs) + &scenarios),
        ("summaries", script_json(&summaries)),
        ("pictures", script_json(&pictures)),
    ];
    fill(VIEWER, &texts)
}

/// Returns the colour of each run. A comparison has the colours of its first screen.
fn colours(runs: &[(&RunResult, &Summary)]) -> Vec<usize> {
    match runs {
        [(run, _)] => vec![colour_of_run(run)],
        _ => scheme_colours(&runs.iter().map(|(run, _)| run.info.name.as_str()).collect::<Vec<_>>()),
    }
}

pub(super) fn pictures<'a>(
    run: &'a RunResult,
    summary: &Summary,
    (figures, collectives): (&FlowStats, &[CollectiveRecord]),
    budget: &Budget,
) -> RunPictures<'a> {
    let (fabric, rows) = fabric(run, budget);
    let frames = frames(run, &rows, budget);
    let (hosts, labels) = hosts(run, budget);
    RunPictures {
        name: &run.info.name,
        colour: 0,
        simulated_ns: super::rounded(pathweave_records::ns(run.info.simulated_ps)),
        groups: &run.info.groups,
        schemes: &run.info.schemes,
        cdfs: cdfs(run, figures, budget),
        charts: charts(run, budget),
        flows: flows(&figures.sample, &frames.flows, &labels, budget),
        fabric,
        frames,
        pauses: tree(run, budget),
        jobs: jobs(run, budget),
        hosts,
        collectives: collectives::of_run(run, collectives, budget),
        critical_paths: collectives::critical(run, &summary.iterations, budget),
        timeline: timeline(run),
        faults: marks(run),
    }
}

/// Returns the summary, with its groups cut to the budget.
fn shortened(summary: &Summary, budget: &Budget) -> Summary {
    let mut summary = summary.clone();
    summary.groups.truncate(budget.groups);
    summary
}

/// Returns the tables. In a comparison those of groups are collapsed. `groups` is the number of all groups, of which
/// some may be left out.
fn tables(summaries: &[Summary], groups: usize) -> String {
    let mut out = String::new();
    if let [summary] = summaries {
        out.extend(grid::of_run(summary).iter().map(html_table));
    } else {
        for (i, grid) in grid::of_comparison(&summaries.iter().collect::<Vec<_>>()).iter().enumerate() {
            let table = html_table(grid);
            if i < grid::MAIN_TABLES {
                out.push_str(&table);
            } else {
                let title = escape(&grid.title);
                out.push_str(&format!("<details><summary>{title}</summary>{table}</details>"));
            }
        }
    }
    let left_out = groups - summaries[0].groups.len();
    if left_out > 0 {
        out.push_str(&format!("<p class=\"note\">{left_out} more workload groups are in summary.json.</p>"));
    }
    out
}

/// Returns a table of the differences between schemes besides their policies.
fn differences(runs: &[(&RunResult, &Summary)]) -> String {
    let infos: Vec<_> = runs.iter().map(|(run, _)| &run.info).collect();
    let grid = crate::differences::of_schemes(&infos);
    let table = |grid| {
        format!("<details open><summary>How the schemes differ</summary>{}</details>", html_table(&grid))
    };
    grid.map_or(String::new(), table)
}
