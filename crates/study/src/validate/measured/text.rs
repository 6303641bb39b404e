//! Table for a terminal.

use std::fmt::Write as _;

use super::report::{MeasuredReport, MeasuredRow, RowState};

/// Returns the table of measured and modelled values, at most 80 columns wide.
pub fn measured_text(report: &MeasuredReport) -> String {
    let mut text = String::from(
        "  row        size  measured  modelled    error  chosen\n                       [us]      [us]  of busbw\n",
    );
    let mut heading = String::new();
    for row in &report.rows {
        let group =
            format!("  {}: {}, GPUs: {}, servers: {}", row.system, row.operation, row.gpus, row.servers);
        if group != heading {
            let _ = writeln!(text, "{group}");
            heading = group;
        }
        text.push_str(&line(row));
    }
    text.push_str("  f fitted, ! outside of its bar, !! likewise and unexplained, s faulty system\n");
    for fitted in &report.fitted {
        let latency = match fitted.latency_fitted {
            true => format!("latency x {:.3}", fitted.latency),
            false => "latency as it is".to_owned(),
        };
        let _ = match &fitted.rows[..] {
            [] => writeln!(text, "  {:6} nothing fitted", fitted.generation),
            rows => writeln!(
                text,
                "  {:6} Simple: {latency}, bandwidth x {:.3}, by {}",
                fitted.generation,
                fitted.bandwidth,
                rows.join(", ")
            ),
        };
    }
    for share in &report.shares {
        let _ = writeln!(
            text,
            "  {:22} {:>3} of {:>3} held-out rows within, mean error {:>5.1} %",
            share.group,
            share.within,
            share.rows,
            100.0 * share.mean_error
        );
    }
    text
}

fn line(row: &MeasuredRow) -> String {
    let mark = match row.state {
        RowState::Fitted => "f",
        RowState::Within => "",
        RowState::KnownMiss => "!",
        RowState::Misses => "!!",
        RowState::Shown => "s",
        RowState::NoModel => "-",
    };
    let (modelled, chosen) = match &row.model {
        None => ("-".to_owned(), "no model".to_owned()),
        Some(model) => (
            time(model.time_us),
            format!("{}/{} {}", model.choice.algorithm, model.choice.protocol, model.choice.channels),
        ),
    };
    let error = row.error.map_or("-".to_owned(), |error| format!("{:+.1} %", 100.0 * error));
    let text = format!(
        "    {:4} {:>8} {:>9} {modelled:>9} {error:>9}  {chosen:20} {mark}",
        row.id,
        size(row.bytes),
        time(row.time_us)
    );
    format!("{}\n", text.trim_end())
}

fn time(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

fn size(bytes: u64) -> String {
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let (unit, shift) = match power {
        0 => ("B", 0),
        1 => ("KiB", 10),
        2 => ("MiB", 20),
        _ => ("GiB", 30),
    };
    format!("{} {unit}", bytes >> shift)
}
