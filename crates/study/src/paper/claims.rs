//! Comparison of published claims with measured results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::paper::model::{
    Against, Claim, Compare, Measure, Metric, Over, Panel, PlotKind, Series, Variant, Versus, value_text,
};
use crate::paper::plan::{FigurePlan, Plan};
use crate::paper::rivals;
use crate::paper::select::{Extent, Size};
use crate::paper::state::{State, margin};
use pathweave_report::Estimate;

/// Claim with the result of judging it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Id of the figure or table.
    pub figure: String,
    /// Text of the claim.
    pub claim: String,
    /// The published number or relation.
    pub published: String,
    /// Name of the variant. Empty for schemes without variants.
    pub variant: String,
    /// The measured number as text.
    pub measured: String,
    /// State of the claim.
    pub state: State,
    /// Reason why the claim does not agree, if an experiment shows one, or the reason why it is undecided.
    pub why: String,
    /// Details that the list of claims leaves out.
    #[serde(skip)]
    pub detail: Detail,
}

/// Details behind a [`Verdict`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// Section, figure or table that states the claim.
    pub source: String,
    /// The measured number, if there is one.
    pub estimate: Option<Estimate>,
    /// Number of seeds that judge the claim. 0 if it has not run.
    pub seeds: usize,
    /// Rule by which a number agrees.
    pub rule: String,
    /// Weight of the claim in the standing of its figure.
    pub weight: Weight,
}

/// Weight of a claim in the standing of its figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The claim counts: the publication states it.
    #[default]
    Counts,
    /// The claim does not count: it is a bar of this project, or another reading of a claim.
    Aside,
    /// The claim does not count, because a parameter was fitted to the figure.
    Fitted,
}

impl Weight {
    pub(crate) fn of(claim: &Claim) -> Self {
        match (claim.aside || !claim.is_published(), &claim.fitted) {
            (true, _) => Weight::Aside,
            (false, Some(_)) => Weight::Fitted,
            (false, None) => Weight::Counts,
        }
    }
}

/// Returns the verdicts on all claims of all figures.
pub fn verdicts(plan: &Plan) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for figure in &plan.figures {
        for claim in &figure.figure.file.claim {
            verdicts.extend(
                judge(figure, claim)
                    .into_iter()
                    .map(|verdict| undecided_if_not_comparable(plan, claim, verdict)),
            );
        }
    }
    verdicts
}

/// Leaves a claim undecided if it is about the other size, or if only part of the figure ran. The measured number
/// stays.
fn undecided_if_not_comparable(plan: &Plan, claim: &Claim, mut verdict: Verdict) -> Verdict {
    let why = match plan.extent {
        Extent::Part => "a part of the figure ran alone, which gives no verdict".to_owned(),
        Extent::Whole => match of_other_size(claim, plan.size) {
            Some(why) => why,
            None => return verdict,
        },
    };
    (verdict.state, verdict.why) = (State::Undecided, why);
    verdict
}

/// Returns the reason why runs of `size` cannot judge the claim, if the claim is about the other size.
pub(crate) fn of_other_size(claim: &Claim, size: Size) -> Option<String> {
    (!size.allowed_by(claim.only)).then(|| format!("{} has another size than the claim", size.flag()))
}

/// Returns one verdict per variant, or none if no panel of the claim runs.
pub(crate) fn judge(figure: &FigurePlan, claim: &Claim) -> Vec<Verdict> {
    if covered_points(figure, claim).is_empty() {
        return Vec::new();
    }
    if claim.series == "*" {
        return vec![verdict(figure, claim, None)];
    }
    let of_name = figure.figure.file.series.iter().filter(|series| series.name == claim.series);
    of_name.map(|series| verdict(figure, claim, series.variant.as_ref())).collect()
}

