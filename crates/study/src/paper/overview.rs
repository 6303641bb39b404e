//! Overview of all papers on one page. Each published claim is a strip with the published band and the recorded
//! result.

use pathweave_report::{PNG_SCRIPT, SavedPicture, csv_line, escape};

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
.export{font-size:13px;color:var(--soft);margin:.2rem 0;text-align:right}.export a{margin-left:.6rem}\
@media(max-width:46rem){.claim{grid-template-columns:1fr}.claim svg{max-width:20rem}}";

/// Style of the strips in a saved picture, for the colours of the other pages.
const SAVED_STYLE: &str = "\
.yes{color:var(--good)}.no{color:var(--bad)}.open{color:var(--warn)}.band{fill:var(--c5);fill-opacity:.4}.axis{stroke:var(--line)}\
.none{stroke:var(--soft);stroke-dasharray:2 3}.dot{fill:currentColor;stroke:currentColor}\
.ours{fill:var(--card);stroke:var(--soft);stroke-width:1.5}.whisker{stroke:currentColor;stroke-width:2}";

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
            let mut rows = Vec::new();
            for (id, figure) in figures {
                rows.extend(strips(&paper, id, figure)?);
            }
            body.extend(rows.iter().map(Strip::html));
            body.push_str(&saved(&format!("{}, {}", paper.file.title, shown.name), &rows));
        }
    }
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Five papers, published against measured</title><style>{STYLE}</style></head>\n<body>\n\
         <h1>Five papers, published against measured</h1>\n<p><strong>{}</strong></p>\n{}{body}<script>{PNG_SCRIPT}</script></body></html>\n",
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

/// A claim with its result.
struct Strip {
    claim: Claim,
    one: RecordedVerdict,
    /// Result of our repaired scheme.
    ours: Option<RecordedVerdict>,
}

/// Returns a strip for each counting claim of the judged variant, with the result of ours beside it.
fn strips(paper: &Paper, id: &str, figure: &RecordedFigure) -> Result<Vec<Strip>, PaperError> {
    let file = &paper.figure(id)?.file;
    let judged = judgement(&figure.claims, paper.file.judged.as_ref());
    let mut strips = Vec::new();
    for one in judged.iter().flat_map(|judged| &judged.claims) {
        let Some(claim) = file.claim.iter().find(|claim| claim.text == one.claim) else { continue };
        let ours = figure.claims.iter().find(|other| {
            other.claim == one.claim && other.variant == Variant::OURS && one.variant != Variant::OURS
        });
        strips.push(Strip { claim: claim.clone(), one: (*one).clone(), ours: ours.cloned() });
    }
    Ok(strips)
}

impl Strip {
    /// Returns class and word of the state.
    fn state(&self) -> (&'static str, &'static str) {
        match self.one.weight {
            Weight::Fitted => ("open", "fitted"),
            _ => (self.one.state.class(), self.one.state.word()),
        }
    }

    fn html(&self) -> String {
        let (class, word) = self.state();
        let also = self.ours.as_ref().map_or(String::new(), |ours| {
            format!("<br><span class=\"note\">ours {}</span>", escape(&ours.measured))
        });
        let words = escape(&format!("published {}, measured {}", self.claim.published, self.one.measured));
        let picture = self.marks().map_or(String::new(), |marks| {
            format!("<svg viewBox=\"0 0 {WIDTH} 30\" role=\"img\" aria-label=\"{words}\">{marks}</svg>")
        });
        format!(
            "<div class=\"claim\"><span>{}<br><span class=\"note\">published {}</span></span><span class=\"{class}\">{picture}</span>\
             <span class=\"{class}\">{} <strong>{word}</strong>{also}</span></div>\n",
            escape(&self.claim.text),
            escape(&self.claim.published),
            escape(&self.one.measured),
        )
    }

    /// Returns the numbers as a line of CSV.
    fn numbers(&self) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        csv_line([
            self.claim.text.clone(),
            self.claim.published.clone(),
            number(self.claim.at_least),
            number(self.claim.at_most),
            self.claim.tolerance.to_string(),
            self.one.measured.clone(),
            number(self.one.mean),
            number(self.one.ci95),
            number(self.ours.as_ref().and_then(|ours| ours.mean)),
            self.state().1.to_owned(),
        ])
    }
}

/// Height of a strip in a saved picture, and horizontal positions of the strip and of the words after it.
const ROW: f64 = 34.0;
const STRIP_X: f64 = 430.0;
const RESULT_X: f64 = 745.0;
/// Number of characters with room before a strip.
const MOST_CHARS: usize = 66;

