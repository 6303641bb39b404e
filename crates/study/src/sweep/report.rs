//! Report of a sweep in one file: heat map of two axes, lines with error bands, and the best value in each setting.

use pathweave_report::{escape, fill_page, scheme_colours, script_json};
use serde::Serialize;

use crate::sweep::cells::Axis;
use crate::sweep::model::StoredOutput;
use crate::sweep::plan::Plan;
use crate::sweep::record::StoredFiles;
use crate::sweep::summary::SweepSummary;
use crate::sweep::table::verdict;

/// Viewer, built from `web/`. Built pages are part of the source, so that building the program does not need Node.
const VIEWER: &str = include_str!("../../viewer/sweep.html");
/// Largest number of failures shown.
const SHOWN: usize = 20;

/// Initial view of the report.
#[derive(Serialize)]
struct InitialView<'a> {
    metric: &'a str,
    compare: usize,
    /// Data stored for each run: with `Kept::Kept`, the runs have reports beside the page.
    runs: StoredOutput,
    /// Index of the colour of each value, for each axis.
    colours: Vec<Vec<usize>>,
}

/// Returns the colours. Schemes have fixed colours on any axis; other values have colours in their order.
fn colours(summary: &SweepSummary) -> Vec<Vec<usize>> {
    let of = |axis: &Axis| {
        let names: Vec<&str> = axis.values.iter().map(String::as_str).collect();
        let are_schemes = axis.key == "scheme" || axis.key.ends_with(".scheme");
        if are_schemes { scheme_colours(&names) } else { (0..names.len()).collect() }
    };
    summary.axes.iter().map(of).collect()
}

pub(crate) fn html(plan: &Plan, summary: &SweepSummary) -> String {
    let runs = match plan.keep {
        StoredFiles::Tables(_) => StoredOutput::Figures,
        StoredFiles::Whole => StoredOutput::Kept,
    };
    let opening =
        InitialView { metric: &summary.metric, compare: plan.compare, runs, colours: colours(summary) };
    let texts = [
        ("title", escape(&format!("{} (sweep)", summary.name))),
        ("header", header(plan, summary)),
        ("failures", failures(summary)),
        ("sweep", script_json(summary)),
        ("opening", script_json(&opening)),
    ];
    fill_page(VIEWER, &texts)
}

fn header(plan: &Plan, summary: &SweepSummary) -> String {
    let (mood, text) = match (summary.partial, summary.has_failures()) {
        (true, _) => ("bad", "partial"),
        (false, true) => ("warn", "not all finished"),
        (false, false) => ("good", "completed"),
    };
    let facts = [
        ("engine", summary.engine.to_owned()),
        ("dataset digest", summary.digest.clone()),
        ("cells", summary.cells.len().to_string()),
        ("seeds", summary.seeds.len().to_string()),
        ("runs", format!("{} of {}", summary.finished_runs, summary.runs)),
        ("failed", summary.failed_runs.to_string()),
        ("with unfinished flows or jobs", summary.open_runs.to_string()),
    ];
    let fact = |(k, v): &(&str, String)| format!("<div><dt>{k}</dt><dd>{}</dd></div>", escape(v));
    let verdict = verdict(plan, summary)
        .map_or(String::new(), |words| format!("<p class=\"verdict\">{}</p>", escape(&words)));
    format!(
        "<h1>{} <span class=\"badge {mood}\">{text}</span></h1>{verdict}<dl class=\"facts\">{}</dl>",
        escape(&summary.name),
        facts.iter().map(fact).collect::<String>()
    )
}

fn failures(summary: &SweepSummary) -> String {
    let all: Vec<_> = summary
        .cells
        .iter()
        .flat_map(|cell| cell.failed.iter().map(|why| (cell.label.as_str(), why)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text =
        format!("<section id=\"failed\"><h2>Failed</h2><details><summary>{} failed</summary>", all.len());
    for (label, why) in all.iter().take(SHOWN) {
        text.push_str(&format!("<h3>{}</h3><pre>{}</pre>", escape(label), escape(why)));
    }
    text + "</details></section>"
}
