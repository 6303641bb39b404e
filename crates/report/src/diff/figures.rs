//! Figures that are compared.

use pathweave_records::Quantity;

use crate::metrics::{Better, Needs, flow_metric, run_metric};

/// Figures that are compared, in the order of tables.
pub(super) const FIGURES: &[&str] = &[
    "Job time",
    "FCT mean",
    "FCT P99",
    "Ideal FCT mean",
    "Slowdown mean",
    "Slowdown P99",
    "Unfinished",
    "Failed",
    "Dropped packets",
    "Retransmissions",
];

/// Returns the work that has to be finished for a figure to stand for a run.
pub(super) fn needs_of(label: &str) -> Needs {
    flow_metric(label).map_or(Needs::Nothing, |metric| metric.needs)
}

/// Returns the format of a figure and its better direction.
pub(super) fn format_of(label: &str) -> (Quantity, Better) {
    let flows = flow_metric(label).map(|m| (m.quantity, m.better));
    let run = || run_metric(label).map(|m| (m.quantity, m.better));
    flows.or_else(run).expect("a test looks up each label")
}
