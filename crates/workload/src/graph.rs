//! The graph of messages and computations that a run executes.

use pathweave_units::{Bytes, Duration, HostId, Time};

use crate::algorithm::Algorithm;
use crate::edges::Edges;
use crate::fold::Folding;

/// Bits of a process's number on its host, in the label of a connection.
pub(crate) const PROCESS_BITS: u32 = 15;
/// Bit of labels of connections that are a message's own.
pub(crate) const OWN: u32 = 1 << 31;

/// The largest message: 4 GiB, as in the InfiniBand verbs.
pub const MAX_MESSAGE_SIZE: Bytes = Bytes::new(1 << 32);

/// Index into [`MessageGraph::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupId(pub u16);

/// Index into [`MessageGraph::jobs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub u32);

/// A node of the graph. Messages come first, in the order of [`MessageGraph::messages`], then computations.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    borsh::BorshSerialize,
    borsh::BorshDeserialize,
)]
pub struct TaskId(pub u32);

impl GroupId {
    /// The identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl JobId {
    /// The identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl TaskId {
    /// The identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Traffic that is reported together and runs one scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Its name, unique in the graph.
    pub name: String,
    /// Name of its scheme; `None` for the default of the run.
    pub scheme: Option<String>,
}

/// Tasks whose joint completion is measured, such as one all-reduce.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The group it is reported with.
    pub group: GroupId,
    /// What its bandwidth counts, where it is a collective.
    pub measure: Option<Measure>,
    /// The iteration or round before it, of the same ranks. Each rank begins this one when it has done its part of that one, so that
    /// the two can overlap.
    pub follows: Option<JobId>,
    /// The job that it is a part of, such as the trace that has it as a collective. What ranks do in it is told of that one.
    pub part_of: Option<JobId>,
}

/// What a task is, in the words of the workload it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// What is done: "forward", "all-reduce", "send".
    pub activity: String,
    /// What it is done to, as far as the workload says: a layer, a bucket of gradients, a node of a trace.
    pub part: Option<String>,
    /// Which ranks of a training job it is among, where the workload says.
    pub parallelism: Option<Parallelism>,
    /// The collective that the task is a step of.
    pub collective: Option<CollectiveLabel>,
}

/// What ranks that communicate have in common: how training divides its work among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parallelism {
    /// Ranks that share each layer (TP).
    Tensor,
    /// Ranks that share the experts of a layer (EP).
    Expert,
    /// Ranks with the same weights (DP).
    Data,
    /// Ranks with the same experts, where experts are divided among data-parallel ranks.
    ExpertData,
    /// Ranks of neighbouring stages (PP).
    Pipeline,
}

/// A collective operation among ranks. Its kind is the activity of its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveLabel {
    /// Its number among the collectives of its workload, in the order of their declaration.
    pub number: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// How it is done.
    pub algorithm: Algorithm,
    /// What its bandwidth counts; `None` where its ranks send different amounts.
    pub measure: Option<Measure>,
}

/// The labels of tasks. Most graphs have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    /// Every label, ascending.
    pub(crate) all: Vec<Label>,
    /// By task: a label's number and one, or 0 for none. Empty if no task has one.
    pub(crate) of_task: Vec<u32>,
}

/// What the bandwidth of a collective counts, as nccl-tests define it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Measure {
    /// The size it is named by: over the time it takes, that is the algorithm bandwidth.
    pub size: Bytes,
    /// What the busiest link has to carry at least: over the time it takes, that is the bus bandwidth.
    pub bus: Bytes,
}

/// A transfer from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending host.
    pub src: HostId,
    /// The receiving host, never `src`.
    pub dst: HostId,
    /// Payload, 1 B to [`MAX_MESSAGE_SIZE`].
    pub size: Bytes,
    /// It is not posted before this instant.
    pub start: Time,
    /// The group it belongs to.
    pub group: GroupId,
    /// Messages equal in (src, dst, group, stream) share a connection, in the order of their posting.
    pub stream: u32,
    /// The job it is part of.
    pub job: Option<JobId>,
}

impl Message {
    /// No other message has its (src, dst, group, stream).
    pub const fn has_own_stream(&self) -> bool {
        self.stream & OWN != 0
    }
    /// The processes it is between: their numbers on the sending and on the receiving host. (0, 0) unless the workload
    /// says otherwise.
    pub const fn processes(&self) -> (u16, u16) {
        let mask = (1 << PROCESS_BITS) - 1;
        if self.has_own_stream() {
            return (0, 0);
        }
        ((self.stream >> PROCESS_BITS & mask) as u16, (self.stream & mask) as u16)
    }
}

/// What does one computation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u32);

