//! Differences between two folders as tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};

use super::words::{measure, percent};
use super::{Diff, ResultDifference, SettingDifference};

/// Largest number of settings and of rows of results in the brief tables, so that both fit 40 lines.
const SETTINGS: usize = 8;
const ROWS: usize = 14;
/// Largest number of characters of a value, and of a line.
const VALUE: usize = 28;
const WIDTH: usize = 100;
/// Figures in the order in which they get a column.
const COLUMNS: &[&str] = &[
    "Unfinished",
    "Failed",
    "Job time",
    "Slowdown P99",
    "Slowdown mean",
    "Dropped packets",
    "Retransmissions",
    "FCT P99",
    "FCT mean",
];

/// Returns the settings that differ, and a row for each workload of each run with a column for each figure that
/// differs anywhere, as long as there is room.
pub(super) fn brief(diff: &Diff) -> String {
    let (shown, more) = cut(&diff.settings, SETTINGS);
    let out = settings(shown) + &more_of(more, "settings");
    if diff.results.is_empty() {
        return out;
    }
    let mut rows: Vec<(&str, &str)> = diff.results.iter().map(|row| (&*row.run, &*row.workload)).collect();
    rows.dedup();
    let (shown, more) = cut(&rows, ROWS);
    let columns = columns(diff, shown);
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(columns.iter().map(|column| &column.heading));
    for row in 0..shown.len() {
        table.add_row(columns.iter().map(|column| &column.cells[row]));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    out + &format!("{table}\n{}", more_of(more, "rows"))
}

struct Column {
    heading: String,
    cells: Vec<String>,
}

impl Column {
    /// Width with the space around the text and the border.
    fn width(&self) -> usize {
        let texts = self.heading.lines().chain(self.cells.iter().map(String::as_str));
        3 + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// Returns the columns that fit: names, values of the figure that decides, and changes of the others.
fn columns(diff: &Diff, rows: &[(&str, &str)]) -> Vec<Column> {
    let measure = measure(diff).label;
    let column = |heading: String, label: &str, cell: &dyn Fn(&ResultDifference) -> String| {
        let of_row = |&(run, workload): &(&str, &str)| {
            let same =
                |row: &&ResultDifference| row.run == run && row.workload == workload && row.label == label;
            diff.results.iter().find(same).map_or("-".to_owned(), cell)
        };
        Column { heading, cells: rows.iter().map(of_row).collect() }
    };
    let mut columns = vec![
        Column { heading: "run".to_owned(), cells: rows.iter().map(|row| shortened(row.0)).collect() },
        Column { heading: "workload".to_owned(), cells: rows.iter().map(|row| shortened(row.1)).collect() },
        column(format!("{measure}\nA"), measure, &|row| show(row, row.a)),
        column("\nB".to_owned(), measure, &|row| show(row, row.b)),
        column("\nchange".to_owned(), measure, &change),
    ];
    let mut width = 1 + columns.iter().map(Column::width).sum::<usize>();
    let differs = |label: &&&str| diff.results.iter().any(|row| row.label == **label && row.differs());
    for label in COLUMNS.iter().filter(|label| **label != measure).filter(differs) {
        let next = column(label.replacen(' ', "\n", 1), label, &change);
        width += next.width();
        if width > WIDTH {
            break;
        }
        columns.push(next);
    }
    columns
}

/// Returns every setting that differs, and each figure of each workload with both values.
pub(super) fn all(diff: &Diff) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["run", "workload", "figure", "A", "B", "change"]);
    for row in &diff.results {
        let (a, b) = (show(row, row.a), show(row, row.b));
        table.add_row([&row.run, &row.workload, row.label, &a, &b, &change(row)]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    settings(&diff.settings) + &format!("{table}\n")
}

fn settings(settings: &[SettingDifference]) -> String {
    if settings.is_empty() {
        return String::new();
    }
    let in_each = settings.iter().all(|setting| setting.runs.is_empty());
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let heads = ["setting", "A", "B", "runs"];
    table.set_header(&heads[..if in_each { 3 } else { 4 }]);
    for setting in settings {
        let value = |value: &Option<String>| value.as_deref().map_or("not set".to_owned(), shortened);
        let mut cells = vec![setting.field.clone(), value(&setting.a), value(&setting.b)];
        if !in_each {
            let runs = if setting.runs.is_empty() { "all".to_owned() } else { setting.runs.join(", ") };
            cells.push(shortened(&runs));
        }
        table.add_row(cells);
    }
    format!("{table}\n")
}

fn show(row: &ResultDifference, value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| row.quantity.format(value))
}

/// Returns the change as text: "=" for level values, both values if it begins at zero, and "-" for a figure of what
/// finished where a run left work undone.
fn change(row: &ResultDifference) -> String {
    match (row.a, row.b, row.change_ratio) {
        (Some(_), Some(_), Some(ratio)) if row.differs() => percent(1.0 + ratio),
        (Some(_), Some(_), Some(_)) => "=".to_owned(),
        (Some(a), Some(_), None) if a != 0.0 => "-".to_owned(),
        _ => format!("{} to {}", show(row, row.a), show(row, row.b)),
    }
}

fn cut<T>(items: &[T], most: usize) -> (&[T], usize) {
    let shown = items.len().min(most);
    (&items[..shown], items.len() - shown)
}

fn more_of(more: usize, what: &str) -> String {
    if more > 0 { format!("and {more} more {what}\n") } else { String::new() }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= VALUE {
        return text.to_owned();
    }
    text.chars().take(VALUE - 3).chain("...".chars()).collect()
}
