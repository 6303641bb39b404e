//! Tasks that become free, and where and when they begin.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use pathweave_results::{ActivityRecord, CriticalStep, JobRecord};
use pathweave_units::{Duration, HostId, Time};
use pathweave_workload::{Job, JobId, JobSpans, Learns, MessageGraph, Moment, Progress, TaskId};

use crate::activities;
use crate::causes::{Causes, Posted};
use crate::execution::GroupSpec;
use crate::flow::Sending;
use crate::part::Part;
use crate::pending::Pending;

/// Something about a task that happens at a host.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub enum Step {
    /// A notification arrives: `by`, which the task waits for, has ended elsewhere.
    Told {
        /// The task.
        task: TaskId,
        /// What it waits for.
        by: TaskId,
    },
    /// A computation is over.
    Computed(TaskId),
    /// The task may begin.
    Begin(TaskId),
}

/// A step, with where and when it is to be made.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, borsh::BorshSerialize, borsh::BorshDeserialize,
)]
pub struct Due {
    /// When.
    pub at: Time,
    /// At which host.
    pub host: HostId,
    /// What.
    pub step: Step,
}

/// The tasks of a workload: which wait, which jobs are finished.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) graph: Arc<MessageGraph>,
    /// How long it takes until a host knows what has ended at another one.
    notification: Duration,
    pub(crate) progress: Progress,
    pub(crate) causes: Causes,
    /// Steps to be made at hosts that their drivers do not know of yet, in the order in which they became known.
    news: VecDeque<Due>,
    /// Steps of barriers, which are at no host.
    barriers: BinaryHeap<Reverse<(Time, Step)>>,
    /// What the run still waits for.
    pub(crate) pending: Pending,
    /// Absent where there is one execution of all.
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
            pending: Pending::new(&graph, groups),
            graph,
            part: None,
        }
    }

    /// From now on the tasks of this part.
    pub(crate) fn of_part(&mut self, part: Part) {
        if !part.is_first() {
            self.pending.of_other_part();
        }
        self.part = Some(part);
    }

    /// Takes the steps of barriers that are due here.
    pub(crate) fn take_barriers(&mut self) -> impl Iterator<Item = (Time, Step)> {
        self.barriers.drain().map(|Reverse(step)| step)
    }

    /// When the next step of a barrier is due here.
    pub(crate) fn barrier(&self) -> Option<Time> {
        self.barriers.peek().map(|Reverse((at, _))| *at)
    }

    /// A step of a barrier that became known in another part.
    pub(crate) fn add_barrier(&mut self, barrier: (Time, Step)) {
        self.barriers.push(Reverse(barrier));
    }

    /// Adds what has happened in another part.
    pub(crate) fn join(&mut self, other: &Tasks) {
        self.progress.join(&self.graph, &other.progress);
        self.causes.join(&other.causes);
    }

    /// When something happens next that no host knows of yet.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        let first = self.part.as_ref().is_none_or(Part::is_first);
        let barrier = self.barrier().filter(|_| first);
        self.progress.next_root(&self.graph).into_iter().chain(barrier).min()
    }

    /// The next task that waits for no other and begins before `end`, at a host of this part.
    #[inline]
    pub(crate) fn root_before(&mut self, end: Time) -> Option<Due> {
        while let Some((task, at)) = self.progress.pop_root(&self.graph, end) {
            let step = Step::Begin(task);
            match (self.graph.home(task), &self.part) {
                (Some(host), Some(part)) if !part.has(host) => {}
                (None, Some(part)) if !part.is_first() => {}
                (Some(host), _) => return Some(Due { at, host, step }),
                (None, _) => self.barriers.push(Reverse((at, step))),
            }
        }
        None
    }

    /// Takes the next of the steps that have become known.
    pub(crate) fn news(&mut self) -> Option<Due> {
        self.news.pop_front()
    }

    /// Makes the steps of barriers that are due before `end`. All that ended before has been reported.
    pub(crate) fn settle_barriers(&mut self, end: Time) {
        while let Some(&Reverse((at, step))) = self.barriers.peek()
            && at < end
        {
            self.barriers.pop();
            self.step(at, None, step);
        }
    }

    /// Makes a step at a host, or of a barrier. Returns the message that is to be posted, if it is a message that begins.
    pub(crate) fn step(&mut self, now: Time, host: Option<HostId>, step: Step) -> Option<u32> {
        match step {
            Step::Told { task, by } => {
                self.told(now, host, task, by);
                self.pending.remove(now, &self.graph, task);
            }
            Step::Begin(task) => match self.progress.begin(&self.graph, task, now) {
                None => return Some(task.0),
                Some(end) => {
                    self.causes.computes(&self.graph, task, now, end);
                    self.push(end, host, Step::Computed(task));
                }
            },
            Step::Computed(task) => {
                self.over(now, task);
                self.ended(now, task);
            }
        }
        None
    }

    /// A message has arrived, or a computation is over: what waits for that learns of it, now or later.
    pub(crate) fn over(&mut self, now: Time, task: TaskId) {
        self.progress.over(&self.graph, task, now);
        self.inform(now, task, Moment::Delivery);
    }

    /// A message has been acknowledged: what waits for that learns of it, now or later.
    pub(crate) fn acknowledged(&mut self, now: Time, message: TaskId) {
        self.inform(now, message, Moment::Completion);
    }

    /// The run need not wait for this task any more.
    pub(crate) fn ended(&mut self, now: Time, task: TaskId) {
        self.pending.remove(now, &self.graph, task);
    }

    fn inform(&mut self, now: Time, task: TaskId, moment: Moment) {
        if !self.graph.has_dependencies() {
            return;
        }
        let graph = self.graph.clone();
        for (next, learns) in graph.informed(task, moment) {
            match learns {
                Learns::AtOnce => self.told(now, graph.home(next), next, task),
                Learns::ByNotification(host) => {
                    self.pending.add(&graph, next);
                    self.push(
                        now.saturating_add(self.notification),
                        Some(host),
                        Step::Told { task: next, by: task },
                    );
                }
                Learns::AsBarrier => {
                    self.pending.add(&graph, next);
                    self.push(now, None, Step::Told { task: next, by: task });
                }
            }
        }
    }

    /// The host of a task knows that `by`, one of those it waits for, is over.
    fn told(&mut self, now: Time, host: Option<HostId>, task: TaskId, by: TaskId) {
        if let Some(at) = self.progress.told(&self.graph, task, now) {
            self.causes.released(task, by);
            self.pending.add(&self.graph, task);
            self.push(at, host, Step::Begin(task));
        }
    }

    fn push(&mut self, at: Time, host: Option<HostId>, step: Step) {
        match host {
            Some(host) => self.news.push_back(Due { at, host, step }),
            None => self.barriers.push(Reverse((at, step))),
        }
    }

    /// Tasks not yet done.
    pub(crate) fn left(&self) -> usize {
        self.progress.left()
    }

    /// What hosts did until `end`; `posted` are the messages that were posted, with what their senders know, and when
    /// they had arrived.
    pub(crate) fn activity_records<'f>(
        &self,
        posted: impl Iterator<Item = (u32, &'f Sending, Option<Time>)>,
        end: Time,
    ) -> Vec<ActivityRecord> {
        activities::records(&self.graph, &self.progress, posted, end)
    }

    /// What each job waited for; `posted` tells of a message that was posted.
    pub(crate) fn critical_steps<'f>(&self, posted: impl Fn(u32) -> Posted<'f>) -> Vec<CriticalStep> {
        self.causes.paths(&self.graph, &self.progress, posted)
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
        let spans = JobSpans::from_graph(graph);
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
        };
        graph.jobs().iter().zip(0..).map(record).collect()
    }
}