impl CoreId {
    /// The identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Time that passes at a host, or with duration zero a barrier. Without a core it occupies nothing: such computations
/// overlap unless dependencies order them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// The host that computes; `None` for a barrier among several.
    pub host: Option<HostId>,
    /// How long it takes.
    pub duration: Duration,
    /// It does not begin before this instant.
    pub start: Time,
    /// The job it is part of.
    pub job: Option<JobId>,
    /// Computations of a core take turns, in the order in which they may begin.
    pub core: Option<CoreId>,
}

/// When a message lets those begin that wait for it. For a computation both are its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The receiver has every byte.
    #[default]
    Delivery,
    /// The sender has the last acknowledgement.
    Completion,
}

/// How the host of a task learns that one of the task's predecessors is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learns {
    /// It happened there.
    AtOnce,
    /// It happened at another host, or was a barrier: a notification tells this host.
    ByNotification(HostId),
    /// The task is a barrier, which is at no host; what comes behind it pays for the notification.
    AsBarrier,
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task<'a> {
    /// Done when every byte is delivered; what waits for its completion begins later.
    Message(&'a Message),
    /// Done when its duration has passed.
    Compute(&'a Compute),
}

/// A directed acyclic graph of messages and computations in canonical order.
///
/// A task begins at the later of its own `start` and, if it has predecessors, [`delay_after_deps`] after the
/// last of them is over, or after as many of them as it [`needs`]. What it waits for of a message, its delivery or its
/// completion, is the [`Moment`] of the edge; a task at the message's sender waits for its completion either way, since
/// that is how a sender learns of a delivery ([`informed`]). Edges carry no data. The order of tasks does not depend on the order in which
/// a scenario lists its flows (see [`GraphBuilder::finish`]); messages ascend by `start`.
///
/// A graph without dependencies costs 40 bytes a message and nothing else.
///
/// [`delay_after_deps`]: MessageGraph::delay_after_deps
/// [`needs`]: MessageGraph::needs
/// [`informed`]: MessageGraph::informed
/// [`GraphBuilder::finish`]: crate::GraphBuilder::finish
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageGraph {
    pub(crate) hosts: u32,
    pub(crate) groups: Vec<Group>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) messages: Vec<Message>,
    /// Payload of all of them.
    pub(crate) total_bytes: u128,
    pub(crate) computes: Vec<Compute>,
    /// Cores are below.
    pub(crate) cores: u32,
    pub(crate) edges: Edges,
    /// Tasks that begin before all of their predecessors are over: how many suffice. Ascending by task.
    pub(crate) needs: Vec<(TaskId, u32)>,
    /// By task; empty if every delay is zero.
    pub(crate) delays: Vec<Duration>,
    pub(crate) labels: Labels,
    pub(crate) folding: Option<Folding>,
}

