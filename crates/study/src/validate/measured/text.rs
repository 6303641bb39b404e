//! Table for a terminal.

use std::fmt::Write as _;

use super::report::{Estimated, GenerationFit, MeasuredReport, MeasuredRow, RowState};

/// Returns the table of measured, simulated and modelled values, at most 80 columns wide.
pub fn measured_text(report: &MeasuredReport) -> String {
    let mut text = String::from(
        "  row        size measured simulat.    model   error   error    chosen\n\
         \x20                     [us]     [us]     [us] simulat.  model\n",
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
    for GenerationFit { generation, numbers, rows } in &report.fitted {
        let latency = match numbers.latency_fitted {
            true => format!("latency x {:.3}", numbers.fitted.latency),
            false => "latency as it is".to_owned(),
        };
        let _ = match &rows[..] {
            [] => writeln!(text, "  {generation:6} nothing fitted"),
            rows => writeln!(
                text,
                "  {generation:6} Simple: {latency}, links x {:.3}, by {}",
                numbers.fitted.bandwidth,
                rows.join(", ")
            ),
        };
    }
    for share in &report.shares {
        let _ = writeln!(
            text,
            "  {:20} {:>3} of {:>3} within, mean error {:>5.1} %, cost model {:>5.1} %",
            share.group,
            share.within,
            share.rows,
            100.0 * share.mean_error,
            100.0 * share.model_error
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
    let chosen = match (row.choice, row.simulated) {
        (Some(choice), _) => format!("{}/{} {}", choice.algorithm, choice.protocol, choice.channels),
        (None, Some(_)) => "sends".to_owned(),
        (None, None) => "no model".to_owned(),
    };
    let time_of = |of: Option<Estimated>| of.map_or("-".to_owned(), |of| time(of.time_us));
    let error = |of: Option<Estimated>| of.map_or("-".to_owned(), |of| format!("{:+.0} %", 100.0 * of.error));
    let text = format!(
        "   {:4} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {mark:2} {chosen}",
        row.id,
        size(row.bytes),
        time(row.time_us),
        time_of(row.simulated),
        time_of(row.model),
        error(row.simulated),
        error(row.model),
    );
    format!("{}\n", text.trim_end())
}

fn time(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

/// Returns a size with the largest unit of which it has a whole number.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, shift): &(&str, u32)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift);
    let (unit, shift) = units.into_iter().find(fits).unwrap_or(("B", 0));
    format!("{} {unit}", bytes >> shift)
}
