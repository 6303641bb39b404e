//! Differences between two folders as tables for a terminal.

use comfy_table::{CellAlignment, Table, presets};

use super::words::percent;
use super::{Diff, FIGURES, ResultDifference, SettingDifference};

/// Largest number of settings and of rows of results in the brief tables, so that both fit 40 lines.
const SETTINGS: usize = 8;
const ROWS: usize = 14;
/// Largest number of characters of a value.
const VALUE: usize = 28;

/// Returns the settings that differ, and a row for each workload of each run with a column for each figure.
pub(super) fn brief(diff: &Diff) -> String {
    let (shown, more) = cut(&diff.settings, SETTINGS);
    let mut out = settings(shown) + &more_of(more, "settings");
    if diff.results.is_empty() {
        return out;
    }
    let mut rows: Vec<(&str, &str)> = diff.results.iter().map(|row| (&*row.run, &*row.workload)).collect();
    rows.dedup();
    // The most important figures first; those that are equal everywhere have no column.
    let measure = measure(diff);
    let differs = |label: &&str| diff.results.iter().any(|row| row.label == *label && row.differs());
    let others: Vec<&str> =
        FIGURES.iter().copied().filter(|label| *label != measure).filter(differs).collect();
    let row_of = |(run, workload): (&str, &str), label: &str| {
        diff.results.iter().find(|row| row.run == run && row.workload == workload && row.label == label)
    };
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    let heads = [format!("{measure}\nA"), "\nB".to_owned(), "\nchange".to_owned()];
    let lines = |label: &&str| label.replacen(' ', "\n", 1);
    table.set_header(
        ["run".to_owned(), "workload".to_owned()].into_iter().chain(heads).chain(others.iter().map(lines)),
    );
    let (shown, more) = cut(&rows, ROWS);
    for &(run, workload) in shown {
        let of_measure = row_of((run, workload), measure);
        let value = |value: Option<f64>| of_measure.map_or("-".to_owned(), |row| show(row, value));
        let mut cells = vec![shortened(run), shortened(workload)];
        cells.push(value(of_measure.and_then(|row| row.a)));
        cells.push(value(of_measure.and_then(|row| row.b)));
        cells.push(of_measure.map_or("-".to_owned(), change));
        cells
            .extend(others.iter().map(|label| row_of((run, workload), label).map_or("-".to_owned(), change)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    out += &format!("{table}\n{}", more_of(more, "rows"));
    out
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

/// Returns the label of the figure that decides.
fn measure(diff: &Diff) -> &'static str {
    let has_jobs = diff.results.iter().any(|row| row.label == "Job time");
    if has_jobs { "Job time" } else { "Slowdown P99" }
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
        let value = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), shortened);
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

/// Returns the change as text: "=" for level values, and both values if it begins at zero.
fn change(row: &ResultDifference) -> String {
    match (row.a, row.b, row.change_ratio) {
        (Some(_), Some(_), Some(ratio)) if row.differs() => percent(1.0 + ratio),
        (Some(_), Some(_), Some(_)) => "=".to_owned(),
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
