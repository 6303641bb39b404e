//! A situation: the unit of comparison.

use pathweave_records::{RunResult, Summary};

/// One scenario under several schemes, the first of which is the baseline.
#[derive(Clone, Debug)]
pub struct SchemeComparison<'a> {
    /// Title of the situation.
    pub title: &'a str,
    /// Description of the events in it; may be empty.
    pub description: &'a str,
    /// Path of its report, relative to the page.
    pub report: String,
    /// Runs, named after their schemes. At least one.
    pub runs: Vec<(&'a RunResult, &'a Summary)>,
}
