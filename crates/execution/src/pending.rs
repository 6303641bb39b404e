//! What a run still waits for: the tasks of foreground groups.

use pathweave_results::Role;
use pathweave_units::Time;
use pathweave_workload::{MessageGraph, Task, TaskId};

use crate::execution::GroupSpec;

/// Tasks of the foreground that may begin or have begun, and are not over, and notifications under way to them. A run is
/// over when there is none: whatever waits for a task that failed never becomes free. Where every group is foreground
/// that is every task.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// By group; empty if there is no background.
    background: Vec<bool>,
    /// Of a part it may be below zero: what one part has added, another one removes.
    left: i64,
    /// When the last of them ended so far.
    last_end: Time,
}

/// How much one part of a run waits for, to be added to that of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct Outstanding {
    /// Tasks and notifications, less what this part has removed and others have added.
    left: i64,
    /// When the last of them ended so far.
    last_end: Time,
}

impl Outstanding {
    /// That of no part.
    pub const NONE: Outstanding = Outstanding { left: 0, last_end: Time::ZERO };

    /// Both together.
    #[inline]
    #[must_use]
    pub fn and(self, other: Outstanding) -> Outstanding {
        Outstanding { left: self.left + other.left, last_end: self.last_end.max(other.last_end) }
    }

    /// Of all parts together: nothing of the foreground is under way and nothing is to come; since when.
    #[inline]
    pub fn over_since(self) -> Option<Time> {
        (self.left == 0).then_some(self.last_end)
    }
}

impl Pending {
    /// Tasks that wait for nothing are free from the start.
    pub(crate) fn new(graph: &MessageGraph, groups: &[GroupSpec]) -> Self {
        let mut background: Vec<bool> = groups.iter().map(|group| group.role == Role::Background).collect();
        if !background.contains(&true) {
            background.clear();
        }
        let mut pending = Pending { background, left: 0, last_end: Time::ZERO };
        let tasks = (0..graph.task_count() as u32).map(TaskId);
        tasks.filter(|&id| graph.predecessors(id) == 0).for_each(|id| pending.add(graph, id));
        pending
    }

    /// A task may begin, or a notification is on its way to it.
    pub(crate) fn add(&mut self, graph: &MessageGraph, task: TaskId) {
        self.left += i64::from(self.counts(graph, task));
    }

    /// A message's sender knows how it ended, a computation is over, or a notification has arrived.
    pub(crate) fn remove(&mut self, now: Time, graph: &MessageGraph, task: TaskId) {
        if self.counts(graph, task) {
            self.left -= 1;
            self.last_end = self.last_end.max(now);
        }
    }

    /// That of a part other than the first, which counts all tasks that are free from the start.
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
