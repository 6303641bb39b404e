//! The distribution of flow completion times.

use serde::Serialize;

use super::{Budget, rounded};
use crate::columns::ns;
use crate::records::{FlowRecord, FlowStatus, RunResult};

/// An empirical distribution function.
#[derive(Debug, Serialize)]
pub(super) struct Cdf {
    /// Workload group; empty for all flows.
    group: String,
    /// Completion times, rising.
    fct_ns: Vec<f64>,
    /// Fraction of the finished flows that took at most that.
    fraction: Vec<f64>,
}

/// Of all flows, or those of the foreground where there is a background, and of each group where there are several.
pub(super) fn cdfs(run: &RunResult, budget: &Budget) -> Vec<Cdf> {
    let mut out = vec![cdf(String::new(), run.foreground(), budget.points)];
    if run.info.groups.len() > 1 {
        for (group, name) in (0u16..).zip(&run.info.groups).take(budget.groups) {
            let flows = run.flows.iter().filter(|f| f.group == group);
            out.push(cdf(name.clone(), flows, budget.points));
        }
    }
    out.retain(|c| !c.fct_ns.is_empty());
    out
}

fn cdf<'a>(group: String, flows: impl Iterator<Item = &'a FlowRecord>, points: usize) -> Cdf {
    let finished = flows.filter(|f| f.status == FlowStatus::Finished);
    let mut fcts: Vec<u64> = finished.filter_map(FlowRecord::fct_ps).collect();
    fcts.sort_unstable();
    let ranks = ranks(fcts.len(), points);
    Cdf {
        group,
        fct_ns: ranks.iter().map(|&r| rounded(ns(fcts[r - 1]))).collect(),
        fraction: ranks.iter().map(|&r| rounded(r as f64 / fcts.len() as f64)).collect(),
    }
}

/// Ranks (from 1) to show of `n` sorted values: half spread evenly, half closing in on the tail, first and last
/// always.
fn ranks(n: usize, points: usize) -> Vec<usize> {
    if n <= points {
        return (1..=n).collect();
    }
    let half = points / 2;
    let mut ranks: Vec<usize> = (0..half).map(|i| 1 + i * (n - 1) / (half - 1)).collect();
    // n - n^(1 - i/half) runs from 0 to n - 1, ever more slowly.
    let tail = (0..half).map(|i| n as f64 - (n as f64).powf(1.0 - (i + 1) as f64 / half as f64));
    ranks.extend(tail.map(|r| (r as usize).clamp(1, n)));
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
    fn many_values_keep_the_ends_and_the_tail() {
        let ranks = ranks(1_000_000, 1_000);
        assert!(ranks.len() <= 1_000);
        assert_eq!((ranks[0], *ranks.last().unwrap()), (1, 1_000_000));
        let beyond_p999 = ranks.iter().filter(|&&r| r > 999_000).count();
        assert!(beyond_p999 > 100, "{beyond_p999} points in the last thousandth");
    }
}
