//! A page that leads to the reports of several comparisons: what came out of each, in a sentence, and pictures of it.
//!
//! Everything on it is drawn here, as SVG in the colours of the report, so that the page is small and needs no script.

mod curve;
mod map;
mod page;
mod verdict;

use crate::records::RunResult;
use crate::summary::Summary;

pub use page::html;
pub use verdict::sentence;

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
