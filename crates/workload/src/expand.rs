//! Conversion of a graph to a list of flows: its messages, with their dependencies.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Time};

use crate::files::{FlowDependency, FlowFile, FlowRecord, HostCount};
use crate::graph::{MessageGraph, Moment, OWN, Task, TaskId};

/// Largest number of dependencies of a list. If very many flows wait for very many others, each one would
/// list all of them.
const MAX_AFTER: usize = 1 << 22;
/// Largest number of tasks visited to find out if dependencies already order the computations of each core.
/// Beyond it, a core counts as not ordered.
const MOST_LOOKED_AT: usize = 1 << 26;

/// A list of flows that replaces a graph, and the information that the list cannot express.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// Messages of the graph.
    pub flows: FlowFile,
    /// Information missing from the list, as text for the user.
    pub lost: Vec<String>,
}

/// Time at which a task ends or may begin: the maximum of an instant and of the ends of messages plus delays.
#[derive(Clone, Default)]
struct When {
    at: Time,
    /// Delay after each message, by message and the moment of it that is waited for.
    after: BTreeMap<(u32, Moment), Duration>,
}

impl When {
    /// Takes the maximum of this time and `other` plus `delay`.
    fn and(&mut self, other: &When, delay: Duration) {
        self.at = self.at.max(other.at.saturating_add(delay));
        for (&message, &own) in &other.after {
            self.and_after(message, Duration::from_ps(own.as_ps().saturating_add(delay.as_ps())));
        }
    }
    fn and_after(&mut self, message: (u32, Moment), delay: Duration) {
        let known = self.after.entry(message).or_default();
        *known = delay.max(*known);
    }
}

/// Returns the messages of `graph` as flows. Computations become delays between messages.
///
/// # Errors
///
/// Returns the reason if the list would have too many dependencies, or if it cannot express a dependency.
pub fn expand(graph: &MessageGraph) -> Result<Expanded, String> {
    let order = in_order(graph);
    let before = predecessors(graph);
    let messages = graph.messages().len();
    // Ends of computations. Ends of messages are expressed by the messages themselves.
    let mut over: Vec<When> = vec![When::default(); graph.computes().len()];
    let mut flows: Vec<FlowRecord> = vec![FlowRecord::default(); messages];
    let mut is_waited_for = vec![false; messages];
    let mut count = 0;
    for &id in &order {
        let delay = graph.delay_after_deps(id);
        let mut begin = When { at: graph.start(id), ..When::default() };
        for (on, moment) in &before[id.index()] {
            match on.index().checked_sub(messages) {
                None => begin.and_after((on.0, *moment), delay),
                Some(compute) => begin.and(&over[compute], delay),
            }
        }
        let needs = needed_count(graph, id, &begin)?;
        count += begin.after.len();
        if count > MAX_AFTER {
            return Err(format!(
                "its messages wait for each other in more than {MAX_AFTER} ways, computations between them left out"
            ));
        }
        match graph.task(id) {
            Task::Compute(compute) => over[id.index() - messages].and(&begin, compute.duration),
            Task::Message(message) => {
                begin.after.keys().for_each(|&(on, _)| is_waited_for[on as usize] = true);
                let after = begin.after.iter();
                let after = after
                    .map(|(&(on, moment), &delay)| FlowDependency { id: name(on), delay, moment })
                    .collect();
                flows[id.index()] = FlowRecord {
                    src: u64::from(message.src.0),
                    dst: u64::from(message.dst.0),
                    size_bytes: message.size.get(),
                    start: begin.at,
                    after,
                    needs,
                    connection: (message.stream & OWN == 0).then_some(message.stream),
                    ..FlowRecord::default()
                };
            }
        }
    }
    for (i, flow) in flows.iter_mut().enumerate().filter(|(i, _)| is_waited_for[*i]) {
        flow.id = Some(name(i as u32));
    }
    let lost = inexpressible(graph, &order, &before);
    let flows = FlowFile {
        flows,
        hosts: Some(HostCount { field: "hosts", line: None, count: u64::from(graph.hosts()) }),
        ..FlowFile::default()
    };
    Ok(Expanded { flows, lost })
}

