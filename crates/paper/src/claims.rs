//! Whether what was published holds for what was measured.

use pathweave_results::Quantity;
use serde::Serialize;

use crate::model::{Claim, Compare, Over, Show, Variant};
use crate::plan::{FigurePlan, Plan, plain};
use pathweave_results::Estimate;

/// A claim and what we have to say about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Figure or table.
    pub figure: String,
    /// What is claimed.
    pub claim: String,
    /// The published number or relation.
    pub published: String,
    /// "published" or "repaired"; empty for schemes without variants.
    pub variant: String,
    /// What we measured.
    pub measured: String,
    /// Whether it holds, within the tolerance.
    pub agrees: bool,
    /// Why not, where that is known; else what was compared.
    pub why: String,
    /// More than the list of claims shows.
    #[serde(skip)]
    pub detail: Detail,
}

/// What stands behind a [`Verdict`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Where it is stated.
    pub source: String,
    /// The number, where there is one.
    pub estimate: Option<Estimate>,
    /// What agrees.
    pub rule: String,
}

/// All claims of all figures.
pub fn verdicts(plan: &Plan) -> Vec<Verdict> {
    let figures = plan.figures.iter();
    figures.flat_map(|f| f.figure.file.claim.iter().flat_map(|claim| judge(f, claim))).collect()
}

/// One verdict a variant.
fn judge(figure: &FigurePlan, claim: &Claim) -> Vec<Verdict> {
    let of_name = figure.figure.file.series.iter().filter(|series| series.name == claim.series);
    of_name.map(|series| verdict(figure, claim, series.variant)).collect()
}

fn verdict(figure: &FigurePlan, claim: &Claim, variant: Option<Variant>) -> Verdict {
    let mut estimates = Vec::new();
    let mut span: Option<(f64, f64)> = None;
    let mut missing = false;
    for seed in 0..figure.seeds.len() {
        let values = compared(figure, claim, variant, seed);
        missing |= values.is_empty() || values.iter().any(Option::is_none);
        let values: Vec<f64> = values.into_iter().flatten().collect();
        for &value in &values {
            span = Some(span.map_or((value, value), |(a, b)| (a.min(value), b.max(value))));
        }
        estimates.extend(over(claim.over, &values));
    }
    let estimate = Estimate::from_values(&estimates).filter(|_| !missing);
    let agrees = estimate.is_some_and(|e| holds(claim, e.mean));
    let open = estimate.is_some_and(|e| undecided(claim, e));
    let why = match variant {
        _ if open => UNDECIDED.to_owned(),
        _ if agrees => String::new(),
        _ if missing => not_measured(figure, claim, variant),
        Some(Variant::Published) => claim.why.published.clone(),
        _ => claim.why.repaired.clone(),
    };
    Verdict {
        figure: figure.figure.id.clone(),
        claim: claim.text.clone(),
        published: claim.published.clone(),
        variant: variant.map(Variant::name).unwrap_or_default().to_owned(),
        measured: estimate.map_or("none".to_owned(), |e| measured(claim, e, span)),
        agrees,
        why: if agrees || !why.is_empty() { why } else { "not known".to_owned() },
        detail: Detail { source: claim.source.clone(), estimate, rule: rule(claim) },
    }
}

/// Said in place of a reason: there may be nothing to explain.
const UNDECIDED: &str =
    "undecided: the 95 % interval reaches across the limit, more seeds are needed to tell";

/// Whether the interval holds values that agree and values that do not.
fn undecided(claim: &Claim, estimate: Estimate) -> bool {
    let Some(half) = estimate.ci95 else { return false };
    let ends = [estimate.mean - half, estimate.mean + half];
    ends.iter().any(|&end| holds(claim, end) != holds(claim, estimate.mean))
}

fn not_measured(figure: &FigurePlan, claim: &Claim, variant: Option<Variant>) -> String {
    let series = &figure.figure.file.series;
    let involved = |index: usize| {
        let one = &series[index];
        (one.name == claim.series
            || claim.versus.as_ref().is_some_and(|v| v.series.as_ref() == Some(&one.name)))
            && (one.variant == variant || one.variant.is_none())
    };
    let points = figure.points.iter().filter(|point| involved(point.series));
    let unfinished: usize =
        points.flat_map(|point| point.observed.iter().flatten()).map(|o| o.unfinished).sum();
    match unfinished {
        0 => "not measured: a run is missing, or what it is compared with is 0 in one".to_owned(),
        n => format!("{n} flows did not finish, so there is no number to compare"),
    }
}

/// The compared numbers of one seed, one a panel and sweep value.
fn compared(figure: &FigurePlan, claim: &Claim, variant: Option<Variant>, seed: usize) -> Vec<Option<f64>> {
    let mut found = Vec::new();
    let at: Vec<String> = claim.at.iter().map(plain).collect();
    for (p, panel) in figure.panels.iter().enumerate() {
        if !claim.panels.is_empty() && !claim.panels.contains(&panel.name) {
            continue;
        }
        for (x, text) in figure.xs.iter().enumerate() {
            if !at.is_empty() && !at.contains(text) {
                continue;
            }
            let value = figure.value(p, &claim.series, variant, x, &claim.measure, seed);
            found.push(match &claim.versus {
                None => value,
                Some(versus) => {
                    let panel = versus.panel.as_ref().map_or(Some(p), |name| figure.panel(name));
                    let series = versus.series.as_ref().unwrap_or(&claim.series);
                    let measure = versus.measure.as_ref().unwrap_or(&claim.measure);
                    let base = panel.and_then(|p| figure.value(p, series, variant, x, measure, seed));
                    base.zip(value).and_then(|(base, value)| relation(claim.compare, value, base))
                }
            });
        }
    }
    found
}

