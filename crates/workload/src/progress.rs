//! State of a graph in execution: decides which task may begin at which time.

use pathweave_units::Time;

use crate::graph::{JobId, MessageGraph, Task, TaskId};

/// State of a [`MessageGraph`] in execution.
///
/// The caller takes tasks without predecessors from [`Progress::pop_root`] as their time comes. When a task
/// ends, the caller calls [`Progress::task_ended`]. For each task that [`MessageGraph::notified_tasks`] returns, it calls
/// [`Progress::predecessor_ended`] when that task's host learns of the end. If `told` returns a time, the caller calls
/// [`Progress::begin`] at that time. Nothing is scheduled ahead, so a million flows need not be in an event
/// queue.
///
/// Each number here either belongs to one host, or is a count or an extreme that does not depend on order.
/// The predecessors of a task belong to the host where it begins, the free time of a core to the core's host.
/// So hosts can be simulated one by one, each in its own order of time. The fields that span several hosts
/// ([`Progress::merge`]) are serialized from one process to another; the others stay with their host.
#[derive(Clone, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Progress {
    /// Number of predecessors of each task whose end the task's host does not know. Empty if there are no
    /// dependencies.
    #[borsh(skip)]
    waiting: Vec<u32>,
    /// Number of unfinished tasks of each job.
    job_left: Vec<u32>,
    /// Begin of the first task of each job; `Time::MAX` if none may begin yet.
    job_begin: Vec<Time>,
    /// End of the last finished task of each job.
    job_end: Vec<Time>,
    /// Time at which each core has finished all its computations so far.
    #[borsh(skip)]
    core_free: Vec<Time>,
    /// End of each computation, by its index; `Time::MAX` until it begins.
    computed: Vec<Time>,
    left: usize,
    #[borsh(skip)]
    next_message: usize,
    #[borsh(skip)]
    next_compute: usize,
}

