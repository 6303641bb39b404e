//! Count of the work that a run still waits for: the tasks of foreground groups.

use pathweave_records::Role;
use pathweave_units::Time;
use pathweave_workload::{MessageGraph, Task, TaskId};

use crate::execution::GroupSpec;

/// Count of foreground tasks that are free or running, and of notifications in flight to foreground tasks. The run is
/// over when the count is zero: tasks that depend on a failed one never become free. If no group is in the
/// background, every task counts.
#[derive(Clone, Debug)]
pub(crate) struct ForegroundWork {
    /// True for each background group; empty if no group is in the background.
    background: Vec<bool>,
    /// The count. In one part of a run it may be negative, because a task or notification added in one part can be
    /// removed in another.
    left: i64,
    /// Latest end of a counted task or notification so far.
    last_end: Time,
}

/// Work that one part of a run waits for. The sum over all parts is meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Outstanding {
    /// Tasks and notifications that this part has added, less those that it has removed.
    left: i64,
    /// Latest end of a counted task or notification so far.
    last_end: Time,
}

impl Outstanding {
    /// The neutral element of [`Outstanding::merged`].
    pub const NONE: Outstanding = Outstanding { left: 0, last_end: Time::ZERO };

    /// Adds the work of another part.
    #[inline]
    #[must_use]
    pub fn merged(self, other: Outstanding) -> Outstanding {
        Outstanding { left: self.left + other.left, last_end: self.last_end.max(other.last_end) }
    }

    /// Returns the time at which the run ended, if no foreground work is left. Valid for the sum over all parts only.
    #[inline]
    pub fn ended_at(self) -> Option<Time> {
        (self.left == 0).then_some(self.last_end)
    }
}

impl ForegroundWork {
    /// Counts the tasks without predecessors, which are free from the start.
    pub(crate) fn new(graph: &MessageGraph, groups: &[GroupSpec]) -> Self {
        let mut background: Vec<bool> = groups.iter().map(|group| group.role == Role::Background).collect();
        if !background.contains(&true) {
            background.clear();
        }
        let mut pending = ForegroundWork { background, left: 0, last_end: Time::ZERO };
        let tasks = (0..graph.task_count() as u32).map(TaskId);
        tasks.filter(|&id| graph.predecessors(id) == 0).for_each(|id| pending.add(graph, id));
        pending
    }

    /// Counts a task that has become free, or a notification that has been sent to it.
    pub(crate) fn add(&mut self, graph: &MessageGraph, task: TaskId) {
        self.left += i64::from(self.counts(graph, task));
    }

    /// Removes a message whose sender knows how it ended, a computation that is over, or a notification that has
    /// arrived.
    pub(crate) fn remove(&mut self, now: Time, graph: &MessageGraph, task: TaskId) {
        if self.counts(graph, task) {
            self.left -= 1;
            self.last_end = self.last_end.max(now);
        }
    }

    /// Clears the count, for a part other than the first. The first part counts all tasks that are free from the
    /// start.
    pub(crate) fn of_other_part(&mut self) {
        self.left = 0;
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> Outstanding {
        Outstanding { left: self.left, last_end: self.last_end }
    }

    fn counts(&self, graph: &MessageGraph, task: TaskId) -> bool {
        if self.background.is_empty() {
            return true;
        }
        let group = match graph.task(task) {
            Task::Message(message) => Some(message.group),
            Task::Compute(compute) => compute.job.map(|job| graph.jobs()[job.index()].group),
        };
        group.is_none_or(|group| !self.background[group.index()])
    }
}
