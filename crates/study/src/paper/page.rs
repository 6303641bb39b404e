//! The page of a paper: pictures, claims, measures, and the command that repeats them.

use pathweave_report::escape;

use crate::paper::claims::Verdict;
use crate::paper::figures::verdict_text;
use crate::paper::maps;
use crate::paper::model::{PlotKind, Variant};
use crate::paper::plan::{FigurePlan, Plan};
use crate::paper::record::RecordedVerdict;
use crate::paper::select::{Extent, Size};
use crate::paper::standing::judgement;
use crate::paper::state::State;
use crate::paper::table::{quantity, ranking};
use crate::paper::write::{Settings, stem};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1c1c;--page:#fff;--line:#ddd;--soft:#555;--box:#f4f4f2;--good:#00704f;--bad:#b3261e;\
--link:#0b57a4}\
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--page:#15171a;--line:#3a3d42;--soft:#a9adb3;--box:#22252a;\
--good:#5fd0a5;--bad:#ff9a8f;--link:#8ab8f0}svg{border-radius:4px}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem;color:var(--ink);\
background:var(--page);overflow-wrap:break-word}a{color:var(--link)}\
table{border-collapse:collapse;font-size:14px;margin:.6rem 0;display:block;overflow-x:auto;overflow-wrap:normal}\
td,th{border-bottom:1px solid var(--line);padding:.25rem .7rem;text-align:left;vertical-align:top}\
th{font-weight:600}svg{max-width:100%;height:auto}.yes{color:var(--good);white-space:nowrap}\
.no{color:var(--bad);white-space:nowrap}.open{white-space:nowrap}.note{color:var(--soft)}code,pre{font-size:13px;background:var(--box)}\
pre{padding:.7rem;overflow-x:auto}summary{cursor:pointer}\
.claims td:nth-last-child(6){min-width:11rem}.claims td:nth-last-child(3){min-width:8rem}.claims td:last-child{min-width:13rem}";

/// Returns the page as HTML, with its pictures inline.
pub(crate) fn html(
    plan: &Plan,
    verdicts: &[Verdict],
    pictures: &[Option<String>],
    settings: &Settings,
) -> String {
    let file = &plan.paper.file;
    let mut body = format!("<h1>{}</h1>\n<p>{}</p>\n", escape(&file.title), escape(&file.citation));
    if settings.partial {
        body.push_str(
            "<p class=\"no\">Interrupted: missing claims are no statement about the schemes.</p>\n",
        );
    }
    body.push_str(&standings(plan, verdicts));
    for (figure, picture) in plan.figures.iter().zip(pictures) {
        body.push_str(&section(figure, verdicts, picture.as_deref()));
    }
    body.push_str(&every_claim(verdicts));
    body.push_str(&notes(plan));
    body.push_str(&setting(plan, settings));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{}</title><style>{STYLE}{}</style></head>\n<body>\n{body}</body></html>\n",
        escape(&file.title),
        maps::style(plan)
    )
}

/// Returns every claim in one folded table. Each figure has a table of its own claims above it.
fn every_claim(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let of = |state| verdicts.iter().filter(|verdict| verdict.state == state).count();
    let counts: Vec<String> =
        State::ALL.into_iter().filter(|state| of(*state) > 0).map(|state| state.counted(of(state))).collect();
    format!(
        "<h2>Claims</h2>\n<p>{} comparisons: {}. Intervals are 95 % confidence intervals of the mean over seeds; in brackets \
         the range over seeds, panels and sweep values.</p>\n<details><summary>All claims</summary>{}</details>\n",
        verdicts.len(),
        counts.join(", "),
        claims(&verdicts.iter().collect::<Vec<_>>(), true)
    )
}

/// Returns variants, readings and remarks.
fn notes(plan: &Plan) -> String {
    let file = &plan.paper.file;
    let mut text = String::new();
    for reading in &file.reading {
        text.push_str(&format!(
            "<li><strong>{}</strong>: {}</li>\n",
            escape(&reading.name),
            escape(&reading.source)
        ));
    }
    if !text.is_empty() {
        text = format!("<h2>Readings</h2>\n<ul>\n{text}</ul>\n");
    }
    if !file.notes.is_empty() {
        text.push_str("<h2>Notes</h2>\n");
    }
    for note in &file.notes {
        text.push_str(&format!("<p>{}</p>\n", escape(note)));
    }
    text
}

