//! Timeline of failures: events counted by interval.

use pathweave_records::{EventKind, RunResult, ns};
use serde::Serialize;

/// Number of intervals of a timeline.
const INTERVALS: usize = 240;

/// Number of events by kind and interval.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    interval_ns: f64,
    rows: Vec<Row>,
    not_recorded: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    total: u64,
    counts: Vec<u32>,
}

/// Builds the timeline of a run, with rows only for kinds that occurred. Resumes are left out, because they add
/// nothing to their pauses.
pub(super) fn timeline(run: &RunResult) -> Timeline {
    let end_ps = run.events.iter().map(|e| e.time_ps).max().unwrap_or(0).max(run.info.simulated_ps);
    let interval_ps = (end_ps + 1).div_ceil(INTERVALS as u64);
    let mut counts = vec![vec![0u32; INTERVALS]; EventKind::ALL.len()];
    for event in &run.events {
        counts[event.kind as usize][(event.time_ps / interval_ps) as usize] += 1;
    }
    let rows = EventKind::ALL.iter().zip(counts).filter(|(kind, _)| **kind != EventKind::PfcResume);
    let rows = rows.map(|(kind, counts)| Row {
        kind: kind.name(),
        total: counts.iter().map(|&c| u64::from(c)).sum(),
        counts,
    });
    Timeline {
        interval_ns: ns(interval_ps),
        rows: rows.filter(|r| r.total > 0).collect(),
        not_recorded: run.events_not_recorded.values().sum(),
    }
}
