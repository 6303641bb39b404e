//! Sweeps as data: a file says which fields of a scenario take which values. This crate plans the runs, knows which of
//! them are done, keeps what they leave, and writes the dataset with its summary and report; whoever uses it executes
//! the runs, on threads, processes or other machines.

mod best;
mod cells;
mod choice;
mod choice_page;
mod cluster;
mod dataset;
mod error;
mod model;
mod plan;
mod range;
mod record;
mod report;
mod store;
mod summary;
mod table;

pub use best::Best;
pub use cells::{Axis, AxisKind, Cell};
pub use choice::{Choice, Choices, Ending};
pub use cluster::{ClusterFile, ClusterPlan, Cost, FabricChoice, PriceOf, Prices};
pub use dataset::Dataset;
pub use error::SweepError;
pub use model::{
    GridAxis, HypercubeAxis, Kept, LatinHypercube, NamedCell, ReportConfig, Scale, Seeds, SweepFile,
    TableName,
};
pub use plan::{Plan, Run};
pub use record::{Files, Keep, Record, kept_run, pack, run_key, task_key};
pub use store::{LOCK, RUNS, RunStore};
pub use summary::{CellSummary, Figures, Outcome, SweepSummary};
pub use table::table;

/// Version of the engine that runs are made with. Runs of another one are not taken for finished.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");
