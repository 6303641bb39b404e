//! Check of the names within a figure's file. A claim or plot that refers to an undefined measure would otherwise be
//! dropped silently.

use std::collections::BTreeMap;

use crate::paper::catalogue::Figure;
use crate::paper::error::{PaperError, unknown};
use crate::paper::model::{
    Claim, FigureFile, Judged, Measure, Metric, Panel, Part, PlotKind, Published, Stat, unit_factor,
    value_text,
};
use crate::paper::plan::number;

/// Returns an error for the first undefined name in `figure`.
pub(crate) fn check(paper: &str, parts: &BTreeMap<String, Part>, figure: &Figure) -> Result<(), PaperError> {
    let file = &figure.file;
    let within = |what: &str, why: &dyn std::fmt::Display| PaperError::File {
        file: format!("papers/{paper}/{}.toml", figure.id),
        message: format!("{what}: {why}"),
    };
    if file.series.is_empty() {
        return Err(within("series", &"neither the figure nor the paper has any"));
    }
    for panel in &file.panel {
        check_panel(file, parts, panel).map_err(|why| within(&format!("panel \"{}\"", panel.name), &why))?;
    }
    for measure in &file.measure {
        check_measure(file, measure).map_err(|why| within(&format!("measure \"{}\"", measure.name), &why))?;
    }
    check_plot(file).map_err(|why| within("plot", &why))?;
    for name in &file.rank {
        known_measure(file, name).map_err(|why| within("rank", &why))?;
    }
    for claim in &file.claim {
        check_claim(file, claim).map_err(|why| within(&format!("claim \"{}\"", claim.text), &why))?;
    }
    for published in &file.published {
        check_published(file, published)
            .map_err(|why| within(&format!("published \"{}\"", published.series), &why))?;
    }
    for scheme in file.testbed.iter().flat_map(|testbed| &testbed.schemes) {
        let schemes = file.series.iter().filter_map(|series| series.scheme.as_deref());
        known("scheme of a curve", scheme, schemes).map_err(|why| within("testbed", &why))?;
    }
    for trace in &file.trace {
        for term in &trace.terms {
            let names = [&term.host, &term.link, &term.queue].iter().filter(|name| name.is_some()).count();
            let flows = [term.flow_rate, term.flow_held].iter().flatten().count();
            if names + flows != 1 {
                let why = "each term has one of `host`, `link`, `queue`, `flow_rate`, `flow_held`";
                return Err(within(&format!("trace \"{}\"", trace.name), &why));
            }
            if term.payload && term.link.is_none() {
                return Err(within(&format!("trace \"{}\"", trace.name), &"`payload` is of a `link`"));
            }
        }
    }
    Ok(())
}

fn check_panel(file: &FigureFile, parts: &BTreeMap<String, Part>, panel: &Panel) -> Result<(), String> {
    for part in &panel.parts {
        known("part", part, parts.keys().map(String::as_str))?;
    }
    for name in &panel.without {
        known("curve", name, file.series.iter().map(|series| series.name.as_str()))?;
    }
    let numbers = file.sweep.iter().flat_map(|sweep| &sweep.values).all(|value| number(value).is_some());
    if panel.scale.is_some() && (file.sweep.is_none() || !numbers) {
        return Err("`scale` needs a sweep over numbers".to_owned());
    }
    if file.panel.iter().filter(|other| other.name == panel.name).count() > 1 {
        return Err("there is another of this name".to_owned());
    }
    Ok(())
}

fn check_measure(file: &FigureFile, measure: &Measure) -> Result<(), String> {
    if measure.of == Metric::Trace {
        let name = measure.trace.as_deref().unwrap_or_default();
        known("trace", name, file.trace.iter().map(|trace| trace.name.as_str()))?;
    } else if measure.stat == Stat::TimeBelow {
        return Err("`time-below` is of a trace".to_owned());
    }
    if (measure.of == Metric::LengthShare) != measure.links.is_some() {
        return Err("`links` goes with `length-share`, which needs it".to_owned());
    }
    if (measure.of == Metric::StateBytes) == file.scenario.is_some() {
        return Err(
            "`state-bytes` is for figures without `scenario`, and all else for those with one".to_owned()
        );
    }
    Ok(())
}

fn check_published(file: &FigureFile, published: &Published) -> Result<(), String> {
    known_measure(file, &published.measure)?;
    known("curve", &published.series, file.series.iter().map(|series| series.name.as_str()))?;
    if let Some(panel) = &published.panel {
        known("panel", panel, file.panel.iter().map(|panel| panel.name.as_str()))?;
    }
    let expected = file.sweep.as_ref().map_or(1, |sweep| sweep.values.len());
    if published.values.len() != expected {
        return Err(format!(
            "{} values; expected {expected}, one for each of the sweep",
            published.values.len()
        ));
    }
    Ok(())
}

