//! The page: template, assets, tables and data put together.

use serde::Serialize;

use super::Budget;
use super::curves::{Cdf, cdfs};
use super::fabric::{Fabric, fabric};
use super::flows::{Flows, flows};
use super::frames::{Frames, frames};
use super::jobs::{Jobs, jobs};
use super::pauses::{PauseTree, tree};
use super::series::{Chart, charts};
use super::tables::{escape, html_table};
use super::template::{fill, script_json};
use super::timeline::{Timeline, timeline};
use crate::grid;
use crate::human::Quantity;
use crate::records::RunResult;
use crate::summary::Summary;

/// The viewer, built from `web/`. Built pages are part of the source, so that building the program takes no Node.
const VIEWER: &str = include_str!("../../viewer/report.html");

/// A report is never larger than this.
const MOST_BYTES: usize = 5_000_000;

/// What the viewer draws, beside the summaries. `web/src/data.ts` has the same fields.
#[derive(Serialize)]
struct RunPictures<'a> {
    name: &'a str,
    simulated_ns: f64,
    groups: &'a [String],
    schemes: &'a [String],
    cdfs: Vec<Cdf>,
    charts: Vec<Chart>,
    fabric: Fabric,
    frames: Frames,
    flows: Flows,
    pauses: PauseTree,
    jobs: Jobs,
    timeline: Timeline,
}

/// The report on one run, or on several side by side compared with the first.
///
/// # Panics
/// If `runs` is empty.
pub fn html(runs: &[(&RunResult, &Summary)]) -> String {
    assert!(!runs.is_empty(), "a report needs a run");
    let mut budget = Budget::for_runs(runs.len());
    loop {
        let page = page(runs, &budget);
        if page.len() <= MOST_BYTES || budget.points < 8 {
            return page;
        }
        budget = budget.halved();
    }
}

fn page(runs: &[(&RunResult, &Summary)], budget: &Budget) -> String {
    let pictures: Vec<RunPictures> = runs.iter().map(|(run, _)| pictures(run, budget)).collect();
    let summaries: Vec<Summary> = runs.iter().map(|(_, summary)| shortened(summary, budget)).collect();
    let names: Vec<&str> = runs.iter().map(|(run, _)| run.info.name.as_str()).collect();
    let scenarios = runs.iter().map(|(run, _)| scenario(run, runs.len() == 1, budget)).collect();
    let texts = [
        ("title", escape(&names.join(" / "))),
        ("header", header(runs)),
        ("tables", tables(&summaries, runs[0].1.groups.len()) + &differences(runs)),
        ("scenarios", scenarios),
        ("summaries", script_json(&summaries)),
        ("pictures", script_json(&pictures)),
    ];
    fill(VIEWER, &texts)
}

fn pictures<'a>(run: &'a RunResult, budget: &Budget) -> RunPictures<'a> {
    let (fabric, rows) = fabric(run, budget);
    let frames = frames(run, &rows, budget);
    RunPictures {
        name: &run.info.name,
        simulated_ns: super::rounded(crate::columns::ns(run.info.simulated_ps)),
        groups: &run.info.groups,
        schemes: &run.info.schemes,
        cdfs: cdfs(run, budget),
        charts: charts(run, budget),
        flows: flows(run, &frames.flows, budget),
        fabric,
        frames,
        pauses: tree(run, budget),
        jobs: jobs(run, budget),
        timeline: timeline(run),
    }
}

/// The summary, with no more groups than are shown.
fn shortened(summary: &Summary, budget: &Budget) -> Summary {
    let mut summary = summary.clone();
    summary.groups.truncate(budget.groups);
    summary
}

