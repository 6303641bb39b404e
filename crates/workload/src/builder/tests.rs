use pathweave_units::{Bytes, Duration, HostId, Time};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, prop_compose, proptest};

use super::*;
use crate::graph::{MessageGraph, Moment, Task, TaskId};
use crate::testing::run;

fn message(src: u32, dst: u32, size: u64, group: GroupId) -> NewMessage {
    NewMessage {
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::new(size),
        start: Time::ZERO,
        group,
        stream: Stream::Own,
        job: None,
    }
}

/// A message has the size that the documentation states.
#[test]
fn size_of_a_message() {
    assert_eq!(size_of::<Message>(), 40);
}

#[test]
fn invalid_messages_are_refused() {
    let mut builder = GraphBuilder::new(4);
    let group = builder.group("g", None).unwrap();
    let mut error = |new| builder.message(new).unwrap_err().to_string();
    assert_eq!(error(message(0, 4, 1, group)), "host 4 does not exist; hosts are 0 to 3");
    assert_eq!(error(message(2, 2, 1, group)), "host 2 sends to itself; source and destination must differ");
    assert!(error(message(0, 1, 0, group)).starts_with("message of 0 bytes from host 0 to host 1; allowed"));
    assert!(error(message(0, 1, (1 << 32) + 1, group)).starts_with("message of 4294967297 bytes"));
}

#[test]
fn a_cycle_is_named() {
    let mut builder = GraphBuilder::new(4);
    let group = builder.group("g", None).unwrap();
    let tasks: Vec<Draft> = (0..3).map(|i| builder.message(message(i, i + 1, 10, group)).unwrap()).collect();
    builder.name(tasks[0], "head");
    let leads_in = builder.message(message(3, 0, 10, group)).unwrap();
    let hangs_on = builder.message(message(3, 1, 10, group)).unwrap();
    let barrier = Compute {
        host: None,
        duration: Duration::ZERO,
        start: Time::ZERO,
        job: None,
        core: None,
        core_taken: Duration::ZERO,
    };
    let barrier = builder.compute(barrier).unwrap();
    let edges = [(leads_in, tasks[0]), (tasks[0], tasks[1]), (tasks[1], barrier), (barrier, tasks[0])];
    for (from, to) in edges.into_iter().chain([(tasks[1], hangs_on)]) {
        builder.after(to, from).unwrap();
    }
    let error = builder.finish().unwrap_err().to_string();
    assert_eq!(
        error,
        "dependencies form a cycle: message \"head\" (host 0 to 1, 10 bytes), \
         then message (host 1 to 2, 10 bytes), then barrier, then message \"head\" (host 0 to 1, 10 bytes)"
    );
}

#[test]
fn a_task_cannot_wait_for_itself() {
    let mut builder = GraphBuilder::new(2);
    let group = builder.group("g", None).unwrap();
    let task = builder.message(message(0, 1, 10, group)).unwrap();
    builder.after(task, task).unwrap();
    assert!(matches!(builder.finish(), Err(GraphError::Cycle(_))));
}

#[test]
fn a_delay_without_predecessors_moves_the_start() {
    let mut builder = GraphBuilder::new(2);
    let group = builder.group("g", None).unwrap();
    let task = builder.message(message(0, 1, 10, group)).unwrap();
    builder.delay(task, Duration::from_us(3));
    let graph = builder.finish().unwrap();
    assert_eq!(graph.messages()[0].start, Time::from_us(3));
    assert_eq!(graph.delay_after_deps(TaskId(0)), Duration::ZERO);
}

#[test]
fn own_connections_are_numbered_by_pair() {
    let mut builder = GraphBuilder::new(3);
    let group = builder.group("g", None).unwrap();
    for (src, dst) in [(1, 2), (0, 1), (0, 1), (0, 2)] {
        builder.message(message(src, dst, 10, group)).unwrap();
    }
    let graph = builder.finish().unwrap();
    let streams: Vec<u32> = graph.messages().iter().map(|m| m.stream ^ OWN).collect();
    assert_eq!(streams, [0, 1, 0, 0]);
}

/// A task of a random graph: all that can be declared about it, and the earlier tasks it waits for.
#[derive(Clone, Debug)]
struct Spec {
    is_compute: bool,
    hosts: (u32, u32),
    size: u64,
    start_us: u64,
    delay_us: u64,
    job: Option<usize>,
    after: Vec<usize>,
}