/// Returns the standing of each figure about which the publication makes a claim, with the deciding claim. Returns no
/// standing if only part of the figures ran.
fn standings(plan: &Plan, verdicts: &[Verdict]) -> String {
    if plan.extent == Extent::Part {
        return "<p>A part of the figures ran alone, which gives no verdict.</p>\n".to_owned();
    }
    let (mut rows, mut all) = (String::new(), Vec::new());
    let variant = plan.paper.file.judged.as_ref();
    for figure in &plan.figures {
        let id = &figure.figure.id;
        let claims: Vec<RecordedVerdict> =
            verdicts.iter().filter(|v| v.figure == *id).map(RecordedVerdict::from).collect();
        let Some(judged) = judgement(&claims, variant) else { continue };
        let class = judged.standing.class();
        rows.push_str(&format!(
            "<tr><td><a href=\"#{}\">{}</a></td><td>{}</td><td class=\"{class}\">{}</td><td>{}</td><td>{}</td></tr>\n",
            stem(id),
            name(figure),
            escape(&figure.figure.file.title),
            judged.standing.word(),
            judged.count(),
            escape(&judged.reason()),
        ));
        all.push(judged.standing);
    }
    if rows.is_empty() {
        return rows;
    }
    let judged = match variant.map_or(Variant::AS_PRINTED, Variant::name) {
        Variant::MEASURED => "Measured claims are judged here; simulated ones follow below.".to_owned(),
        name => format!("Judged here is the variant \"{name}\" where there are several; all are below."),
    };
    format!(
        "<h2>Verdict</h2>\n<p><strong>{}</strong> {judged}</p>\n<table><tr><th>Figure</th><th>Shows</th><th>Verdict</th>\
         <th>Claims</th><th>Decided by</th></tr>\n{rows}</table>\n<details><summary>What the words mean</summary><p>A claim \
         agrees if the number is the published one within the tolerance, exceeds if the effect is larger, falls short if it is \
         smaller or a bound is missed, contradicts if there is none or the opposite one, and is undecided where the confidence \
         interval reaches across a limit. A figure agrees if every claim does, exceeds if some exceed and the others agree, is \
         reproduced in part if some do neither; fitted if something was fitted to it, which reproduces nothing. Bars of this \
         project and other readings of a claim do not count.</p></details>\n",
        verdict_text(all)
    )
}

fn setting(plan: &Plan, settings: &Settings) -> String {
    let mut text = format!(
        "<h2>How this was made</h2>\n<pre>{}</pre>\n<p>pathweave {}, {} runs.</p>\n",
        escape(&settings.command),
        escape(&settings.version),
        plan.runs.len()
    );
    if plan.size == Size::Quick {
        text.push_str("<p>Shortened against the paper by <code>--quick</code>:</p>\n<ul>\n");
        for figure in plan.figures.iter().filter(|figure| !figure.changes_text.is_empty()) {
            text.push_str(&format!("<li>{}: {}</li>\n", name(figure), escape(&figure.changes_text)));
        }
        text.push_str("</ul>\n");
    }
    text
}

fn name(figure: &FigurePlan) -> String {
    let id = &figure.figure.id;
    match id.strip_prefix("table-") {
        Some(number) => format!("Table {number}"),
        None if id.starts_with(|c: char| c.is_ascii_digit()) => format!("Figure {id}"),
        None => id.clone(),
    }
}

fn section(figure: &FigurePlan, verdicts: &[Verdict], picture: Option<&str>) -> String {
    let file = &figure.figure.file;
    let mut text =
        format!("<h2 id=\"{0}\">{1}: {2}</h2>\n", stem(&figure.figure.id), name(figure), escape(&file.title));
    text.push_str(&format!("<p class=\"note\">{}. {}.", escape(&file.section), figure.seeds_text()));
    if !figure.changes_text.is_empty() {
        text.push_str(&format!(" {}", escape(&figure.changes_text)));
    }
    text.push_str("</p>\n");
    if !file.note.is_empty() {
        text.push_str(&format!("<p>{}</p>\n", escape(&file.note)));
    }
    for said in figure.methods() {
        text.push_str(&format!("<p class=\"note\">{}</p>\n", escape(said)));
    }
    if let Some(svg) = picture {
        // A heat map on the page is an HTML table, which is readable on a phone and in dark mode.
        if file.plot.kind == PlotKind::HeatMap {
            text.push_str(&maps::section(figure));
        } else {
            text.push_str(svg);
        }
        let stem = stem(&figure.figure.id);
        text.push_str(&format!(
            "<p class=\"note\"><a href=\"{stem}.svg\">SVG</a>, <a href=\"{stem}.png\">PNG</a>, <a href=\"{stem}-numbers.csv\">CSV</a></p>\n"
        ));
    }
    let own: Vec<&Verdict> = verdicts.iter().filter(|v| v.figure == figure.figure.id).collect();
    if !own.is_empty() {
        text.push_str(&claims(&own, false));
    }
    text.push_str(&rankings(figure));
    text.push_str(&measures(figure));
    text
}

