//! Figures that are compared.

use pathweave_records::Quantity;

use crate::metrics::{Better, FLOW_METRICS, RUN_METRICS};

/// Figures that are compared, in the order of tables.
pub(super) const FIGURES: &[&str] = &[
    "Job time",
    "FCT mean",
    "FCT P99",
    "Slowdown mean",
    "Slowdown P99",
    "Unfinished",
    "Dropped packets",
    "Retransmissions",
];

/// Returns the format of a figure and its better direction.
pub(super) fn format_of(label: &str) -> (Quantity, Better) {
    let flows = FLOW_METRICS.iter().find(|metric| metric.label == label).map(|m| (m.quantity, m.better));
    let run = || RUN_METRICS.iter().find(|metric| metric.label == label).map(|m| (m.quantity, m.better));
    flows.or_else(run).expect("a test looks up each label")
}
