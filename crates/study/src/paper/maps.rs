//! Heat maps of a page: HTML tables, with a verdict on each curve in words.

use pathweave_report::escape;

use crate::paper::by_jobs::ByJobs;
use crate::paper::heat::{self, Cell, LEVELS, Row, UNFINISHED_TEXT};
use crate::paper::judged;
use crate::paper::model::PlotKind;
use crate::paper::plan::{FigurePlan, Plan};
use crate::paper::scores::{measures, scored, scores};
use crate::paper::table::quantity;
use crate::paper::write::stem;

const STYLE: &str = "\
.map td{padding:.15rem .4rem;text-align:right;white-space:nowrap;border:1px solid var(--page)}\
.map td small{opacity:.75;font-size:11px}.map td b{text-decoration:underline;text-underline-offset:2px}\
.map tr:first-child th{white-space:nowrap}.map th{padding:.15rem .4rem}\
.map th:first-child{position:sticky;left:0;background:var(--page);max-width:40vw;z-index:1}\
.map th small{font-weight:400;opacity:.75}.map .group th{padding-top:.7rem;border-bottom:0;max-width:none;white-space:nowrap}@media(min-width:82rem){.map{position:relative;left:50%;transform:translateX(-50%);width:max-content;\
max-width:calc(100vw - 2rem)}}.key span{display:inline-block;padding:0 .5rem;margin:0 .2rem .2rem 0}";

/// Returns the additional style rules of a page with maps, or nothing if no figure is a heat map.
pub(crate) fn style(plan: &Plan) -> String {
    let any = plan.figures.iter().any(|figure| figure.figure.file.plot.kind == PlotKind::HeatMap);
    if any { format!("{STYLE}{}", heat::style()) } else { String::new() }
}

/// Returns the maps of a figure and the scores of its curves.
pub(crate) fn section(figure: &FigurePlan) -> String {
    let mut text: String = judged::sentences(figure)
        .iter()
        .map(|words| format!("<p><strong>{}</strong></p>\n", escape(words)))
        .collect();
    if let Some(chart) = ByJobs::new(figure) {
        let stem = stem(&figure.figure.id);
        text.push_str(&chart.html());
        text.push_str(&format!(
            "<p class=\"note\"><a href=\"{stem}-by-jobs.svg\">SVG</a>, <a href=\"{stem}-by-jobs.png\">PNG</a>, \
             <a href=\"{stem}-by-jobs.csv\">CSV</a></p>\n"
        ));
    }
    text.push_str(&row_verdicts(figure));
    text.push_str(&score_tables(figure));
    text.push_str("<p class=\"key\">Colour: ");
    for (level, says) in LEVELS.iter().map(|level| level.1).chain([UNFINISHED_TEXT]).enumerate() {
        text.push_str(&format!("<span class=\"h{level}\">{}</span>", escape(says)));
    }
    text.push_str("Bold and underlined: best of its row. Small: half of the 95 % interval over seeds.</p>\n");
    for measure in measures(figure) {
        text.push_str(&map(figure, measure));
    }
    text
}

/// Returns the verdict on each row, and its spurious timeouts, as a folded table. Returns nothing without rules of
/// judgement.
fn row_verdicts(figure: &FigurePlan) -> String {
    let mut lines = String::new();
    for (panel, words) in judged::row_verdicts(figure) {
        let spurious = judged::spurious(figure, panel).map_or(String::new(), |of| of.words(figure));
        lines.push_str(&format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td></tr>\n",
            escape(&figure.panels[panel].name),
            escape(&words.join("; ")),
            escape(&spurious)
        ));
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "<details><summary>Verdict on each row</summary><table><tr><th>Row</th><th>Verdict: value of the best, ratios of the \
         next and of the last</th><th>Timeouts although no packet was lost</th></tr>\n{lines}</table></details>\n"
    )
}

/// Returns the scores of each curve in words, by every measure drawn.
fn score_tables(figure: &FigurePlan) -> String {
    let mut text = String::new();
    for (place, measure) in scored(figure).enumerate() {
        let name = escape(&figure.figure.file.measure[measure].name);
        let open = if place == 0 { " open" } else { "" };
        text.push_str(&format!("<details{open}><summary>Verdict by {name}</summary><table>\n"));
        for score in scores(figure, measure) {
            text.push_str(&format!(
                "<tr><th>{}</th><td>{}</td></tr>\n",
                escape(&score.series),
                escape(&score.words())
            ));
        }
        text.push_str("</table></details>\n");
    }
    text
}

fn map(figure: &FigurePlan, measure: usize) -> String {
    let file = &figure.figure.file;
    let mut text =
        format!("<h3>{}</h3>\n<table class=\"map\"><tr><th></th>", escape(&file.measure[measure].name));
    for series in &file.series {
        text.push_str(&format!("<th>{}</th>", escape(&series.label())));
    }
    text.push_str("</tr>\n");
    let rows = heat::rows(figure, measure);
    for (row, heading) in rows.iter().zip(heat::headings(figure, &rows)) {
        if let Some(heading) = heading {
            text.push_str(&format!(
                "<tr class=\"group\"><th colspan=\"{}\">{}</th></tr>\n",
                file.series.len() + 1,
                escape(heading)
            ));
        }
        text.push_str(&line(figure, measure, row));
    }
    text + "</table>\n"
}

fn line(figure: &FigurePlan, measure: usize, row: &Row) -> String {
    let file = &figure.figure.file;
    let quantity = quantity(file.measure[measure].of, file.measure[measure].stat);
    let panel = &figure.panels[row.panel];
    let role = panel.role.map(|role| format!(" title=\"{}\"", role.name())).unwrap_or_default();
    let mut text = format!("<tr><th{role}>{}</th>", escape(&panel.name));
    let cell = |cell: &Cell| {
        let shown = escape(&cell.text(quantity));
        let shown = if cell.best() { format!("<b>{shown}</b>") } else { shown };
        let half = cell.estimate.and_then(|estimate| estimate.ci95).filter(|half| *half > 0.0);
        let half = half.map_or(String::new(), |half| format!(" <small>{}</small>", quantity.format(half)));
        let ratio = cell.ratio.map_or(String::new(), |ratio| format!(" title=\"{ratio:.3} of the best\""));
        format!("<td class=\"h{}\"{ratio}>{shown}{half}</td>", cell.level())
    };
    for column in &row.cells {
        text.push_str(&column.as_ref().map_or("<td></td>".to_owned(), cell));
    }
    text + "</tr>\n"
}
