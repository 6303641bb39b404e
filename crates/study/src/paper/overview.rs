//! Overview of all papers on one page. Each published claim is a strip with the published band and the recorded
//! result.

use pathweave_report::escape;

use crate::paper::catalogue::{Catalogue, Paper};
use crate::paper::claims::Weight;
use crate::paper::error::PaperError;
use crate::paper::figures::verdict_text;
use crate::paper::model::{Claim, Variant};
use crate::paper::record::{RecordedFigure, RecordedVerdict};
use crate::paper::standing::{Judgement, judgement};
use crate::paper::state::without_effect;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c1c1c;--page:#fff;--line:#ddd;--soft:#555;--good:#00704f;--bad:#b3261e;--open:#7a6a00;\
--band:#c9d7e8;--link:#0b57a4}\
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--page:#15171a;--line:#3a3d42;--soft:#a9adb3;--good:#5fd0a5;--bad:#ff9a8f;\
--open:#e0c95a;--band:#33465e;--link:#8ab8f0}}\
body{font:16px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--page);\
overflow-wrap:break-word}a{color:var(--link)}\
h2{margin:2.2rem 0 .2rem}h3{font-size:1rem;margin:1.3rem 0 .1rem;border-top:1px solid var(--line);padding-top:.6rem}\
.note{color:var(--soft);font-size:14px;margin:.1rem 0 .4rem}\
.claim{display:grid;grid-template-columns:minmax(0,1fr) 20rem minmax(0,15rem);gap:.2rem 1rem;align-items:center;font-size:14px;\
padding:.15rem 0}.claim svg{width:100%;height:2rem;overflow:visible}\
.yes{color:var(--good)}.no{color:var(--bad)}.open{color:var(--open)}\
.band{fill:var(--band)}.axis{stroke:var(--line)}.none{stroke:var(--soft);stroke-dasharray:2 3}.dot{fill:currentColor;stroke:currentColor}\
.ours{fill:var(--page);stroke:var(--soft);stroke-width:1.5}.whisker{stroke:currentColor;stroke-width:2}\
@media(max-width:46rem){.claim{grid-template-columns:1fr}.claim svg{max-width:20rem}}";

/// Returns the page of all papers that list the contents of their publication, from their records.
///
/// # Errors
/// If a paper's files or its record are invalid.
pub fn overview_html(catalogue: &Catalogue) -> Result<String, PaperError> {
    let (mut body, mut all) = (String::new(), Vec::new());
    for name in catalogue.names() {
        let paper = catalogue.paper(name)?;
        if paper.file.shown.is_empty() {
            continue;
        }
        let record = paper.record()?;
        let variant = paper.file.judged.as_ref().map_or(Variant::AS_PRINTED, Variant::name);
        body.push_str(&format!(
            "<h2 id=\"{0}\">{1}</h2>\n<p class=\"note\">{2} Judged: {3}. <code>pathweave paper {0}</code></p>\n",
            escape(name),
            escape(&paper.file.title),
            escape(&paper.file.citation),
            escape(variant),
        ));
        for shown in &paper.file.shown {
            let figures: Vec<_> =
                shown.figures.iter().filter_map(|id| record.figures.get_key_value(id)).collect();
            let claims = figures.iter().flat_map(|(_, figure)| &figure.claims);
            let judged = judgement(claims, paper.file.judged.as_ref());
            all.extend(judged.as_ref().map(|judged| judged.standing));
            let title = format!("{}: {}", shown.name, shown.what);
            body.push_str(&heading(&title, judged.as_ref(), &shown.no_counterpart));
            for (id, figure) in figures {
                body.push_str(&strips(&paper, id, figure)?);
            }
        }
    }
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Five papers, published against measured</title><style>{STYLE}</style></head>\n<body>\n\
         <h1>Five papers, published against measured</h1>\n<p><strong>{}</strong></p>\n{}{body}</body></html>\n",
        verdict_text(all),
        legend()
    ))
}

