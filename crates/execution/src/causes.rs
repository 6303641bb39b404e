//! Why each task began when it did, and from that what each job waited for.

use pathweave_results::{CriticalStep, StepKind};
use pathweave_units::Time;
use pathweave_workload::{JobId, MessageGraph, Progress, Task, TaskId};

use crate::flow::Sending;

/// No task.
const NONE: u32 = u32::MAX;

/// For each task the one whose end it began after. Four bytes a task; none where no task waits for another.
#[derive(Clone, Debug)]
pub(crate) struct Causes {
    of_task: Vec<u32>,
    /// What each core computed last.
    on_core: Vec<u32>,
}

/// What is known of a message that has been posted: at its sender, and when it had arrived.
pub(crate) type Posted<'f> = Option<(&'f Sending, Option<Time>)>;

impl Causes {
    /// Nothing has begun.
    pub(crate) fn new(graph: &MessageGraph) -> Self {
        let tasks = if graph.has_dependencies() || graph.cores() > 0 { graph.task_count() } else { 0 };
        Causes { of_task: vec![NONE; tasks], on_core: vec![NONE; graph.cores() as usize] }
    }

    /// Of all that `task` waited for, `by` was over last.
    pub(crate) fn released(&mut self, task: TaskId, by: TaskId) {
        if let Some(cause) = self.of_task.get_mut(task.index()) {
            *cause = by.0;
        }
    }

    /// A computation that could begin at `now` is over at `end`. If it had to wait for its core, then for what that computed.
    pub(crate) fn computes(&mut self, graph: &MessageGraph, task: TaskId, now: Time, end: Time) {
        let Task::Compute(compute) = graph.task(task) else { return };
        let Some(core) = compute.core else { return };
        let before = std::mem::replace(&mut self.on_core[core.index()], task.0);
        if end > now.saturating_add(compute.duration) {
            self.released(task, TaskId(before));
        }
    }

    /// Adds what is known in another part: of some tasks there, of the others here.
    pub(crate) fn join(&mut self, other: &Causes) {
        for (cause, &there) in self.of_task.iter_mut().zip(&other.of_task) {
            *cause = there.min(*cause);
        }
    }

    /// What is known here: tasks, with that whose end each began after.
    pub(crate) fn known(&self) -> impl Iterator<Item = (TaskId, TaskId)> {
        let known = (0..).zip(&self.of_task).filter(|(_, by)| **by != NONE);
        known.map(|(task, &by)| (TaskId(task), TaskId(by)))
    }

    fn of(&self, task: TaskId) -> Option<TaskId> {
        self.of_task.get(task.index()).copied().filter(|&cause| cause != NONE).map(TaskId)
    }

    /// The path of each job that came to its end, from the task that was over last back to one that waited for none of the
    /// job; by job, each in the order of time.
    pub(crate) fn paths<'f>(
        &self,
        graph: &MessageGraph,
        progress: &Progress,
        posted: impl Fn(u32) -> Posted<'f>,
    ) -> Vec<CriticalStep> {
        let walk = Walk { graph, progress, posted };
        let mut last: Vec<Option<(Time, TaskId)>> = vec![None; graph.jobs().len()];
        for task in (0..graph.task_count() as u32).map(TaskId) {
            let Some(job) = graph.whole_job(task) else { continue };
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
            walk.back(self, job, (end, task), &mut all);
            all[first..].reverse();
            all[first..].iter_mut().zip(0..).for_each(|(step, number)| step.step = number);
        }
        all
    }
}

/// A way back through what happened.
struct Walk<'a, F> {
    graph: &'a MessageGraph,
    progress: &'a Progress,
    posted: F,
}

impl<'f, F: Fn(u32) -> Posted<'f>> Walk<'_, F> {
    /// When a task began and was over.
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

    /// When the end of `cause` was known to those that began at `begin` behind it: of a message its delivery at the
    /// receiver, elsewhere its acknowledgement where that was early enough.
    fn known(&self, cause: TaskId, next: TaskId, begin: Time) -> Option<Time> {
        let (_, end) = self.span(cause)?;
        if let Task::Message(message) = self.graph.task(cause)
            && self.graph.home(next) != Some(self.graph.representative(message.dst))
        {
            let acked = (self.posted)(cause.0).and_then(|(sending, _)| sending.acked());
            return acked.filter(|&acked| acked <= begin).or(Some(end));
        }
        Some(end)
    }

    /// Adds the path that ends with a task, from its end to its begin.
    fn back(&self, causes: &Causes, job: JobId, last: (Time, TaskId), all: &mut Vec<CriticalStep>) {
        let (mut until, mut task) = last;
        while let Some((begin, _)) = self.span(task) {
            let cause =
                causes.of(task).filter(|&cause| self.graph.whole_job(cause).is_none_or(|of| of == job));
            let known = cause.and_then(|cause| self.known(cause, task, begin));
            all.extend(self.step(job, task, (begin, until)));
            let (Some(cause), Some(known)) = (cause, known) else { return };
            if known < begin {
                let host = self.graph.home(task).map_or(0, |host| host.0);
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

    /// The step that a task is; none if it takes no time.
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
