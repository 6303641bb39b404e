//! Which task may begin when: the state of a graph in execution.

use pathweave_units::Time;

use crate::graph::{JobId, MessageGraph, Moment, Task, TaskId};

/// A task that became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The task.
    pub task: TaskId,
    /// When to act: post the message; or call [`Progress::complete`] for the computation, whose duration is
    /// then over.
    pub at: Time,
}

/// The state of a [`MessageGraph`] in execution.
///
/// The runner takes tasks without predecessors from [`Progress::pop_root`] as their time comes, and reports
/// every delivered message and every computation that is over to [`Progress::complete`], and every message of which the
/// sender has the last acknowledgement to [`Progress::acknowledged`]; these name the tasks that became free. Nothing is scheduled ahead, so a million flows need not sit in the event queue.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Predecessors not yet done, by task; empty if there are no dependencies.
    waiting: Vec<u32>,
    /// Tasks not yet done, by job.
    job_left: Vec<u32>,
    /// When the first task of each job began or will; `Time::MAX` if none is free yet.
    job_begin: Vec<Time>,
    /// When each core has done what it was given.
    core_free: Vec<Time>,
    left: usize,
    next_message: usize,
    next_compute: usize,
}

impl Progress {
    /// Nothing has begun.
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
            core_free: vec![Time::ZERO; graph.cores() as usize],
            left: graph.task_count(),
            next_message: 0,
            next_compute: 0,
        };
        progress.skip_waiting(graph);
        progress
    }
    /// When the next task without predecessors begins.
    pub fn next_root(&self, graph: &MessageGraph) -> Option<Time> {
        let message = graph.messages().get(self.next_message).map(|m| m.start);
        let compute = graph.computes().get(self.next_compute).map(|c| c.start);
        message.into_iter().chain(compute).min()
    }
    /// Takes the next task without predecessors if it begins at or before `now`.
    pub fn pop_root(&mut self, graph: &MessageGraph, now: Time) -> Option<Due> {
        let start = self.next_root(graph).filter(|&start| start <= now)?;
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
        Some(self.due(graph, task, start))
    }
    /// `task` is done at `now`: appends the tasks that became free to `free` and returns the job this ended.
    /// Call once a task.
    pub fn complete(
        &mut self,
        graph: &MessageGraph,
        task: TaskId,
        now: Time,
        free: &mut Vec<Due>,
    ) -> Option<JobId> {
        self.left = self.left.checked_sub(1).expect("a task completed twice");
        self.release(graph, task, Moment::Delivery, now, free);
        let job = graph.job(task)?;
        let left = &mut self.job_left[job.index()];
        *left = left.checked_sub(1).expect("a task completed twice");
        (*left == 0).then_some(job)
    }
    /// The sender of `message` has its last acknowledgement at `now`: appends the tasks that became free to `free`. Call
    /// once a message.
    pub fn acknowledged(&mut self, graph: &MessageGraph, message: TaskId, now: Time, free: &mut Vec<Due>) {
        self.release(graph, message, Moment::Completion, now, free);
    }
    /// When the first task of a job that may begin does so; `None` as long as all wait for others.
    pub fn job_begin(&self, job: JobId) -> Option<Time> {
        Some(self.job_begin[job.index()]).filter(|&begin| begin < Time::MAX)
    }
    /// Tasks not yet done.
    pub fn left(&self) -> usize {
        self.left
    }

    /// What waits for this moment of a task waits for one thing less.
    fn release(
        &mut self,
        graph: &MessageGraph,
        task: TaskId,
        moment: Moment,
        now: Time,
        free: &mut Vec<Due>,
    ) {
        for &next in graph.dependents(task, moment) {
            let waiting = &mut self.waiting[next.index()];
            if *waiting == 0 {
                // It has begun with fewer.
                assert!(graph.needs(next) < graph.predecessors(next), "a task completed twice");
                continue;
            }
            *waiting -= 1;
            if *waiting == 0 {
                let begin = now.saturating_add(graph.delay_after_deps(next)).max(graph.start(next));
                let due = self.due(graph, next, begin);
                free.push(due);
            }
        }
    }

    fn due(&mut self, graph: &MessageGraph, task: TaskId, begin: Time) -> Due {
        if let Some(job) = graph.job(task) {
            let first = &mut self.job_begin[job.index()];
            *first = begin.min(*first);
        }
        match graph.task(task) {
            Task::Message(_) => Due { task, at: begin },
            Task::Compute(compute) => {
                let Some(core) = compute.core else {
                    return Due { task, at: begin.saturating_add(compute.duration) };
                };
                let free = &mut self.core_free[core.index()];
                *free = begin.max(*free).saturating_add(compute.duration);
                Due { task, at: *free }
            }
        }
    }

    /// Moves the cursors to the next task that never waits.
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
    use crate::graph::Compute;

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
        let compute = Compute { host: Some(HostId(1)), duration, start: Time::ZERO, job: None, core: None };
        let compute = builder.compute(compute).unwrap();
        let answer = builder.message(message(1, 0, 20)).unwrap();
        builder.after(compute, first).unwrap();
        builder.after(answer, compute).unwrap();
        builder.after(answer, early).unwrap();
        builder.delay(answer, Duration::from_us(7));
        let graph = builder.finish().unwrap();

        let mut progress = Progress::new(&graph);
        let mut free = Vec::new();
        assert_eq!(progress.next_root(&graph), Some(Time::from_us(1)));
        assert_eq!(progress.pop_root(&graph, Time::ZERO), None);
        assert_eq!(progress.job_begin(JobId(0)), None);
        let early = progress.pop_root(&graph, Time::from_us(1)).unwrap();
        assert_eq!(early, Due { task: TaskId(0), at: Time::from_us(1) });
        assert_eq!(progress.job_begin(JobId(0)), Some(Time::from_us(1)));
        let first = progress.pop_root(&graph, Time::from_us(9)).unwrap();
        assert_eq!(first, Due { task: TaskId(1), at: Time::from_us(3) });
        assert_eq!(progress.next_root(&graph), None);

        assert_eq!(progress.complete(&graph, early.task, Time::from_us(4), &mut free), None);
        assert!(free.is_empty());
        progress.complete(&graph, first.task, Time::from_us(5), &mut free);
        let compute = free.pop().unwrap();
        assert_eq!(compute.at, Time::from_us(15));
        progress.complete(&graph, compute.task, compute.at, &mut free);
        // 15 us + 7 us of delay, later than its own start of 20 us
        let answer = free.pop().unwrap();
        assert_eq!(answer.at, Time::from_us(22));
        assert_eq!(progress.complete(&graph, answer.task, Time::from_us(30), &mut free), Some(JobId(0)));
        assert_eq!(progress.left(), 0);
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
        };
        for (us, core) in [(2, Some(first)), (3, Some(first)), (4, Some(second)), (5, None)] {
            builder.compute(compute(us, core)).unwrap();
        }
        let graph = builder.finish().unwrap();
        let mut progress = Progress::new(&graph);
        let ends: Vec<Time> =
            std::iter::from_fn(|| progress.pop_root(&graph, Time::from_us(1))).map(|due| due.at).collect();
        // The second of the first core waits for its first; the others begin at once.
        assert_eq!(ends, [3, 6, 5, 6].map(Time::from_us));
    }
}