fn verdict(figure: &FigurePlan, claim: &Claim, variant: Option<&Variant>) -> Verdict {
    let against = claim.versus.as_ref().and_then(|versus| versus.against);
    let (rival, seen) = if against == Some(Against::EveryOther) {
        let each = rivals::others(figure, claim).into_iter();
        let each = each.map(|rival| (Some(rival), collect_samples(figure, claim, variant, Some(rival))));
        // The rival against which the claim holds least decides. A rival without a common panel is skipped.
        let known = each.filter(|(_, seen)| seen.estimate.is_some() || seen.missing);
        let slack = |seen: &ClaimSamples| seen.estimate.map_or(f64::NEG_INFINITY, |e| margin(claim, e.mean));
        let least = known.min_by(|(_, a), (_, b)| slack(a).total_cmp(&slack(b)));
        least.unwrap_or((None, ClaimSamples { missing: true, ..ClaimSamples::default() }))
    } else {
        (None, collect_samples(figure, claim, variant, None))
    };
    let ClaimSamples { estimate, span, missing, seeds, .. } = seen;
    let unfinished = if missing && seeds > 0 { unfinished_flows(figure, claim, variant) } else { 0 };
    let state = match estimate.filter(|_| !missing) {
        Some(estimate) => State::judge(claim, estimate),
        // An unfinished flow contradicts the claim. It does not count as a small effect.
        None if unfinished > 0 => State::Contradicts,
        None => State::Undecided,
    };
    let mut why = match state {
        _ if unfinished > 0 => format!("{unfinished} flows did not finish, so there is no number to compare"),
        State::Undecided if seeds == 0 => NOT_RUN.to_owned(),
        State::Undecided if missing => NOT_MEASURED.to_owned(),
        state => reason(claim, state, variant.map(Variant::name).unwrap_or_default()),
    };
    let mut text = estimate.map_or("none".to_owned(), |e| measured(claim, e, span));
    text.extend(rival.map(|rival| format!(" against {rival}")));
    if figure.figure.file.plot.kind == PlotKind::HeatMap && seen.rows.len() > 1 {
        let (count, rows) = rivals::rows_text(figure, claim, &seen.rows);
        text.push_str(&count);
        why = [why, rows].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    }
    Verdict {
        figure: figure.figure.id.clone(),
        claim: claim.text.clone(),
        published: claim.published.clone(),
        variant: variant.map(Variant::name).unwrap_or_default().to_owned(),
        measured: text,
        state,
        why,
        detail: Detail {
            source: claim.source.clone(),
            estimate,
            seeds: seen.seeds,
            rule: rule(claim),
            weight: Weight::of(claim),
        },
    }
}

/// Returns the reason for the state of a variant. A variant that does not agree has the reason given in the claim, if
/// any, with the figure that shows it.
pub(crate) fn reason(claim: &Claim, state: State, variant: &str) -> String {
    match state {
        State::Agrees => String::new(),
        State::Undecided => UNDECIDED_TEXT.to_owned(),
        State::Exceeds | State::FallsShort | State::Contradicts => {
            let why = claim.why.get(variant).or_else(|| claim.why.get(""));
            why.map_or(String::new(), |why| format!("{} (shown by {})", why.says, why.figure))
        }
    }
}

/// Numbers that the points of a claim yield, by seed and panel.
#[derive(Default)]
struct ClaimSamples {
    /// Mean and interval over seeds. `None` if a number is missing, except in a heat map.
    estimate: Option<Estimate>,
    /// Smallest and largest number.
    span: Option<(f64, f64)>,
    missing: bool,
    /// Number of seeds that judge the claim.
    seeds: usize,
    /// Numbers by panel. `None` where one is missing.
    rows: BTreeMap<usize, Vec<Option<f64>>>,
}

