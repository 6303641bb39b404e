//! Columns of the parts of jobs: collectives, layers, critical paths.

use crate::activities::{ActivityKind, ActivityLabel, CollectiveLabel, Parallelism};
use crate::collectives::CollectiveRecord;
use crate::columns::{Column, Get, column, names, nullable};
use crate::critical::{CriticalStep, StepKind};
use crate::exposure::LayerRecord;
use crate::format::ns;
use crate::records::RunResult;

fn activities(run: &RunResult) -> Vec<String> {
    run.labels.iter().map(|label| label.activity.clone()).collect()
}
fn parts(run: &RunResult) -> Vec<String> {
    run.labels.iter().map(|label| label.object.clone().unwrap_or_default()).collect()
}
fn parallelisms(run: &RunResult) -> Vec<String> {
    run.labels.iter().map(|label| label.parallelism.map_or("", Parallelism::name).to_owned()).collect()
}
fn algorithms(run: &RunResult) -> Vec<String> {
    run.labels.iter().map(|label| label.collective.map_or("", |c| c.algorithm).to_owned()).collect()
}
fn label_of(run: &RunResult, label: u32) -> Option<&ActivityLabel> {
    run.labels.get(label as usize)
}
fn of(run: &RunResult, collective: &CollectiveRecord) -> CollectiveLabel {
    label_of(run, collective.label).and_then(|label| label.collective).unwrap_or_default()
}

/// Columns of `collectives.parquet`.
pub const COLLECTIVES: &[Column<CollectiveRecord>] = &[
    column(
        "collective",
        "Number of the collective in the run, by start.",
        Get::U32(|_, c| Some(c.collective)),
    ),
    column(
        "group",
        "Workload group.",
        Get::Label(|run| run.info.groups.clone(), |c| Some(usize::from(c.group))),
    ),
    nullable("job", "Job it belongs to.", Get::U32(|_, c| c.job)),
    column(
        "kind",
        "The operation: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `broadcast`, `reduce`; of mixture-of-experts layers `dispatch` and `combine`.",
        Get::Label(activities, |c| Some(c.label as usize)),
    ),
    column(
        "layer",
        "The layer, bucket of gradients or round that it belongs to. Empty if the workload does not name it.",
        Get::Label(parts, |c| Some(c.label as usize)),
    ),
    column(
        "parallelism",
        "Kind of its group of ranks: `TP`, `EP`, `DP`, `DP-EP`. Empty where the workload does not name it.",
        Get::Label(parallelisms, |c| Some(c.label as usize)),
    ),
    column("algorithm", "How it is done.", Get::Label(algorithms, |c| Some(c.label as usize))),
    column("ranks", "How many ranks take part.", Get::U64(|run, c| Some(u64::from(of(run, c).ranks)))),
    nullable(
        "size_bytes",
        "Its size, as nccl-tests count it. Null where its ranks send different amounts.",
        Get::U64(|run, c| of(run, c).size_bytes),
    ),
    column("flows", "Its messages.", Get::U32(|_, c| Some(c.flows))),
    column(
        "first_start_ns",
        "When the first of its ranks posted its first message. activities.parquet has the begin of each rank.",
        Get::F64(|_, c| Some(ns(c.first_start_ps))),
    ),
    column("last_start_ns", "When the last rank did.", Get::F64(|_, c| Some(ns(c.last_start_ps)))),
    nullable(
        "first_finish_ns",
        "When the first rank was through: all it sends and receives had arrived.",
        Get::F64(|_, c| c.first_finish_ps.map(ns)),
    ),
    nullable("last_finish_ns", "When the last one was.", Get::F64(|_, c| c.last_finish_ps.map(ns))),
    nullable(
        "time_ns",
        "From a rank's begin until it is through, the mean over ranks, as nccl-tests time it (`-a 1`). Ranks of a broadcast or reduction that wait for others begin with the first one.",
        Get::F64(|_, c| c.mean_ps.map(ns)),
    ),
    nullable(
        "algorithm_bandwidth_bps",
        "`size_bytes` over `time_ns`.",
        Get::F64(|run, c| c.bandwidth_bps(of(run, c).size_bytes?)),
    ),
    nullable(
        "bus_bandwidth_bps",
        "The same times the factor of nccl-tests: 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for broadcast and reduce.",
        Get::F64(|run, c| c.bandwidth_bps(of(run, c).bus_bytes?)),
    ),
    column(
        "exposed_ns",
        "Time that it was in progress at a rank that computed nothing for the job, the mean over ranks. If a rank has several in progress, they share it.",
        Get::F64(|_, c| Some(ns(c.exposed_ps))),
    ),
    column(
        "most_exposed_ns",
        "The same of the rank that had most.",
        Get::F64(|_, c| Some(ns(c.most_exposed_ps))),
    ),
    column(
        "last_to_start_host",
        "Host of the rank that began last.",
        Get::U32(|_, c| Some(c.last_to_start_host)),
    ),
    nullable(
        "last_to_finish_host",
        "Host of the rank that was through last.",
        Get::U32(|_, c| c.last_to_finish_host),
    ),
    nullable(
        "slowest_flow",
        "The message that took longest beyond its time on an idle network.",
        Get::U32(|_, c| c.slowest_flow),
    ),
    nullable(
        "slowest_flow_lost_ns",
        "How much longer it took.",
        Get::F64(|_, c| c.slowest_flow_lost_ps.map(ns)),
    ),
];