fn check_plot(file: &FigureFile) -> Result<(), String> {
    let plot = &file.plot;
    if unit_factor(&plot.unit).is_none() {
        return Err(format!("unknown unit \"{}\"", plot.unit));
    }
    if plot.time.as_deref().is_some_and(|unit| !["us", "ms"].contains(&unit)) {
        return Err("`time` is \"us\" or \"ms\"".to_owned());
    }
    if plot.judged.is_some() && plot.kind != PlotKind::HeatMap {
        return Err("`judged` goes with a `heat-map`".to_owned());
    }
    match plot.kind {
        PlotKind::Cdf if plot.of.is_none() => Err("`of` is missing".to_owned()),
        PlotKind::Bars if !plot.measures.is_empty() => {
            plot.measures.iter().try_for_each(|name| known_measure(file, name))
        }
        PlotKind::HeatMap if plot.measures.is_empty() => Err("`measures` is missing".to_owned()),
        PlotKind::HeatMap if file.sweep.is_some() => {
            Err("its rows are panels, so there is no sweep".to_owned())
        }
        PlotKind::HeatMap => {
            plot.measures.iter().try_for_each(|name| known_measure(file, name))?;
            plot.judged.iter().try_for_each(|judged| check_judged(file, judged))
        }
        PlotKind::Lines | PlotKind::Bars => {
            known_measure(file, plot.measure.as_deref().unwrap_or_default())?;
            plot.also.iter().try_for_each(|name| known_measure(file, name))
        }
        PlotKind::Traces if file.trace.is_empty() => Err("there is no [[trace]]".to_owned()),
        _ => Ok(()),
    }
}

fn check_judged(file: &FigureFile, judged: &Judged) -> Result<(), String> {
    known_measure(file, &judged.jobs)?;
    judged.arrivals.iter().try_for_each(|name| known_measure(file, name))?;
    for name in &judged.fabrics {
        if !file.panel.iter().any(|panel| panel.matches_name(name)) {
            let names = file.panel.iter().flat_map(|panel| panel.tags.iter().chain([&panel.group]));
            known("heading or tag of rows", name, names.map(String::as_str))?;
        }
    }
    Ok(())
}

fn check_claim(file: &FigureFile, claim: &Claim) -> Result<(), String> {
    let series = || file.series.iter().map(|series| series.name.as_str());
    let panels = || file.panel.iter().map(|panel| panel.name.as_str());
    known_measure(file, &claim.measure)?;
    if claim.series != "*" {
        known("series", &claim.series, series())?;
    }
    for name in &claim.panels {
        if !file.panel.iter().any(|panel| panel.matches_name(name)) {
            known("panel", name, panels())?;
        }
    }
    for value in &claim.at {
        let sweep = file.sweep.iter().flat_map(|sweep| &sweep.values);
        let values: Vec<String> = sweep.map(value_text).collect();
        known("value of the sweep", &value_text(value), values.iter().map(String::as_str))?;
    }
    if let Some(versus) = &claim.versus {
        if let Some(name) = &versus.measure {
            known_measure(file, name)?;
        }
        if let Some(value) = &versus.at {
            let values: Vec<String> =
                file.sweep.iter().flat_map(|sweep| &sweep.values).map(value_text).collect();
            known("value of the sweep", &value_text(value), values.iter().map(String::as_str))?;
        }
        if let Some(name) = &versus.series {
            known("series", name, series())?;
        }
        if versus.against.is_some()
            && (versus.series.is_some() || versus.panel.is_some() || claim.series == "*")
        {
            return Err(
                "`against` goes with one curve, and without `versus.series` and `versus.panel`".to_owned()
            );
        }
        if let Some(name) = &versus.panel {
            known("panel", name, panels())?;
        }
    }
    match (claim.at_least, claim.at_most) {
        (None, None) => Err("give `at_least`, `at_most` or both".to_owned()),
        (Some(least), Some(most)) if least > most => Err("`at_least` is above `at_most`".to_owned()),
        _ => Ok(()),
    }
}

fn known_measure(file: &FigureFile, name: &str) -> Result<(), String> {
    known("measure", name, file.measure.iter().map(|measure| measure.name.as_str()))
}

fn known<'a>(kind: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
    if names.clone().any(|one| one == name) { Ok(()) } else { Err(unknown(kind, name, names).to_string()) }
}
