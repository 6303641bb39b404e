//! Page of results: an overview, and each case with its figures, the peer's settings, and the causes of differences.

use std::fmt::Write;

use pathweave_records::Quantity;
use pathweave_report::{PNG_SCRIPT, escape};

use crate::validate::catalogue::{Case, Catalogue};
use crate::validate::figures::Figures;
use crate::validate::judge::{CaseRuns, Outcome, Row};
use crate::validate::measured;
use crate::validate::model::{Band, Stat};
use crate::validate::picture::{curves, overview};

/// Origin of the page.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Command that reproduces it.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// True if the program was interrupted, so that cases are missing.
    pub partial: bool,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1c1c;--page:#fff;--line:#ddd;--soft:#555;--box:#f4f4f2;--good:#0072b2;--bad:#b3261e;\
--five:#cfe6f3;--ten:#eaf4fa;--link:#0b57a4}\
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--page:#15171a;--line:#3a3d42;--soft:#a9adb3;--box:#22252a;\
--good:#56b4e9;--bad:#ff9a8f;--five:#1f3b4d;--ten:#1a2933;--link:#8ab8f0}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:var(--ink);\
background:var(--page);overflow-wrap:break-word}a{color:var(--link)}\
table{border-collapse:collapse;font-size:14px;margin:.6rem 0;display:block;overflow-x:auto}\
td,th{border-bottom:1px solid var(--line);padding:.25rem .7rem;text-align:left;vertical-align:top}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600}\
.yes{color:var(--good)}.no{color:var(--bad);font-weight:600}.note{color:var(--soft)}\
code,pre{font-size:13px;background:var(--box)}pre{padding:.7rem;overflow-x:auto;white-space:pre-wrap}\
svg{display:block;width:100%;height:auto}svg.curves{max-width:38rem}.scroll{overflow-x:auto}svg.overview{min-width:50rem}\
svg text{font-size:12px;fill:var(--ink)}svg .peer{font-weight:600}svg .tick{fill:var(--soft)}\
svg .grid{stroke:var(--line)}svg .one{stroke:var(--soft)}svg .five{fill:var(--five)}svg .ten{fill:var(--ten)}\
svg .in{stroke:var(--good)}svg .out{stroke:var(--bad)}svg .open{fill:none;stroke-width:2}svg .in.full{fill:var(--good)}\
svg .out.full{fill:var(--bad)}svg text.out{stroke:none;fill:var(--bad);font-size:12px}\
svg .curve{fill:none;stroke-width:2}svg [data-of=theirs]{stroke:var(--soft);stroke-dasharray:5 4}svg [data-of=ours]{stroke:var(--good)}.export{margin:0 0 .6rem;font-size:13px;color:var(--soft)}.export a{margin-left:.6rem}";

/// Returns the page of these outcomes, which belong to `cases`.
pub fn html(catalogue: &Catalogue, cases: &[&Case], outcomes: &[Outcome], settings: &Settings) -> String {
    let good = outcomes.iter().filter(|outcome| outcome.holds).count();
    let mut body = "<h1>Beside other simulators, and beside arithmetic</h1>\n".to_owned();
    let _ = writeln!(
        body,
        "<p>The same flows over the same network with the same parameters, here and in simulators of others, whose results are \
         data of this project; and runs whose result arithmetic gives. <strong>{good} of {} cases hold</strong>: every ratio is in \
         its band, which is 5 % of the mean and 10 % of the median, the 99th percentile and the maximum unless the case says \
         why not.</p>\n<pre>{}</pre>\n<p class=\"note\">pathweave {}.{}</p>",
        outcomes.len(),
        escape(&settings.command),
        escape(&settings.version),
        if settings.partial { " Interrupted: cases are missing." } else { "" },
    );
    body.push_str(&overview(outcomes));
    for outcome in outcomes {
        if let Some(case) = cases.iter().find(|case| case.name == outcome.case) {
            body.push_str(&section(case, outcome));
        }
    }
    body.push_str(&peers(catalogue));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Validation of pathweave</title><style>{STYLE}</style></head>\n<body>\n{body}<script>\n{PNG_SCRIPT}</script></body>\
         </html>\n"
    )
}

fn section(case: &Case, outcome: &Outcome) -> String {
    let file = &case.file;
    let mut text = format!(
        "<h2 id=\"{0}\">{0}</h2>\n<p>{1}. {2}</p>\n",
        escape(&case.name),
        escape(&file.title),
        escape(&file.about)
    );
    if !case.schemes().is_empty() {
        text.push_str(&by_scheme(case, outcome));
        return text;
    }
    if let Some(report) = &outcome.training {
        text.push_str(&measured::training_section(report));
        return text;
    }
    if let Some(report) = &outcome.measured {
        text.push_str(&measured::section(report));
        return text;
    }
    for trial in &outcome.trials {
        text.push_str(&figures(case, trial));
    }
    for cause in &file.cause {
        let names: Vec<&str> = cause.figures.iter().map(|stat| stat.name()).collect();
        let _ = writeln!(
            text,
            "<p><strong>Why {} differs.</strong> {}</p>",
            names.join(", "),
            escape(&cause.text)
        );
    }
    let ours = outcome.trials.first().and_then(|trial| trial.ours.as_ref());
    if let (Some(theirs), Some(ours)) = (&file.theirs, ours) {
        text.push_str(&curves(&case.name, &ours.curve, &Figures::of_peer(theirs).curve));
        let _ = writeln!(
            text,
            "<p class=\"note\">Completion times by rank: ours, and dashed {}.</p>",
            escape(&theirs.peer)
        );
    }
    if let Some(theirs) = &file.theirs {
        let speed = outcome.cpu_ratio.map_or_else(String::new, |ratio| {
            let ours = outcome.trials.first().map_or(0.0, |trial| trial.cpu_s);
            format!(" CPU: {:.1} s there, {ours:.2} s here, {ratio:.0} times.", theirs.cpu_s)
        });
        let _ = writeln!(
            text,
            "<details><summary>How {} was run</summary><pre>{}</pre><p>{}</p><p class=\"note\">{} flows, {}.{speed}</p></details>",
            escape(&theirs.peer),
            escape(&theirs.command),
            escape(&theirs.parameters),
            theirs.flows,
            escape(&theirs.date),
        );
    }
    text
}

