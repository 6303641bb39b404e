//! Scheduling of tasks: when each becomes free, and where and when it begins.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use pathweave_records::{ActivityRecord, CriticalStep, JobRecord, TrainingRecord};
use pathweave_units::{Duration, HostId, Time};
use pathweave_workload::{Job, JobId, JobSpans, MessageGraph, Moment, Notice, Progress, TaskId};

use crate::activities;
use crate::causes::{Causes, PostedMessage};
use crate::execution::GroupSpec;
use crate::flow::Sending;
use crate::part::Part;
use crate::pending::ForegroundWork;

/// Returns the time of all computations of each iteration of training, in picoseconds, and the hosts that compute.
fn computing(graph: &MessageGraph) -> BTreeMap<u32, (u64, BTreeSet<HostId>)> {
    let mut busy: BTreeMap<u32, (u64, BTreeSet<HostId>)> = BTreeMap::new();
    for compute in graph.computes() {
        let (Some(job), Some(host)) = (compute.job, compute.host) else { continue };
        if graph.jobs()[job.index()].training.is_some() {
            let (sum, hosts) = busy.entry(job.0).or_default();
            *sum = sum.saturating_add(compute.duration.as_ps());
            hosts.insert(host);
        }
    }
    busy
}

/// An event of a task at a host.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub enum Step {
    /// A notification arrives: the predecessor `by` has ended at another host.
    Told {
        /// The task that is notified.
        task: TaskId,
        /// The predecessor that has ended.
        by: TaskId,
    },
    /// A computation is over.
    Computed(TaskId),
    /// The task may begin.
    Begin(TaskId),
}

/// A step with its time and its host.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub struct ScheduledStep {
    /// Time of the step.
    pub at: Time,
    /// Host at which the step takes place.
    pub host: HostId,
    /// The step.
    pub step: Step,
}

/// State of the tasks of a workload: progress, causes and steps that are due.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) graph: Arc<MessageGraph>,
    /// Delay until a host knows that a task at another host has ended.
    notification: Duration,
    pub(crate) progress: Progress,
    pub(crate) causes: Causes,
    /// Steps at hosts that the caller has not taken yet, in the order in which they became known.
    news: VecDeque<ScheduledStep>,
    /// Steps of barriers, which belong to no host.
    barriers: BinaryHeap<Reverse<(Time, Step)>>,
    /// Work that the run still waits for.
    pub(crate) pending: ForegroundWork,
    /// The part of the run that this is, or `None` if one execution drives all hosts.
    pub(crate) part: Option<Part>,
}

impl Tasks {
    pub(crate) fn new(graph: Arc<MessageGraph>, groups: &[GroupSpec], notification: Duration) -> Self {
        Tasks {
            notification,
            progress: Progress::new(&graph),
            causes: Causes::new(&graph),
            news: VecDeque::new(),
            barriers: BinaryHeap::new(),
            pending: ForegroundWork::new(&graph, groups),
            graph,
            part: None,
        }
    }

    /// Restricts the tasks to those of `part`.
    pub(crate) fn restrict_to(&mut self, part: Part) {
        if !part.owns_barriers() {
            self.pending.of_other_part();
        }
        self.part = Some(part);
    }

    /// Removes and returns the steps of barriers that are due in this part.
    pub(crate) fn take_barriers(&mut self) -> impl Iterator<Item = (Time, Step)> {
        self.barriers.drain().map(|Reverse(step)| step)
    }

    /// Returns the time of the next barrier step in this part.
    pub(crate) fn barrier(&self) -> Option<Time> {
        self.barriers.peek().map(|Reverse((at, _))| *at)
    }

    /// Adds a step of a barrier that became known in another part.
    pub(crate) fn add_barrier(&mut self, barrier: (Time, Step)) {
        self.barriers.push(Reverse(barrier));
    }

    /// Merges the progress and the causes of another part.
    pub(crate) fn join(&mut self, other: &Tasks) {
        self.progress.merge(&self.graph, &other.progress);
        self.causes.join(&other.causes);
    }

