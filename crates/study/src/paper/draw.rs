//! Conversion of a figure's points to its picture.

use pathweave_report::scheme_colours;

use crate::paper::bands;
use crate::paper::chart::{Chart, Curve, CurveStyle, PanelChart, Stroke};
use crate::paper::heat::HeatMap;
use crate::paper::model::{PlotKind, Published, Series, Variant, unit_factor, value_text};
use crate::paper::picture::{DrawError, RenderedPicture};
use crate::paper::plan::FigurePlan;
use crate::paper::scores;

/// Returns the picture of a figure, or `None` if it has none. A heat map with several measures is drawn by the first.
pub(crate) fn picture(figure: &FigurePlan) -> Option<Result<RenderedPicture, DrawError>> {
    if figure.figure.file.plot.kind == PlotKind::HeatMap {
        let measure = *scores::measures(figure).first()?;
        return Some(RenderedPicture::new(&HeatMap::new(figure, measure)));
    }
    chart(figure).as_ref().map(RenderedPicture::new)
}

fn chart(figure: &FigurePlan) -> Option<Chart> {
    let plot = &figure.figure.file.plot;
    let panels = match plot.kind {
        PlotKind::Table | PlotKind::HeatMap => return None,
        PlotKind::Cdf => distributions(figure),
        PlotKind::Bars if !plot.measures.is_empty() => grouped_bars(figure),
        PlotKind::Lines | PlotKind::Bars => {
            let names = plot.measure.iter().chain(&plot.also);
            names.flat_map(|name| measures(figure, name, plot.kind == PlotKind::Bars)).collect()
        }
        PlotKind::Traces => traces(figure),
    };
    Some(Chart {
        panels,
        x: plot.x.clone(),
        y: plot.y.clone(),
        log: plot.log,
        levels: plot.level.iter().map(|level| (level.name.clone(), level.at)).collect(),
        share: plot.kind == PlotKind::Cdf,
    })
}

/// Returns colour, stroke and marks of a curve. Curves with the same name share the colour of their scheme and differ
/// in dashes.
pub(crate) fn look(all: &[Series], series: usize, marked: bool) -> CurveStyle {
    let one = &all[series];
    let mut first: Vec<&Series> = Vec::new();
    for series in all {
        if !first.iter().any(|known| known.name == series.name) {
            first.push(series);
        }
    }
    let schemes: Vec<String> = first.iter().map(|series| scheme(series)).collect();
    let schemes: Vec<&str> = schemes.iter().map(String::as_str).collect();
    let own = first.iter().position(|known| known.name == one.name).unwrap_or(0);
    CurveStyle { colour: scheme_colours(&schemes)[own], stroke: stroke(all, one), marked }
}

/// Returns the stroke of a curve. Solid: no variant, ours, or measured. Dashed: as printed, or simulated. Readings
/// follow their position among the variants.
fn stroke(all: &[Series], one: &Series) -> Stroke {
    let place = match one.variant.as_ref().map_or("", Variant::name) {
        "" | Variant::OURS | Variant::MEASURED => 0,
        Variant::AS_PRINTED | Variant::SIMULATED => 1,
        _ => {
            let same = all.iter().filter(|series| series.name == one.name);
            same.take_while(|series| series.variant != one.variant).count()
        }
    };
    [Stroke::Solid, Stroke::Dashed, Stroke::Dotted][place.min(2)]
}

/// Returns the scheme of a curve. The name of the curve stands for the scenario's own scheme.
fn scheme(series: &Series) -> String {
    series.scheme.clone().unwrap_or_else(|| series.name.to_lowercase())
}

/// Approximate upper bound on the steps of a drawn distribution.
const STEPS: usize = 1_000;

fn distributions(figure: &FigurePlan) -> Vec<PanelChart> {
    let unit = unit_factor(&figure.figure.file.plot.unit).unwrap_or(1.0);
    let curve = |point: &crate::paper::plan::Point| {
        // Values of all seeds are pooled, as each seed samples the same distribution.
        let mut values: Vec<f64> =
            point.observed.iter().flatten().flat_map(|o| o.samples.iter().map(|v| v / unit)).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mut points = Vec::new();
        // More steps than pixels would only enlarge the file. The first and the last value are always drawn.
        let every = values.len().div_ceil(STEPS).max(1);
        let mut from = 0.0;
        for (i, &value) in values.iter().enumerate() {
            if i % every == 0 || i + 1 == values.len() {
                let to = (i + 1) as f64 / n;
                points.extend([(value, from), (value, to)]);
                from = to;
            }
        }
        curve_of(figure, point.series, points, false)
    };
    by_panel(figure, curve)
}

