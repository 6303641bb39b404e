//! Section of the page.

use std::fmt::Write as _;

use pathweave_report::escape;

use super::report::{MeasuredReport, MeasuredRow, RowState};

/// Returns the tables of a case, after its heading.
pub(crate) fn section(report: &MeasuredReport) -> String {
    let mut text = String::from(
        "<table><tr><th>GPUs</th><th class=\"n\">latency</th><th class=\"n\">bandwidth</th><th>fitted to</th></tr>\n",
    );
    for fitted in &report.fitted {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td><td>{}</td></tr>",
            fitted.generation,
            fitted.latency,
            fitted.bandwidth,
            if fitted.rows.is_empty() { "nothing".to_owned() } else { escape(&fitted.rows.join(", ")) }
        );
    }
    text.push_str(
        "</table>\n<table><tr><th>held-out rows</th><th class=\"n\">number</th><th class=\"n\">within</th>\
         <th class=\"n\">mean error</th></tr>\n",
    );
    for share in &report.shares {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td></tr>",
            escape(&share.group),
            share.rows,
            share.within,
            100.0 * share.mean_error
        );
    }
    text.push_str(
        "</table>\n<table><tr><th>row</th><th>what</th><th class=\"n\">bytes</th><th class=\"n\">measured GB/s</th>\
         <th class=\"n\">modelled GB/s</th><th class=\"n\">error</th><th>stated; chosen</th><th>state</th>\
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
    let (modelled, chosen) = match &row.model {
        None => (String::new(), String::new()),
        Some(model) => (
            format!("{:.2}", model.busbw_gbs),
            format!("{}/{}", model.choice.algorithm, model.choice.protocol),
        ),
    };
    let error = row.error.map_or(String::new(), |error| format!("{:+.1} %", 100.0 * error));
    let notes: Vec<&str> =
        [row.assume.as_str(), row.why.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
    format!(
        "<tr><td>{}</td><td>{} on {} GPUs, {} servers, {}</td><td class=\"n\">{}</td><td class=\"n\">{:.2}</td>\
         <td class=\"n\">{modelled}</td><td class=\"n\">{error}</td><td>{}; {chosen}</td><td class=\"{class}\">{state}</td>\
         <td>{}</td><td>{}</td></tr>\n",
        escape(&row.id),
        escape(&row.operation),
        row.gpus,
        row.servers,
        escape(&row.system),
        row.bytes,
        row.busbw_gbs,
        escape(&row.algorithm),
        escape(&notes.join("; ")),
        escape(&row.source)
    )
}
