//! Collectives, and the critical paths of the longest jobs.

use pathweave_records::{
    ActivityLabel, CollectiveRecord, CriticalStep, IterationSummary, RunResult, StepKind, collectives, ns,
    steps_of,
};
use serde::Serialize;

use super::thin::thin;
use super::{Budget, rounded};

/// Collectives with the longest exposure, one list a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Collectives {
    /// Number of collectives in the run.
    of: usize,
    /// Operation and ranks: "DP all-reduce".
    kind: Vec<String>,
    layer: Vec<String>,
    job: Vec<Option<u32>>,
    ranks: Vec<u32>,
    size_bytes: Vec<Option<u64>>,
    bus_bandwidth_bps: Vec<Option<f64>>,
    start_ns: Vec<f64>,
    finish_ns: Vec<Option<f64>>,
    /// Time from the begin of the first rank to that of the last.
    spread_ns: Vec<f64>,
    exposed_ns: Vec<f64>,
    last_to_start: Vec<String>,
    slowest_flow: Vec<Option<u32>>,
}

/// Returns the collectives of a run, the longest exposure first.
pub(super) fn by_exposure(run: &RunResult) -> Vec<CollectiveRecord> {
    let mut all = collectives(run);
    all.sort_by_key(|c| (std::cmp::Reverse(c.exposed_ps), c.collective));
    all
}

/// Returns the first collectives within the budget.
pub(super) fn of_run(run: &RunResult, all: &[CollectiveRecord], budget: &Budget) -> Collectives {
    let mut out = Collectives { of: all.len(), ..Collectives::default() };
    let label = |c: &CollectiveRecord| &run.labels[c.label as usize];
    for c in all.iter().take(budget.collectives) {
        let of = label(c).collective.unwrap_or_default();
        out.kind.push(label(c).kind());
        out.layer.push(label(c).object.clone().unwrap_or_default());
        out.job.push(c.job);
        out.ranks.push(of.ranks);
        out.size_bytes.push(of.size_bytes);
        out.bus_bandwidth_bps.push(of.bus_bytes.and_then(|bytes| c.bandwidth_bps(bytes)).map(rounded));
        out.start_ns.push(rounded(ns(c.first_start_ps)));
        out.finish_ns.push(c.last_finish_ps.map(|ps| rounded(ns(ps))));
        out.spread_ns.push(rounded(ns(c.last_start_ps - c.first_start_ps)));
        out.exposed_ns.push(rounded(ns(c.exposed_ps)));
        let node = run.nodes.get(c.last_to_start_host as usize);
        let name = node.map_or_else(|| format!("host {}", c.last_to_start_host), |node| node.name.clone());
        out.last_to_start.push(name);
        out.slowest_flow.push(c.slowest_flow);
    }
    out
}

/// A step of a critical path.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    job: u32,
    kind: StepKind,
    /// Activity and part: "all-reduce, bucket 3".
    words: String,
    /// Operation that determines the colour: "DP all-reduce".
    activity: String,
    host: u32,
    peer_host: Option<u32>,
    flow: Option<u32>,
    start_ns: f64,
    finish_ns: f64,
}

/// Critical paths of jobs.
#[derive(Debug, Default, Serialize)]
pub(super) struct CriticalPaths {
    steps: Vec<Step>,
    /// Steps that are not among these, for each job that has any.
    left_out: Vec<LeftOut>,
}

/// Steps of a critical path that are left out: short ones, an even part over time.
#[derive(Debug, PartialEq, Serialize)]
struct LeftOut {
    job: u32,
    steps: usize,
    /// Sum of their times.
    time_ns: f64,
    longest_ns: f64,
}

/// Returns the critical paths of the jobs of `iterations`: the longest steps of each within the budget, in their
/// order.
pub(super) fn critical(run: &RunResult, iterations: &[IterationSummary], budget: &Budget) -> CriticalPaths {
    let each = budget.steps / iterations.len().max(1);
    let mut out = CriticalPaths::default();
    for iteration in iterations {
        let all = steps_of(run, iteration.job);
        let lengths: Vec<u64> = all.iter().map(CriticalStep::time_ps).collect();
        let kept = thin(&lengths, each);
        let mut others = lengths.clone();
        kept.iter().for_each(|&step| others[step] = 0);
        if kept.len() < all.len() {
            out.left_out.push(LeftOut {
                job: iteration.job,
                steps: all.len() - kept.len(),
                time_ns: rounded(ns(others.iter().sum())),
                longest_ns: rounded(ns(others.iter().copied().max().unwrap_or(0))),
            });
        }
        out.steps.extend(kept.into_iter().map(|step| &all[step]).map(|step| {
            let label = step.label.and_then(|label| run.labels.get(label as usize));
            Step {
                job: step.job,
                kind: step.kind,
                words: label.map_or_else(|| step.kind.name().to_owned(), ActivityLabel::description),
                activity: label.map_or_else(|| step.kind.name().to_owned(), ActivityLabel::kind),
                host: step.host,
                peer_host: step.peer_host,
                flow: step.flow,
                start_ns: ns(step.start_ps).round(),
                finish_ns: ns(step.finish_ps).round(),
            }
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long computation, and messages of equal length before and behind it.
    #[test]
    fn steps_are_left_out_evenly_and_counted() {
        let step = |step: u32| CriticalStep {
            job: 3,
            step,
            kind: if step == 500 { StepKind::Computation } else { StepKind::Message },
            start_ps: u64::from(step) * 10_000 + if step > 500 { 1_000_000 } else { 0 },
            finish_ps: u64::from(step + 1) * 10_000 + if step >= 500 { 1_000_000 } else { 0 },
            ..CriticalStep::default()
        };
        let run = RunResult { critical: (0..1_001).map(step).collect(), ..RunResult::default() };
        let iterations = [IterationSummary { job: 3, ..IterationSummary::default() }];
        let budget = Budget { steps: 101, ..Budget::for_runs(1) };
        let found = critical(&run, &iterations, &budget);
        assert_eq!(found.steps.iter().filter(|step| step.kind == StepKind::Computation).count(), 1);
        let starts: Vec<f64> = found.steps.iter().map(|step| step.start_ns).collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] <= 1_200.0), "{starts:?}");
        assert_eq!(found.left_out, [LeftOut { job: 3, steps: 900, time_ns: 9_000.0, longest_ns: 10.0 }]);
        assert_eq!(critical(&run, &iterations, &Budget { steps: 2_000, ..budget }).left_out, []);
    }
}
