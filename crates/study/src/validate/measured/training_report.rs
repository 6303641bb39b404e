//! Measured and simulated steps of training.

use serde::Serialize;

use super::rows::Role;
use crate::validate::model::Band;

/// Bar of the step time, simulated over measured.
pub(super) const BAR: Band = Band { low: 0.90, high: 1.10 };

/// Row of the table of steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainingRow {
    /// Name of the row.
    pub id: String,
    /// Description: model, GPUs, parallelism.
    pub what: String,
    /// Rows that differ in the number of GPUs and the batch only.
    pub series: String,
    /// Use of the row.
    pub role: Role,
    /// Measured time of a step.
    pub measured_s: f64,
    /// Simulated time.
    pub simulated_s: f64,
    /// Simulated over measured time, less 1.
    pub error: f64,
    /// The same along the series: the ratio to the first row of the series, simulated over measured, less 1.
    pub along: f64,
    /// Operations of the model per second and GPU, in 10^12.
    pub tflops_per_gpu: f64,
    /// Share of the peak rate.
    pub mfu: Option<f64>,
    /// Pipeline bubble.
    pub pipeline_bubble: Option<f64>,
    /// True if the case states that the row is outside of its bar, and why.
    pub known: bool,
    /// Cause of a known miss.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Assumptions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assume: String,
    /// Origin of the measurement.
    pub source: String,
}

/// Fitted number of a GPU and precision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedEfficiency {
    /// GPU and precision: "h100 fp8".
    pub gpu: String,
    /// Part of the peak rate that matrix products reach.
    pub efficiency: f64,
    /// Row that determines it.
    pub row: String,
}

/// Measured and simulated steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainingReport {
    /// Fitted numbers.
    pub fitted: Vec<FittedEfficiency>,
    /// Rows, in the order of the table.
    pub rows: Vec<TrainingRow>,
}

impl TrainingRow {
    /// Returns true if the error is within the bar.
    pub fn is_within(&self) -> bool {
        BAR.holds(1.0 + self.error)
    }
}
