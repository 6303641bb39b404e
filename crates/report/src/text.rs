//! Summaries as tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};
use pathweave_records::{Fidelity, RunInfo, Summary};

use crate::differences;
use crate::grid::{self, Grid};

/// Returns the summary of one run.
pub fn summary_table(summary: &Summary) -> String {
    fidelity(summary) + &ending(summary) + &warnings(summary) + &render(&grid::of_run(summary))
}

/// Returns several runs side by side, with ratios to the first.
pub fn comparison_table(runs: &[&Summary]) -> String {
    let endings: String = runs.iter().map(|s| fidelity(s) + &ending(s) + &warnings(s)).collect();
    endings + &render(&grid::of_comparison(runs))
}

/// Returns the differences of the schemes of these runs besides their policies; empty if there are none.
pub fn differences_table(runs: &[&RunInfo]) -> String {
    render(differences::of_schemes(runs).as_slice())
}

/// Width of a terminal, in columns, that tables fit.
const WIDTH: usize = 80;

fn render(grids: &[Grid]) -> String {
    let mut out = String::new();
    for grid in grids {
        for columns in parts(grid) {
            let mut table = Table::new();
            table.load_style(presets::UTF8_BORDERS_ONLY);
            table.set_header([&grid.title].into_iter().chain(columns.iter().map(|&c| &grid.columns[c])));
            for row in &grid.rows {
                let cells = columns.iter().map(|&c| row.cells[c].text.as_str());
                table.add_row([row.label.as_str()].into_iter().chain(cells));
            }
            for column in table.column_iter_mut().skip(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            out.push_str(&table.to_string());
            out.push('\n');
        }
    }
    out
}

/// Splits the columns of a grid into tables that fit a terminal, one below the other. A ratio stays with its figure,
/// and the baseline of ratios is in each table.
fn parts(grid: &Grid) -> Vec<Vec<usize>> {
    const RATIO: &str = "ratio";
    // Including the space around the text of a column, and the border between two columns.
    let widest =
        |texts: &mut dyn Iterator<Item = &str>| 3 + texts.map(|t| t.chars().count()).max().unwrap_or(0);
    let width = |&c: &usize| {
        let cells = grid.rows.iter().map(|row| row.cells[c].text.as_str());
        widest(&mut std::iter::once(grid.columns[c].as_str()).chain(cells))
    };
    let labels = grid.rows.iter().map(|row| row.label.as_str());
    let label = 1 + widest(&mut std::iter::once(grid.title.as_str()).chain(labels));
    let base: Vec<usize> = if grid.columns.iter().any(|c| c == RATIO) { vec![0] } else { vec![] };
    let mut parts: Vec<Vec<usize>> = vec![base.clone()];
    for first in (base.len()..grid.columns.len()).filter(|&c| grid.columns[c] != RATIO) {
        let with_ratio = grid.columns.get(first + 1).is_some_and(|next| next == RATIO);
        let unit: Vec<usize> = (first..=first + usize::from(with_ratio)).collect();
        let part = parts.last().expect("there is one from the start");
        let full = label + part.iter().chain(&unit).map(width).sum::<usize>() > WIDTH;
        if full && part.len() > base.len() {
            parts.push(base.clone());
        }
        parts.last_mut().expect("there is one from the start").extend(unit);
    }
    parts
}

/// Returns a line on the fidelity of a run of flows, and lines on the limits of its model; empty for a run of
/// packets.
pub(crate) fn fidelity(summary: &Summary) -> String {
    let run = &summary.run;
    if run.fidelity == Fidelity::Packet {
        return String::new();
    }
    let outside: String =
        run.outside.iter().map(|reason| format!("{}: outside of the model: {reason}\n", run.name)).collect();
    format!("{}: {}\n{outside}", run.name, run.label)
}

/// Returns a line for each warning about the figures of a run.
pub(crate) fn warnings(summary: &Summary) -> String {
    let run = &summary.run;
    run.warnings.iter().map(|warning| format!("{}: warning: {warning}\n", run.name)).collect()
}

/// Returns a line on the end of a run that did not finish all flows; empty for one that did.
pub(crate) fn ending(summary: &Summary) -> String {
    let run = &summary.run;
    if !run.partial && run.ended_detail.is_empty() && summary.measured().unfinished == 0 {
        return String::new();
    }
    let partial = if run.partial { "PARTIAL: " } else { "" };
    let detail = if run.ended_detail.is_empty() { String::new() } else { format!(" {}", run.ended_detail) };
    format!("{partial}{}: {}{detail}\n", run.name, run.ended.meaning())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Cell, Row};

    fn grid(columns: &[&str], width: usize) -> Grid {
        let cells = || columns.iter().map(|_| Cell { text: "x".repeat(width), ..Cell::default() }).collect();
        let row = Row { label: "l".repeat(20), cells: cells() };
        Grid {
            title: "t".to_owned(),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            rows: vec![row],
        }
    }

    #[test]
    fn a_wide_table_becomes_several_and_ratios_stay_with_what_they_are_to() {
        let ratios = ["a", "b", "ratio", "c", "ratio", "d", "ratio"];
        // Border 1, label 23, columns of 13: seven columns would take 115, five take 89.
        assert_eq!(parts(&grid(&ratios, 10)), [vec![0, 1, 2], vec![0, 3, 4], vec![0, 5, 6]]);
        assert_eq!(parts(&grid(&ratios, 7)), [vec![0, 1, 2, 3, 4], vec![0, 5, 6]]);
        assert_eq!(parts(&grid(&["a", "b", "c", "d", "e"], 10)), [vec![0, 1, 2, 3], vec![4]]);
        assert_eq!(parts(&grid(&["a"], 100)), [vec![0]]);
        for width in 1..=15 {
            let text = render(&[grid(&ratios, width)]);
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        }
    }
}