impl Progress {
    /// Makes the state in which nothing has begun.
    pub fn new(graph: &MessageGraph) -> Self {
        let mut job_left = vec![0; graph.jobs().len()];
        let jobs = graph.messages().iter().map(|m| m.job).chain(graph.computes().iter().map(|c| c.job));
        for job in jobs.flatten() {
            job_left[job.index()] += 1;
        }
        let mut waiting = graph.edges.predecessors().to_vec();
        graph.needs.iter().for_each(|&(task, needs)| waiting[task.index()] = needs);
        let mut progress = Progress {
            waiting,
            job_left,
            job_begin: vec![Time::MAX; graph.jobs().len()],
            job_end: vec![Time::ZERO; graph.jobs().len()],
            core_free: vec![Time::ZERO; graph.cores() as usize],
            computed: vec![Time::MAX; graph.computes().len()],
            left: graph.task_count(),
            next_message: 0,
            next_compute: 0,
        };
        progress.skip_waiting(graph);
        progress
    }
    /// Returns the time at which the next task without predecessors may begin.
    #[inline]
    pub fn next_root(&self, graph: &MessageGraph) -> Option<Time> {
        let message = graph.messages().get(self.next_message).map(|m| m.start);
        let compute = graph.computes().get(self.next_compute).map(|c| c.start);
        message.into_iter().chain(compute).min()
    }
    /// Takes the next task without predecessors if it may begin before `end`. Returns it with that time.
    #[inline]
    pub fn pop_root(&mut self, graph: &MessageGraph, end: Time) -> Option<(TaskId, Time)> {
        let start = self.next_root(graph).filter(|&start| start < end)?;
        let task = match graph.messages().get(self.next_message) {
            Some(message) if message.start == start => {
                self.next_message += 1;
                TaskId((self.next_message - 1) as u32)
            }
            _ => {
                self.next_compute += 1;
                graph.compute_id(self.next_compute - 1)
            }
        };
        self.skip_waiting(graph);
        Some((task, start))
    }
    /// Begins a task. For a computation, returns the time at which it ends. Computations of a core take turns
    /// in the order of these calls.
    #[inline]
    pub fn begin(&mut self, graph: &MessageGraph, task: TaskId, now: Time) -> Option<Time> {
        if let Some(job) = graph.job(task) {
            let first = &mut self.job_begin[job.index()];
            *first = now.min(*first);
        }
        let Task::Compute(compute) = graph.task(task) else { return None };
        let begin = match compute.core {
            None => now,
            Some(core) => now.max(self.core_free[core.index()]),
        };
        let end = begin.saturating_add(compute.duration);
        if let Some(core) = compute.core {
            self.core_free[core.index()] = end.saturating_add(compute.core_taken);
        }
        self.computed[task.index() - graph.messages().len()] = end;
        Some(end)
    }
    /// Returns the end of a computation, by its index; `None` if it has not begun. Its begin is the end minus
    /// its duration.
    pub fn computed(&self, index: usize) -> Option<Time> {
        Some(self.computed[index]).filter(|&end| end < Time::MAX)
    }
    /// Records that a message was delivered or a computation ended at `now`. Called once per task.
    #[inline]
    pub fn task_ended(&mut self, graph: &MessageGraph, task: TaskId, now: Time) {
        self.left = self.left.checked_sub(1).expect("a task ended twice");
        let Some(job) = graph.job(task) else { return };
        let left = &mut self.job_left[job.index()];
        *left = left.checked_sub(1).expect("a task ended twice");
        let end = &mut self.job_end[job.index()];
        *end = now.max(*end);
    }
    /// Records that the host of `task` learns at `now` of the end of one of its predecessors. Returns the
    /// time at which the task may begin, if it waits for no other.
    pub fn predecessor_ended(&mut self, graph: &MessageGraph, task: TaskId, now: Time) -> Option<Time> {
        let waiting = &mut self.waiting[task.index()];
        if *waiting == 0 {
            // The task has begun already, because it needs fewer predecessors.
            assert!(graph.needs(task) < graph.predecessors(task), "a task was told twice");
            return None;
        }
        *waiting -= 1;
        (*waiting == 0).then(|| now.saturating_add(graph.delay_after_deps(task)).max(graph.start(task)))
    }
    /// Returns the begin of the first task of a job; `None` if all tasks still wait for others.
    pub fn job_begin(&self, job: JobId) -> Option<Time> {
        Some(self.job_begin[job.index()]).filter(|&begin| begin < Time::MAX)
    }
    /// Returns the end of the last task of a job; `None` while a task is unfinished.
    pub fn job_end(&self, job: JobId) -> Option<Time> {
        (self.job_left[job.index()] == 0).then(|| self.job_end[job.index()])
    }
    /// Returns the number of unfinished tasks.
    pub fn unfinished(&self) -> usize {
        self.left
    }

    /// Merges another state of the same graph. Each host has run in only one of the two.
    pub fn merge(&mut self, graph: &MessageGraph, other: &Progress) {
        let fresh = Progress::new(graph);
        self.left -= fresh.left - other.left;
        for (job, before) in fresh.job_left.iter().enumerate() {
            self.job_left[job] -= before - other.job_left[job];
            self.job_begin[job] = self.job_begin[job].min(other.job_begin[job]);
            self.job_end[job] = self.job_end[job].max(other.job_end[job]);
        }
        for (end, &there) in self.computed.iter_mut().zip(&other.computed) {
            *end = there.min(*end);
        }
    }

