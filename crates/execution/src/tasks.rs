//! Tasks that become free, and when they begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use pathweave_results::JobRecord;
use pathweave_units::Time;
use pathweave_workload::{Due, Job, JobId, JobSpans, MessageGraph, Progress, TaskId};

use crate::execution::GroupSpec;
use crate::pending::Pending;

/// The tasks of a workload: which wait, which are due when, which jobs are finished.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) graph: Arc<MessageGraph>,
    progress: Progress,
    /// Tasks that became free and begin later, by (time, order of becoming free).
    due: BinaryHeap<Reverse<(Time, u64, TaskId)>>,
    due_count: u64,
    /// Those of `due` that [`Tasks::due_before`] told last. Kept for its memory.
    soon: Vec<Reverse<(Time, u64, TaskId)>>,
    /// What the run still waits for.
    pending: Pending,
    /// When each job finished.
    job_finish: Vec<Option<Time>>,
}

impl Tasks {
    pub(crate) fn new(graph: Arc<MessageGraph>, groups: &[GroupSpec]) -> Self {
        Tasks {
            progress: Progress::new(&graph),
            due: BinaryHeap::new(),
            due_count: 0,
            soon: Vec::new(),
            pending: Pending::new(&graph, groups),
            job_finish: vec![None; graph.jobs().len()],
            graph,
        }
    }

    /// When the next task begins, of those known.
    pub(crate) fn next(&self) -> Option<Time> {
        let root = self.progress.next_root(&self.graph);
        let due = self.due.peek().map(|Reverse((at, ..))| *at);
        root.into_iter().chain(due).min()
    }

    /// Whether any task that waited for others is to begin.
    pub(crate) fn any_freed(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes the next task that begins by now.
    pub(crate) fn pop(&mut self, now: Time) -> Option<TaskId> {
        loop {
            if let Some(&Reverse((at, _, task))) = self.due.peek()
                && at <= now
            {
                self.due.pop();
                return Some(task);
            }
            let due = self.progress.pop_root(&self.graph, now)?;
            if due.at <= now {
                return Some(due.task);
            }
            self.later(due);
        }
    }

    /// The tasks that begin before `end`, as far as is known, in order.
    pub(crate) fn due_before(&mut self, end: Time) -> impl Iterator<Item = TaskId> {
        if let Some(last) = end.as_ps().checked_sub(1).map(Time::from_ps) {
            while let Some(due) = self.progress.pop_root(&self.graph, last) {
                self.later(due);
            }
        }
        self.soon.clear();
        while let Some(&entry) = self.due.peek()
            && entry.0.0 < end
        {
            self.soon.push(entry);
            self.due.pop();
        }
        self.due.extend(&self.soon);
        self.soon.iter().map(|&Reverse((_, _, task))| task)
    }

    fn later(&mut self, Due { task, at }: Due) {
        self.due_count += 1;
        self.due.push(Reverse((at, self.due_count, task)));
    }

    /// A message has arrived, or a computation is over: what waited for that is free.
    pub(crate) fn complete(&mut self, now: Time, task: TaskId) {
        let mut free = Vec::new();
        if let Some(job) = self.progress.complete(&self.graph, task, now, &mut free) {
            self.job_finish[job.index()] = Some(now);
        }
        self.freed(free);
    }

    /// The sender of a message has its last acknowledgement: what waited for that is free.
    pub(crate) fn acknowledged(&mut self, now: Time, message: TaskId) {
        let mut free = Vec::new();
        self.progress.acknowledged(&self.graph, message, now, &mut free);
        self.freed(free);
    }

    fn freed(&mut self, free: Vec<Due>) {
        for due in free {
            self.pending.freed(&self.graph, due.task);
            self.later(due);
        }
    }

    /// The run need not wait for this task any more.
    pub(crate) fn ended(&mut self, task: TaskId) {
        self.pending.ended(&self.graph, task);
    }

    /// Nothing the run waits for is under way, and nothing is to come.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.pending.is_over()
    }

    /// Tasks not yet done.
    pub(crate) fn left(&self) -> usize {
        self.progress.left()
    }

    /// All jobs, with their ends. One whose tasks wait for others begins when the first of them is free.
    pub(crate) fn job_records(&self) -> Vec<JobRecord> {
        let graph = &*self.graph;
        let mut earliest = vec![u64::MAX; graph.jobs().len()];
        let messages = graph.messages().iter().map(|message| (message.job, message.start));
        let computes = graph.computes().iter().map(|compute| (compute.job, compute.start));
        for (job, start) in messages.chain(computes).filter_map(|(job, start)| Some((job?, start))) {
            earliest[job.index()] = earliest[job.index()].min(start.as_ps());
        }
        let spans = JobSpans::of(graph);
        let record = |(job, number): (&Job, u32)| JobRecord {
            job: number,
            name: job.name.clone(),
            group: job.group.0,
            start_ps: self.progress.job_begin(JobId(number)).map_or(earliest[number as usize], Time::as_ps),
            finish_ps: self.job_finish[number as usize].map(Time::as_ps),
            compute_ps: spans.span(JobId(number)).as_ps(),
            size_bytes: job.measure.map(|measure| measure.size.get()),
            bus_bytes: job.measure.map(|measure| measure.bus.get()),
        };
        graph.jobs().iter().zip(0..).map(record).collect()
    }
}
