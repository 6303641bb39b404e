//! Files and pages of runs: a [folder](ResultFolder) of Parquet and JSON files with a report, tables for the terminal,
//! exports, and [explanations](explain()).
//!
//! ```no_run
//! use pathweave_records::{RunResult, Summary};
//! use pathweave_report::{ResultFolder, summary_table};
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

mod blocks;
mod brief;
pub mod chart;
mod comparison;
mod diff;
mod differences;
mod estimate;
mod explain;
mod export;
mod few_flows;
mod flow_file;
mod folder;
mod frame;
mod grid;
mod judge;
mod metrics;
mod overview;
mod parquet_file;
mod partial;
mod progress;
mod report;
mod saved;
mod servers;
mod student;
mod template;
mod text;

pub use brief::{brief_comparison, brief_run};
pub use comparison::{COMPARISON_FILE, Place, Verdict};
pub use diff::{Diff, DiffError, ResultDifference, SettingDifference, Side, diff};
pub use estimate::Estimate;
pub use explain::{ExplainError, Finding, explain};
pub use export::{FctEnd, FctFormat, fct, flows_csv, perfetto};
pub use few_flows::{Unsure, few_flows_sentence};
pub use flow_file::FlowFile;
pub use folder::{FILES, OutputError, ResultFolder, run_files};
pub use frame::{DataFrame, Series};
pub use metrics::{Better, FLOW_METRICS, Figure, FlowMetric, FlowScope, RUN_METRICS, RunMetric, figures};
pub use overview::{SchemeComparison, html as landing_html, sentence, unlike_idle_times};
pub use parquet_file::{RunTable, table_bytes};
pub use partial::{PartialFolder, partial_file};
pub use pathweave_records::{SCHEME_COLOURS, scheme_colours};
pub use progress::{PROGRESS_FILE, Progress, ProgressPoint, RunProgress};
pub use report::{beside as beside_html, html as report_html, run_in_words};
pub use saved::{PNG_SCRIPT, SavedPicture, csv_line};
pub use template::{escape, fill as fill_page, plain_page, script_json};
pub use text::{comparison_table, differences_table, summary_table};
