//! Cause of each task's begin, and the critical path of each job that follows from the causes.

use pathweave_records::{CriticalStep, StepKind};
use pathweave_units::Time;
use pathweave_workload::{JobId, MessageGraph, Progress, Task, TaskId};

use crate::flow::Sending;

/// Marks the absence of a task.
const NONE: u32 = u32::MAX;

/// Cause of each task: the predecessor whose end released it. Four bytes a task; empty if no task waits for another.
#[derive(Clone, Debug)]
pub(crate) struct Causes {
    of_task: Vec<u32>,
    /// Last computation of each core.
    on_core: Vec<u32>,
}

/// State of a message that has been posted: the sender's, and the time at which the receiver had all of it.
pub(crate) type PostedMessage<'f> = Option<(&'f Sending, Option<Time>)>;

impl Causes {
    /// Creates the state before any task has begun.
    pub(crate) fn new(graph: &MessageGraph) -> Self {
        let tasks = if graph.has_dependencies() || graph.cores() > 0 { graph.task_count() } else { 0 };
        Causes { of_task: vec![NONE; tasks], on_core: vec![NONE; graph.cores() as usize] }
    }

    /// Records that `by` was the last predecessor of `task` to end.
    pub(crate) fn set_cause(&mut self, task: TaskId, by: TaskId) {
        if let Some(cause) = self.of_task.get_mut(task.index()) {
            *cause = by.0;
        }
    }

    /// Records a computation that could begin at `now` and ends at `end`. If it had to wait for its core, its cause
    /// is the previous computation of that core.
    pub(crate) fn record_computation(&mut self, graph: &MessageGraph, task: TaskId, now: Time, end: Time) {
        let Task::Compute(compute) = graph.task(task) else { return };
        let Some(core) = compute.core else { return };
        let before = std::mem::replace(&mut self.on_core[core.index()], task.0);
        if end > now.saturating_add(compute.duration) {
            self.set_cause(task, TaskId(before));
        }
    }

    /// Merges the causes of another part. Each task has its cause in one of the parts only.
    pub(crate) fn join(&mut self, other: &Causes) {
        for (cause, &there) in self.of_task.iter_mut().zip(&other.of_task) {
            *cause = there.min(*cause);
        }
    }

    /// Iterates over the tasks with a known cause, each with its cause.
    pub(crate) fn known(&self) -> impl Iterator<Item = (TaskId, TaskId)> {
        let known = (0..).zip(&self.of_task).filter(|(_, by)| **by != NONE);
        known.map(|(task, &by)| (TaskId(task), TaskId(by)))
    }

    fn of(&self, task: TaskId) -> Option<TaskId> {
        self.of_task.get(task.index()).copied().filter(|&cause| cause != NONE).map(TaskId)
    }

    /// Returns the critical path of each job that ended. A path leads from the task that ended last back to one
    /// without a cause in the job. Paths are ordered by job, and the steps of each by time.
    pub(crate) fn paths<'f>(
        &self,
        graph: &MessageGraph,
        progress: &Progress,
        posted: impl Fn(u32) -> PostedMessage<'f>,
    ) -> Vec<CriticalStep> {
        let walk = CriticalPathWalk { graph, progress, posted };
        let mut last: Vec<Option<(Time, TaskId)>> = vec![None; graph.jobs().len()];
        for task in (0..graph.task_count() as u32).map(TaskId) {
            let Some(job) = graph.parent_job(task) else { continue };
            if let Some((_, end)) = walk.span(task)
                && last[job.index()].is_none_or(|(latest, _)| end > latest)
            {
                last[job.index()] = Some((end, task));
            }
        }
        let mut all = Vec::new();
        for (last, job) in last.into_iter().zip(0..).map(|(last, job)| (last, JobId(job))) {
            let Some((end, task)) = last.filter(|_| progress.job_end(job).is_some()) else { continue };
            let first = all.len();
            walk.walk_back(self, job, (end, task), &mut all);
            all[first..].reverse();
            all[first..].iter_mut().zip(0..).for_each(|(step, number)| step.step = number);
        }
        all
    }
}

