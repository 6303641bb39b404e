//! Collectives, and the critical paths of the longest jobs.

use pathweave_records::{
    ActivityLabel, CollectiveRecord, IterationSummary, RunResult, StepKind, collectives, ns, steps_of,
};
use serde::Serialize;

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

/// Returns the critical paths of the jobs of `iterations`: the longest steps of each within the budget, in their
/// order.
pub(super) fn critical(run: &RunResult, iterations: &[IterationSummary], budget: &Budget) -> Vec<Step> {
    let each = budget.steps / iterations.len().max(1);
    let mut out = Vec::new();
    for iteration in iterations {
        let mut steps: Vec<_> = steps_of(run, iteration.job).iter().collect();
        steps.sort_by_key(|step| (std::cmp::Reverse(step.time_ps()), step.step));
        steps.truncate(each);
        steps.sort_by_key(|step| step.step);
        out.extend(steps.into_iter().map(|step| {
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
