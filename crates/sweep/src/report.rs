//! The report: heat map of two axes, lines with error bands, and who is best where, in one file.

use pathweave_results::{Page, escape};
use serde::Serialize;

use crate::plan::Plan;
use crate::summary::SweepSummary;

const SCRIPT: &str = include_str!("../assets/sweep.js");
const STYLE: &str = include_str!("../assets/sweep.css");
/// Failures shown.
const SHOWN: usize = 20;

/// What the report opens with.
#[derive(Serialize)]
struct Opening<'a> {
    metric: &'a str,
    compare: usize,
}

pub(crate) fn html(plan: &Plan, summary: &SweepSummary) -> String {
    let opening = Opening { metric: &plan.metric, compare: plan.compare };
    let json = |text: Result<String, _>| text.expect("plain data with text keys serialises");
    Page {
        title: format!("{} (sweep)", summary.name),
        style: STYLE,
        header: header(summary),
        body: format!("{}<div id=\"pictures\"><noscript>The pictures need scripts.</noscript></div>", failures(summary)),
        footer: "<p>Figures are means over the seeds of a cell, bands their 95 % confidence intervals (Student's t). Two values of \
                 the compared axis are tied where the interval of their differences, seed by seed, holds 0.</p>"
            .to_owned(),
        data: vec![
            ("sweep", json(serde_json::to_string(summary))),
            ("opening", json(serde_json::to_string(&opening))),
        ],
        scripts: vec![Page::look(), SCRIPT],
    }
    .html()
}

fn header(summary: &SweepSummary) -> String {
    let (mood, text) = match (summary.partial, summary.has_trouble()) {
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
        ("with unfinished flows", summary.open_runs.to_string()),
    ];
    let fact = |(k, v): &(&str, String)| format!("<div><dt>{k}</dt><dd>{}</dd></div>", escape(v));
    format!(
        "<h1>{} <span class=\"badge {mood}\">{text}</span></h1><dl class=\"facts\">{}</dl>",
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
    let mut text = format!("<details><summary>{} failed</summary>", all.len());
    for (label, why) in all.iter().take(SHOWN) {
        text.push_str(&format!("<h3>{}</h3><pre>{}</pre>", escape(label), escape(why)));
    }
    text + "</details>"
}
