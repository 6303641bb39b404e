//! Comparison of a curve with rival curves, and claims over many rows.

use std::collections::BTreeMap;

use crate::paper::model::Claim;
use crate::paper::plan::FigurePlan;
use crate::paper::state::{margin, within_limits};

/// Returns the names of all curves other than the claim's.
pub(crate) fn others<'a>(figure: &'a FigurePlan, claim: &Claim) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for one in &figure.figure.file.series {
        if one.name != claim.series && !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    names
}

/// Returns the mean over seeds of the claim's measure at a panel and sweep value. Returns `None` if a seed has no
/// value, for instance because a flow did not finish.
pub(crate) fn mean(figure: &FigurePlan, claim: &Claim, (p, x): (usize, usize), series: &str) -> Option<f64> {
    let measure = figure.figure.file.measure.iter().position(|known| known.name == claim.measure)?;
    let named = |index: usize| figure.figure.file.series[index].name == series;
    let point = figure.points.iter().find(|at| at.panel == p && at.x == x && named(at.series))?;
    figure.estimate(point, measure).map(|estimate| estimate.mean)
}

/// Returns the rival with the smallest mean over seeds.
pub(crate) fn best<'a>(figure: &'a FigurePlan, claim: &Claim, at: (usize, usize)) -> Option<&'a str> {
    let others = others(figure, claim).into_iter();
    let means = others.filter_map(|name| Some((name, mean(figure, claim, at, name)?)));
    means.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(name, _)| name)
}

/// Largest number of rows that the text lists.
const MAX_LISTED_ROWS: usize = 12;

/// Returns the number of rows in which a claim holds, and the list of the other rows, the worst first.
pub(crate) fn rows_text(
    figure: &FigurePlan,
    claim: &Claim,
    rows: &BTreeMap<usize, Vec<Option<f64>>>,
) -> (String, String) {
    let mut beyond: Vec<(f64, String)> = Vec::new();
    for (&panel, values) in rows {
        let name = &figure.panels[panel].name;
        let known: Option<Vec<f64>> = values.iter().copied().collect();
        let Some(known) = known.filter(|known| !known.is_empty()) else {
            beyond.push((f64::NEG_INFINITY, format!("{name} (none)")));
            continue;
        };
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        if !within_limits(claim, mean) {
            beyond.push((margin(claim, mean), format!("{name} ({})", claim.show.show(mean))));
        }
    }
    beyond.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let count = format!(" in {} of {} rows", rows.len() - beyond.len(), rows.len());
    let mut names: Vec<String> = beyond.iter().take(MAX_LISTED_ROWS).map(|(_, name)| name.clone()).collect();
    if beyond.len() > MAX_LISTED_ROWS {
        names.push(format!("and {} more", beyond.len() - MAX_LISTED_ROWS));
    }
    let text = if names.is_empty() { String::new() } else { format!("not in {}", names.join(", ")) };
    (count, text)
}