/// Returns a table with a row per scheme and figure, for comparisons with packets or with one port.
fn by_scheme(case: &Case, outcome: &Outcome) -> String {
    let (theirs, ours) =
        if case.file.packets.is_some() { ("packets", "flows") } else { ("one port", "several") };
    let mut text = format!(
        "<table><tr><th>scheme</th><th></th><th class=\"n\">{theirs}</th><th class=\"n\">{ours}</th><th class=\"n\">ratio\
         </th><th>band</th><th>outside of the model</th></tr>\n"
    );
    for trial in &outcome.trials {
        let scheme = escape(trial.title.as_deref().unwrap_or_default());
        if let Some(wrong) = &trial.wrong {
            let _ = writeln!(
                text,
                "<tr><td>{scheme}</td><td class=\"no\" colspan=\"6\">{}</td></tr>",
                escape(wrong)
            );
        }
        for (index, row) in trial.rows.iter().enumerate() {
            let outside = if index == 0 { escape(&trial.outside.join("; ")) } else { String::new() };
            let _ = writeln!(text, "<tr><td>{scheme}</td>{}<td>{outside}</td></tr>", cells(row));
        }
    }
    text + "</table>\n"
}

fn figures(case: &Case, trial: &CaseRuns) -> String {
    let mut text = String::new();
    if let Some(title) = &trial.title {
        let shows = case.file.experiment.iter().find(|experiment| experiment.title == *title);
        let shows = shows.map_or("", |experiment| &experiment.shows);
        let _ = writeln!(text, "<p><strong>Experiment: {}.</strong> {}</p>", escape(title), escape(shows));
    }
    if let Some(wrong) = &trial.wrong {
        let _ = writeln!(text, "<p class=\"no\">{}</p>", escape(wrong));
        return text;
    }
    text.push_str("<table><tr><th></th><th class=\"n\">theirs</th><th class=\"n\">ours</th><th class=\"n\">ratio</th><th>band</th></tr>\n");
    for row in &trial.rows {
        let _ = writeln!(text, "<tr>{}</tr>", cells(row));
    }
    text + "</table>\n"
}

/// Returns the cells of a figure: its name, the reference, ours, their ratio and its band.
fn cells(row: &Row) -> String {
    let class = if row.holds { "yes" } else { "no" };
    format!(
        "<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n {class}\">{}</td><td>{}</td>",
        escape(&row.figure),
        show(row, row.theirs),
        show(row, row.ours),
        ratio(row),
        band(row),
    )
}

fn show(row: &Row, value: f64) -> String {
    if row.unit == "us" {
        Quantity::TimeNs.format_short(1e3 * value)
    } else {
        format!("{value:.0} {}", row.unit)
    }
}

/// Formats a ratio with one digit more than the width of its band requires, and at least three.
fn ratio(row: &Row) -> String {
    let width = row.band.map_or(1.0, |band| band.high - band.low);
    let digits = (1.0 - width.log10()).ceil().clamp(3.0, 9.0) as usize;
    format!("{:.digits$}", row.ratio)
}

fn band(row: &Row) -> String {
    match row.band {
        None => "shown only".to_owned(),
        Some(Band::EXACT) => "exact".to_owned(),
        Some(band) => format!("{} to {}", band.low, band.high),
    }
}

fn peers(catalogue: &Catalogue) -> String {
    let mut text =
        "<h2>The peers</h2>\n<table><tr><th>Name</th><th>What</th><th>Commit</th><th>Built</th></tr>\n"
            .to_owned();
    for (name, peer) in catalogue.peers() {
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}<br><a href=\"{source}\">{source}</a></td><td><code>{}</code></td><td>{}</td></tr>",
            escape(name),
            escape(&peer.what),
            escape(&peer.commit),
            escape(&peer.built),
            source = escape(&peer.source),
        );
    }
    let names: Vec<&str> = Stat::ALL.iter().map(|stat| stat.name()).collect();
    let _ = writeln!(
        text,
        "</table>\n<p class=\"note\">None of their code is part of pathweave. Percentiles are by nearest rank; figures: {}.</p>",
        names.join(", ")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A narrow band that a case sets itself must not be shown as exact, and a ratio outside it must be marked.
    #[test]
    fn exact_is_the_band_of_laws_and_no_other() {
        let row = |ratio, band: Option<[f64; 2]>| Row {
            figure: "max".to_owned(),
            unit: "us",
            ours: ratio,
            theirs: 1.0,
            ratio,
            band: band.map(Band::from),
            holds: true,
        };
        let shown = |row: Row| (ratio(&row), band(&row));
        let both = |ratio: &str, band: &str| (ratio.to_owned(), band.to_owned());
        assert_eq!(shown(Row { band: Some(Band::EXACT), ..row(1.0, None) }), both("1.0000000", "exact"));
        assert_eq!(shown(row(1.000_15, Some([0.9999, 1.0001]))), both("1.00015", "0.9999 to 1.0001"));
        assert_eq!(shown(row(0.981, Some([0.9, 1.1]))), both("0.981", "0.9 to 1.1"));
        assert_eq!(shown(row(0.981, None)), both("0.981", "shown only"));
    }
}
