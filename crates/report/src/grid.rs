//! Unformatted tables, which the terminal and the report render.

use pathweave_records::{FlowSummary, Quantity, Role, Summary, ratio};

use crate::metrics::{Better, FLOW_METRICS, RUN_METRICS};

/// A table: a title over the row labels, column headings, rows.
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) cells: Vec<Cell>,
}

/// A figure as text. `value` is the number behind the text, `None` for ratios and missing figures.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) value: Option<f64>,
    /// For a ratio: true if the figure is better than that of the first run, false if it is worse. `None` if they are
    /// level, or if neither direction is better.
    pub(crate) is_better: Option<bool>,
}

/// Distance from 1 below which ratios are level.
const LEVEL: f64 = 0.005;

/// Returns true if `value` is better than `base`, false if it is worse.
fn compare(better: Better, value: f64, base: f64) -> Option<bool> {
    if (value - base).abs() <= LEVEL * base.abs() {
        return None;
    }
    match better {
        Better::Lower => Some(value < base),
        Better::Higher => Some(value > base),
        Better::Neither => None,
    }
}

/// Returns the tables of one run: flows, then the fabric. Flows have a column for each group. With several groups
/// there is one more column for all flows, or for the foreground, which is never mixed with the background.
pub(crate) fn of_run(summary: &Summary) -> Vec<Grid> {
    let heading = |g: &pathweave_records::GroupSummary| {
        let background = (g.role == Role::Background && g.group != g.role.name()).then_some("background");
        let notes: Vec<&str> = background.into_iter().chain(g.schemes.iter().map(String::as_str)).collect();
        if notes.is_empty() { g.group.clone() } else { format!("{} ({})", g.group, notes.join(", ")) }
    };
    let mut columns: Vec<(String, &FlowSummary)> =
        summary.groups.iter().map(|g| (heading(g), &g.flows)).collect();
    let of_foreground = summary.groups.iter().filter(|g| g.role == Role::Foreground).count();
    match &summary.foreground {
        // If one group is the whole foreground, its column suffices.
        Some(foreground) if of_foreground > 1 => columns.push(("foreground".to_owned(), foreground)),
        None if columns.len() != 1 => columns.push(("all flows".to_owned(), &summary.overall)),
        _ => {}
    }
    let (names, flows): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let flow_rows = FLOW_METRICS.iter().filter_map(|m| {
        let values: Vec<_> = flows.iter().map(|f| (m.get)(f)).collect();
        row(m.label, m.quantity, &values, None)
    });
    let run_rows =
        RUN_METRICS.iter().filter_map(|m| row(m.label, m.quantity, &[(m.get)(summary)], None)).collect();
    vec![
        Grid { title: "Flows".to_owned(), columns: names, rows: flow_rows.collect() },
        Grid { title: "Fabric and run".to_owned(), columns: vec![String::new()], rows: run_rows },
    ]
}

/// Returns the tables of several runs with ratios to the first. They cover all flows, or those of the foreground if
/// there is a background, and the fabric. If the first run has several groups, a table for each follows.
pub(crate) fn of_comparison(runs: &[&Summary]) -> Vec<Grid> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut columns = Vec::new();
    for (i, summary) in runs.iter().enumerate() {
        columns.push(summary.run.name.clone());
        if i > 0 {
            columns.push("ratio".to_owned());
        }
    }
    let grid = |title: &str, flows: Vec<Option<&FlowSummary>>| {
        let rows = FLOW_METRICS.iter().filter_map(|m| {
            let values: Vec<_> = flows.iter().map(|f| f.and_then(m.get)).collect();
            row(m.label, m.quantity, &values, Some(m.better))
        });
        Grid { title: title.to_owned(), columns: columns.clone(), rows: rows.collect() }
    };
    let mixed = runs.iter().any(|s| s.foreground.is_some());
    let title = if mixed { "Foreground flows" } else { "All flows" };
    let mut all = grid(title, runs.iter().map(|s| Some(s.measured())).collect());
    all.rows.extend(RUN_METRICS.iter().filter_map(|m| {
        let values: Vec<_> = runs.iter().map(|s| (m.get)(s)).collect();
        row(m.label, m.quantity, &values, Some(m.better))
    }));
    let mut grids = vec![all];
    if first.groups.len() > 1 {
        grids.extend(first.groups.iter().map(|group| {
            let same = |s: &&'_ Summary| s.groups.iter().position(|g| g.group == group.group);
            let flows = runs.iter().map(|s| same(s).map(|i| &s.groups[i].flows)).collect();
            let background = if group.role == Role::Background { " (background)" } else { "" };
            grid(&format!("Group {}{background}", group.group), flows)
        }));
    }
    grids
}

/// Returns a row with every figure. In a comparison it has the ratio of each later figure to the first, and `ratios`
/// tells which direction is better. Returns `None` if there is no figure at all.
fn row(
    label: &'static str,
    quantity: Quantity,
    values: &[Option<f64>],
    ratios: Option<Better>,
) -> Option<Row> {
    let base = *values.first()?;
    if values.iter().all(Option::is_none) {
        return None;
    }
    let dash = || "-".to_owned();
    let mut cells = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        cells.push(Cell { text: value.map_or_else(dash, |v| quantity.format(v)), value, is_better: None });
        if let Some(better) = ratios.filter(|_| i > 0) {
            let text = value.zip(base).map_or_else(dash, |(v, base)| ratio(v, base));
            let better = value.zip(base).and_then(|(v, base)| compare(better, v, base));
            cells.push(Cell { text, value: None, is_better: better });
        }
    }
    Some(Row { label: label.to_owned(), cells })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_depends_on_the_figure_and_level_is_neither() {
        let of = |better, value| compare(better, value, 2.0);
        assert_eq!([1.0, 2.009, 2.02].map(|v| of(Better::Lower, v)), [Some(true), None, Some(false)]);
        assert_eq!([1.0, 1.991, 2.02].map(|v| of(Better::Higher, v)), [Some(false), None, Some(true)]);
        assert_eq!(of(Better::Neither, 9.0), None);
        assert_eq!(compare(Better::Lower, 3.0, 0.0), Some(false), "from nothing to something");
        let row =
            row("Drops", Quantity::Count, &[Some(4.0), Some(2.0), Some(4.0)], Some(Better::Lower)).unwrap();
        let moods: Vec<_> = row.cells.iter().map(|cell| cell.is_better).collect();
        assert_eq!(moods, [None, None, Some(true), None, None]);
    }
}