    /// Moves the cursors to the next task without predecessors.
    fn skip_waiting(&mut self, graph: &MessageGraph) {
        if !graph.has_dependencies() {
            return;
        }
        let waits = |task: TaskId| graph.predecessors(task) > 0;
        while self.next_message < graph.messages().len() && waits(TaskId(self.next_message as u32)) {
            self.next_message += 1;
        }
        while self.next_compute < graph.computes().len() && waits(graph.compute_id(self.next_compute)) {
            self.next_compute += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use pathweave_units::{Bytes, Duration, HostId};

    use super::*;
    use crate::builder::{GraphBuilder, NewMessage, Stream};
    use crate::graph::{Compute, Moment, Notice};

    #[test]
    fn a_message_a_computation_and_a_delayed_message() {
        let mut builder = GraphBuilder::new(2);
        let group = builder.group("g", None).unwrap();
        let job = Some(builder.job("j".to_owned(), group).unwrap());
        let message = |src: u32, dst: u32, start_us| NewMessage {
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(100),
            start: Time::from_us(start_us),
            group,
            stream: Stream::Own,
            job,
        };
        let first = builder.message(message(0, 1, 3)).unwrap();
        let early = builder.message(message(0, 1, 1)).unwrap();
        let duration = Duration::from_us(10);
        let compute = Compute {
            host: Some(HostId(1)),
            duration,
            start: Time::ZERO,
            job: None,
            core: None,
            core_taken: Duration::ZERO,
        };
        let compute = builder.compute(compute).unwrap();
        let answer = builder.message(message(1, 0, 20)).unwrap();
        builder.after(compute, first).unwrap();
        builder.after(answer, compute).unwrap();
        builder.after(answer, early).unwrap();
        builder.delay(answer, Duration::from_us(7));
        let graph = builder.finish().unwrap();

        let us = Time::from_us;
        let mut progress = Progress::new(&graph);
        assert_eq!(progress.next_root(&graph), Some(us(1)));
        assert_eq!(progress.pop_root(&graph, us(1)), None);
        assert_eq!(progress.job_begin(JobId(0)), None);
        let (early, at) = progress.pop_root(&graph, us(9)).unwrap();
        assert_eq!((early, at), (TaskId(0), us(1)));
        assert_eq!(progress.begin(&graph, early, at), None);
        assert_eq!((progress.job_begin(JobId(0)), progress.computed(0)), (Some(us(1)), None));
        let (first, at) = progress.pop_root(&graph, us(9)).unwrap();
        assert_eq!((first, at), (TaskId(1), us(3)));
        assert_eq!(progress.next_root(&graph), None);

        let [compute, answer] = [TaskId(3), TaskId(2)];
        let informed = |task, moment| graph.notified_tasks(task, moment).collect::<Vec<_>>();
        // Host 1 computes, and answers the message it has received.
        assert_eq!(informed(early, Moment::Delivery), [(answer, Notice::AtOnce)]);
        assert_eq!(informed(first, Moment::Delivery), [(compute, Notice::AtOnce)]);
        assert_eq!(informed(compute, Moment::Delivery), [(answer, Notice::AtOnce)]);
        progress.task_ended(&graph, early, us(4));
        assert_eq!(progress.predecessor_ended(&graph, answer, us(4)), None);
        progress.task_ended(&graph, first, us(5));
        assert_eq!(progress.predecessor_ended(&graph, compute, us(5)), Some(us(5)));
        assert_eq!(progress.begin(&graph, compute, us(5)), Some(us(15)));
        progress.task_ended(&graph, compute, us(15));
        // 15 us plus 7 us of delay is later than its own start of 20 us.
        assert_eq!(progress.predecessor_ended(&graph, answer, us(15)), Some(us(22)));
        assert_eq!(progress.job_end(JobId(0)), None);
        progress.task_ended(&graph, answer, us(30));
        assert_eq!((progress.job_end(JobId(0)), progress.unfinished()), (Some(us(30)), 0));
    }

    #[test]
    fn computations_of_a_core_take_turns() {
        let mut builder = GraphBuilder::new(1);
        let (first, second) = (builder.core().unwrap(), builder.core().unwrap());
        let compute = |us, core| Compute {
            host: Some(HostId(0)),
            duration: Duration::from_us(us),
            start: Time::from_us(1),
            job: None,
            core,
            core_taken: Duration::ZERO,
        };
        for (us, core) in [(2, Some(first)), (3, Some(first)), (4, Some(second)), (5, None)] {
            builder.compute(compute(us, core)).unwrap();
        }
        let graph = builder.finish().unwrap();
        let mut progress = Progress::new(&graph);
        let mut ends = Vec::new();
        while let Some((task, at)) = progress.pop_root(&graph, Time::from_us(2)) {
            ends.push(progress.begin(&graph, task, at).unwrap());
        }
        // The second computation of the first core waits for the first one. The others begin at once.
        assert_eq!(ends, [3, 6, 5, 6].map(Time::from_us));
        assert_eq!(
            [0, 1, 2, 3].map(|index| progress.computed(index)),
            [3, 6, 5, 6].map(|us| Some(Time::from_us(us)))
        );
    }
}
