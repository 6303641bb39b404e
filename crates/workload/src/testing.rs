//! Helpers of this crate's tests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathweave_units::{Bytes, Duration, Rate, Time};

use crate::config::{WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::graph::{MessageGraph, Task, TaskId};
use crate::kinds::{FlowSpec, Traffic};
use crate::progress::Progress;

/// The graph of one workload on hosts at 100 Gbps in one rack.
pub(crate) fn graph_of(hosts: u32, traffic: Traffic) -> MessageGraph {
    build(&[WorkloadConfig::new(traffic)], &WorkloadEnv::new(hosts, Rate::from_gbps(100))).unwrap().graph
}

/// Why one workload cannot be built.
pub(crate) fn error_of(hosts: u32, traffic: Traffic) -> String {
    let env = WorkloadEnv::new(hosts, Rate::from_gbps(100));
    build(&[WorkloadConfig::new(traffic)], &env).unwrap_err().to_string()
}

/// A flow of an inline list.
pub(crate) fn flow_at(src: u64, dst: u64, size: u64, start_us: u64) -> FlowSpec {
    FlowSpec {
        src,
        dst,
        size: Bytes::new(size),
        start: Duration::from_us(start_us),
        id: None,
        after: Vec::new(),
        delay: Duration::ZERO,
        connection: None,
    }
}

/// Runs a graph on a network where each message takes a nanosecond a byte, whatever else happens. Returns when
/// each task ended and when each job did.
pub(crate) fn run(graph: &MessageGraph) -> (Vec<Time>, Vec<Time>) {
    let mut progress = Progress::new(graph);
    let mut ends = vec![Time::MAX; graph.task_count()];
    let mut jobs = vec![Time::MAX; graph.jobs().len()];
    let mut events: BinaryHeap<Reverse<(Time, TaskId)>> = BinaryHeap::new();
    let mut due = Vec::new();
    loop {
        let next = events.peek().map(|Reverse(e)| e.0).into_iter().chain(progress.next_root(graph)).min();
        let Some(now) = next else { break };
        while let Some(root) = progress.pop_root(graph, now) {
            due.push(root);
        }
        if due.is_empty() {
            let Reverse((now, task)) = events.pop().expect("there is an event or a root");
            assert_eq!(ends[task.index()], Time::MAX, "a task ended twice");
            ends[task.index()] = now;
            if let Some(job) = progress.complete(graph, task, now, &mut due) {
                jobs[job.index()] = now;
            }
        }
        for free in due.drain(..) {
            let duration = match graph.task(free.task) {
                Task::Message(message) => Duration::from_ns(message.size.get()),
                Task::Compute(_) => Duration::ZERO,
            };
            events.push(Reverse((free.at + duration, free.task)));
        }
    }
    assert_eq!(progress.left(), 0, "tasks never became free");
    (ends, jobs)
}

/// When each job of a graph ends, see [`run`].
pub(crate) fn job_ends(graph: &MessageGraph) -> Vec<Time> {
    run(graph).1
}
