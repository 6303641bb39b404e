//! Contents of `summary.json`, for the documentation. Each of its types is declared once, by `described!`, together
//! with its table of fields.

use crate::critical::CriticalPathSummary;
use crate::departures::{Departures, Gaps, PathLength};
use crate::described::Field;
use crate::exposure::IterationSummary;
use crate::job_time::{GroupJobs, JobTime};
use crate::middlebox::MiddleboxTotals;
use crate::records::BalancingTotals;
use crate::stats::Distribution;
use crate::summary::{FlowSummary, GroupSummary, JobSummary, RunSummary, SizeBin, Summary};
use crate::summary_fabric::{FabricSummary, TierSummary};
use crate::training::TrainingSummary;

/// An object of `summary.json`.
pub struct Object {
    /// Path of the object in the file.
    pub path: &'static str,
    /// Meaning of the object.
    pub meaning: &'static str,
    /// Fields of the object.
    pub fields: &'static [Field],
}

/// Fields of a group, followed by those of its flows.
const OF_GROUPS: [Field; GroupSummary::FIELDS.len() + FlowSummary::FIELDS.len()] = {
    let mut all = [GroupSummary::FIELDS[0]; GroupSummary::FIELDS.len() + FlowSummary::FIELDS.len()];
    let (own, flows) = all.split_at_mut(GroupSummary::FIELDS.len());
    own.copy_from_slice(GroupSummary::FIELDS);
    flows.copy_from_slice(FlowSummary::FIELDS);
    all
};

/// Every object, from the outside in.
pub const SUMMARY: &[Object] = &[
    Object { path: "(top)", meaning: "The file.", fields: Summary::FIELDS },
    Object { path: "run", meaning: "The run and how it ended.", fields: RunSummary::FIELDS },
    Object {
        path: "overall, foreground, groups[]",
        meaning: "Figures of a set of flows. Times, slowdown and goodput are of finished flows, counts are \
                  of all. Counts of packets are null in runs without packets. A group has five more fields.",
        fields: &OF_GROUPS,
    },
    Object {
        path: "by_size[]",
        meaning: "Finished flows of similar size. Edges are 1, 3, 10, 30, ... KB.",
        fields: SizeBin::FIELDS,
    },
    Object {
        path: "fabric",
        meaning: "Links and queues of the whole fabric. Counts of packets and queues are null where there were none.",
        fields: FabricSummary::FIELDS,
    },
    Object {
        path: "fabric.balancing",
        meaning: "Counts of load balancing in all switches together. All zero where switches hash.",
        fields: BalancingTotals::FIELDS,
    },
    Object {
        path: "fabric.tiers[]",
        meaning: "Links of one tier in one direction.",
        fields: TierSummary::FIELDS,
    },
    Object {
        path: "jobs",
        meaning: "Jobs: graphs of messages that complete as a whole.",
        fields: JobSummary::FIELDS,
    },
    Object { path: "jobs.by_group[]", meaning: "The jobs of a workload group.", fields: GroupJobs::FIELDS },
    Object { path: "jobs.longest[]", meaning: "One of these jobs.", fields: JobTime::FIELDS },
    Object {
        path: "iterations[]",
        meaning: "The time of a job by part. Times are means over its ranks and add up to `time_ns`. They include what a rank does for the next iteration before this one ends.",
        fields: IterationSummary::FIELDS,
    },
    Object {
        path: "training[]",
        meaning: "Training of a workload group, as means over its finished iterations.",
        fields: TrainingSummary::FIELDS,
    },
    Object {
        path: "critical_paths[]",
        meaning: "The critical path of a job: the chain of computations and messages, each begun by the end of the one before, that ends with its last one.",
        fields: CriticalPathSummary::FIELDS,
    },
    Object {
        path: "middleboxes[]",
        meaning: "Counters of the middlebox of an external switch; 0 where a part of it is off.",
        fields: MiddleboxTotals::FIELDS,
    },
    Object {
        path: "departures",
        meaning: "Data packets as they left their hosts. Empty without `observe.departures`.",
        fields: Departures::FIELDS,
    },
    Object {
        path: "departures.gaps[]",
        meaning: "Times between a packet and the one before it of the same message and queue pair; bins without one are left out.",
        fields: Gaps::FIELDS,
    },
    Object {
        path: "departures.lengths[]",
        meaning: "Paths of the same number of links.",
        fields: PathLength::FIELDS,
    },
    Object {
        path: "distribution",
        meaning: "Mean and order statistics of a set of values; all 0 when `count` is 0.",
        fields: Distribution::FIELDS,
    },
];