fn measures(figure: &FigurePlan, name: &str, bars: bool) -> Vec<PanelChart> {
    let file = &figure.figure.file;
    let unit = unit_factor(&file.plot.unit).unwrap_or(1.0);
    let Some(measure) = file.measure.iter().position(|m| m.name == name) else { return Vec::new() };
    // Without a sweep, each group of bars is a panel, and all share one picture.
    let over_panels = bars && file.sweep.is_none();
    let mut charts: Vec<PanelChart> = Vec::new();
    let groups: Vec<Option<usize>> =
        if over_panels { vec![None] } else { (0..figure.panels.len()).map(Some).collect() };
    for group in groups {
        let (mut curves, mut bands) = (Vec::new(), Vec::new());
        for series in 0..file.series.len() {
            let points =
                figure.points.iter().filter(|p| p.series == series && group.is_none_or(|g| g == p.panel));
            let mut curve = curve_of(figure, series, Vec::new(), true);
            for point in points {
                let Some(estimate) = figure.estimate(point, measure) else { continue };
                let x = if over_panels { point.panel } else { point.x } as f64;
                bands.extend(
                    bands::bands(figure, point, name, x, unit).into_iter().map(|band| (series, band)),
                );
                curve.points.push((x, estimate.mean / unit));
                curve.errors.push(estimate.ci95.unwrap_or(0.0) / unit);
            }
            curves.push(curve);
        }
        if bars {
            let count = curves.len();
            for (series, band) in &mut bands {
                band.x += Chart::bar(*series, count);
            }
        } else if let Some(group) = group {
            curves.extend(published(figure, name, group));
        }
        let names = figure.panels.iter().map(|p| p.name.clone()).collect();
        charts.push(PanelChart {
            title: title(
                group.map_or("", |group| &figure.panels[group].name),
                name,
                !file.plot.also.is_empty(),
            ),
            curves,
            categories: if over_panels { names } else { figure.xs.clone() },
            bars,
            bands: bands.into_iter().map(|(_, band)| band).collect(),
        });
    }
    charts
}