/// Returns the flow's identifier: a number from 1, which every format with flow identifiers can express.
fn name(message: u32) -> String {
    (message + 1).to_string()
}

/// Returns the number of predecessors that suffice, if the task does not need all. Fails if the list cannot
/// express this.
fn needed_count(graph: &MessageGraph, id: TaskId, begin: &When) -> Result<Option<u32>, String> {
    let (needs, all) = (graph.needs(id), graph.predecessors(id));
    if needs == all {
        return Ok(None);
    }
    // Each predecessor must correspond to one message, and the task must wait for nothing else.
    let is_plain = begin.after.len() == all as usize && begin.at == graph.start(id);
    match graph.task(id) {
        Task::Message(_) if is_plain => Ok(Some(needs)),
        _ => Err(format!("a task begins with {needs} of the {all} it waits for, computations among them")),
    }
}

/// Returns the predecessors of each task, with the moment of each that is waited for.
pub(crate) fn predecessors(graph: &MessageGraph) -> Vec<Vec<(TaskId, Moment)>> {
    let mut before = vec![Vec::new(); graph.task_count()];
    for id in (0..graph.task_count() as u32).map(TaskId) {
        for moment in [Moment::Delivery, Moment::Completion] {
            graph.dependents(id, moment).iter().for_each(|next| before[next.index()].push((id, moment)));
        }
    }
    before
}

/// Returns the tasks in topological order.
pub(crate) fn in_order(graph: &MessageGraph) -> Vec<TaskId> {
    let tasks = graph.task_count() as u32;
    let mut waiting: Vec<u32> = (0..tasks).map(|i| graph.predecessors(TaskId(i))).collect();
    let mut order: Vec<TaskId> = (0..tasks).map(TaskId).filter(|id| waiting[id.index()] == 0).collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        for after in graph.all_dependents(id) {
            waiting[after.index()] -= 1;
            if waiting[after.index()] == 0 {
                order.push(after);
            }
        }
    }
    order
}

/// Returns the properties of `graph` that a list of flows does not express.
fn inexpressible(graph: &MessageGraph, order: &[TaskId], before: &[Vec<(TaskId, Moment)>]) -> Vec<String> {
    let mut lost = lost_beside_jobs(graph, order, before);
    let measured = graph.jobs().iter().filter(|job| job.measure.is_some()).count();
    if measured > 0 || graph.jobs().len() > 1 {
        let jobs = graph.jobs().len();
        lost.push(format!("which of {jobs} jobs a message belongs to; {measured} of them are collectives"));
    }
    let messages = graph.messages().len();
    // True for each task that is a message, or that a message waits for.
    let mut leads_to_message = vec![false; graph.task_count()];
    let mut trailing = 0u64;
    for &id in order.iter().rev() {
        let leads =
            id.index() < messages || graph.all_dependents(id).any(|next| leads_to_message[next.index()]);
        leads_to_message[id.index()] = leads;
        let is_long =
            id.index() >= messages && graph.computes()[id.index() - messages].duration > Duration::ZERO;
        trailing += u64::from(is_long && !leads);
    }
    if trailing > 0 {
        lost.push(format!("{trailing} computations behind the last messages"));
    }
    lost
}

/// Returns the properties of `graph`, other than jobs, that neither a list of flows nor a trace of another
/// program expresses: groups with their schemes, and computations that take turns on a core.
pub(crate) fn lost_beside_jobs(
    graph: &MessageGraph,
    order: &[TaskId],
    before: &[Vec<(TaskId, Moment)>],
) -> Vec<String> {
    let mut lost = Vec::new();
    if graph.groups().len() > 1 {
        lost.push(format!(
            "which of {} groups a message belongs to, with their schemes",
            graph.groups().len()
        ));
    }
    let turns = unordered_cores(graph, order, before);
    if turns > 0 {
        lost.push(format!("that computations of {turns} cores take turns"));
    }
    lost
}