/// Declares the tasks of `specs` in order.
fn declare(specs: &[Spec]) -> MessageGraph {
    let mut builder = GraphBuilder::new(6);
    let group = builder.group("g", None).unwrap();
    let jobs: Vec<JobId> = (0..3).map(|j| builder.job(format!("job {j}"), group).unwrap()).collect();
    let mut drafts: Vec<Draft> = Vec::new();
    for spec in specs {
        let (start, job) = (Time::from_us(spec.start_us), spec.job.map(|j| jobs[j]));
        let draft = if spec.is_compute {
            let duration = Duration::from_ns(spec.size);
            builder.compute(Compute {
                host: Some(HostId(spec.hosts.0)),
                duration,
                start,
                job,
                core: None,
                core_taken: Duration::ZERO,
            })
        } else {
            let new = message(spec.hosts.0, (spec.hosts.0 + 1 + spec.hosts.1) % 6, spec.size, group);
            builder.message(NewMessage { start, job, ..new })
        };
        let draft = draft.unwrap();
        builder.delay(draft, Duration::from_us(spec.delay_us));
        for &before in &spec.after {
            builder.after(draft, drafts[before]).unwrap();
        }
        drafts.push(draft);
    }
    builder.finish().unwrap()
}

prop_compose! {
    /// Fields have few values, so that equal tasks are common.
    fn spec()(
        is_compute: bool,
        hosts in (0u32..3, 0u32..2),
        size in 1000u64..1003,
        start_us in 0u64..2,
        delay_us in 0u64..2,
        job in 0usize..6,
        after in prop::collection::vec(0usize..1000, 0..3),
    ) -> Spec {
        Spec { is_compute, hosts, size, start_us, delay_us, job: (job < 3).then_some(job), after }
    }
}

prop_compose! {
    fn specs()(mut specs in prop::collection::vec(spec(), 1..40)) -> Vec<Spec> {
        for (i, spec) in specs.iter_mut().enumerate() {
            spec.after.retain(|_| i > 0);
            spec.after.iter_mut().for_each(|before| *before %= i);
        }
        specs
    }
}

proptest! {
    #[test]
    fn graphs_run_to_the_end_in_order(specs in specs()) {
        let graph = declare(&specs);
        prop_assert_eq!(graph.task_count(), specs.len());
        prop_assert!(graph.messages().is_sorted_by_key(|m| m.start));
        prop_assert!(graph.computes().is_sorted_by_key(|c| c.start));
        let (ends, _) = run(&graph);
        for i in (0..graph.task_count() as u32).map(TaskId) {
            let length = match graph.task(i) {
                Task::Message(m) => Duration::from_ns(m.size.get()),
                Task::Compute(c) => c.duration,
            };
            prop_assert!(ends[i.index()] >= graph.start(i) + length);
            for &next in graph.dependents(i, Moment::Delivery) {
                prop_assert!(ends[next.index()] >= ends[i.index()] + graph.delay_after_deps(next));
            }
        }
    }
}

#[test]
fn items_are_arranged_in_place() {
    let mut items = ['a', 'b', 'c', 'd', 'e'];
    canonical::arrange(&mut items, vec![2, 0, 1, 3, 4]);
    assert_eq!(items, ['c', 'a', 'b', 'd', 'e']);
    canonical::arrange::<char>(&mut [], Vec::new());
}

#[test]
fn a_task_may_need_some_of_what_it_waits_for() {
    let mut builder = GraphBuilder::new(1);
    let compute = |us| Compute {
        host: Some(HostId(0)),
        duration: Duration::from_us(us),
        start: Time::ZERO,
        job: None,
        core: None,
        core_taken: Duration::ZERO,
    };
    let before: Vec<Draft> = [7, 3, 5].map(|us| builder.compute(compute(us)).unwrap()).to_vec();
    let next = builder.compute(compute(1)).unwrap();
    before.iter().for_each(|&on| builder.after(next, on).unwrap());
    builder.needs(next, 2);
    let graph = builder.finish().unwrap();
    let next = (0..4).map(TaskId).find(|&id| graph.predecessors(id) > 0).unwrap();
    assert_eq!((graph.predecessors(next), graph.needs(next)), (3, 2));
    let mut ends = Vec::new();
    crate::bounds::run_ideal(&graph, |_| Duration::ZERO, |_, _, end| ends.push(end));
    // It begins after the second predecessor, at 5 us.
    assert_eq!(ends, [3, 5, 6, 7].map(Time::from_us));
}
