//! Best value of the compared axis in each setting of the other axes.

use std::collections::BTreeMap;

use pathweave_report::{Better, Estimate};
use serde::Serialize;

use crate::sweep::plan::Plan;
use crate::sweep::summary::Metric;

/// Best of the cells that differ in the compared axis only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Name of the figure.
    pub metric: String,
    /// Index of the value on each axis. `None` for the compared axis.
    pub at: Vec<Option<usize>>,
    /// Index of the best value on the compared axis.
    pub value: usize,
    /// Values that the seeds cannot distinguish from the best one. For these, the 95 % confidence interval of the
    /// differences by seed contains 0. All values have the same traffic under one seed, so the differences vary less
    /// than the figures. With one seed, only values with exactly the same figure count.
    pub tied: Vec<usize>,
    /// Tied values with exactly the figures of the best one, seed by seed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub level: Vec<usize>,
}

/// Returns the cells of each setting of the other axes, by the index of the value on each axis.
pub(super) fn rivals(plan: &Plan) -> BTreeMap<Vec<Option<usize>>, Vec<usize>> {
    // The axes of a hypercube are set together, so a value of one of them has no rivals.
    let mut groups: BTreeMap<Vec<Option<usize>>, Vec<usize>> = BTreeMap::new();
    for (number, cell) in plan.cells.iter().enumerate() {
        let without = |(a, &at): (usize, &usize)| (a != plan.compare).then_some(at);
        groups.entry(cell.value_indices.iter().enumerate().map(without).collect()).or_default().push(number);
    }
    groups
}

/// Returns for each cell its relative change from the cell with the first value of the compared axis. `figure` returns
/// the figure of a cell, one per seed.
pub(crate) fn change(plan: &Plan, figure: impl Fn(usize) -> Vec<Option<f64>>) -> Vec<(usize, Estimate)> {
    let mut found = Vec::new();
    for cells in rivals(plan).values() {
        let is_first = |cell: &&usize| plan.cells[**cell].value_indices[plan.compare] == 0;
        let Some(first) = cells.iter().find(is_first) else { continue };
        let base = figure(*first);
        let others = cells.iter().filter(|cell| *cell != first);
        found.extend(others.filter_map(|&cell| Some((cell, relative_change(&base, &figure(cell))?))));
    }
    found
}

/// Returns the mean difference of two values over the mean of the first, with its interval. `None` without a common
/// seed, or from zero.
fn relative_change(from: &[Option<f64>], to: &[Option<f64>]) -> Option<Estimate> {
    let pairs = || from.iter().zip(to).filter_map(|(from, to)| Some(((*from)?, (*to)?)));
    let base = Estimate::from_values(&pairs().map(|(from, _)| from).collect::<Vec<_>>())?.mean;
    let difference = Estimate::from_values(&pairs().map(|(from, to)| to - from).collect::<Vec<_>>())?;
    let over = |value: f64| value / base.abs();
    (base != 0.0).then(|| Estimate {
        mean: over(difference.mean),
        ci95: difference.ci95.map(over),
        n: difference.n,
    })
}

/// Finds the best values. `figure` returns the figures of a cell by name, one per seed.
pub(crate) fn best(
    plan: &Plan,
    metrics: &[Metric],
    figure: impl Fn(usize, &str) -> Vec<Option<f64>>,
) -> Vec<Best> {
    let groups = rivals(plan);
    let mut found = Vec::new();
    for metric in metrics.iter().filter(|metric| metric.better != Better::Neither) {
        for (at, cells) in &groups {
            let of = |&cell: &usize| {
                let values = figure(cell, &metric.name);
                let place = plan.cells[cell].value_indices[plan.compare];
                values.iter().any(Option::is_some).then_some((place, values))
            };
            let with_value: Vec<_> = cells.iter().filter_map(of).collect();
            let by_seed: Vec<&[Option<f64>]> = with_value.iter().map(|(_, values)| &values[..]).collect();
            let means = means(&by_seed);
            let figures: Vec<_> =
                with_value.iter().zip(means).map(|((place, values), mean)| (*place, mean, values)).collect();
            let sign = if metric.better == Better::Higher { -1.0 } else { 1.0 };
            let first = figures.iter().min_by(|(_, a, _), (_, b, _)| (sign * a).total_cmp(&(sign * b)));
            let Some((value, _, of_best)) = first.filter(|_| figures.len() > 1) else { continue };
            let others = || figures.iter().filter(|(other, ..)| other != value);
            let tied = others().filter(|(.., values)| is_tied(of_best, values));
            let level = others().filter(|(.., values)| is_level(of_best, values));
            let [tied, level] =
                [tied.map(|(other, ..)| *other).collect(), level.map(|(other, ..)| *other).collect()];
            found.push(Best { metric: metric.name.clone(), at: at.clone(), value: *value, tied, level });
        }
    }
    found
}

