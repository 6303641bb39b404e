//! Which task may begin when: the state of a graph in execution.

use pathweave_units::Time;

use crate::graph::{JobId, MessageGraph, Task, TaskId};

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
/// every delivered message and every computation that is over to [`Progress::complete`], which names the
/// tasks that became free. Nothing is scheduled ahead, so a million flows need not sit in the event queue.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Predecessors not yet done, by task; empty if there are no dependencies.
    waiting: Vec<u32>,
    /// Tasks not yet done, by job.
    job_left: Vec<u32>,
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
        let mut progress = Progress {
            waiting: graph.edges.predecessors().to_vec(),
            job_left,
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
        Some(due(graph, task, start))
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
        for &next in graph.dependents(task) {
            let waiting = &mut self.waiting[next.index()];
            *waiting = waiting.checked_sub(1).expect("a task completed twice");
            if *waiting == 0 {
                let begin = now.saturating_add(graph.delay_after_deps(next)).max(graph.start(next));
                free.push(due(graph, next, begin));
            }
        }
        let job = graph.job(task)?;
        let left = &mut self.job_left[job.index()];
        *left = left.checked_sub(1).expect("a task completed twice");
        (*left == 0).then_some(job)
    }
    /// Tasks not yet done.
    pub fn left(&self) -> usize {
        self.left
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

fn due(graph: &MessageGraph, task: TaskId, begin: Time) -> Due {
    match graph.task(task) {
        Task::Message(_) => Due { task, at: begin },
        Task::Compute(compute) => Due { task, at: begin.saturating_add(compute.duration) },
    }
}
