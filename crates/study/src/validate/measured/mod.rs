//! Comparison with published measurements of hardware (`data/truth`).
//!
//! Each row of a table is modelled, and its error shown. A few rows determine two numbers for a generation of GPUs; all
//! others are held out. A row that misses its bar stays in the table.

mod fit;
mod html;
mod markdown;
mod report;
mod rows;
mod text;
mod training;

pub use fit::Fitted;
pub use markdown::measured_markdown;
pub use report::{MeasuredReport, MeasuredRow, Modelled, RowState, Share};
pub use rows::Role;

pub use training::{FittedEfficiency, TrainingReport, TrainingRow, training_markdown, training_text};

pub(crate) use html::section;
pub(crate) use report::report;
pub use text::measured_text;
pub(crate) use training::{training_section, trial as training_trial};

use crate::validate::error::ValidateError;
use crate::validate::judge::{CaseRuns, Row};
use crate::validate::model::Measured;

/// Models the rows of a table and judges those that are held out.
///
/// # Errors
/// If the data are invalid, which a test excludes, or the case names a row that does not exist.
pub(crate) fn trial(measured: &Measured) -> Result<(CaseRuns, MeasuredReport), ValidateError> {
    let report = report(measured)?;
    let judged = |row: &MeasuredRow| {
        let model = row.model.as_ref()?;
        let band = row.band.filter(|_| row.state != RowState::KnownMiss);
        Some(Row::new(&row.id, "GB/s", model.busbw_gbs, row.busbw_gbs, band))
    };
    let rows = report.rows.iter().filter_map(judged).collect();
    Ok((CaseRuns { rows, ..CaseRuns::default() }, report))
}
