//! A page that leads to the reports of several comparisons: the result of each in a sentence, with pictures.
//!
//! All pictures are drawn here, as SVG in the colours of the report, so that the page is small and needs no script.

mod curve;
mod map;
mod page;
mod places;
mod situation;
mod verdict;

pub use page::html;
pub(crate) use page::{colour_of_run, in_brief, of_run};
pub use situation::SchemeComparison;
pub(crate) use verdict::words;
pub use verdict::{sentence, unlike_idle_times};
