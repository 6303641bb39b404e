//! Jobs over time.

use pathweave_records::{RunResult, ns};
use serde::Serialize;

use super::{Budget, rounded};

/// Jobs, in order of their start.
#[derive(Debug, Serialize)]
pub(super) struct Jobs {
    /// Number of all jobs. The longest are kept, and those that did not finish.
    of: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    job: u32,
    name: String,
    group: u16,
    start_ns: f64,
    finish_ns: Option<f64>,
    /// Duration; shorter than from start to finish if the job overlaps the iteration that it follows.
    time_ns: Option<f64>,
    /// Exposed communication; `None` if the job computes nothing or did not finish.
    exposed_ns: Option<f64>,
}

/// The jobs of a run.
pub(super) fn jobs(run: &RunResult, budget: &Budget) -> Jobs {
    let mut jobs: Vec<_> = run.jobs.iter().collect();
    jobs.sort_by_key(|j| std::cmp::Reverse(j.completion_ps().unwrap_or(u64::MAX)));
    jobs.truncate(budget.jobs);
    jobs.sort_by_key(|j| (j.start_ps, j.job));
    let row = |j: &pathweave_records::JobRecord| Row {
        job: j.job,
        name: j.name.clone(),
        group: j.group,
        start_ns: rounded(ns(j.start_ps)),
        finish_ns: j.finish_ps.map(|t| rounded(ns(t))),
        time_ns: j.completion_ps().map(|t| rounded(ns(t))),
        exposed_ns: j.exposed_ps().filter(|_| j.compute_ps > 0).map(|t| rounded(ns(t))),
    };
    Jobs { of: run.jobs.len(), rows: jobs.into_iter().map(row).collect() }
}
