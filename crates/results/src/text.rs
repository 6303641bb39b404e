//! Summaries as tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};

use crate::differences;
use crate::grid::{self, Grid};
use crate::records::RunInfo;
use crate::summary::Summary;

/// The summary of one run.
pub fn summary_table(summary: &Summary) -> String {
    ending(summary) + &render(&grid::of_run(summary))
}

/// Several runs side by side, with ratios to the first.
pub fn comparison_table(runs: &[&Summary]) -> String {
    let endings: String = runs.iter().map(|s| ending(s)).collect();
    endings + &render(&grid::of_comparison(runs))
}

/// What tells the schemes of these runs apart besides their policies; empty if nothing does.
pub fn differences_table(runs: &[&RunInfo]) -> String {
    render(differences::of_schemes(runs).as_slice())
}

fn render(grids: &[Grid]) -> String {
    let mut out = String::new();
    for grid in grids {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header([&grid.title].into_iter().chain(&grid.columns));
        for row in &grid.rows {
            table.add_row([row.label.as_str()].into_iter().chain(row.cells.iter().map(|c| c.text.as_str())));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        out.push_str(&table.to_string());
        out.push('\n');
    }
    out
}

/// A line on a run that did not finish everything; nothing for one that did.
pub(crate) fn ending(summary: &Summary) -> String {
    let run = &summary.run;
    if !run.partial && run.ended_detail.is_empty() && summary.measured().unfinished == 0 {
        return String::new();
    }
    let partial = if run.partial { "PARTIAL: " } else { "" };
    let detail = if run.ended_detail.is_empty() { String::new() } else { format!(" {}", run.ended_detail) };
    format!("{partial}{}: {}{detail}\n", run.name, run.ended.meaning())
}
