//! What is compared.

use crate::records::RunResult;
use crate::summary::Summary;

/// One scenario under several schemes, the first of which is what others are compared with.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// What it is called.
    pub title: &'a str,
    /// What happens in it; may be empty.
    pub says: &'a str,
    /// Where its report lies, from the page.
    pub report: String,
    /// The runs, named after their schemes. At least one.
    pub runs: Vec<(&'a RunResult, &'a Summary)>,
}