fn collect_samples(
    figure: &FigurePlan,
    claim: &Claim,
    variant: Option<&Variant>,
    rival: Option<&str>,
) -> ClaimSamples {
    let seeds = figure.judged_seeds(&figure.points_of(claim, variant));
    let mut seen = ClaimSamples { seeds, missing: seeds == 0, ..ClaimSamples::default() };
    let mut estimates = Vec::new();
    for seed in 0..seeds {
        let values = compared(figure, claim, variant, rival, seed);
        seen.missing |= values.iter().any(|(_, value)| value.is_none());
        // With `EveryOther`, a rival may have no panel in common. In all other cases an empty list is a gap.
        seen.missing |= values.is_empty() && rival.is_none();
        for &(panel, value) in &values {
            seen.rows.entry(panel).or_default().push(value);
        }
        let values: Vec<f64> = values.into_iter().filter_map(|(_, value)| value).collect();
        for &value in &values {
            seen.span = Some(seen.span.map_or((value, value), |(a, b)| (a.min(value), b.max(value))));
        }
        estimates.extend(reduce(claim.over, &values));
    }
    // A heat map shows the estimate of its complete rows and lists the missing rows beside it.
    let whole = !seen.missing || figure.figure.file.plot.kind == PlotKind::HeatMap;
    let estimate = match &figure.looks {
        None => Estimate::from_values(&estimates),
        Some(looks) => looks.estimate(&estimates),
    };
    seen.estimate = estimate.filter(|_| whole);
    seen
}

/// Text in place of a reason for an undecided claim. There may be no deviation to explain.
const UNDECIDED_TEXT: &str = "the 95 % interval reaches across a limit, more seeds are needed to tell";

/// Text for a missing number if every flow finished.
const NOT_MEASURED: &str = "not measured: a run is missing, nothing was sampled, or the reference is 0";

/// Text for a claim whose points did not run, because the claims of the judged variant did not need them.
const NOT_RUN: &str = "not run: the judged claims do not need it";

fn unfinished_flows(figure: &FigurePlan, claim: &Claim, variant: Option<&Variant>) -> usize {
    // A number sampled over time exists even if a flow does not finish.
    let of_trace = |measure: &&Measure| measure.name == claim.measure && measure.of == Metric::Trace;
    if figure.figure.file.measure.iter().any(|measure| of_trace(&measure)) {
        return 0;
    }
    let series = &figure.figure.file.series;
    let involved = |index: usize| {
        let one = &series[index];
        (one.name == claim.series
            || claim.versus.as_ref().is_some_and(|v| v.series.as_ref() == Some(&one.name)))
            && (one.variant.as_ref() == variant || one.variant.is_none())
    };
    let points = figure.points.iter().filter(|point| involved(point.series));
    points.flat_map(|point| point.observed.iter().flatten()).map(|o| o.unfinished).sum()
}

/// Returns the panels and sweep values that a claim covers, as pairs of indices, among those that run.
pub(crate) fn covered_points(figure: &FigurePlan, claim: &Claim) -> Vec<(usize, usize)> {
    let at: Vec<String> = claim.at.iter().map(value_text).collect();
    let wanted = |panel: &Panel| {
        (claim.panels.is_empty() || claim.panels.iter().any(|name| panel.matches_name(name)))
            && (claim.role.is_none() || panel.role == claim.role)
    };
    let panels = figure.panels.iter().enumerate().filter(|(_, panel)| wanted(panel));
    let xs = || figure.xs.iter().enumerate().filter(|(_, text)| at.is_empty() || at.contains(text));
    panels.flat_map(|(p, _)| xs().map(move |(x, _)| (p, x))).collect()
}

/// Returns the curves that a claim is about, each with a panel and the sweep values that make one number. A claim about
/// all curves has one entry for each curve.
pub(crate) fn curves<'a>(
    figure: &'a FigurePlan,
    claim: &Claim,
    variant: Option<&Variant>,
) -> Vec<(usize, Vec<usize>, &'a Series)> {
    let mut found = Vec::new();
    for (p, xs) in groups(figure, claim) {
        let panel = &figure.panels[p];
        let is_there = |one: &Series| one.is_in(panel);
        // A curve without the variant is used only if no curve of the same name has the variant.
        let exact = |one: &Series| one.name == claim.series && one.variant.as_ref() == variant;
        let has_exact = figure.figure.file.series.iter().any(|one| is_there(one) && exact(one));
        let about = |one: &&Series| match claim.series.as_str() {
            "*" => true,
            name => one.name == name && if has_exact { exact(one) } else { one.variant.is_none() },
        };
        let present = figure.figure.file.series.iter().filter(|one| is_there(one));
        found.extend(present.filter(about).map(|one| (p, xs.clone(), one)));
    }
    found
}

