//! Published evaluations as data. Each paper has a folder and each figure a file, with the runs, the published
//! results and the pictures. This crate plans the runs, takes from each run the numbers that its figures need, judges
//! the claims and writes the pages. The caller executes the runs.

mod archive;
mod bands;
mod by_jobs;
mod catalogue;
mod chart;
mod check;
mod claims;
mod draw;
mod error;
mod figures;
mod heat;
mod judged;
mod labels;
mod looks;
mod maps;
pub mod model;
mod observe;
mod open_claims;
mod overview;
mod page;
mod picture;
mod pixels;
mod plan;
mod record;
mod rivals;
mod run_cache;
mod scores;
mod select;
mod standing;
mod state;
mod table;
mod testbed;
#[cfg(test)]
mod testing;
mod write;

pub use archive::{Archive, Curve, StartCheck};
pub use catalogue::{Catalogue, Figure, Paper};
pub use claims::{Detail, Verdict, Weight, verdicts};
pub use error::PaperError;
pub use figures::{PublishedRow, RowState, claims_table, figures_text, overview_text, rows};
pub use looks::Looks;
pub use observe::{Observed, observe, statistic};
pub use overview::overview_html;
pub use plan::{FigurePlan, Observations, Plan, Point, Run, Traffic};
pub use record::{Record, RecordedFigure, RecordedRuns, RecordedVerdict};
pub use run_cache::RunCache;
pub use scores::scores_text;
pub use select::{Extent, Selection, Size};
pub use standing::{Judgement, Standing, judgement};
pub use state::State;
pub use table::{claims_text, rankings_text};
pub use write::{Destination, Settings, json};