fn legend() -> String {
    let strip = "<svg viewBox=\"0 0 300 30\" role=\"img\" aria-label=\"a strip\"><line class=\"axis\" x1=\"0\" x2=\"300\" y1=\"15\" \
                 y2=\"15\"/><line class=\"none\" x1=\"60\" x2=\"60\" y1=\"3\" y2=\"27\"/><rect class=\"band\" x=\"150\" y=\"7\" \
                 width=\"40\" height=\"16\"/><line class=\"whisker\" x1=\"165\" x2=\"215\" y1=\"15\" y2=\"15\"/><circle class=\"dot\" \
                 cx=\"190\" cy=\"15\" r=\"5\"/><circle class=\"ours\" cx=\"240\" cy=\"15\" r=\"4\"/></svg>";
    format!(
        "<div class=\"claim\"><span>A strip: the band is what is published, with its tolerance; the dashed line is no effect; the \
         dot is what was measured here, with the 95 % interval; the ring is our repaired scheme.</span>\
         <span class=\"yes\">{strip}</span><span>Numbers beyond the strip stand at its end.</span></div>\n"
    )
}

fn heading(title: &str, judged: Option<&Judgement<'_>>, no_counterpart: &str) -> String {
    let (class, word, says) = match judged {
        _ if !no_counterpart.is_empty() => ("open", "no counterpart", no_counterpart.to_owned()),
        None => ("open", "not run", String::new()),
        Some(judged) => (judged.standing.class(), judged.standing.word(), judged.count()),
    };
    format!(
        "<h3>{} <span class=\"{class}\">{word}</span></h3>\n<p class=\"note\">{}</p>\n",
        escape(title),
        escape(&says)
    )
}

/// Returns a strip for each counting claim of the judged variant, with the result of ours beside it.
fn strips(paper: &Paper, id: &str, figure: &RecordedFigure) -> Result<String, PaperError> {
    let file = &paper.figure(id)?.file;
    let judged = judgement(&figure.claims, paper.file.judged.as_ref());
    let mut text = String::new();
    for one in judged.iter().flat_map(|judged| &judged.claims) {
        let Some(claim) = file.claim.iter().find(|claim| claim.text == one.claim) else { continue };
        let ours = figure.claims.iter().find(|other| {
            other.claim == one.claim && other.variant == Variant::OURS && one.variant != Variant::OURS
        });
        text.push_str(&strip(claim, one, ours));
    }
    Ok(text)
}

fn strip(claim: &Claim, one: &RecordedVerdict, ours: Option<&RecordedVerdict>) -> String {
    let (class, word) = match one.weight {
        Weight::Fitted => ("open", "fitted"),
        _ => (one.state.class(), one.state.word()),
    };
    let also = ours.map_or(String::new(), |ours| {
        format!("<br><span class=\"note\">ours {}</span>", escape(&ours.measured))
    });
    format!(
        "<div class=\"claim\"><span>{}<br><span class=\"note\">published {}</span></span><span class=\"{class}\">{}</span>\
         <span class=\"{class}\">{} <strong>{word}</strong>{also}</span></div>\n",
        escape(&claim.text),
        escape(&claim.published),
        picture(claim, one, ours),
        escape(&one.measured),
    )
}

const WIDTH: f64 = 300.0;
/// Horizontal position of no effect. The middle of the published band is at [`PUBLISHED_X`].
const NO_EFFECT_X: f64 = 60.0;
const PUBLISHED_X: f64 = 170.0;

fn picture(claim: &Claim, one: &RecordedVerdict, ours: Option<&RecordedVerdict>) -> String {
    let Some(scale) = Scale::of(claim) else { return String::new() };
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} 30\" role=\"img\" aria-label=\"{}\"><line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"15\" \
         y2=\"15\"/>",
        escape(&format!("published {}, measured {}", claim.published, one.measured))
    );
    if let Some(none) = without_effect(claim) {
        text.push_str(&format!(
            "<line class=\"none\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"3\" y2=\"27\"/>",
            scale.at(none)
        ));
    }
    let ends = [
        claim.at_least.map(|least| least - claim.tolerance),
        claim.at_most.map(|most| most + claim.tolerance),
    ];
    let ends =
        [ends[0].unwrap_or(f64::NEG_INFINITY), ends[1].unwrap_or(f64::INFINITY)].map(|end| scale.at(end));
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    text.push_str(&format!(
        "<rect class=\"band\" x=\"{low:.1}\" y=\"7\" width=\"{:.1}\" height=\"16\"/>",
        (high - low).max(2.0)
    ));
    if let Some(mean) = ours.and_then(|ours| ours.mean) {
        text.push_str(&format!("<circle class=\"ours\" cx=\"{:.1}\" cy=\"15\" r=\"4\"/>", scale.at(mean)));
    }
    if let Some(mean) = one.mean {
        let half = one.ci95.unwrap_or(0.0);
        text.push_str(&format!(
            "<line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"15\" y2=\"15\"/><circle class=\"dot\" cx=\"{:.1}\" cy=\"15\" \
             r=\"5\"/>",
            scale.at(mean - half),
            scale.at(mean + half),
            scale.at(mean)
        ));
    }
    text + "</svg>"
}