/// Returns the mean of each value over the seeds that all of them have: an interrupted sweep has more seeds of one value
/// than of another. Without such a seed, the mean over the seeds of each.
fn means(by_seed: &[&[Option<f64>]]) -> Vec<f64> {
    let seeds = by_seed.first().map_or(0, |values| values.len());
    let common: Vec<usize> =
        (0..seeds).filter(|&seed| by_seed.iter().all(|values| values[seed].is_some())).collect();
    let mean = |values: &&[Option<f64>]| {
        let of_common: Vec<f64> = common.iter().filter_map(|&seed| values[seed]).collect();
        let all: Vec<f64> = values.iter().flatten().copied().collect();
        let taken = if common.is_empty() { all } else { of_common };
        taken.iter().sum::<f64>() / taken.len() as f64
    };
    by_seed.iter().map(mean).collect()
}

/// Returns true if the seeds do not distinguish two values.
fn is_tied(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    let differences: Vec<f64> = a.iter().zip(b).filter_map(|(a, b)| Some((*a)? - (*b)?)).collect();
    match Estimate::from_values(&differences) {
        Some(difference) => difference.mean.abs() <= difference.ci95.unwrap_or(0.0),
        // Without a common seed, the values cannot be compared.
        None => true,
    }
}

/// Returns true if two values have the same figures under each seed.
fn is_level(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_of_the_seeds_that_both_have() {
        // Differences 4 and 2 from 10 and 20: mean 3 over mean 15; deviation sqrt(2), half width 12.706 * 1.
        let found =
            relative_change(&[Some(10.0), Some(20.0), None], &[Some(14.0), Some(22.0), Some(9.0)]).unwrap();
        assert_eq!((found.mean, found.n), (0.2, 2));
        assert!((found.ci95.unwrap() - 12.706 / 15.0).abs() < 1e-9);
        assert_eq!(relative_change(&[Some(0.0)], &[Some(1.0)]), None);
        assert_eq!(relative_change(&[Some(1.0)], &[None]), None);
    }

    /// The second value has run with the seed of the light traffic only.
    #[test]
    fn values_are_compared_by_the_seeds_that_all_have() {
        let (whole, begun) = ([Some(10.0), Some(90.0)], [Some(11.0), None]);
        assert_eq!(means(&[&whole, &begun]), [10.0, 11.0]);
        assert_eq!(means(&[&[Some(1.0), None], &[None, Some(2.0)]]), [1.0, 2.0]);
    }

    #[test]
    fn differences_of_seeds_decide() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        // Traffic varies far more than the effect of the scheme: mean difference 1, deviation 0.1.
        assert!(!is_tied(&some(&[10.0, 50.0, 90.0]), &some(&[11.0, 51.1, 90.9])));
        // Mean difference 1, deviation 1: half width 4.303 / sqrt(3) = 2.48.
        assert!(is_tied(&some(&[10.0, 50.0, 90.0]), &some(&[10.0, 51.0, 92.0])));
        assert!(!is_tied(&some(&[10.0]), &some(&[11.0])) && is_tied(&some(&[10.0]), &some(&[10.0])));
        assert!(is_tied(&[Some(1.0), None], &[None, Some(2.0)]));
    }
}
