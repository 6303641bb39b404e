//! Tables for `docs/validation.md`.

use std::fmt::Write as _;

use super::report::{MeasuredReport, MeasuredRow, RowState, Share};
use super::text::size;

/// Returns the errors by system, the fitted numbers, and the errors by generation.
pub fn measured_markdown(report: &MeasuredReport) -> String {
    let mut text = String::from(
        "| System | GPUs | Operation | Sizes | Error of the bus bandwidth by size, % |\n|---|---|---|---|---|\n",
    );
    let same = |a: &MeasuredRow, b: &MeasuredRow| key(a) == key(b);
    let mut rows: Vec<MeasuredRow> =
        report.rows.iter().filter(|row| row.simulated.is_some()).cloned().collect();
    rows.sort_by(|a, b| (key(a), a.bytes, &a.id).cmp(&(key(b), b.bytes, &b.id)));
    for group in rows.chunk_by(same) {
        let [first, .., last] = group else {
            line(&mut text, group, &size(group[0].bytes));
            continue;
        };
        let sizes = match first.bytes == last.bytes {
            true => size(first.bytes),
            false => format!("{} to {}", size(first.bytes), size(last.bytes)),
        };
        line(&mut text, group, &sizes);
    }
    text.push_str(
        "\n**Bold**: outside of the bar. *Italic*: fitted to these rows, or a faulty system; not judged.\n\n",
    );
    text.push_str("| GPUs | Factor of latency | Part of links | Fitted to |\n|---|---|---|---|\n");
    for fit in &report.fitted {
        let fitted = fit.numbers.fitted;
        let _ = writeln!(
            text,
            "| {} | {:.3} | {:.3} | {} |",
            fit.generation,
            fitted.latency,
            fitted.bandwidth,
            if fit.rows.is_empty() { "nothing".to_owned() } else { fit.rows.join(", ") }
        );
    }
    text.push_str("\n| Held-out rows | Number | Within the bar | Mean error, % | NCCL's cost model, % |\n|---|---|---|---|---|\n");
    for share in &report.shares {
        let (mean, model) = (100.0 * share.mean_error, 100.0 * share.model_error);
        let Share { group, rows, within, .. } = share;
        let _ = writeln!(text, "| {group} | {rows} | {within} | {mean:.1} | {model:.1} |");
    }
    text
}

type Key<'a> = (&'a str, u32, &'a str, &'a str);

fn key(row: &MeasuredRow) -> Key<'_> {
    (&row.system, row.gpus, &row.operation, &row.algorithm)
}

fn line(text: &mut String, group: &[MeasuredRow], sizes: &str) {
    let row = &group[0];
    let errors: Vec<String> = group.iter().filter_map(error).collect();
    let algorithm = match row.algorithm.as_str() {
        "tuner" | "any" | "rccl" => String::new(),
        other => format!(", {other}"),
    };
    let _ = writeln!(
        text,
        "| {} | {} | {}{algorithm} | {sizes} | {} |",
        row.system,
        row.gpus,
        row.operation,
        errors.join(" ")
    );
}

fn error(row: &MeasuredRow) -> Option<String> {
    let percent = format!("{:+.0}", 100.0 * row.simulated?.error);
    Some(match row.state {
        RowState::Misses | RowState::KnownMiss => format!("**{percent}**"),
        RowState::Fitted | RowState::Shown => format!("*{percent}*"),
        RowState::Within | RowState::NoModel => percent,
    })
}