/// Returns panel and sweep values of the point that a claim is compared with. A sweep value that does not run at this
/// size leaves nothing to compare with.
pub(crate) fn place_of_other(
    figure: &FigurePlan,
    versus: &Versus,
    panel: usize,
    xs: &[usize],
) -> Option<(usize, Vec<usize>)> {
    let panel = versus.panel.as_ref().map_or(Some(panel), |name| figure.panel(name))?;
    let at = versus.at.as_ref().map(|at| figure.xs.iter().position(|x| *x == value_text(at)));
    Some((panel, at.map_or_else(|| xs.to_vec(), |found| found.into_iter().collect())))
}

/// Returns the compared numbers of one seed, each with its panel. There is one per panel and sweep value, or one per
/// panel if the claim is about peaks. A claim about all curves has one for each curve.
fn compared(
    figure: &FigurePlan,
    claim: &Claim,
    variant: Option<&Variant>,
    rival: Option<&str>,
    seed: usize,
) -> Vec<(usize, Option<f64>)> {
    let largest = |panel: usize, series: &str, variant: Option<&Variant>, xs: &[usize], measure: &str| {
        let values = xs.iter().map(|&x| figure.value(panel, series, variant, x, measure, seed));
        reduce(Over::Max, &values.collect::<Option<Vec<_>>>()?)
    };
    let mut found = Vec::new();
    for (p, xs, one) in curves(figure, claim, variant) {
        let value = largest(p, &one.name, one.variant.as_ref(), &xs, &claim.measure);
        let Some(versus) = &claim.versus else {
            found.push((p, value));
            continue;
        };
        let against = match versus.against {
            None => Some(versus.series.as_deref().unwrap_or(&one.name)),
            Some(Against::BestOfPanel) => rivals::best(figure, claim, (p, xs[0])),
            Some(Against::EveryOther) => {
                rival.filter(|rival| rivals::mean(figure, claim, (p, xs[0]), rival).is_some())
            }
        };
        let other = place_of_other(figure, versus, p, &xs);
        let (Some(series), Some((other, there))) = (against, other) else { continue };
        let measure = versus.measure.as_ref().unwrap_or(&claim.measure);
        let base = largest(other, series, variant, &there, measure);
        found.push((p, base.zip(value).and_then(|(base, value)| relation(claim.compare, value, base))));
    }
    found
}

/// Returns the panels with the sweep values that make one number: single values, or for peaks all values of a panel.
fn groups(figure: &FigurePlan, claim: &Claim) -> Vec<(usize, Vec<usize>)> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (p, x) in covered_points(figure, claim) {
        match groups.last_mut() {
            Some((last, xs)) if claim.peak && *last == p => xs.push(x),
            _ => groups.push((p, vec![x])),
        }
    }
    groups
}

/// Returns the comparison, or `None` if it is a share of zero.
fn relation(compare: Compare, value: f64, base: f64) -> Option<f64> {
    if compare == Compare::Difference {
        return Some(value - base);
    }
    // Equal values have a ratio of 1, even if both are zero.
    let ratio = if value == base { 1.0 } else { value / base };
    ratio.is_finite().then_some(match compare {
        Compare::Ratio => ratio,
        Compare::Reduction => 1.0 - ratio,
        Compare::Increase | Compare::Difference => ratio - 1.0,
    })
}