/// Walk from the last task of a job back along the causes.
struct CriticalPathWalk<'a, F> {
    graph: &'a MessageGraph,
    progress: &'a Progress,
    posted: F,
}

impl<'f, F: Fn(u32) -> PostedMessage<'f>> CriticalPathWalk<'_, F> {
    /// Returns the begin and the end of a task.
    fn span(&self, task: TaskId) -> Option<(Time, Time)> {
        match self.graph.task(task) {
            Task::Message(_) => {
                let (sending, finish) = (self.posted)(task.0)?;
                Some((Time::from_ps(sending.start_ps), finish?))
            }
            Task::Compute(compute) => {
                let end = self.progress.computed(task.index() - self.graph.messages().len())?;
                Some((Time::from_ps(end.as_ps() - compute.duration.as_ps()), end))
            }
        }
    }

    /// Returns the time at which the host of `next`, which began at `begin`, knew the end of `cause`. For a message
    /// this is the delivery at the receiver. At any other host it is the acknowledgement if that came before `begin`,
    /// else the delivery.
    fn known(&self, cause: TaskId, next: TaskId, begin: Time) -> Option<Time> {
        let (_, end) = self.span(cause)?;
        if let Task::Message(message) = self.graph.task(cause)
            && self.graph.begin_host(next) != Some(self.graph.representative(message.dst))
        {
            let acked = (self.posted)(cause.0).and_then(|(sending, _)| sending.acked());
            return acked.filter(|&acked| acked <= begin).or(Some(end));
        }
        Some(end)
    }

    /// Appends the path that ends with the task `last`, from its end back to the begin of the path.
    fn walk_back(&self, causes: &Causes, job: JobId, last: (Time, TaskId), all: &mut Vec<CriticalStep>) {
        let (mut until, mut task) = last;
        while let Some((begin, _)) = self.span(task) {
            let cause =
                causes.of(task).filter(|&cause| self.graph.parent_job(cause).is_none_or(|of| of == job));
            let known = cause.and_then(|cause| self.known(cause, task, begin));
            all.extend(self.step(job, task, (begin, until)));
            let (Some(cause), Some(known)) = (cause, known) else { return };
            if known < begin {
                let host = self.graph.begin_host(task).map_or(0, |host| host.0);
                all.push(CriticalStep {
                    job: job.0,
                    kind: StepKind::Wait,
                    host,
                    start_ps: known.as_ps(),
                    finish_ps: begin.as_ps(),
                    ..CriticalStep::default()
                });
            }
            (until, task) = (known.min(begin), cause);
        }
    }

    /// Returns the step of the critical path that a task makes up, or `None` if it takes no time.
    fn step(&self, job: JobId, task: TaskId, (begin, until): (Time, Time)) -> Option<CriticalStep> {
        let step = CriticalStep {
            job: job.0,
            label: self.graph.label(task),
            start_ps: begin.as_ps(),
            finish_ps: until.as_ps(),
            ..CriticalStep::default()
        };
        match self.graph.task(task) {
            Task::Message(message) => {
                let (sending, finish) = (self.posted)(task.0)?;
                let to_delivery = finish == Some(until);
                let ideal_ps = if to_delivery { Some(sending.ideal_fct_ps) } else { sending.ideal_acked_ps };
                Some(CriticalStep {
                    kind: StepKind::Message,
                    host: message.src.0,
                    peer_host: Some(message.dst.0),
                    flow: Some(task.0),
                    ideal_ps,
                    ..step
                })
            }
            Task::Compute(compute) => {
                let host = compute.host.filter(|_| until > begin)?;
                Some(CriticalStep { kind: StepKind::Computation, host: host.0, ..step })
            }
        }
    }
}
