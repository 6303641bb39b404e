//! What a run still waits for: the tasks of foreground groups.

use pathweave_results::Role;
use pathweave_workload::{MessageGraph, Task, TaskId};

use crate::spec::SimSpec;

/// Tasks of the foreground that may begin or have begun, and are not over. A run is over when there is none: whatever
/// waits for a task that failed never becomes free. Where every group is foreground that is every task.
#[derive(Clone, Debug)]
pub struct Pending {
    /// By group; empty if there is no background.
    background: Vec<bool>,
    left: usize,
}

impl Pending {
    /// Tasks that wait for nothing are free from the start.
    pub fn new(spec: &SimSpec) -> Self {
        let background = if spec.has_background() {
            spec.groups.iter().map(|group| group.role == Role::Background).collect()
        } else {
            Vec::new()
        };
        let mut pending = Pending { background, left: 0 };
        let tasks = (0..spec.graph.task_count() as u32).map(TaskId);
        tasks.filter(|&id| spec.graph.predecessors(id) == 0).for_each(|id| pending.freed(&spec.graph, id));
        pending
    }
    /// A task may begin.
    pub fn freed(&mut self, graph: &MessageGraph, task: TaskId) {
        self.left += usize::from(self.counts(graph, task));
    }
    /// A message's sender knows how it ended; a computation is over.
    pub fn ended(&mut self, graph: &MessageGraph, task: TaskId) {
        self.left -= usize::from(self.counts(graph, task));
    }
    /// Nothing of the foreground is under way and nothing is to come.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.left == 0
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