impl MessageGraph {
    /// Hosts there are; every host of a task is below.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }
    /// Named groups, by [`GroupId`], ascending by name.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
    /// Jobs, by [`JobId`].
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// Messages, ascending by start.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
    /// Computations and barriers, ascending by start.
    pub fn computes(&self) -> &[Compute] {
        &self.computes
    }
    /// Every label that a task has, ascending.
    pub fn labels(&self) -> &[Label] {
        &self.labels.all
    }
    /// The label of a task, an index into [`MessageGraph::labels`]. `None` if its workload gave it none.
    pub fn label(&self, id: TaskId) -> Option<u32> {
        self.labels.of_task.get(id.index())?.checked_sub(1)
    }
    /// Which hosts those of the graph stand for, where only some of the hosts that are alike are on it.
    pub fn folding(&self) -> Option<&Folding> {
        self.folding.as_ref()
    }
    /// The host of the graph that does what this host does.
    pub fn representative(&self, host: HostId) -> HostId {
        self.folding.as_ref().map_or(host, |folding| folding.representative(host))
    }
    /// How many cores computations take turns on; every core of a computation is below.
    pub fn cores(&self) -> u32 {
        self.cores
    }
    /// Messages and computations together.
    pub fn task_count(&self) -> usize {
        self.messages.len() + self.computes.len()
    }
    /// The task with this identifier. Panics if there is none.
    pub fn task(&self, id: TaskId) -> Task<'_> {
        match self.messages.get(id.index()) {
            Some(message) => Task::Message(message),
            None => Task::Compute(&self.computes[id.index() - self.messages.len()]),
        }
    }
    /// The identifier of the computation at an index of [`MessageGraph::computes`].
    pub fn compute_id(&self, index: usize) -> TaskId {
        TaskId((self.messages.len() + index) as u32)
    }
    /// The task's own earliest start.
    pub fn start(&self, id: TaskId) -> Time {
        match self.task(id) {
            Task::Message(message) => message.start,
            Task::Compute(compute) => compute.start,
        }
    }
    /// The job the task is part of.
    pub fn job(&self, id: TaskId) -> Option<JobId> {
        match self.task(id) {
            Task::Message(message) => message.job,
            Task::Compute(compute) => compute.job,
        }
    }
    /// The job that a task is told of: that of which its own is a part, where it is one.
    pub fn whole_job(&self, id: TaskId) -> Option<JobId> {
        self.job(id).map(|job| self.jobs[job.index()].part_of.unwrap_or(job))
    }
    /// True if any task waits for another.
    pub fn has_dependencies(&self) -> bool {
        !self.edges.predecessors().is_empty()
    }
    /// How many pairs of tasks there are of which one waits for the other.
    pub fn dependency_count(&self) -> usize {
        self.edges.len()
    }
    /// Tasks that wait for this moment of this one.
    pub fn dependents(&self, id: TaskId, moment: Moment) -> &[TaskId] {
        self.edges.after(id, moment)
    }
    /// Tasks that wait for this one, whatever the moment.
    pub fn all_dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.edges.all_of(id)
    }
    /// The host where a task begins; `None` for a barrier.
    pub fn home(&self, id: TaskId) -> Option<HostId> {
        match self.task(id) {
            Task::Message(message) => Some(message.src),
            Task::Compute(compute) => compute.host,
        }
    }
    /// The tasks that learn of this moment of a task, and how. What waits for a message learns of its delivery at the
    /// receiver at once, and at the sender with its completion. A third host is notified: of what it waits for, delivery
    /// or completion, by the end that knows it. For a computation there is only [`Moment::Delivery`], its end.
    pub fn informed(&self, id: TaskId, moment: Moment) -> impl Iterator<Item = (TaskId, Learns)> + '_ {
        let folded = self.folding.is_some();
        let (knows, sender) = match (self.task(id), moment) {
            // Where hosts stand for others, what waits names the moment at which its own host knows.
            (Task::Message(message), Moment::Delivery) if folded => {
                (Some(self.representative(message.dst)), None)
            }
            (Task::Message(message), Moment::Delivery) => (Some(message.dst), Some(message.src)),
            (Task::Message(message), Moment::Completion) => (Some(message.src), None),
            (Task::Compute(compute), _) => (compute.host, None),
        };
        // Of those that wait for the delivery, the sender's; then those that wait for this moment, without them.
        let deliveries = match moment {
            Moment::Delivery => &[],
            Moment::Completion if folded => &[],
            Moment::Completion => self.dependents(id, Moment::Delivery),
        };
        let at_sender = deliveries.iter().filter(move |task| self.home(**task) == knows);
        let rest = self.dependents(id, moment).iter();
        let rest = rest.filter(move |task| sender.is_none() || self.home(**task) != sender);
        at_sender.chain(rest).map(move |&task| {
            let learns = match self.home(task) {
                None => Learns::AsBarrier,
                home if home == knows => Learns::AtOnce,
                Some(host) => Learns::ByNotification(host),
            };
            (task, learns)
        })
    }
    /// Whether any task waits for what ends at another host without a message that tells it, or for a barrier.
    pub fn needs_notifications(&self) -> bool {
        let tasks = (0..self.task_count() as u32).map(TaskId);
        let moments = [Moment::Delivery, Moment::Completion];
        let mut all =
            tasks.flat_map(|id| moments.into_iter().flat_map(move |moment| self.informed(id, moment)));
        self.has_dependencies() && all.any(|(_, learns)| matches!(learns, Learns::ByNotification(_)))
    }
    /// How many tasks this one names as its predecessors.
    pub fn predecessors(&self, id: TaskId) -> u32 {
        self.edges.predecessors().get(id.index()).copied().unwrap_or(0)
    }
    /// How many of its predecessors have to be over before this one begins: all of them, unless said otherwise.
    pub fn needs(&self, id: TaskId) -> u32 {
        match self.needs.binary_search_by_key(&id, |&(task, _)| task) {
            Ok(found) => self.needs[found].1,
            Err(_) => self.predecessors(id),
        }
    }
    /// Time between the end of the last predecessor and the begin of this task.
    pub fn delay_after_deps(&self, id: TaskId) -> Duration {
        self.delays.get(id.index()).copied().unwrap_or(Duration::ZERO)
    }
    /// Bytes it takes on the heap.
    pub fn memory_bytes(&self) -> u64 {
        let tasks = size_of_val(&self.messages[..]) + size_of_val(&self.computes[..]);
        let labels = size_of_val(&self.labels.of_task[..]) + size_of_val(&self.labels.all[..]);
        (tasks + size_of_val(&self.delays[..]) + labels + self.edges.memory_bytes()) as u64
    }
    /// Payload of all messages.
    pub fn total_bytes(&self) -> u128 {
        self.total_bytes
    }
}