/// Returns the title of a picture: its panel, and its measure if pictures of several measures stand side by side.
fn title(panel: &str, measure: &str, several: bool) -> String {
    let parts = [panel, if several { measure } else { "" }];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns one picture per panel and curve, with a bar for each of several measures at every sweep value.
fn grouped_bars(figure: &FigurePlan) -> Vec<PanelChart> {
    let file = &figure.figure.file;
    let unit = unit_factor(&file.plot.unit).unwrap_or(1.0);
    let mut charts = Vec::new();
    for (panel, of_panel) in figure.panels.iter().enumerate() {
        for (series, of_series) in file.series.iter().enumerate() {
            let bars = |(colour, name): (usize, &String)| {
                let mut curve = Curve {
                    name: name.clone(),
                    look: CurveStyle { colour, ..CurveStyle::default() },
                    ..Curve::default()
                };
                let measure = file.measure.iter().position(|measure| measure.name == *name);
                let here = figure.points.iter().filter(|p| (p.panel, p.series) == (panel, series));
                for point in here {
                    let Some(estimate) = measure.and_then(|m| figure.estimate(point, m)) else { continue };
                    curve.points.push((point.x as f64, estimate.mean / unit));
                    curve.errors.push(estimate.ci95.unwrap_or(0.0) / unit);
                }
                curve
            };
            let parts = [of_panel.name.clone(), of_series.label()];
            charts.push(PanelChart {
                title: parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
                curves: file.plot.measures.iter().enumerate().map(bars).collect(),
                categories: figure.xs.clone(),
                bars: true,
                bands: Vec::new(),
            });
        }
    }
    charts
}

/// Returns the published curves of a measure, at the sweep values of this run.
fn published(figure: &FigurePlan, measure: &str, panel: usize) -> Vec<Curve> {
    let file = &figure.figure.file;
    let Some(sweep) = &file.sweep else { return Vec::new() };
    let here = |of: &&Published| {
        of.measure == measure && of.panel.as_ref().is_none_or(|name| *name == figure.panels[panel].name)
    };
    let curve = |of: &Published| {
        let series = file.series.iter().position(|series| series.name == of.series)?;
        let at = |text: String| figure.xs.iter().position(|x| *x == text);
        let points = sweep.values.iter().zip(&of.values);
        Some(Curve {
            name: format!("{} (published)", of.series),
            points: points.filter_map(|(x, y)| Some((at(value_text(x))? as f64, *y))).collect(),
            errors: Vec::new(),
            look: CurveStyle { stroke: Stroke::Published, ..look(&file.series, series, true) },
        })
    };
    file.published.iter().filter(here).filter_map(curve).collect()
}

/// Returns one picture per panel and curve of the first seed, with one line per trace.
fn traces(figure: &FigurePlan) -> Vec<PanelChart> {
    let file = &figure.figure.file;
    let unit = unit_factor(&file.plot.unit).unwrap_or(1.0);
    let time = unit_factor(file.plot.time.as_deref().unwrap_or("us")).unwrap_or(1e3);
    let mut charts = Vec::new();
    for point in &figure.points {
        let (panel, series) = (&figure.panels[point.panel].name, file.series[point.series].label());
        let Some(observed) = point.observed.first().and_then(Option::as_ref) else { continue };
        let line = |(i, samples): (usize, &Vec<(f64, f64)>)| Curve {
            name: file.trace[i].name.clone(),
            points: samples.iter().map(|&(ns, value)| (ns / time, value / unit)).collect(),
            errors: Vec::new(),
            look: CurveStyle { colour: i, ..CurveStyle::default() },
        };
        charts.push(PanelChart {
            title: if panel.is_empty() { series } else { format!("{panel}, {series}") },
            curves: observed.traces.iter().enumerate().map(line).collect(),
            ..PanelChart::default()
        });
    }
    charts
}

fn curve_of(figure: &FigurePlan, series: usize, points: Vec<(f64, f64)>, marked: bool) -> Curve {
    let all = &figure.figure.file.series;
    Curve { name: all[series].label(), points, errors: Vec::new(), look: look(all, series, marked) }
}

fn by_panel(figure: &FigurePlan, curve: impl Fn(&crate::paper::plan::Point) -> Curve) -> Vec<PanelChart> {
    let panels = figure.panels.iter().enumerate();
    panels
        .map(|(p, panel)| PanelChart {
            title: panel.name.clone(),
            curves: figure.points.iter().filter(|point| point.panel == p).map(&curve).collect(),
            ..PanelChart::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::paper::catalogue::Figure;
    use crate::paper::check::check;
    use crate::paper::model::Panel;

    #[test]
    fn a_curve_has_the_colour_of_its_scheme_on_every_page() {
        let text = r#"
            series = [
                { name = "Ours", variant = "as printed", scheme = "laps-published" },
                { name = "Ours", variant = "ours", scheme = "laps" },
                { name = "UDMP" },
                { name = "hash", scheme = "study-ecmp" },
            ]
        "#;
        let all: BTreeMap<String, Vec<Series>> = toml::from_str(text).unwrap();
        let look = |series| look(&all["series"], series, false);
        let elsewhere = |scheme: &str| scheme_colours(&[scheme])[0];
        assert_eq!(
            [0, 1, 2, 3].map(|series| look(series).colour),
            ["laps", "laps", "udmp", "ecmp"].map(elsewhere)
        );
        assert_eq!([look(0).stroke, look(1).stroke], [Stroke::Dashed, Stroke::Solid]);
    }

    #[test]
    fn published_curves_have_the_points_that_run() {
        let text = r#"
            title = "t"
            section = "s"
            scenario = "s.toml"
            sweep = { key = "k", values = [0.5, 0.8, 1] }
            panel = [{ name = "left" }, { name = "right" }]
            series = [{ name = "A" }, { name = "B" }]
            plot = { kind = "lines", measure = "m" }
            [[measure]]
            name = "m"
            of = "fct"
            [[published]]
            measure = "m"
            series = "B"
            panel = "right"
            values = [5.0, 6.0, 7.0]
        "#;
        let panel = |name: &str| Panel { name: name.to_owned(), ..Panel::default() };
        let figure = Figure { id: "1".to_owned(), file: toml::from_str(text).unwrap() };
        check("p", &BTreeMap::new(), &figure).unwrap();
        let mut plan = FigurePlan {
            panels: vec![panel("left"), panel("right")],
            xs: vec!["0.5".to_owned(), "1".to_owned()],
            seeds: Vec::new(),
            points: Vec::new(),
            traffic: Vec::new(),
            changes_text: String::new(),
            observation_digest: String::new(),
            looks: None,
            figure,
        };
        assert!(published(&plan, "m", 0).is_empty() && published(&plan, "other", 1).is_empty());
        let curve = &published(&plan, "m", 1)[0];
        assert_eq!(
            (curve.name.as_str(), &curve.points[..]),
            ("B (published)", &[(0.0, 5.0), (1.0, 7.0)][..])
        );
        // Published curves need one value per sweep value, and must name existing curves.
        let wrong = |figure: &Figure| check("p", &BTreeMap::new(), figure).unwrap_err().to_string();
        plan.figure.file.published[0].panel = None;
        plan.figure.file.published[0].values.pop();
        assert!(wrong(&plan.figure).contains("2 values; expected 3"), "{}", wrong(&plan.figure));
        plan.figure.file.published[0].series = "C".to_owned();
        assert!(wrong(&plan.figure).contains("\"C\""), "{}", wrong(&plan.figure));
    }
}
