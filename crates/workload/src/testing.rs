//! Helpers of this crate's tests.

use pathweave_units::{Bytes, Duration, Rate, Time};

use crate::bounds::run_ideal;
use crate::config::{WorkloadConfig, build};
use crate::env::WorkloadEnv;
use crate::graph::MessageGraph;
use crate::kinds::{FlowSpec, Traffic};

/// Returns the graph of one workload on hosts at 100 Gbps in one rack.
pub(crate) fn graph_of(hosts: u32, traffic: Traffic) -> MessageGraph {
    build(&[WorkloadConfig::new(traffic)], &WorkloadEnv::new(hosts, Rate::from_gbps(100))).unwrap().graph
}

/// Returns the error of a workload that cannot be built.
pub(crate) fn error_of(hosts: u32, traffic: Traffic) -> String {
    let env = WorkloadEnv::new(hosts, Rate::from_gbps(100));
    build(&[WorkloadConfig::new(traffic)], &env).unwrap_err().to_string()
}

/// Returns the notes of a workload, without its name.
pub(crate) fn notes_of(hosts: u32, traffic: Traffic) -> Vec<String> {
    let env = WorkloadEnv::new(hosts, Rate::from_gbps(100));
    let notes = build(&[WorkloadConfig::new(traffic)], &env).unwrap().notes;
    notes.iter().map(|note| note.split_once(": ").expect("a name").1.to_owned()).collect()
}

/// Makes a flow of an inline list.
pub(crate) fn flow_at(src: u64, dst: u64, size: u64, start_us: u64) -> FlowSpec {
    FlowSpec {
        src: src.into(),
        dst: dst.into(),
        size: Bytes::new(size),
        start: Duration::from_us(start_us),
        id: None,
        after: Vec::new(),
        delay: Duration::ZERO,
        connection: None,
    }
}

/// Runs a graph on a network in which each message takes a nanosecond per byte, without contention. Returns
/// the end of each task and of each job.
pub(crate) fn run(graph: &MessageGraph) -> (Vec<Time>, Vec<Time>) {
    let mut ends = vec![Time::MAX; graph.task_count()];
    let mut jobs = vec![Time::ZERO; graph.jobs().len()];
    run_ideal(
        graph,
        |message| Duration::from_ns(message.size.get()),
        |task, _, end| {
            assert_eq!(ends[task.index()], Time::MAX, "a task ended twice");
            ends[task.index()] = end;
            if let Some(job) = graph.job(task) {
                jobs[job.index()] = jobs[job.index()].max(end);
            }
        },
    );
    assert!(ends.iter().all(|&end| end < Time::MAX), "tasks never became free");
    (ends, jobs)
}

/// Returns the end of each job of a graph, see [`run`].
pub(crate) fn job_ends(graph: &MessageGraph) -> Vec<Time> {
    run(graph).1
}

/// Returns a leaf-spine of that many leaves, spines, and hosts on each leaf.
pub(crate) fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32) -> pathweave_topo::Topology {
    let config: pathweave_topo::TopologyConfig = serde_json::from_value(serde_json::json!({
        "kind": "leaf-spine", "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf
    }))
    .unwrap();
    config.build(std::path::Path::new("")).unwrap()
}