/// Returns links that save the strips of a figure; none if nothing is drawn.
fn saved(name: &str, strips: &[Strip]) -> String {
    let drawn: Vec<(&Strip, String)> =
        strips.iter().filter_map(|strip| Some((strip, strip.marks()?))).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let mut svg = format!("<svg viewBox=\"0 0 1000 {}\">", ROW * drawn.len() as f64);
    for (row, (strip, marks)) in drawn.iter().enumerate() {
        let (class, word) = strip.state();
        let (y, words) = (ROW * row as f64, &strip.claim.text);
        let short: String = words.chars().take(MOST_CHARS).collect();
        let dots = if short.len() < words.len() { "\u{2026}" } else { "" };
        svg.push_str(&format!(
            "<text x=\"4\" y=\"{0}\">{1}{dots}</text><g class=\"{class}\" transform=\"translate({STRIP_X} {y})\">{marks}</g>\
             <text class=\"legend\" x=\"{RESULT_X}\" y=\"{0}\">{2} {word}</text>",
            y + 19.0,
            escape(&short),
            escape(&strip.one.measured)
        ));
    }
    svg.push_str("</svg>");
    let head = [
        "claim",
        "published",
        "at least",
        "at most",
        "tolerance",
        "measured",
        "mean",
        "half width of the 95 % interval",
        "mean of ours",
        "state",
    ];
    let csv: String = std::iter::once(csv_line(head)).chain(strips.iter().map(Strip::numbers)).collect();
    SavedPicture { name, svg: &svg, style: SAVED_STYLE, legend: &[], csv: &csv }.links()
}

const WIDTH: f64 = 300.0;
/// Horizontal position of no effect. The middle of the published band is at [`PUBLISHED_X`].
const NO_EFFECT_X: f64 = 60.0;
const PUBLISHED_X: f64 = 170.0;

impl Strip {
    /// Returns what is drawn of the claim. `None` if it has no number.
    fn marks(&self) -> Option<String> {
        let (claim, one) = (&self.claim, &self.one);
        let scale = Scale::of(claim)?;
        let mut text = format!("<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"15\" y2=\"15\"/>");
        if let Some(none) = without_effect(claim) {
            text.push_str(&format!(
                "<line class=\"none\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"3\" y2=\"27\"/>",
                scale.at(none)
            ));
        }
        let least = claim.at_least.map_or(f64::NEG_INFINITY, |least| least - claim.tolerance);
        let most = claim.at_most.map_or(f64::INFINITY, |most| most + claim.tolerance);
        let ends = [scale.at(least), scale.at(most)];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        text.push_str(&format!(
            "<rect class=\"band\" x=\"{low:.1}\" y=\"7\" width=\"{:.1}\" height=\"16\"/>",
            (high - low).max(2.0)
        ));
        if let Some(mean) = self.ours.as_ref().and_then(|ours| ours.mean) {
            text.push_str(&format!(
                "<circle class=\"ours\" cx=\"{:.1}\" cy=\"15\" r=\"4\"/>",
                scale.at(mean)
            ));
        }
        if let Some(mean) = one.mean {
            let half = one.ci95.unwrap_or(0.0);
            text.push_str(&format!(
                "<line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"15\" y2=\"15\"/><circle class=\"dot\" cx=\"{:.1}\" \
                 cy=\"15\" r=\"5\"/>",
                scale.at(mean - half),
                scale.at(mean + half),
                scale.at(mean)
            ));
        }
        Some(text)
    }
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
        let strip = Strip { claim: lower, one, ours: Some(ours) };
        let text = strip.html();
        for part in [
            "class=\"band\" x=\"115.0\" y=\"7\" width=\"110.0\"",
            "x1=\"115.0\" x2=\"225.0\"",
            "class=\"dot\" cx=\"170.0\"",
            "class=\"ours\" cx=\"280.0\"",
            "<strong>agrees</strong>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let links = saved("Figure 1", &[strip]);
        for kind in ["svg", "png", "csv"] {
            assert!(links.contains(&format!("download=\"figure-1.{kind}\"")), "{links}");
        }
        // Without a mean of ours the cell would be empty.
        assert!(links.contains("t,p,0.1,0.3,0,20 %25,0.2,0.1,0.4,agrees%0A"), "{links}");
        assert_eq!(saved("Figure 1", &[]), "");
    }
}