fn reduce(over: Over, values: &[f64]) -> Option<f64> {
    match over {
        Over::Mean => Estimate::from_values(values).map(|e| e.mean),
        Over::GeometricMean => {
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            Estimate::from_values(&logs).map(|e| e.mean.exp())
        }
        Over::Min => values.iter().copied().reduce(f64::min),
        Over::Max => values.iter().copied().reduce(f64::max),
    }
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

impl FigurePlan {
    /// Returns a measure at a point and seed. A curve without variants is used for any variant asked for.
    pub fn value(
        &self,
        panel: usize,
        series: &str,
        variant: Option<&Variant>,
        x: usize,
        measure: &str,
        seed: usize,
    ) -> Option<f64> {
        let m = self.figure.file.measure.iter().position(|known| known.name == measure)?;
        let point = self.point((panel, x), series, variant)?;
        point.observed[seed].as_ref()?.values[m]
    }

    /// Returns the point of a curve at a panel and sweep value. Falls back to the curve without a variant if none has
    /// the variant asked for.
    pub(crate) fn point(
        &self,
        at: (usize, usize),
        series: &str,
        variant: Option<&Variant>,
    ) -> Option<&crate::paper::plan::Point> {
        self.point_index(at, series, variant).map(|index| &self.points[index])
    }

    /// Returns the index of the [`FigurePlan::point`].
    pub(crate) fn point_index(
        &self,
        (panel, x): (usize, usize),
        series: &str,
        variant: Option<&Variant>,
    ) -> Option<usize> {
        let find = |wanted: Option<&Variant>| {
            self.points.iter().position(|point| {
                let known = &self.figure.file.series[point.series];
                (point.panel, point.x) == (panel, x)
                    && known.name == series
                    && known.variant.as_ref() == wanted
            })
        };
        find(variant).or_else(|| find(None))
    }

    /// Returns the index of the panel of this name.
    pub fn panel(&self, name: &str) -> Option<usize> {
        self.panels.iter().position(|panel| panel.name == name)
    }

    /// Returns a measure of a point over all seeds, with looks over those that ran. Returns `None` if one of them has no
    /// value.
    pub fn estimate(&self, point: &crate::paper::plan::Point, measure: usize) -> Option<Estimate> {
        let wanted = point.observed.iter().filter(|seed| self.looks.is_none() || seed.is_some());
        let values: Option<Vec<f64>> =
            wanted.map(|seed| seed.as_ref().and_then(|o| o.values[measure])).collect();
        Estimate::from_values(&values?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_by_hand() {
        assert_eq!(relation(Compare::Ratio, 3.0, 2.0), Some(1.5));
        assert_eq!(relation(Compare::Reduction, 3.0, 4.0), Some(0.25));
        assert_eq!(relation(Compare::Increase, 3.0, 2.0), Some(0.5));
        assert_eq!(relation(Compare::Ratio, 3.0, 0.0), None);
        assert_eq!(relation(Compare::Reduction, 0.0, 0.0), Some(0.0));
        assert_eq!(relation(Compare::Difference, 3.0, 5.0), Some(-2.0));
        assert_eq!(relation(Compare::Difference, 3.0, 0.0), Some(3.0));
    }

    const HEAD: &str =
        "[[claim]]\ntext = 't'\nsource = 's'\npublished = 'p'\nmeasure = 'm'\nshow = 'ratio'\n";

    fn judged(claim: &str, values: &[&[&[Option<f64>]]]) -> Vec<Verdict> {
        let plan = crate::paper::testing::map(&format!("{HEAD}{claim}"), values);
        judge(&plan, &plan.figure.file.claim[0])
    }

    #[test]
    fn against_the_best_of_each_row() {
        // Two seeds. `b` is best in the first row by its mean of 2, though not at seed 2.
        let (a, b, c) = ([Some(2.0), Some(4.0)], [Some(1.0), Some(3.0)], [Some(6.0), Some(2.0)]);
        let rows: [&[&[Option<f64>]]; 2] = [&[&a, &b, &c], &[&[Some(1.0), Some(1.0)], &a, &c]];
        let claim = "series = 'a'\nversus = { against = 'best-of-panel' }\nover = 'max'\nat_most = 1.02";
        let found = judged(claim, &rows);
        // Row 1: 2 and 4/3. Row 2: against `b`, 0.5 and 0.25.
        assert!(found[0].state != State::Agrees);
        assert!(found[0].measured.starts_with("1.67x"), "{}", found[0].measured);
        assert!(found[0].measured.ends_with("in 1 of 2 rows"), "{}", found[0].measured);
        assert!(found[0].why.ends_with("not in first (1.67x)"), "{}", found[0].why);
        let held_out = judged(&format!("{claim}\nrole = 'held-out'"), &rows);
        assert!(held_out[0].measured.starts_with("0.38x"), "{}", held_out[0].measured);
        assert!(judged(&claim.replace("over", "panels = ['third']\nover"), &rows).is_empty());
    }

    #[test]
    fn against_every_other_the_least_favourable_counts() {
        let one = |value: f64| [Some(value)];
        let claim =
            "series = 'a'\nversus = { against = 'every-other' }\ncompare = 'reduction'\nat_least = 0.1";
        let rows: [&[&[Option<f64>]]; 2] =
            [&[&one(1.0), &one(2.0), &one(4.0)], &[&one(3.0), &one(2.0), &[None]]];
        let found = judged(claim, &rows);
        // Against `b`: 50 % and -50 %, with a mean of 0. Against `c`, which finished the first row only: 75 %.
        assert!(
            found[0].state != State::Agrees && found[0].measured.contains("against b"),
            "{}",
            found[0].measured
        );
        assert_eq!(found[0].detail.estimate.unwrap().mean, 0.0);
    }

    #[test]
    fn ratios_to_the_best_are_averaged_as_factors() {
        let one = |value: f64| [Some(value)];
        let rows: [&[&[Option<f64>]]; 2] =
            [&[&one(8.0), &one(4.0), &one(5.0)], &[&one(1.0), &one(4.0), &one(2.0)]];
        let claim =
            "series = 'a'\nversus = { against = 'best-of-panel' }\nover = 'geometric-mean'\nat_most = 1.0";
        // 2 and a half.
        assert!(
            judged(claim, &rows)[0].measured.starts_with("1.00x"),
            "{}",
            judged(claim, &rows)[0].measured
        );
    }

    #[test]
    fn all_curves_together_and_what_is_missing() {
        let one = |value: f64| [Some(value)];
        let rows: [&[&[Option<f64>]]; 2] =
            [&[&one(0.0), &one(0.0), &one(0.0)], &[&one(0.0), &one(2.0), &one(0.0)]];
        let found = judged("series = '*'\nover = 'max'\nat_most = 0", &rows);
        assert!(
            found[0].state != State::Agrees && found[0].measured.contains("in 1 of 2 rows"),
            "{}",
            found[0].measured
        );
        // A row without a number is no agreement, even if all other rows agree.
        let rows: [&[&[Option<f64>]]; 2] =
            [&[&one(1.0), &one(2.0), &one(2.0)], &[&[None], &one(2.0), &one(2.0)]];
        let found = judged("series = 'a'\nversus = { series = 'b' }\nat_most = 1.0", &rows);
        assert!(
            found[0].state != State::Agrees && found[0].why.contains("second (none)"),
            "{}",
            found[0].why
        );
    }

    #[test]
    fn a_variant_is_compared_with_its_own_and_else_with_what_has_none() {
        let text = format!(
            "title = 't'\nsection = 's'\nscenario = 's.toml'\nplot = {{ kind = 'table' }}\n\
             series = [{{ name = 'a' }}, {{ name = 'a', variant = 'v' }}, {{ name = 'b' }}, {{ name = 'b', variant = 'v' }}, \
             {{ name = 'c' }}]\n[[measure]]\nname = 'm'\nof = 'fct'\n\
             {HEAD}series = 'a'\nversus = {{ series = 'b' }}\nat_most = 1\n\
             {HEAD}series = 'a'\nversus = {{ series = 'c' }}\nat_most = 1\n"
        );
        let figure =
            crate::paper::catalogue::Figure { id: "1".to_owned(), file: toml::from_str(&text).unwrap() };
        let point = |(series, value): (usize, f64)| {
            let observed =
                crate::paper::observe::Observed { values: vec![Some(value)], ..Default::default() };
            crate::paper::plan::Point { panel: 0, series, x: 0, observed: vec![Some(observed)] }
        };
        let plan = FigurePlan {
            panels: vec![Panel::default()],
            xs: vec![String::new()],
            seeds: vec![1],
            points: [2.0, 3.0, 4.0, 12.0, 8.0].into_iter().enumerate().map(point).collect(),
            traffic: Vec::new(),
            changes_text: String::new(),
            observation_digest: String::new(),
            looks: None,
            figure,
        };
        let measured = |claim: usize| {
            let verdicts = judge(&plan, &plan.figure.file.claim[claim]);
            verdicts.into_iter().map(|verdict| verdict.measured).collect::<Vec<_>>()
        };
        assert_eq!(measured(0), ["0.50x", "0.25x"]);
        assert_eq!(measured(1), ["0.25x", "0.38x"]);
    }

    /// Two curves over three values of a sweep, one seed: `a` has 1, 4, 2 and `b` has 3, 3, 8.
    fn swept(claim: &str) -> Verdict {
        let text = format!(
            "title = 't'\nsection = 's'\nscenario = 's.toml'\nseries = [{{ name = 'a' }}, {{ name = 'b' }}]\n\
             sweep = {{ key = 'k', values = [1, 2, 3] }}\nplot = {{ kind = 'lines', measure = 'm' }}\n\
             [[measure]]\nname = 'm'\nof = 'fct'\n{HEAD}series = 'a'\n{claim}"
        );
        let file: crate::paper::model::FigureFile = toml::from_str(&text).unwrap();
        let figure = crate::paper::catalogue::Figure { id: "1".to_owned(), file };
        crate::paper::check::check("p", &BTreeMap::new(), &figure).unwrap();
        let point = |series: usize, x: usize, value: f64| {
            let observed =
                crate::paper::observe::Observed { values: vec![Some(value)], ..Default::default() };
            crate::paper::plan::Point { panel: 0, series, x, observed: vec![Some(observed)] }
        };
        let values = [[1.0, 4.0, 2.0], [3.0, 3.0, 8.0]];
        let points = (0..2)
            .flat_map(|s| (0..3).map(move |x| (s, x)))
            .map(|(s, x)| point(s, x, values[s][x]))
            .collect();
        let plan = FigurePlan {
            panels: vec![Panel::default()],
            xs: ["1", "2", "3"].map(str::to_owned).to_vec(),
            seeds: vec![1],
            points,
            traffic: Vec::new(),
            changes_text: String::new(),
            observation_digest: String::new(),
            looks: None,
            figure,
        };
        judge(&plan, &plan.figure.file.claim[0]).remove(0)
    }

    #[test]
    fn peaks_are_compared_wherever_they_are_and_growth_with_another_value() {
        // The peaks are 4 and 8. Compared point by point, the mean would be (1/3 + 4/3 + 1/4) / 3.
        assert_eq!(swept("peak = true\nversus = { series = 'b' }\nat_most = 1").measured, "0.50x");
        let grown =
            swept("at = [3]\nversus = { at = 1 }\ncompare = 'difference'\nat_least = 0.9\nat_most = 1.1");
        assert!(grown.state == State::Agrees && grown.measured == "1.00x", "{}", grown.measured);
        let of_b = "at = [3]\nversus = { series = 'b', at = 1 }\nat_most = 1";
        assert_eq!(swept(of_b).measured, "0.67x");
    }
}
