//! A situation: the unit of comparison.

use pathweave_records::{RunResult, Summary};

use super::verdict::list;

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
    /// Names of the schemes that did not run, because the comparison was stopped.
    pub missing: Vec<String>,
}

impl<'a> SchemeComparison<'a> {
    /// Returns the names of the runs, in their order.
    pub fn names(&self) -> Vec<&'a str> {
        self.runs.iter().map(|(run, _)| run.info.name.as_str()).collect()
    }

    /// Returns a sentence on the schemes that did not run, with a space before it; empty if all did.
    pub fn missing_words(&self) -> String {
        if self.missing.is_empty() { String::new() } else { format!(" Not run: {}.", list(&self.missing)) }
    }
}