/// Returns the number of cores whose computations are not ordered by dependencies alone.
fn unordered_cores(graph: &MessageGraph, order: &[TaskId], before: &[Vec<(TaskId, Moment)>]) -> usize {
    let messages = graph.messages().len();
    let mut position = vec![0u32; order.len()];
    order.iter().zip(0..).for_each(|(id, at)| position[id.index()] = at);
    let mut of_core: Vec<Vec<TaskId>> = vec![Vec::new(); graph.cores() as usize];
    for &id in order.iter().filter(|id| id.index() >= messages) {
        let compute = &graph.computes()[id.index() - messages];
        if let Some(core) = compute.core.filter(|_| compute.duration > Duration::ZERO) {
            of_core[core.index()].push(id);
        }
    }
    let mut left = MOST_LOOKED_AT;
    // The task whose search visited each task last.
    let mut seen = vec![u32::MAX; order.len()];
    let mut waits = |late: TaskId, early: TaskId| {
        let mut stack = vec![late];
        while let Some(id) = stack.pop() {
            let on = before[id.index()].iter().map(|&(on, _)| on);
            for on in on.filter(|on| position[on.index()] >= position[early.index()]) {
                if on == early {
                    return true;
                }
                if std::mem::replace(&mut seen[on.index()], late.0) != late.0 {
                    left = left.saturating_sub(1);
                    if left == 0 {
                        return false;
                    }
                    stack.push(on);
                }
            }
        }
        false
    };
    of_core.iter().filter(|computes| computes.windows(2).any(|pair| !waits(pair[1], pair[0]))).count()
}

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::bounds::run_ideal;
    use crate::builder::{GraphBuilder, NewMessage, Stream};
    use crate::config::{WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::files::{parse_csv, write_csv};
    use crate::graph::Compute;
    use crate::kinds::{Flows, Traffic};
    use pathweave_units::{Bytes, HostId};

    /// Makes a graph of messages and computations among four hosts. Each task waits for some of the tasks
    /// before it.
    fn graph_of(tasks: &[(bool, u64, u64, Vec<usize>)]) -> MessageGraph {
        let mut builder = GraphBuilder::new(4);
        let group = builder.group("flows", None).unwrap();
        let job = Some(builder.job("flows: flows".to_owned(), group).unwrap());
        let mut drafts = Vec::new();
        for (i, (is_message, size, start, after)) in tasks.iter().enumerate() {
            let start = Time::from_ns(*start);
            let draft = if *is_message {
                let (src, dst) = (HostId(i as u32 % 4), HostId((i as u32 + 1 + *size as u32 % 3) % 4));
                let size = Bytes::new(*size);
                builder.message(NewMessage { src, dst, size, start, group, stream: Stream::Own, job })
            } else {
                let duration = Duration::from_ns(*size);
                builder.compute(Compute {
                    host: Some(HostId(0)),
                    duration,
                    start,
                    job,
                    core: None,
                    core_taken: Duration::ZERO,
                })
            };
            let draft = draft.unwrap();
            after.iter().filter(|_| i > 0).for_each(|on| builder.after(draft, drafts[on % i]).unwrap());
            if size.is_multiple_of(5) {
                builder.delay(draft, Duration::from_ns(*size));
            }
            drafts.push(draft);
        }
        builder.finish().unwrap()
    }

    /// Returns the ends of messages, sorted by content, if a byte takes a nanosecond.
    fn ends(graph: &MessageGraph) -> Vec<(u32, u32, u64, Time)> {
        let mut ends = Vec::new();
        run_ideal(
            graph,
            |m| Duration::from_ns(m.size.get()),
            |id, _, end| {
                if let Some(m) = graph.messages().get(id.index()) {
                    ends.push((m.src.0, m.dst.0, m.size.get(), end));
                }
            },
        );
        ends.sort_unstable();
        ends
    }

    #[test]
    fn computations_become_time_between_messages() {
        // 0: a message of 10 ns. 1: a message of 20 ns. 2: a computation of 7 ns after 0. 3: a message after
        // both.
        let graph = graph_of(&[
            (true, 11, 0, vec![]),
            (true, 21, 0, vec![]),
            (false, 7, 0, vec![0]),
            (true, 31, 0, vec![2, 1]),
            (false, 9, 0, vec![3]),
        ]);
        let expanded = expand(&graph).unwrap();
        let last = expanded.flows.flows.iter().find(|flow| flow.size_bytes == 31).unwrap();
        let mut delays: Vec<Duration> = last.after.iter().map(|after| after.delay).collect();
        delays.sort_unstable();
        assert_eq!(delays, [Duration::ZERO, Duration::from_ns(7)]);
        assert_eq!(expanded.lost, ["1 computations behind the last messages"]);
    }

    #[test]
    fn turns_are_lost_unless_something_else_orders_them() {
        let with_cores = |ordered: bool| {
            let mut builder = GraphBuilder::new(2);
            let group = builder.group("g", None).unwrap();
            let core = Some(builder.core().unwrap());
            let compute = Compute {
                host: Some(HostId(0)),
                duration: Duration::from_ns(5),
                start: Time::ZERO,
                job: None,
                core,
                core_taken: Duration::ZERO,
            };
            let (first, second) = (builder.compute(compute).unwrap(), builder.compute(compute).unwrap());
            let (src, dst, size) = (HostId(0), HostId(1), Bytes::new(1));
            let new =
                NewMessage { src, dst, size, start: Time::ZERO, group, stream: Stream::Shared(3), job: None };
            let message = builder.message(new).unwrap();
            builder.after(message, second).unwrap();
            if ordered {
                builder.after(second, first).unwrap();
            } else {
                builder.after(message, first).unwrap();
            }
            expand(&builder.finish().unwrap()).unwrap()
        };
        assert_eq!(with_cores(false).lost, ["that computations of 1 cores take turns"]);
        let ordered = with_cores(true);
        assert!(ordered.lost.is_empty());
        assert_eq!(
            (ordered.flows.flows[0].start, ordered.flows.flows[0].connection),
            (Time::from_ns(10), Some(3))
        );
    }

    proptest! {
        /// After a round trip through CSV, messages end when they did in the graph. Expanding the result
        /// again gives the same list.
        #[test]
        fn a_list_takes_the_place_of_a_graph(
            tasks in prop::collection::vec((any::<bool>(), 1u64..40, 0u64..30, prop::collection::vec(0usize..50, 0..3)), 1..40),
        ) {
            let graph = graph_of(&tasks);
            prop_assume!(!graph.messages().is_empty());
            let expanded = expand(&graph).unwrap();
            let folder = std::env::temp_dir().join(format!("pathweave-expand-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let text = write_csv(&expanded.flows, &mut Vec::new()).unwrap();
            prop_assert_eq!(&parse_csv(&text, "f.csv").unwrap().flows.len(), &graph.messages().len());
            std::fs::write(folder.join("f.csv"), &text).unwrap();
            let env = WorkloadEnv { base_dir: folder, ..WorkloadEnv::new(4, Rate::from_gbps(8)) };
            let flows = Flows { file: Some("f.csv".to_owned()), ..Flows::default() };
            let again = build(&[WorkloadConfig::new(Traffic::Flows(flows))], &env).unwrap().graph;
            prop_assert_eq!(ends(&graph), ends(&again));
            let twice = expand(&again).unwrap();
            prop_assert_eq!(twice.lost, Vec::<String>::new());
        }
    }
}
