//! Results of a run: [records](RunResult), the [summary](Summary) computed from them, a [folder](ResultFolder) of
//! Parquet and JSON files with a report, and tables for the terminal.
//!
//! ```no_run
//! use pathweave_results::{ResultFolder, RunResult, Summary, summary_table};
//! # fn simulate() -> RunResult { RunResult::default() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Before the run: a destination that cannot be written should not cost a run.
//! let folder = ResultFolder::create("results/demo".as_ref())?;
//! let run = simulate();
//! let summary = Summary::from_run(&run);
//! let table = summary_table(&summary);
//! folder.write_run(&run, &summary)?;
//! let path = folder.commit()?;
//! # let _ = (table, path);
//! # Ok(()) }
//! ```

mod activities;
mod arrivals;
mod blocks;
mod collectives;
mod colours;
mod columns;
mod columns_of_jobs;
mod columns_of_waits;
mod counters;
mod critical;
mod departures;
mod described;
mod differences;
mod estimate;
mod events;
mod explain;
mod export;
mod exposure;
mod figures;
mod flow_file;
mod folder;
mod format;
mod frame;
mod grid;
mod latency;
mod metrics;
mod middlebox;
mod names;
mod overview;
mod parquet_file;
mod progress;
mod records;
mod report;
mod series;
mod stats;
mod summary;
mod summary_fabric;
mod summary_schema;
mod template;
mod text;
mod waits;

pub use activities::{ActivityKind, ActivityLabel, ActivityRecord, CollectiveLabel, Parallelism};
pub use collectives::{CollectiveRecord, collectives};
pub use colours::{SCHEME_COLOURS, scheme_colours};
pub use columns::{ACTIVITIES, Column, EVENTS, FLOWS, Get, JOBS, LINKS, SERIES};
pub use columns_of_jobs::{COLLECTIVES, CRITICAL, LAYERS};
pub use columns_of_waits::WAITS;
pub use critical::{CriticalPathSummary, CriticalStep, StepKind};
pub use departures::{Departures, Gaps, PathLength};
pub use described::Field;
pub use estimate::Estimate;
pub use events::{DropReason, EventKind, EventRecord};
pub use explain::{ExplainError, Finding, explain};
pub use export::{FctEnd, FctFormat, fct, flows_csv, perfetto};
pub use exposure::{IterationSummary, LayerRecord, layers};
pub use figures::{FlowSink, FlowStats};
pub use flow_file::FlowFile;
pub use folder::{FILES, OutputError, ResultFolder, run_files};
pub use format::{Quantity, ratio, round_ticks};
pub use frame::{DataFrame, Series};
pub use latency::{LATENCY_DOMINANT_SHARE, least_scale};
pub use metrics::{Better, FLOW_METRICS, Figure, FlowMetric, RUN_METRICS, RunMetric, figures};
pub use middlebox::MiddleboxTotals;
pub use overview::{SchemeComparison, html as landing_html, sentence, unlike_idle_times};
pub use parquet_file::{RunTable, table_bytes};
pub use progress::{PROGRESS_FILE, Progress, ProgressPoint, RunProgress};
pub use records::{
    BalancingTotals, Calibration, Direction, EndReason, Fidelity, FlowRecord, FlowStatus, GroupTotals,
    JobRecord, LinkTotals, NodeInfo, NodeKind, Role, RunInfo, RunResult,
};
pub use report::html as report_html;
pub use series::{Missing, SeriesKind, SeriesSample, Span};
pub use stats::{Distribution, jain_index, percentile};
pub use summary::{FlowSummary, GroupSummary, JobSummary, RunSummary, SizeBin, Summary};
pub use summary_fabric::{FabricSummary, TierSummary};
pub use summary_schema::{Object, SUMMARY};
pub use template::{escape, fill as fill_page, plain_page, script_json};
pub use text::{comparison_table, differences_table, summary_table};
pub use waits::{WaitKind, WaitRecord};
