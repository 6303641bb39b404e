//! Comparison with published measurements of hardware (`data/truth`).
//!
//! Each row of a table is simulated, and its error shown beside that of NCCL's cost model. A few rows determine two numbers
//! for a generation of GPUs; all others are held out. A row that misses its bar stays in the table.

mod executed;
mod html;
mod markdown;
mod report;
mod rows;
mod text;
mod training;
mod training_report;

pub use markdown::measured_markdown;
pub use report::{Estimated, GenerationFit, MeasuredReport, MeasuredRow, RowState, Share};
pub use rows::Role;

pub use training::{training_markdown, training_text};
pub use training_report::{FittedEfficiency, TrainingReport, TrainingRow};

pub(crate) use html::section;
pub(crate) use report::report;
pub use text::measured_text;
pub(crate) use training::{training_section, trial as training_trial};

use crate::validate::error::ValidateError;
use crate::validate::judge::{CaseRuns, Row};
use crate::validate::model::Measured;

/// Simulates the rows of a table and judges those that are held out.
///
/// # Errors
/// If the data are invalid, which a test excludes, or the case names a row that does not exist.
pub(crate) fn trial(measured: &Measured) -> Result<(CaseRuns, MeasuredReport), ValidateError> {
    let report = report(measured)?;
    let judged = |row: &MeasuredRow| {
        let simulated = row.simulated?;
        let band = row.band.filter(|_| row.state != RowState::KnownMiss);
        Some(Row::new(&row.id, "GB/s", simulated.busbw_gbs, row.busbw_gbs, band))
    };
    let rows = report.rows.iter().filter_map(judged).collect();
    Ok((CaseRuns { rows, ..CaseRuns::default() }, report))
}
