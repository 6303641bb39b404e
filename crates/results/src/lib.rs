//! What a run leaves behind: records, summaries, files and the report.

mod names;
mod records;

pub use records::{
    DropReason, EndReason, EventKind, EventRecord, FlowRecord, FlowStatus, JobRecord, LinkTotals, NodeInfo,
    NodeKind, RunInfo, RunResult, SeriesKind, SeriesSample,
};