    /// Returns the time of the next step that is not at a host yet: a task without predecessors, or a barrier in the
    /// first part.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        let first = self.part.as_ref().is_none_or(Part::owns_barriers);
        let barrier = self.barrier().filter(|_| first);
        self.progress.next_root(&self.graph).into_iter().chain(barrier).min()
    }

    /// Returns the next task of this part that has no predecessors and begins before `end`.
    #[inline]
    pub(crate) fn root_before(&mut self, end: Time) -> Option<ScheduledStep> {
        while let Some((task, at)) = self.progress.pop_root(&self.graph, end) {
            let step = Step::Begin(task);
            match (self.graph.begin_host(task), &self.part) {
                (Some(host), Some(part)) if !part.owns(host) => {}
                (None, Some(part)) if !part.owns_barriers() => {}
                (Some(host), _) => return Some(ScheduledStep { at, host, step }),
                (None, _) => self.barriers.push(Reverse((at, step))),
            }
        }
        None
    }

    /// Removes and returns the next step that has become known.
    pub(crate) fn ready_steps(&mut self) -> Option<ScheduledStep> {
        self.news.pop_front()
    }

    /// Runs the steps of barriers that are due before `end`. The caller has reported all events before `end`.
    pub(crate) fn settle_barriers(&mut self, end: Time) {
        while let Some(&Reverse((at, step))) = self.barriers.peek()
            && at < end
        {
            self.barriers.pop();
            self.step(at, None, step);
        }
    }

    /// Runs a step at a host, or of a barrier if `host` is `None`. Returns the message to post, if a message begins.
    pub(crate) fn step(&mut self, now: Time, host: Option<HostId>, step: Step) -> Option<u32> {
        match step {
            Step::Told { task, by } => {
                self.notify(now, host, task, by);
                self.pending.remove(now, &self.graph, task);
            }
            Step::Begin(task) => match self.progress.begin(&self.graph, task, now) {
                None => return Some(task.0),
                Some(end) => {
                    self.causes.record_computation(&self.graph, task, now, end);
                    self.push(end, host, Step::Computed(task));
                }
            },
            Step::Computed(task) => {
                self.task_ended(now, task);
                self.forget_task(now, task);
            }
        }
        None
    }

    /// Records that a message has arrived or a computation has ended, and informs its successors, now or by
    /// notification.
    pub(crate) fn task_ended(&mut self, now: Time, task: TaskId) {
        self.progress.task_ended(&self.graph, task, now);
        self.notify_successors(now, task, Moment::Delivery);
    }

    /// Records that a message has been acknowledged, and informs the successors of its completion, now or by
    /// notification.
    pub(crate) fn acknowledged(&mut self, now: Time, message: TaskId) {
        self.notify_successors(now, message, Moment::Completion);
    }

    /// Removes a task from the work that the run waits for.
    pub(crate) fn forget_task(&mut self, now: Time, task: TaskId) {
        self.pending.remove(now, &self.graph, task);
    }

    fn notify_successors(&mut self, now: Time, task: TaskId, moment: Moment) {
        if !self.graph.has_dependencies() {
            return;
        }
        let graph = self.graph.clone();
        for (next, learns) in graph.notified_tasks(task, moment) {
            match learns {
                Notice::AtOnce => self.notify(now, graph.begin_host(next), next, task),
                Notice::ByNotification(host) => {
                    self.pending.add(&graph, next);
                    self.push(
                        now.saturating_add(self.notification),
                        Some(host),
                        Step::Told { task: next, by: task },
                    );
                }
                Notice::AsBarrier => {
                    self.pending.add(&graph, next);
                    self.push(now, None, Step::Told { task: next, by: task });
                }
            }
        }
    }

    /// Records that the host of `task` knows the end of the predecessor `by`.
    fn notify(&mut self, now: Time, host: Option<HostId>, task: TaskId, by: TaskId) {
        if let Some(at) = self.progress.predecessor_ended(&self.graph, task, now) {
            self.causes.set_cause(task, by);
            self.pending.add(&self.graph, task);
            self.push(at, host, Step::Begin(task));
        }
    }

    fn push(&mut self, at: Time, host: Option<HostId>, step: Step) {
        match host {
            Some(host) => self.news.push_back(ScheduledStep { at, host, step }),
            None => self.barriers.push(Reverse((at, step))),
        }
    }

    /// Returns the number of tasks that are not done.
    pub(crate) fn left(&self) -> usize {
        self.progress.unfinished()
    }

    /// Returns the activities of hosts until `end`. `posted` yields each posted message with its sender's state and
    /// the time at which it had arrived.
    pub(crate) fn activity_records<'f>(
        &self,
        posted: impl Iterator<Item = (u32, &'f Sending, Option<Time>)>,
        end: Time,
    ) -> Vec<ActivityRecord> {
        activities::records(&self.graph, &self.progress, posted, end)
    }

    /// Returns the critical path of each job. `posted` returns the state of a message if it was posted.
    pub(crate) fn critical_steps<'f>(&self, posted: impl Fn(u32) -> PostedMessage<'f>) -> Vec<CriticalStep> {
        self.causes.paths(&self.graph, &self.progress, posted)
    }

    /// Returns the records of all jobs. A job whose tasks have predecessors begins when the first of its tasks is
    /// free.
    pub(crate) fn job_records(&self) -> Vec<JobRecord> {
        let graph = &*self.graph;
        let mut earliest = vec![u64::MAX; graph.jobs().len()];
        let messages = graph.messages().iter().map(|message| (message.job, message.start));
        let computes = graph.computes().iter().map(|compute| (compute.job, compute.start));
        for (job, start) in messages.chain(computes).filter_map(|(job, start)| Some((job?, start))) {
            earliest[job.index()] = earliest[job.index()].min(start.as_ps());
        }
        let spans = JobSpans::from_graph(graph);
        let busy = computing(graph);
        let record = |(job, number): (&Job, u32)| JobRecord {
            job: number,
            name: job.name.clone(),
            group: job.group.0,
            start_ps: self.progress.job_begin(JobId(number)).map_or(earliest[number as usize], Time::as_ps),
            before_ps: job.follows.and_then(|before| self.progress.job_end(before)).map(Time::as_ps),
            finish_ps: self.progress.job_end(JobId(number)).map(Time::as_ps),
            compute_ps: spans.span(JobId(number)).as_ps(),
            size_bytes: job.measure.map(|measure| measure.size.get()),
            bus_bytes: job.measure.map(|measure| measure.bus.get()),
            training: job.training.map(|work| TrainingRecord {
                gpus: work.gpus,
                sequences: work.sequences,
                tokens: work.tokens,
                megaflops: work.megaflops,
                scale_ppb: work.scale_ppb,
                peak_gigaflops: work.peak_gigaflops,
                busy_ps: busy.get(&number).map_or(0, |(sum, hosts)| sum / hosts.len() as u64),
            }),
        };
        graph.jobs().iter().zip(0..).map(record).collect()
    }
}