/// Columns of `layers.parquet`.
pub const LAYERS: &[Column<LayerRecord>] = &[
    nullable("job", "The job.", Get::U32(|_, l| l.job)),
    column(
        "layer",
        "The layer, bucket of gradients or round that it is for. Empty if the workload does not name it.",
        Get::Label(parts, |l| Some(l.label as usize)),
    ),
    column(
        "kind",
        "A computation or communication.",
        Get::Label(|_| names(ActivityKind::ALL.iter().map(|k| k.name())), |l| Some(l.kind as usize)),
    ),
    column(
        "parallelism",
        "The kind of parallelism of its ranks: `TP`, `EP`, `DP`, `DP-EP`, `PP`. Empty if the workload does not name it.",
        Get::Label(parallelisms, |l| Some(l.label as usize)),
    ),
    column(
        "activity",
        "The activity as the workload names it.",
        Get::Label(activities, |l| Some(l.label as usize)),
    ),
    column("ranks", "Ranks of the job.", Get::U32(|_, l| Some(l.ranks))),
    column("activities", "How often all ranks together did it.", Get::U64(|_, l| Some(l.activities))),
    column(
        "busy_ns",
        "Time that a rank was at it, the mean over all ranks of the job.",
        Get::F64(|_, l| Some(ns(l.busy_ps))),
    ),
    column(
        "exposed_ns",
        "Of that, time in which the rank computed nothing for the job; 0 for computations. Activities in progress at the same time share it, so that rows of a job add up.",
        Get::F64(|_, l| Some(ns(l.exposed_ps))),
    ),
    column(
        "most_exposed_ns",
        "The same of the rank that had most.",
        Get::F64(|_, l| Some(ns(l.most_exposed_ps))),
    ),
];

/// Columns of `critical.parquet`.
pub const CRITICAL: &[Column<CriticalStep>] = &[
    column("job", "The job.", Get::U32(|_, s| Some(s.job))),
    column(
        "step",
        "Number of the step: each begins when the one before it ends.",
        Get::U32(|_, s| Some(s.step)),
    ),
    column(
        "kind",
        "A computation, a message or a wait.",
        Get::Label(|_| names(StepKind::ALL.iter().map(|k| k.name())), |s| Some(s.kind as usize)),
    ),
    column("host", "The host that computes, sends or waits.", Get::U32(|_, s| Some(s.host))),
    nullable("peer_host", "The host that receives.", Get::U32(|_, s| s.peer_host)),
    nullable("flow", "The message.", Get::U32(|_, s| s.flow)),
    nullable(
        "activity",
        "The activity as the workload names it.",
        Get::Label(activities, |s| s.label.map(|label| label as usize)),
    ),
    nullable(
        "layer",
        "The object of the activity; empty if the workload does not name it.",
        Get::Label(parts, |s| s.label.map(|label| label as usize)),
    ),
    column("start_ns", "When it began.", Get::F64(|_, s| Some(ns(s.start_ps)))),
    column("finish_ns", "When it was over.", Get::F64(|_, s| Some(ns(s.finish_ps)))),
    column("time_ns", "How long it took.", Get::F64(|_, s| Some(ns(s.time_ps())))),
    nullable(
        "lost_ns",
        "Time of a message beyond its time on an idle network.",
        Get::F64(|_, s| s.lost_ps().map(ns)),
    ),
];
