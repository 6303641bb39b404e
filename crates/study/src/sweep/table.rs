//! Summary as a table for the terminal.

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::Quantity;
use pathweave_report::{Estimate, Unsure, few_flows_sentence};

use crate::sweep::best::Best;
use crate::sweep::plan::Plan;
use crate::sweep::record::{TAIL_SLOWDOWN, TAIL_TIME};
use crate::sweep::summary::{CellSummary, Metric, SweepSummary};

/// Largest number of rows and failures shown. `summary.json` has all of them.
const MAX_ROWS: usize = 60;
/// Width up to which figures get a column.
const WIDTH: usize = 100;
/// Largest number of cells that the verdict names as not judged.
const MAX_NOT_JUDGED: usize = 4;
/// Largest number of characters of a value in a heading.
const MAX_HEADING: usize = 24;
/// Figures shown beside the one that decides, if a cell has a value.
const DEFAULT_FIGURES: [&str; 4] = ["slowdown_p99", "slowdown_mean", "fct_mean_ns", "goodput_aggregate_bps"];

/// Returns the cells with their main figures, the values that are best, and a caution if the figure rests on few flows.
/// The first figure is the one that decides, with its change from the first value of the compared axis.
pub fn table(plan: &Plan, summary: &SweepSummary) -> String {
    let has_value = |name: &&str| summary.cells.iter().any(|cell| cell.metrics.contains_key(*name));
    let others = DEFAULT_FIGURES.into_iter().filter(|name| *name != summary.metric).filter(has_value);
    let find = |name: &str| summary.metrics.iter().find(|metric| metric.name == name);
    let metrics: Vec<&Metric> =
        [summary.metric.as_str()].into_iter().chain(others).filter_map(find).collect();
    let rows = || summary.cells.iter().take(MAX_ROWS);
    let mut columns: Vec<(String, Vec<String>)> = Vec::new();
    for (a, axis) in summary.axes.iter().enumerate() {
        columns.push((axis.key.clone(), rows().map(|cell| axis.values[cell.at[a]].clone()).collect()));
    }
    for (number, metric) in metrics.iter().enumerate() {
        let column = (metric.label.to_owned(), rows().map(|cell| figure(cell, metric)).collect());
        let width = 1 + columns.iter().chain([&column]).map(width).sum::<usize>();
        if number > 0 && width > WIDTH {
            break;
        }
        columns.push(column);
        if number == 0 && summary.cells.iter().any(|cell| cell.change.is_some()) {
            let first = shortened(&summary.axes[plan.compare].values[0]);
            let change = |cell: &CellSummary| cell.change.as_ref().map_or("-".to_owned(), percent);
            columns.push((format!("from {first}"), rows().map(change).collect()));
        }
    }
    let mut out = Table::new();
    out.load_style(presets::UTF8_BORDERS_ONLY);
    out.set_header(columns.iter().map(|(heading, _)| heading));
    for row in 0..rows().count() {
        out.add_row(columns.iter().map(|(_, cells)| &cells[row]));
    }
    for column in out.column_iter_mut().skip(summary.axes.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{out}\n");
    if summary.cells.len() > MAX_ROWS {
        text.push_str(&format!("and {} more cells: see summary.json\n", summary.cells.len() - MAX_ROWS));
    }
    match verdict(plan, summary) {
        Some(words) => text + &words + "\n",
        None => text,
    }
}

/// Returns the width of a column with the space around its texts.
fn width((heading, cells): &(String, Vec<String>)) -> usize {
    let texts = cells.iter().chain([heading]);
    3 + texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Formats a figure, for instance "192.1 us +- 3.2 us", with the number of its seeds if the cell has more. A cell without
/// one has the reason.
fn figure(cell: &CellSummary, metric: &Metric) -> String {
    let Some(figures) = cell.metrics.get(&metric.name) else {
        return cell.without_value(&metric.name).unwrap_or("-").to_owned();
    };
    let show = |value: f64| match metric.quantity {
        // The mean of a count need not be an integer.
        Quantity::Count => Quantity::Plain.format(value),
        quantity => quantity.format(value),
    };
    let shown = match figures.estimate.ci95 {
        Some(half) => format!("{} \u{b1} {}", show(figures.estimate.mean), show(half)),
        None => show(figures.estimate.mean),
    };
    match (figures.estimate.n, cell.runs.len()) {
        (seeds, all) if seeds < all => format!("{shown} ({seeds} of {all} seeds)"),
        _ => shown,
    }
}

/// Formats a relative change, for instance "+4.0 % +- 1.2 %".
fn percent(change: &Estimate) -> String {
    let mean = format!("{:+.1} %", change.mean * 100.0);
    match change.ci95 {
        Some(half) => format!("{mean} \u{b1} {:.1} %", half * 100.0),
        None => mean,
    }
}

fn shortened(value: &str) -> String {
    if value.chars().count() <= MAX_HEADING {
        return value.to_owned();
    }
    value.chars().take(MAX_HEADING - 3).chain("...".chars()).collect()
}

/// Returns the best values of the compared axis by the figure that decides, and for the P99 of the slowdown also by its
/// mean. `None` if no value has a rival.
pub(crate) fn verdict(plan: &Plan, summary: &SweepSummary) -> Option<String> {
    let mean = match summary.metric.as_str() {
        TAIL_SLOWDOWN => Some("slowdown_mean"),
        TAIL_TIME => Some("fct_mean_ns"),
        _ => None,
    };
    let figures = [Some(summary.metric.as_str()), mean];
    let mut sentences: Vec<String> =
        figures.into_iter().flatten().filter_map(|figure| best_values(plan, summary, figure)).collect();
    let not_judged = not_judged(summary);
    if sentences.is_empty() {
        return not_judged;
    }
    sentences.extend(not_judged);
    let flows = summary.cells.iter().filter_map(|cell| Some(cell.metrics.get("flows")?.min));
    let few = flows.reduce(f64::min).and_then(|flows| few_flows_sentence(flows as u64, Unsure::Order));
    if let Some(words) =
        few.filter(|_| summary.metric.ends_with("_p99") || summary.metric.ends_with("_p99_ns"))
    {
        sentences.push(format!("{words}."));
    }
    Some(sentences.join(" "))
}

/// Returns a sentence on the cells that have no part in the judgement, although their runs were made.
fn not_judged(summary: &SweepSummary) -> Option<String> {
    let reason = |cell: &CellSummary| {
        // A cell that failed under one seed is not judged by its other seeds.
        let failed = (!cell.failed.is_empty()).then_some("failed");
        Some(format!("{} ({})", cell.label, cell.without_value(&summary.metric).or(failed)?))
    };
    let all: Vec<String> = summary.cells.iter().filter_map(reason).collect();
    let more = all.len().saturating_sub(MAX_NOT_JUDGED);
    let shown = all[..all.len() - more].join("; ");
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| format!("Not judged: {shown}{more}."))
}

/// Returns a sentence on how often each value of the compared axis is best by a figure.
fn best_values(plan: &Plan, summary: &SweepSummary, figure: &str) -> Option<String> {
    let of_figure: Vec<&Best> = summary.best.iter().filter(|best| best.metric == figure).collect();
    let label = summary.metrics.iter().find(|metric| metric.name == figure)?.label;
    let values = &summary.axes[plan.compare].values;
    // Cells that are not judged have no part in it.
    let settings = summary.cells.len() / values.len().max(1);
    let judged = of_figure.len();
    if let [only] = &of_figure[..] {
        let best = &values[only.value];
        let names = |of: &mut dyn Iterator<Item = &usize>| -> String {
            of.map(|&value| values[value].as_str()).collect::<Vec<_>>().join(", ")
        };
        let level = names(&mut only.level.iter());
        let undecided = names(&mut only.tied.iter().filter(|value| !only.level.contains(value)));
        let label =
            if settings > 1 { format!("{label}, in 1 of {settings} settings") } else { label.to_owned() };
        return Some(match (level.is_empty(), undecided.is_empty()) {
            (true, true) => format!("{label}: {best} is best."),
            (false, true) => format!("{label}: {best} is level with {level}; none is better."),
            (true, false) => {
                format!("{label}: {best} is best; the seeds do not distinguish it from {undecided}.")
            }
            (false, false) => format!(
                "{label}: {best} is best; it is level with {level}, and the seeds do not distinguish it from {undecided}."
            ),
        });
    }
    let wins =
        |value: usize| of_figure.iter().filter(|best| best.value == value && best.tied.is_empty()).count();
    let alone = values.iter().enumerate().filter(|(value, _)| wins(*value) > 0);
    let mut parts: Vec<String> = alone.map(|(value, name)| format!("{name} in {}", wins(value))).collect();
    let is_level = |best: &&&Best| best.tied.len() == best.level.len();
    let tied = || of_figure.iter().filter(|best| !best.tied.is_empty());
    let level = tied().filter(is_level).count();
    if level > 0 {
        parts.push(format!("level in {level}"));
    }
    let undecided = tied().count() - level;
    if undecided > 0 {
        parts.push(format!("undecided in {undecided}"));
    }
    let of_all = if judged < settings { format!("{judged} of {settings}") } else { judged.to_string() };
    (judged > 0).then(|| format!("{label}, best of {of_all} settings: {}.", parts.join(", ")))
}
