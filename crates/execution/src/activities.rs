//! Activities of hosts, assembled from computations and messages as they happened.

use std::collections::hash_map::Entry;

use pathweave_records::{ActivityKind, ActivityLabel, ActivityRecord, CollectiveLabel, Parallelism};
use pathweave_units::{Bytes, Time};
use pathweave_workload::{Label, MessageGraph, Progress, Task, TaskId};

use crate::flow::Sending;

/// Key of messages that form one activity: host, label, job, group. All messages of one collective are one activity;
/// others are merged while they overlap.
type Exchange = (u32, u32, Option<u32>, u16);

/// Packs the key into a number. There are fewer than 2^32 - 1 jobs.
fn code((host, label, job, group): Exchange) -> u128 {
    let job = job.map_or(0, |job| job + 1);
    u128::from(host) << 96 | u128::from(label) << 64 | u128::from(job) << 32 | u128::from(group)
}

/// Returns the labels of a workload as records.
pub fn labels(graph: &MessageGraph) -> Vec<ActivityLabel> {
    let bytes = |bytes: Bytes| bytes.get();
    let record = |label: &Label| ActivityLabel {
        activity: label.activity.clone(),
        object: label.part.clone(),
        parallelism: label.parallelism.map(parallelism),
        collective: label.collective.map(|collective| CollectiveLabel {
            number: collective.number,
            ranks: collective.ranks,
            algorithm: collective.algorithm,
            size_bytes: collective.measure.map(|measure| bytes(measure.size)),
            bus_bytes: collective.measure.map(|measure| bytes(measure.bus)),
        }),
    };
    graph.labels().iter().map(record).collect()
}

const fn parallelism(of: pathweave_workload::Parallelism) -> Parallelism {
    match of {
        pathweave_workload::Parallelism::Tensor => Parallelism::Tensor,
        pathweave_workload::Parallelism::Expert => Parallelism::Expert,
        pathweave_workload::Parallelism::Data => Parallelism::Data,
        pathweave_workload::Parallelism::ExpertData => Parallelism::ExpertData,
        pathweave_workload::Parallelism::Pipeline => Parallelism::Pipeline,
        pathweave_workload::Parallelism::Context => Parallelism::Context,
    }
}

/// Returns the activities of hosts until `end`: computations that took time, and messages that were posted. Ordered
/// by host, and by start at each host.
pub(crate) fn records<'f>(
    graph: &MessageGraph,
    progress: &Progress,
    posted: impl Iterator<Item = (u32, &'f Sending, Option<Time>)>,
    end: Time,
) -> Vec<ActivityRecord> {
    if graph.labels().is_empty() {
        return Vec::new();
    }
    let mut all = computations(graph, progress, end);
    let mut together: Vec<(Exchange, ActivityRecord)> = Vec::new();
    // Index of each exchange in `together`. The map is only looked up and never iterated, so its order cannot affect
    // results.
    let mut place: foldhash::HashMap<u128, usize> = foldhash::HashMap::default();
    let mut single: Vec<(Exchange, ActivityRecord)> = Vec::new();
    for (flow, sending, finish) in posted {
        let Some(label) = graph.label(TaskId(flow)) else { continue };
        let message = &graph.messages()[flow as usize];
        let (group, bytes) = (message.group.0, message.size.get());
        let [job, whole] =
            [graph.job(TaskId(flow)), graph.parent_job(TaskId(flow))].map(|of| of.map(|job| job.0));
        let is_collective = graph.labels()[label as usize].collective.is_some();
        // If hosts represent others, a representative receives what this host sends.
        let receiver = graph.representative(message.dst);
        for (host, sent_bytes, received_bytes) in [(message.src, bytes, 0), (receiver, 0, bytes)] {
            let part = ActivityRecord {
                host: host.0,
                group,
                job: whole,
                part: job.filter(|_| is_collective && job != whole),
                kind: ActivityKind::Communication,
                label,
                start_ps: sending.start_ps,
                finish_ps: finish.map(Time::as_ps),
                nominal_ps: None,
                flows: 1,
                sent_bytes,
                received_bytes,
            };
            let exchange = (host.0, label, job, group);
            if is_collective {
                match place.entry(code(exchange)) {
                    Entry::Occupied(known) => add(&mut together[*known.get()].1, &part),
                    Entry::Vacant(new) => {
                        new.insert(together.len());
                        together.push((exchange, part));
                    }
                }
            } else {
                single.push((exchange, part));
            }
        }
    }
    together.sort_unstable_by_key(|(exchange, _)| *exchange);
    all.extend(together.into_iter().map(|(_, whole)| whole));
    all.extend(merge_overlapping(single));
    all.sort_by_key(|a| (a.host, a.start_ps, a.finish_ps, a.label, a.job));
    all
}

fn computations(graph: &MessageGraph, progress: &Progress, end: Time) -> Vec<ActivityRecord> {
    let messages = graph.messages().len();
    let record = |index: usize| {
        let id = TaskId((messages + index) as u32);
        let Task::Compute(compute) = graph.task(id) else { return None };
        let (host, label, over) = (compute.host?, graph.label(id)?, progress.computed(index)?);
        let start = Time::from_ps(over.as_ps() - compute.duration.as_ps());
        (over > start && start < end).then(|| ActivityRecord {
            host: host.0,
            group: compute.job.map_or(0, |job| graph.jobs()[job.index()].group.0),
            job: graph.parent_job(id).map(|job| job.0),
            kind: ActivityKind::Computation,
            label,
            start_ps: start.as_ps(),
            finish_ps: (over <= end).then_some(over.as_ps()),
            nominal_ps: Some(graph.nominal(index).as_ps()),
            ..ActivityRecord::default()
        })
    };
    (0..graph.computes().len()).filter_map(record).collect()
}

fn add(whole: &mut ActivityRecord, part: &ActivityRecord) {
    whole.start_ps = whole.start_ps.min(part.start_ps);
    // An activity with an unfinished message has no end.
    whole.finish_ps = whole.finish_ps.zip(part.finish_ps).map(|(a, b)| a.max(b));
    whole.flows += part.flows;
    whole.sent_bytes += part.sent_bytes;
    whole.received_bytes += part.received_bytes;
}

/// Merges messages with the same key into one activity while they overlap.
fn merge_overlapping(mut single: Vec<(Exchange, ActivityRecord)>) -> Vec<ActivityRecord> {
    single.sort_by_key(|(exchange, part)| (*exchange, part.start_ps, part.finish_ps));
    let mut out: Vec<(Exchange, ActivityRecord)> = Vec::new();
    for (exchange, part) in single {
        match out.last_mut() {
            Some((last, whole))
                if *last == exchange && whole.finish_ps.is_none_or(|finish| part.start_ps <= finish) =>
            {
                add(whole, &part);
            }
            _ => out.push((exchange, part)),
        }
    }
    out.into_iter().map(|(_, whole)| whole).collect()
}
