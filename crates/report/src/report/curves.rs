//! Distributions of figures of flows, as exact quantiles.

use pathweave_records::figures::{Finished, GroupStats, degrees, values};
use pathweave_records::{FlowStats, Quantity, RunResult};
use serde::Serialize;

use super::{Budget, rounded};

/// A figure of flows whose distribution is drawn.
struct Measure {
    name: &'static str,
    title: &'static str,
    quantity: Quantity,
    /// Returns the values for some groups of flows.
    values: fn(&[&GroupStats]) -> Vec<f64>,
}

const MEASURES: [Measure; 4] = [
    Measure {
        name: "fct_ns",
        title: "Flow completion time",
        quantity: Quantity::TimeNs,
        values: |groups| values(groups, Finished::fct_ns),
    },
    Measure {
        name: "slowdown",
        title: "Slowdown",
        quantity: Quantity::Plain,
        values: |groups| values(groups, Finished::slowdown),
    },
    Measure {
        name: "goodput_bps",
        title: "Goodput",
        quantity: Quantity::RateBps,
        values: |groups| values(groups, Finished::goodput_bps),
    },
    Measure {
        name: "ooo_degree_packets",
        title: "Out-of-order degree",
        quantity: Quantity::Count,
        values: degrees,
    },
];

/// An empirical distribution function.
#[derive(Debug, Serialize)]
pub(super) struct Cdf {
    /// Workload group; empty for all flows.
    group: String,
    /// Name of the distributed figure.
    measure: &'static str,
    title: &'static str,
    quantity: Quantity,
    /// Values in ascending order.
    value: Vec<f64>,
    /// Fraction of the flows with at most that value.
    fraction: Vec<f64>,
}

/// Returns the distributions for all flows, or for those of the foreground if there is a background. With several
/// groups, also for each group.
pub(super) fn cdfs(run: &RunResult, figures: &FlowStats, budget: &Budget) -> Vec<Cdf> {
    let mut out = Vec::new();
    for measure in &MEASURES {
        out.push(cdf(measure, String::new(), &figures.foreground(), budget.points));
        if run.info.groups.len() > 1 {
            for (group, name) in (0u16..).zip(&run.info.groups).take(budget.groups) {
                out.push(cdf(measure, name.clone(), &figures.group(group), budget.points));
            }
        }
    }
    out.retain(|c| !c.value.is_empty());
    out
}

fn cdf(measure: &Measure, group: String, flows: &[&GroupStats], points: usize) -> Cdf {
    let mut values = (measure.values)(flows);
    values.sort_unstable_by(f64::total_cmp);
    let ranks = ranks(values.len(), points);
    Cdf {
        group,
        measure: measure.name,
        title: measure.title,
        quantity: measure.quantity,
        value: ranks.iter().map(|&r| rounded(values[r - 1])).collect(),
        fraction: ranks.iter().map(|&r| rounded(r as f64 / values.len() as f64)).collect(),
    }
}

/// Returns the ranks (from 1) to show of `n` sorted values: half of them evenly spaced, half denser towards the tail.
/// The first, the last, and the percentiles named in summaries are always included. Each value shown is exact.
fn ranks(n: usize, points: usize) -> Vec<usize> {
    if n <= points {
        return (1..=n).collect();
    }
    let half = points / 2;
    let mut ranks: Vec<usize> = (0..half).map(|i| 1 + i * (n - 1) / (half - 1)).collect();
    // n - n^(1 - i/half) increases from 0 to n - 1 in ever smaller steps.
    let tail = (0..half).map(|i| n as f64 - (n as f64).powf(1.0 - (i + 1) as f64 / half as f64));
    ranks.extend(tail.map(|r| (r as usize).clamp(1, n)));
    ranks.extend([500, 950, 990, 999].map(|per_mille| (n * per_mille).div_ceil(1_000)));
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_shown() {
        assert_eq!(ranks(3, 10), [1, 2, 3]);
        assert_eq!(ranks(0, 10), [0usize; 0]);
    }

    #[test]
    fn many_values_keep_the_ends_the_percentiles_and_the_tail() {
        let ranks = ranks(1_000_000, 500);
        assert!(ranks.len() <= 504);
        assert_eq!((ranks[0], *ranks.last().unwrap()), (1, 1_000_000));
        let beyond_p999 = ranks.iter().filter(|&&r| r > 999_000).count();
        assert!(beyond_p999 > 50, "{beyond_p999} points in the last thousandth");
        for rank in [500_000, 950_000, 990_000, 999_000] {
            assert!(ranks.contains(&rank), "{rank}");
        }
    }
}
