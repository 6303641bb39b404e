//! Records of a run: rows of flows, links, jobs, activities, samples and events ([`RunResult`]), the columns of their
//! tables, and the figures computed from them ([`Summary`]). No file is written here.

mod activities;
mod arrivals;
mod collectives;
mod colours;
mod columns;
mod columns_of_jobs;
mod columns_of_waits;
mod critical;
mod departures;
mod described;
mod events;
mod exposure;
pub mod figures;
mod format;
mod job_time;
mod late;
mod latency;
mod middlebox;
mod names;
mod records;
mod series;
mod stats;
mod summary;
mod summary_fabric;
mod summary_schema;
mod training;
mod training_record;
mod waits;
mod warnings;

pub use activities::{ActivityKind, ActivityLabel, ActivityRecord, CollectiveLabel, Parallelism};
pub use arrivals::Arrivals;
pub use collectives::{CollectiveRecord, collectives};
pub use colours::{SCHEME_COLOURS, scheme_colours, scheme_colours_in_pictures};
pub use columns::{ACTIVITIES, Column, EVENTS, FLOWS, Get, JOBS, LINKS, ROWS_A_GROUP, SERIES};
pub use columns_of_jobs::{COLLECTIVES, CRITICAL, LAYERS};
pub use columns_of_waits::WAITS;
pub use critical::{CriticalPathSummary, CriticalStep, StepKind, steps_of};
pub use departures::{Departures, Gaps, PathLength};
pub use described::Field;
pub use events::{DropReason, EventKind, EventRecord};
pub use exposure::{IterationSummary, LayerRecord, layers};
pub use figures::{FlowSink, FlowStats, ScaleUpBytes};
pub use format::{Quantity, ns, ratio, round_ticks};
pub use job_time::{GroupJobs, JobTime, group_jobs, job_time_ns};
pub use late::{FlowTimes, LATE_SLOWDOWN, LateFlows, MessageEnd};
pub use latency::{LATENCY_DOMINANT_SHARE, idle_latency_ns, least_scale};
pub use middlebox::MiddleboxTotals;
pub use records::{
    BalancingTotals, Calibration, Direction, EndReason, FaultInfo, Fidelity, FlowRecord, FlowStatus,
    GroupTotals, JobRecord, LinkTotals, NodeInfo, NodeKind, QueueRecords, Role, RunInfo, RunResult,
    ServersInfo, SuppliedPart,
};
pub use series::{Missing, SeriesKind, SeriesSample, Span};
pub use stats::{Distribution, jain_index, percentile};
pub use summary::{
    FlowSummary, GroupSummary, JobSummary, RunSummary, SCHEMA_NAME, SCHEMA_VERSION, SizeBin, Summary,
};
pub use summary_fabric::{FabricSummary, TierSummary};
pub use summary_schema::{Object, SUMMARY};
pub use training::TrainingSummary;
pub use training_record::TrainingRecord;
pub use waits::{WaitKind, WaitRecord};
