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

/// Returns true if a figure is one of the flows that finished.
pub(super) fn is_of_finished(label: &str) -> bool {
    flow_metric(label).is_some_and(|metric| metric.needs == Needs::Flows)
}

/// Returns the format of a figure and its better direction.
pub(super) fn format_of(label: &str) -> (Quantity, Better) {
    let flows = flow_metric(label).map(|m| (m.quantity, m.better));
    let run = || run_metric(label).map(|m| (m.quantity, m.better));
    flows.or_else(run).expect("a test looks up each label")
}