/// Mapping from numbers to positions on a strip. No effect is at [`NO_EFFECT_X`], the middle of the published band at
/// [`PUBLISHED_X`].
struct Scale {
    none: f64,
    by: f64,
}

impl Scale {
    /// Returns the scale of a claim. `None` if the claim has no number.
    fn of(claim: &Claim) -> Option<Self> {
        let middle = match (claim.at_least, claim.at_most) {
            (Some(least), Some(most)) => f64::midpoint(least, most),
            (least, most) => least.or(most)?,
        };
        let none = without_effect(claim).unwrap_or(0.0);
        let span = middle - none;
        if span.abs() > 1e-12 {
            return Some(Scale { none, by: (PUBLISHED_X - NO_EFFECT_X) / span });
        }
        // The publication sees no effect. The scale then follows the tolerance, or a tenth of the value.
        let wide = if claim.tolerance > 0.0 { claim.tolerance } else { middle.abs().max(1.0) * 0.1 };
        Some(Scale { none: middle - wide, by: 40.0 / wide })
    }

    fn at(&self, value: f64) -> f64 {
        (NO_EFFECT_X + (value - self.none) * self.by).clamp(4.0, WIDTH - 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::state::State;

    fn claim(limits: &str) -> Claim {
        let head = "text = 't'\nsource = 's'\npublished = 'p'\nmeasure = 'm'\nseries = 'x'\nshow = 'ratio'\n";
        toml::from_str(&format!("{head}{limits}")).unwrap()
    }

    #[test]
    fn numbers_stand_where_they_belong_on_a_strip() {
        let lower = claim("versus = { series = 'y' }\ncompare = 'reduction'\nat_least = 0.1\nat_most = 0.3");
        let scale = Scale::of(&lower).unwrap();
        assert_eq!([0.0, 0.2, 0.4].map(|value| scale.at(value)), [60.0, 170.0, 280.0]);
        assert_eq!([scale.at(-9.0), scale.at(f64::INFINITY)], [4.0, 296.0]);
        // A smaller ratio is a larger effect, so it stands further right.
        let ratio = claim("versus = { series = 'y' }\nat_least = 0.5\nat_most = 0.5");
        let scale = Scale::of(&ratio).unwrap();
        assert_eq!([1.0, 0.5, 0.25].map(|value| scale.at(value)), [60.0, 170.0, 225.0]);
        // Equality within 5 %.
        let same = claim("versus = { series = 'y' }\nat_least = 1.0\nat_most = 1.0\ntolerance = 0.05");
        let scale = Scale::of(&same).unwrap();
        assert!((scale.at(1.0) - 100.0).abs() < 1e-9 && (scale.at(1.05) - 140.0).abs() < 1e-6);
    }

    #[test]
    fn a_strip_shows_the_number_its_interval_and_ours() {
        let lower = claim("versus = { series = 'y' }\ncompare = 'reduction'\nat_least = 0.1\nat_most = 0.3");
        let one = RecordedVerdict {
            measured: "20 %".to_owned(),
            mean: Some(0.2),
            ci95: Some(0.1),
            state: State::Agrees,
            ..RecordedVerdict::default()
        };
        let ours = RecordedVerdict { mean: Some(0.4), ..RecordedVerdict::default() };
        let text = strip(&lower, &one, Some(&ours));
        for part in [
            "class=\"band\" x=\"115.0\" y=\"7\" width=\"110.0\"",
            "x1=\"115.0\" x2=\"225.0\"",
            "class=\"dot\" cx=\"170.0\"",
            "class=\"ours\" cx=\"280.0\"",
            "<strong>agrees</strong>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
