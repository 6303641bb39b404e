//! Section of the page.

use std::fmt::Write as _;

use pathweave_report::escape;

use super::report::{Estimated, MeasuredReport, MeasuredRow, RowState};

/// Returns the tables of a case, after its heading.
pub(crate) fn section(report: &MeasuredReport) -> String {
    let mut text = String::from(
        "<table><tr><th>GPUs</th><th class=\"n\">latency</th><th class=\"n\">bandwidth</th><th>fitted to</th></tr>\n",
    );
    for fit in &report.fitted {
        let fitted = fit.numbers.fitted;
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td><td>{}</td></tr>",
            fit.generation,
            fitted.latency,
            fitted.bandwidth,
            if fit.rows.is_empty() { "nothing".to_owned() } else { escape(&fit.rows.join(", ")) }
        );
    }
    text.push_str(
        "</table>\n<table><tr><th>held-out rows</th><th class=\"n\">number</th><th class=\"n\">within</th>\
         <th class=\"n\">mean error</th><th class=\"n\">of NCCL's cost model</th></tr>\n",
    );
    for share in &report.shares {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td>\
             <td class=\"n\">{:.1} %</td></tr>",
            escape(&share.group),
            share.rows,
            share.within,
            100.0 * share.mean_error,
            100.0 * share.model_error
        );
    }
    text.push_str(
        "</table>\n<table><tr><th>row</th><th>what</th><th class=\"n\">bytes</th><th class=\"n\">measured GB/s</th>\
         <th class=\"n\">simulated GB/s</th><th class=\"n\">error</th><th class=\"n\">cost model GB/s</th><th class=\"n\">error</th><th>stated; chosen</th><th>state</th>\
         <th>assumed; why</th><th>source</th></tr>\n",
    );
    report.rows.iter().for_each(|row| text.push_str(&line(row)));
    text.push_str("</table>\n");
    text
}

fn line(row: &MeasuredRow) -> String {
    let (class, state) = match row.state {
        RowState::Fitted => ("note", "fitted"),
        RowState::Within => ("yes", "within its bar"),
        RowState::KnownMiss => ("no", "outside of its bar"),
        RowState::Misses => ("no", "outside of its bar, unexplained"),
        RowState::Shown => ("note", "only shown"),
        RowState::NoModel => ("note", "no model"),
    };
    let chosen =
        row.choice.map_or(String::new(), |choice| format!("{}/{}", choice.algorithm, choice.protocol));
    let cells = |of: Option<Estimated>| match of {
        None => "<td></td><td></td>".to_owned(),
        Some(of) => {
            format!("<td class=\"n\">{:.2}</td><td class=\"n\">{:+.1} %</td>", of.busbw_gbs, 100.0 * of.error)
        }
    };
    let notes: Vec<&str> =
        [row.assume.as_str(), row.why.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
    format!(
        "<tr><td>{}</td><td>{} on {} GPUs, {} servers, {}</td><td class=\"n\">{}</td><td class=\"n\">{:.2}</td>\
         {}{}<td>{}; {chosen}</td><td class=\"{class}\">{state}</td>\
         <td>{}</td><td>{}</td></tr>\n",
        escape(&row.id),
        escape(&row.operation),
        row.gpus,
        row.servers,
        escape(&row.system),
        row.bytes,
        row.busbw_gbs,
        cells(row.simulated),
        cells(row.model),
        escape(&row.algorithm),
        escape(&notes.join("; ")),
        escape(&row.source)
    )
}
