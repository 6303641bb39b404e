//! Summary as a table for the terminal.

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::Quantity;

use crate::sweep::plan::Plan;
use crate::sweep::summary::{CellSummary, Metric, SweepSummary};

/// Largest number of rows and failures shown. `summary.json` has all of them.
const MAX_ROWS: usize = 60;
/// Figures shown beside that of the report.
const DEFAULT_FIGURES: [&str; 4] = ["fct_mean_ns", "fct_p99_ns", "slowdown_p99", "goodput_aggregate_bps"];

/// Returns the cells with their main figures, the count of best values, and the failures.
pub fn table(plan: &Plan, summary: &SweepSummary) -> String {
    let mut names = vec![plan.metric.as_str()];
    names.extend(DEFAULT_FIGURES.iter().filter(|name| **name != plan.metric));
    let metrics: Vec<&Metric> =
        names.iter().filter_map(|name| summary.metrics.iter().find(|metric| metric.name == *name)).collect();
    let mut out = Table::new();
    out.load_style(presets::UTF8_BORDERS_ONLY);
    let mut heading: Vec<&str> = summary.axes.iter().map(|axis| axis.key.as_str()).collect();
    heading.extend(metrics.iter().map(|metric| metric.label));
    out.set_header(heading);
    for cell in summary.cells.iter().take(MAX_ROWS) {
        let mut row: Vec<String> =
            summary.axes.iter().zip(&cell.at).map(|(axis, &at)| axis.values[at].clone()).collect();
        row.extend(metrics.iter().map(|metric| figure(cell, metric)));
        out.add_row(row);
    }
    for column in out.column_iter_mut().skip(summary.axes.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("{out}\n");
    if summary.cells.len() > MAX_ROWS {
        text.push_str(&format!("and {} more cells: see summary.json\n", summary.cells.len() - MAX_ROWS));
    }
    match best_counts(plan, summary) {
        Some(words) => text + &words + "\n",
        None => text,
    }
}

/// Formats a figure, for instance "192.1 us +- 3.2 us".
fn figure(cell: &CellSummary, metric: &Metric) -> String {
    let Some(figures) = cell.metrics.get(&metric.name) else { return "-".to_owned() };
    let show = |value: f64| match metric.quantity {
        // The mean of a count need not be an integer.
        Quantity::Count => Quantity::Plain.format(value),
        quantity => quantity.format(value),
    };
    match figures.estimate.ci95 {
        Some(half) => format!("{} \u{b1} {}", show(figures.estimate.mean), show(half)),
        None => show(figures.estimate.mean),
    }
}

/// Returns how often each value of the compared axis is best by the report's figure. `None` if there is no best
/// value.
pub(crate) fn best_counts(plan: &Plan, summary: &SweepSummary) -> Option<String> {
    let of_metric: Vec<_> = summary.best.iter().filter(|best| best.metric == plan.metric).collect();
    let axis = &summary.axes[plan.compare];
    let label =
        summary.metrics.iter().find(|metric| metric.name == plan.metric).map_or("", |metric| metric.label);
    if of_metric.is_empty() {
        return None;
    }
    let mut text = format!("Best {} by {label}, of {} settings:", axis.key, of_metric.len());
    for (number, value) in axis.values.iter().enumerate() {
        let alone = of_metric.iter().filter(|best| best.value == number && best.tied.is_empty()).count();
        let shared = of_metric
            .iter()
            .filter(|best| !best.tied.is_empty() && (best.value == number || best.tied.contains(&number)))
            .count();
        text.push_str(&match (alone, shared) {
            (_, 0) => format!(" {value} {alone}"),
            _ => format!(" {value} {alone} (and {shared} undecided)"),
        });
        if number + 1 < axis.values.len() {
            text.push(',');
        }
    }
    Some(text)
}