/// `None` where something is compared with nothing.
fn relation(compare: Compare, value: f64, base: f64) -> Option<f64> {
    // No pauses in either is no change.
    let ratio = if value == base { 1.0 } else { value / base };
    ratio.is_finite().then_some(match compare {
        Compare::Ratio => ratio,
        Compare::Reduction => 1.0 - ratio,
        Compare::Increase => ratio - 1.0,
    })
}

fn over(over: Over, values: &[f64]) -> Option<f64> {
    match over {
        Over::Mean => Estimate::from_values(values).map(|e| e.mean),
        Over::Min => values.iter().copied().reduce(f64::min),
        Over::Max => values.iter().copied().reduce(f64::max),
    }
}

fn holds(claim: &Claim, value: f64) -> bool {
    // What a decimal fraction cannot say exactly is not a disagreement.
    let slack = claim.tolerance + 1e-9 * value.abs();
    claim.at_least.is_none_or(|least| value >= least - slack)
        && claim.at_most.is_none_or(|most| value <= most + slack)
}

fn measured(claim: &Claim, estimate: Estimate, span: Option<(f64, f64)>) -> String {
    let show = |value| claim.show.show(value);
    let mut text = show(estimate.mean);
    if let Some(ci) = estimate.ci95 {
        text.push_str(&format!(" +- {}", show(ci)));
    }
    if let Some((low, high)) = span
        && show(low) != show(high)
    {
        text.push_str(&format!(" ({} to {})", show(low), show(high)));
    }
    text
}

fn rule(claim: &Claim) -> String {
    let show = |value| claim.show.show(value);
    let bounds = match (claim.at_least, claim.at_most) {
        (Some(a), Some(b)) if a == b => show(a),
        (Some(a), Some(b)) => format!("{} to {}", show(a), show(b)),
        (Some(a), None) => format!("at least {}", show(a)),
        (None, Some(b)) => format!("at most {}", show(b)),
        (None, None) => "any".to_owned(),
    };
    if claim.tolerance > 0.0 { format!("{bounds}, +- {}", show(claim.tolerance)) } else { bounds }
}

impl Show {
    /// The number as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Show::Ratio => format!("{value:.2}x"),
            Show::Percent => format!("{:.1} %", value * 100.0),
            Show::Time => Quantity::TimeNs.show(value),
            Show::Rate => Quantity::RateBps.show(value),
            Show::Bytes => format!("{value:.0} B"),
            Show::Plain => Quantity::Plain.show(value),
        }
    }
}

impl FigurePlan {
    /// A measure at a point. Curves with variants answer for the one asked for, others for any.
    pub fn value(
        &self,
        panel: usize,
        series: &str,
        variant: Option<Variant>,
        x: usize,
        measure: &str,
        seed: usize,
    ) -> Option<f64> {
        let file = &self.figure.file;
        let m = file.measure.iter().position(|known| known.name == measure)?;
        let fits = |index: usize| {
            let known = &file.series[index];
            known.name == series && (known.variant.is_none() || known.variant == variant)
        };
        let point = self.points.iter().find(|p| p.panel == panel && p.x == x && fits(p.series))?;
        point.observed[seed].as_ref()?.values[m]
    }

    /// A panel by name.
    pub fn panel(&self, name: &str) -> Option<usize> {
        self.panels.iter().position(|panel| panel.name == name)
    }

    /// A measure of a point over all seeds.
    pub fn estimate(&self, point: &crate::plan::Point, measure: usize) -> Option<Estimate> {
        let values: Option<Vec<f64>> =
            point.observed.iter().map(|seed| seed.as_ref().and_then(|o| o.values[measure])).collect();
        Estimate::from_values(&values?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(limits: &str) -> Claim {
        let head = "text = 't'\nsource = 's'\npublished = 'p'\nmeasure = 'm'\nseries = 'x'\nshow = 'ratio'\n";
        toml::from_str(&format!("{head}{limits}")).unwrap()
    }
    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { mean, ci95: Some(half), n: 2 }
    }

    #[test]
    fn limits_and_tolerance() {
        let two = claim("at_least = 2.0\ntolerance = 0.2");
        assert!(holds(&two, 1.8) && !holds(&two, 1.79));
        let band = claim("at_least = 0.3\nat_most = 0.4");
        assert!(holds(&band, 0.3) && holds(&band, 0.4) && !holds(&band, 0.41));
    }

    #[test]
    fn an_interval_across_the_limit_decides_nothing() {
        let two = claim("at_least = 2.0");
        assert!(undecided(&two, estimate(2.1, 0.2)) && undecided(&two, estimate(1.9, 0.2)));
        assert!(!undecided(&two, estimate(2.3, 0.2)) && !undecided(&two, estimate(1.7, 0.2)));
        assert!(!undecided(&two, Estimate { mean: 2.0, ci95: None, n: 1 }));
    }

    #[test]
    fn relations_by_hand() {
        assert_eq!(relation(Compare::Ratio, 3.0, 2.0), Some(1.5));
        assert_eq!(relation(Compare::Reduction, 3.0, 4.0), Some(0.25));
        assert_eq!(relation(Compare::Increase, 3.0, 2.0), Some(0.5));
        assert_eq!(relation(Compare::Ratio, 3.0, 0.0), None);
        assert_eq!(relation(Compare::Reduction, 0.0, 0.0), Some(0.0));
    }
}
