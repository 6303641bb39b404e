//! The page: first one tile a situation, then one card a situation.

use std::collections::BTreeMap;

use pathweave_records::RunResult;

use super::curve::{self, Extent};
use super::map;
use super::situation::SchemeComparison;
use super::verdict::ComparisonResult;
use crate::judge::{Judgement, Measure};
use crate::saved::SavedPicture;
use crate::template::{escape, fill, plain_page};
use pathweave_records::{scheme_colours, scheme_colours_in_pictures};

const PAGE: &str = include_str!("page.html");
/// Style that only this page has.
const STYLE: &str = include_str!("page.css");

/// Returns the page for `situations`.
///
/// # Panics
/// Panics if a situation has no runs.
pub fn html(heading: &str, says: &str, situations: &[SchemeComparison<'_>]) -> String {
    let verdicts: Vec<ComparisonResult> = situations.iter().map(ComparisonResult::of).collect();
    let pictures: Vec<_> = situations.iter().map(SchemeComparison::names).collect();
    let colours = scheme_colours_in_pictures(&pictures);
    let extent = common_extent(situations, &verdicts);
    let numbered = || situations.iter().zip(&verdicts).enumerate();
    let body = fill(
        PAGE,
        &[
            ("heading", escape(heading)),
            ("says", escape(says)),
            ("tiles", numbered().map(|(i, (situation, verdict))| tile(i, situation, verdict)).collect()),
            (
                "cards",
                numbered()
                    .map(|(i, (situation, verdict))| card(i, situation, verdict, (&colours, extent)))
                    .collect(),
            ),
        ],
    );
    plain_page("pathweave", STYLE, &body)
}

/// Returns the extent that the pictures of all situations share: they have the same schemes and the same measure, as
/// fabrics do that are compared. Otherwise each situation has its own.
fn common_extent(situations: &[SchemeComparison<'_>], verdicts: &[ComparisonResult]) -> Extent {
    let first = situations.first().zip(verdicts.first());
    let same = first.is_some_and(|(situation, verdict)| {
        situations.iter().all(|other| other.names() == situation.names())
            && verdicts.iter().all(|other| other.judged.measure == verdict.judged.measure)
    });
    if !same {
        return Extent::default();
    }
    let all = situations.iter().zip(verdicts);
    all.fold(Extent::default(), |extent, (situation, verdict)| {
        let value = verdict.judged.runs.iter().filter_map(|run| run.value).fold(0.0, f64::max);
        extent.with(Extent { value, ..curve::extent(situation, verdict.judged.measure) })
    })
}

/// Draws a tile: the gain of the best scheme over the first.
fn tile(number: usize, situation: &SchemeComparison<'_>, verdict: &ComparisonResult) -> String {
    let name = |run: usize| escape(&verdict.judged.runs[run].name);
    let base = verdict.judged.base();
    let (gain, below) = match (verdict.judged.best(), verdict.gain()) {
        (None, _) if verdict.was_stopped() => ("-".to_owned(), "stopped before the end".to_owned()),
        (None, _) => ("-".to_owned(), "nobody finishes".to_owned()),
        (Some(best), None) => {
            ("only".to_owned(), format!("{} finishes, {} does not", name(best), name(base)))
        }
        (Some(best), _) if best == base => ("1x".to_owned(), format!("{} is not beaten", name(base))),
        (Some(best), Some(gain)) => {
            let digits = if gain < 1.95 { 2 } else { 1 };
            let (best, base, gain) = (name(best), name(base), format!("{gain:.digits$}"));
            let words = match verdict.judged.measure {
                Measure::JobTime => format!("{best} is {gain} times as fast as {base}"),
                Measure::TailSlowdown | Measure::TailTime => {
                    format!("{base} has {gain} times the {} of {best}", verdict.judged.measure.name())
                }
            };
            (format!("{gain}x"), words)
        }
    };
    format!(
        "<a class=\"tile\" href=\"#s{number}\"><span>{}</span><b>{gain}</b><span>{below}</span></a>\n",
        escape(situation.title)
    )
}

fn card(
    number: usize,
    situation: &SchemeComparison<'_>,
    verdict: &ComparisonResult,
    (of_page, extent): (&BTreeMap<&str, usize>, Extent),
) -> String {
    let colours: Vec<usize> = situation.names().iter().map(|name| of_page[name]).collect();
    // If the first scheme is best, it is compared with the last.
    let shown = verdict.judged.best().filter(|&best| best > 0).unwrap_or(situation.runs.len() - 1);
    let (first, best) = (situation.runs[0].0, situation.runs[shown].0);
    let map =
        with_links(difference(first, best), &format!("{}: where traffic goes", situation.title), &[], || {
            map::csv(first, best)
        });
    let legend: Vec<(&str, usize)> = situation.names().into_iter().zip(colours.iter().copied()).collect();
    let curve = curves(situation, verdict.judged.measure, &colours, extent);
    let curve = with_links(
        curve,
        &format!("{}: {}", situation.title, title_of_curves(verdict.judged.measure)),
        &legend,
        || curve::csv(situation, verdict.judged.measure),
    );
    format!(
        "<section class=\"card situation\" id=\"s{number}\"><h2>{title}</h2>\n<p class=\"verdict\">{words}.{missing}</p>\n\
         <div class=\"panes\"><div><p class=\"note\">{says}</p>\n{bars}\
         <p><a class=\"report\" href=\"{report}\">Full report</a></p></div>\n\
         {curve}\n{map}</div></section>\n",
        title = escape(situation.title),
        words = escape(&verdict.words()),
        missing = escape(&situation.missing_words()),
        says = escape(situation.description),
        bars = bars(verdict, &colours, extent),
        report = escape(&situation.report),
    )
}

/// Draws the traffic of two runs on the topology; empty if they have different topologies.
fn difference(base: &RunResult, other: &RunResult) -> String {
    map::svg(base, other).map_or(String::new(), |svg| {
        let (first, other) = (escape(&base.info.name), escape(&other.info.name));
        format!("<figure><figcaption>Where traffic goes: {other} beside {first}</figcaption>{svg}</figure>")
    })
}

fn curves(situation: &SchemeComparison<'_>, measure: Measure, colours: &[usize], extent: Extent) -> String {
    let title = title_of_curves(measure);
    let svg = curve::svg(situation, measure, colours, extent);
    let svg = svg.unwrap_or_else(|| "<p class=\"note\">No flow has arrived.</p>".to_owned());
    format!("<figure><figcaption>{title}</figcaption>{svg}</figure>")
}

/// Returns the title of curves.
fn title_of_curves(measure: Measure) -> &'static str {
    match measure {
        Measure::JobTime => "Flows that have arrived",
        Measure::TailSlowdown => "Flows that are slower than ...",
        Measure::TailTime => "Flows that take longer than ...",
    }
}

/// Adds links that save the picture of a figure, if it has one. `csv` returns the numbers of the picture.
fn with_links(figure: String, name: &str, legend: &[(&str, usize)], csv: impl FnOnce() -> String) -> String {
    let svg =
        figure.find("<svg").zip(figure.find("</svg>")).map(|(from, to)| &figure[from..to + "</svg>".len()]);
    let Some(svg) = svg else { return figure };
    let links = SavedPicture { name, svg, style: "", legend, csv: &csv() }.links();
    figure.replacen("</figure>", &format!("{links}</figure>"), 1)
}

/// Returns the first screen of a comparison: the best scheme in words, and pictures of its advantage. Colours are
/// those of the other curves of the page.
///
/// # Panics
/// Panics if the situation has no runs.
pub(crate) fn in_brief(situation: &SchemeComparison<'_>) -> (String, String) {
    let verdict = ComparisonResult::of(situation);
    let colours = scheme_colours(&situation.names());
    let shown = verdict.judged.best().filter(|&best| best > 0).unwrap_or(situation.runs.len() - 1);
    let panes = format!(
        "<div>{}</div>\n{}\n{}",
        bars(&verdict, &colours, Extent::default()),
        curves(situation, verdict.judged.measure, &colours, Extent::default()),
        difference(situation.runs[0].0, situation.runs[shown].0)
    );
    (format!("{}.", escape(&verdict.words())), panes)
}

/// Returns the colour of a single run: that of its scheme, if it has one.
pub(crate) fn colour_of_run(run: &RunResult) -> usize {
    match run.info.schemes.as_slice() {
        [scheme] => scheme_colours(&[scheme])[0],
        _ => 0,
    }
}

/// Draws two pictures of one run: the slowdowns of its flows, and the utilisation of its links.
pub(crate) fn of_run(situation: &SchemeComparison<'_>) -> String {
    let run = situation.runs[0].0;
    let mut out = String::new();
    if situation.runs[0].1.measured().finished > 0 {
        out += &curves(situation, Measure::TailSlowdown, &[colour_of_run(run)], Extent::default());
    }
    if let Some(svg) = map::of_one(run) {
        out += &format!("<figure><figcaption>How busy links were</figcaption>{svg}</figure>");
    }
    out
}

/// Draws one bar a scheme, best first, which also serves as legend of the curves.
fn bars(verdict: &ComparisonResult, colours: &[usize], extent: Extent) -> String {
    let Judgement { measure, runs, order } = &verdict.judged;
    let most = runs.iter().filter_map(|run| run.value).fold(extent.value, f64::max);
    let mut out = format!("<table class=\"bars\"><caption>{}, less is better</caption>\n", title(*measure));
    for &run in order {
        let best = if verdict.judged.best() == Some(run) { " class=\"best\"" } else { "" };
        let (width, text) = match runs[run].value {
            Some(figure) => (100.0 * figure / most.max(f64::MIN_POSITIVE), measure.show(figure)),
            None => (0.0, runs[run].without_value().to_owned()),
        };
        out += &format!(
            "<tr{best}><th>{}</th><td><i style=\"width:{width:.1}%;background:var(--c{})\"></i></td>\
             <td>{text}</td></tr>\n",
            escape(&runs[run].name),
            colours[run]
        );
    }
    out + "</table>\n"
}

/// Returns the title of bars.
fn title(measure: Measure) -> &'static str {
    match measure {
        Measure::JobTime => "Job time, until the last message is there",
        Measure::TailSlowdown => "P99 slowdown",
        Measure::TailTime => "P99 completion time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::Summary;

    fn run(name: &str, slowdown: u64) -> (RunResult, Summary) {
        let flow = pathweave_records::FlowRecord {
            finish_ps: Some(slowdown * 1_000),
            ideal_fct_ps: 1_000,
            status: pathweave_records::FlowStatus::Finished,
            ..pathweave_records::FlowRecord::default()
        };
        let mut run = RunResult { flows: vec![flow], ..RunResult::default() };
        run.info.name = name.to_owned();
        run.info.groups = vec!["g".to_owned()];
        run.info.schemes = vec![name.to_owned()];
        run.info.roles = vec![pathweave_records::Role::Foreground];
        let summary = Summary::from_run(&run);
        (run, summary)
    }

    #[test]
    fn names_cannot_break_the_page_and_the_gain_is_told() {
        let runs = [run("ecmp", 6), run("<b>", 2)];
        let situation = SchemeComparison {
            title: "<i>\"&",
            description: "1 < 2",
            report: "a\"b/report.html".to_owned(),
            runs: runs.iter().map(|(run, summary)| (run, summary)).collect(),
            missing: vec!["c".to_owned(), "<d>".to_owned()],
        };
        let page = html("<h>", "", &[situation]);
        let tile = "<b>3.0x</b><span>ecmp has 3.0 times the P99 slowdown of &lt;b&gt;</span>";
        assert!(page.contains(tile), "{page}");
        assert!(page.contains("href=\"a&quot;b/report.html\"") && page.contains("1 &lt; 2"));
        assert!(page.contains("&lt;b&gt; has the lowest P99 slowdown, 2, and the lowest mean, 2;"));
        assert!(page.contains("ecmp has 3.0 times as much (6); a P99 of 1 flow rests on the slowest"));
        assert!(page.contains("turn the order. Not run: c and &lt;d&gt;."));
        // Numbers of curves are lists of lists; placeholders begin with a letter.
        let unfilled = page.split("[[").skip(1).any(|rest| rest.starts_with(char::is_alphabetic));
        assert!(!unfilled && page.contains("<title>pathweave</title>"));
        assert!(
            page.contains("width:100.0%;background:var(--c7)")
                && page.contains(&format!(
                    "width:33.3%;background:var(--c{})",
                    scheme_colours(&["ecmp", "<b>"])[1]
                ))
        );
    }

    /// Two fabrics under the same schemes have bars and axes of one scale; under other schemes, each has its own.
    #[test]
    fn fabrics_that_are_compared_have_one_scale() {
        let (thin, fat) = ([run("ecmp", 40), run("weave", 20)], [run("ecmp", 10), run("weave", 4)]);
        let other = [run("ecmp", 10), run("udmp", 4)];
        let situation = |title, runs: &'static [(RunResult, Summary); 2]| SchemeComparison {
            title,
            description: "",
            report: String::new(),
            runs: runs.iter().map(|(run, summary)| (run, summary)).collect(),
            missing: Vec::new(),
        };
        let [thin, fat, other] = [thin, fat, other].map(|runs| -> &'static _ { Box::leak(Box::new(runs)) });
        let widths = |page: &str| -> Vec<String> {
            let of = |rest: &str| rest.split('%').next().unwrap_or("").to_owned();
            page.split("<i style=\"width:").skip(1).map(of).collect()
        };
        let compared = html("", "", &[situation("thin", thin), situation("fat", fat)]);
        assert_eq!(widths(&compared), ["50.0", "100.0", "10.0", "25.0"]);
        let unlike = html("", "", &[situation("thin", thin), situation("other", other)]);
        assert_eq!(widths(&unlike), ["50.0", "100.0", "40.0", "100.0"]);
        // The axes of both curves have the ticks of the larger one.
        let tick = |page: &str| page.matches("text-anchor=\"middle\">20</text>").count();
        let [of_thin, of_fat] = [thin, fat].map(|runs| tick(&html("", "", &[situation("", runs)])));
        assert_eq!((tick(&compared), of_thin, of_fat), (2, 1, 0));
    }
}