/// Returns the ranking of schemes in each panel.
fn rankings(figure: &FigurePlan) -> String {
    let file = &figure.figure.file;
    let mut text = String::new();
    for name in &file.rank {
        let Some(m) = file.measure.iter().position(|measure| measure.name == *name) else { continue };
        let quantity = quantity(file.measure[m].of, file.measure[m].stat);
        text.push_str(&format!(
            "<p>By {}, best first; bold does not differ significantly from the best.</p><table>\n",
            escape(name)
        ));
        for (p, panel) in figure.panels.iter().enumerate() {
            text.push_str(&format!("<tr><th>{}</th>", escape(&panel.name)));
            for one in ranking(figure, p, m) {
                let value = one.value.map_or("none".to_owned(), |e| quantity.format(e.mean));
                let (open, close) = if one.best { ("<b>", "</b>") } else { ("", "") };
                let series = escape(&one.series);
                text.push_str(&format!("<td>{open}{series}{close}<br>{}</td>", escape(&value)));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</table>\n");
    }
    text
}

fn claims(verdicts: &[&Verdict], with_figure: bool) -> String {
    let mut text = "<table class=\"claims\"><tr>".to_owned();
    let heads = ["Figure", "Claim", "Published", "Variant", "Measured here", "State", "Remarks"];
    for head in heads.iter().skip(usize::from(!with_figure)) {
        text.push_str(&format!("<th>{head}</th>"));
    }
    text.push_str("</tr>\n");
    for verdict in verdicts {
        text.push_str("<tr>");
        if with_figure {
            let (stem, id) = (stem(&verdict.figure), escape(&verdict.figure));
            text.push_str(&format!("<td><a href=\"#{stem}\">{id}</a></td>"));
        }
        let class = verdict.state.class();
        let word = verdict.state.word();
        text.push_str(&format!(
            "<td>{}</td><td>{}<br><span class=\"note\">{}</span></td><td>{}</td><td>{}</td>\
             <td class=\"{class}\">{word}<br><span class=\"note\">{}</span></td><td>{}</td></tr>\n",
            escape(&verdict.claim),
            escape(&verdict.published),
            escape(&verdict.detail.source),
            verdict.variant,
            escape(&verdict.measured),
            escape(&verdict.detail.rule),
            escape(&verdict.why),
        ));
    }
    text + "</table>\n"
}

/// Returns every measure at every point, so that no mean appears without its other statistics.
fn measures(figure: &FigurePlan) -> String {
    let file = &figure.figure.file;
    if file.measure.is_empty() {
        return String::new();
    }
    let (panels, sweep) = (figure.panels.len() > 1, file.sweep.is_some());
    let mut text = "<details><summary>All measures</summary><table><tr>".to_owned();
    let mut head = |name: &str| text.push_str(&format!("<th>{}</th>", escape(name)));
    if panels {
        head("");
    }
    if sweep {
        head(&file.plot.x);
    }
    head("Scheme");
    file.measure.iter().for_each(|measure| head(&measure.name));
    text.push_str("</tr>\n");
    for point in &figure.points {
        text.push_str("<tr>");
        let mut cell = |value: &str| text.push_str(&format!("<td>{}</td>", escape(value)));
        if panels {
            cell(&figure.panels[point.panel].name);
        }
        if sweep {
            cell(&figure.xs[point.x]);
        }
        cell(&file.series[point.series].label());
        for (m, measure) in file.measure.iter().enumerate() {
            let quantity = quantity(measure.of, measure.stat);
            cell(&match figure.estimate(point, m) {
                None => "-".to_owned(),
                Some(e) => match e.ci95 {
                    Some(ci) if ci > 0.0 => format!("{} +- {}", quantity.format(e.mean), quantity.format(ci)),
                    _ => quantity.format(e.mean),
                },
            });
        }
        text.push_str("</tr>\n");
    }
    let variants = file
        .series
        .iter()
        .any(|series| series.variant.as_ref().map(Variant::name) == Some(Variant::AS_PRINTED));
    let note = if variants {
        "<p class=\"note\">As printed: with the restart kick it needs to finish.</p>"
    } else {
        ""
    };
    format!("{text}</table>{note}</details>\n")
}