/// The tables; of a comparison, those of groups are folded away. There may be more groups than are shown.
fn tables(summaries: &[Summary], groups: usize) -> String {
    let mut out = String::new();
    if let [summary] = summaries {
        out.extend(grid::of_run(summary).iter().map(html_table));
    } else {
        for (i, grid) in grid::of_comparison(&summaries.iter().collect::<Vec<_>>()).iter().enumerate() {
            let table = html_table(grid);
            if i == 0 {
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

/// What tells schemes apart besides their policies.
fn differences(runs: &[(&RunResult, &Summary)]) -> String {
    let infos: Vec<_> = runs.iter().map(|(run, _)| &run.info).collect();
    let grid = crate::differences::of_schemes(&infos);
    let table = |grid| {
        format!("<details open><summary>How the schemes differ</summary>{}</details>", html_table(&grid))
    };
    grid.map_or(String::new(), table)
}

/// How a run ended, as a coloured label.
fn badge(summary: &Summary) -> String {
    let run = &summary.run;
    let mut text = run.ended.name().replace('_', " ");
    let mut mood = "good";
    for (count, what) in [(summary.measured().unfinished, "unfinished"), (summary.overall.failed, "failed")] {
        if count > 0 {
            mood = "warn";
            text.push_str(&format!(", {} {what}", Quantity::Count.show(count as f64)));
        }
    }
    if run.partial {
        mood = "bad";
        text.insert_str(0, "partial: ");
    }
    format!("<span class=\"badge {mood}\" title=\"{}\">{text}</span>", escape(run.ended.meaning()))
}

/// What identifies a run and what it cost.
fn facts(summary: &Summary) -> [(&'static str, String); 7] {
    let run = &summary.run;
    let known = |v: f64, quantity: Quantity| if v > 0.0 { quantity.show(v) } else { "-".to_owned() };
    [
        ("version", run.version.clone()),
        ("seed", run.seed.to_string()),
        ("digest", run.digest.clone()),
        ("simulated", Quantity::TimeNs.show(run.simulated_ns)),
        ("took", known(run.wall_s * 1e9, Quantity::TimeNs)),
        ("packet-hops per CPU second", known(run.packet_hops_per_cpu_s.round(), Quantity::Count)),
        ("peak memory", known(run.peak_rss_bytes as f64, Quantity::Bytes)),
    ]
}

/// Names, how the runs ended, and their facts: a list for one, a table for several.
fn header(runs: &[(&RunResult, &Summary)]) -> String {
    let detail = |s: &Summary, name: &str| match s.run.ended_detail.as_str() {
        "" => String::new(),
        text => format!("<p class=\"detail\">{}{}</p>", escape(name), escape(text)),
    };
    if let [(_, summary)] = runs {
        let fact = |(k, v): &(&str, String)| format!("<div><dt>{k}</dt><dd>{}</dd></div>", escape(v));
        return format!(
            "<h1>{} {}</h1>{}<dl class=\"facts\">{}</dl>",
            escape(&summary.run.name),
            badge(summary),
            detail(summary, ""),
            facts(summary).iter().map(fact).collect::<String>()
        );
    }
    let mut out = format!("<h1>Comparison of {} runs</h1>", runs.len());
    out.extend(runs.iter().map(|(_, s)| detail(s, &format!("{}: ", s.run.name))));
    out.push_str("<div class=\"tables\"><div class=\"scroll\"><table><thead><tr><th>Run</th><th>ended</th>");
    out.extend(facts(runs[0].1).iter().map(|(k, _)| format!("<th>{k}</th>")));
    out.push_str("</tr></thead><tbody>");
    for (_, summary) in runs {
        out.push_str(&format!("<tr><th>{}</th><td>{}</td>", escape(&summary.run.name), badge(summary)));
        out.extend(facts(summary).iter().map(|(_, v)| format!("<td>{}</td>", escape(v))));
        out.push_str("</tr>");
    }
    out + "</tbody></table></div></div>"
}

fn scenario(run: &RunResult, open: bool, budget: &Budget) -> String {
    let text = &run.info.scenario_toml;
    let end =
        (0..=budget.scenario_bytes.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let cut = if end < text.len() { "\n# ... shortened; scenario.toml has all of it\n" } else { "" };
    let open = if open && text.lines().count() <= 40 { " open" } else { "" };
    format!(
        "<details{open}><summary>{}</summary><pre>{}{cut}</pre></details>\n",
        escape(&run.info.name),
        escape(&text[..end])
    )
}
