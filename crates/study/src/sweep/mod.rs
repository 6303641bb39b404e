//! Sweeps as data: a file lists the fields of a scenario and their values. This crate plans the runs, finds the
//! finished ones, stores their results, and writes the dataset with its summary and report. The caller executes the
//! runs, on threads, processes or other machines.

mod best;
mod cells;
mod choice;
mod choice_page;
mod choice_sections;
mod choice_table;
mod cluster;
mod cost;
mod dataset;
mod error;
mod judge;
mod model;
mod parallelism;
mod plan;
mod range;
mod record;
mod report;
mod search;
mod store;
mod strike;
mod summary;
mod table;

pub use best::Best;
pub use cells::{Axis, AxisKind, Cell};
pub use choice::{Choice, ChoiceOutcome, Choices};
pub use cluster::{Candidate, ClusterFile, ClusterPlan, FabricChoice, Search, Strike};
pub use cost::{Cost, Prices, RatePrices};
pub use dataset::Dataset;
pub use error::SweepError;
pub use model::{
    GridAxis, HypercubeAxis, LatinHypercube, NamedCell, ReportConfig, Scale, Seeds, StoredOutput, SweepFile,
    TableName,
};
pub use parallelism::ParallelismAxes;
pub use plan::{Plan, Run};
pub use record::{Files, Record, StoredFiles, encode_files, read_stored_run, run_key, task_key};
pub use search::SearchStep;
pub use store::{LOCK, RUNS, RunStore};
pub use summary::{CellSummary, Figures, Outcome, SweepSummary};
pub use table::table;

/// Version of the engine that makes the runs. Runs of another version do not count as finished.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");
