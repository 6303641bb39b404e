//! The graph of messages and computations that a run executes.

use pathweave_units::{Bytes, Duration, HostId, Time};

use crate::edges::Edges;
use crate::fold::Folding;
use crate::training_memory::TrainingMemory;

/// Number of bits of a process's number on its host, in the label of a connection.
pub(crate) const PROCESS_BITS: u32 = 15;
/// Bit of stream labels that belong to a single message.
pub(crate) const OWN: u32 = 1 << 31;

/// Largest size of a message: 4 GiB, as in the InfiniBand verbs.
pub const MAX_MESSAGE_SIZE: Bytes = Bytes::new(1 << 32);

/// Index into [`MessageGraph::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupId(pub u16);

/// Index into [`MessageGraph::jobs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub u32);

/// Identifier of a node of the graph. Messages come first, in the order of [`MessageGraph::messages`], then
/// computations.
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
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl JobId {
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
impl TaskId {
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Traffic that is reported together and uses one scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Name of the group, unique in the graph.
    pub name: String,
    /// Name of the group's scheme; `None` for the default of the run.
    pub scheme: Option<String>,
}

/// Tasks whose joint completion is measured, such as one all-reduce.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Name of the job.
    pub name: String,
    /// Group with which the job is reported.
    pub group: GroupId,
    /// Bytes from which its bandwidth is computed, if it is a collective.
    pub measure: Option<BandwidthBytes>,
    /// Previous iteration or round, of the same ranks. Each rank begins this job once it has done its part of
    /// the previous one, so the two can overlap.
    pub follows: Option<JobId>,
    /// Job that this one is a part of, such as the trace that contains it as a collective. Results of ranks
    /// are reported for the whole job.
    pub parent: Option<JobId>,
    /// Work of the job, if it is an iteration of a model's training.
    pub training: Option<TrainingWork>,
}

/// Work of an iteration of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrainingWork {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of sequences of all replicas: the global batch.
    pub sequences: u64,
    /// Number of tokens of these sequences.
    pub tokens: u64,
    /// Operations of the model for these tokens, forward and backward without recomputation, in 10^6.
    pub megaflops: u64,
    /// Scale of the workload in 10^-9: its messages and computations are those of this part of the work.
    pub scale_ppb: u32,
    /// Peak rate of a GPU in 10^9 operations per second, if the GPU is known.
    pub peak_gigaflops: Option<u64>,
}

/// Description of a task in terms of its workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// Activity, such as "forward", "all-reduce" or "send".
    pub activity: String,
    /// Object of the activity, if the workload states it: a layer, a bucket of gradients, a node of a trace.
    pub part: Option<String>,
    /// Parallelism dimension of a training job that the task belongs to, if the workload states it.
    pub parallelism: Option<Parallelism>,
    /// Collective that the task is a step of.
    pub collective: Option<CollectiveLabel>,
}

/// Dimension along which training divides its work among ranks. Ranks that communicate have this dimension in
/// common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parallelism {
    /// Tensor parallelism (TP): ranks that share each layer.
    Tensor,
    /// Expert parallelism (EP): ranks that share the experts of a layer.
    Expert,
    /// Data parallelism (DP): ranks with the same weights.
    Data,
    /// Ranks with the same experts, if experts are divided among data-parallel ranks.
    ExpertData,
    /// Pipeline parallelism (PP): ranks of consecutive stages.
    Pipeline,
    /// Context parallelism (CP): ranks that share sequences.
    Context,
}

/// A collective operation among ranks. The activity of its label is its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectiveLabel {
    /// Number of the collective within its workload, in the order of declaration.
    pub number: u32,
    /// Number of ranks that take part.
    pub ranks: u32,
    /// Name of the algorithm of the collective.
    pub algorithm: &'static str,
    /// Bytes from which its bandwidth is computed; `None` if its ranks send different amounts.
    pub measure: Option<BandwidthBytes>,
}

/// Labels of tasks. Most graphs have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    /// All labels, in ascending order.
    pub(crate) all: Vec<Label>,
    /// Label of each task: its index in `all` plus 1, or 0 for none. Empty if no task has a label.
    pub(crate) of_task: Vec<u32>,
}

/// Bytes from which the bandwidth of a collective is computed, as nccl-tests define them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BandwidthBytes {
    /// Nominal size. Divided by the duration, it is the algorithm bandwidth.
    pub size: Bytes,
    /// Least number of bytes that the busiest link carries. Divided by the duration, it is the bus bandwidth.
    pub bus: Bytes,
}

/// A transfer from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sending host.
    pub src: HostId,
    /// Receiving host, never equal to `src`.
    pub dst: HostId,
    /// Payload, 1 B to [`MAX_MESSAGE_SIZE`].
    pub size: Bytes,
    /// Earliest time at which the message is posted.
    pub start: Time,
    /// Group of the message.
    pub group: GroupId,
    /// Stream label. Messages with the same (src, dst, group, stream) share a connection, in the order in
    /// which they are posted.
    pub stream: u32,
    /// Job that the message is part of.
    pub job: Option<JobId>,
}

impl Message {
    /// Returns true if no other message has the same (src, dst, group, stream).
    pub const fn has_own_stream(&self) -> bool {
        self.stream & OWN != 0
    }
    /// Returns the numbers of the sending process and of the receiving process, each on its host. (0, 0)
    /// unless the workload sets them.
    pub const fn processes(&self) -> (u16, u16) {
        let mask = (1 << PROCESS_BITS) - 1;
        if self.has_own_stream() {
            return (0, 0);
        }
        ((self.stream >> PROCESS_BITS & mask) as u16, (self.stream & mask) as u16)
    }
}

/// Identifier of a core, which executes one computation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u32);

impl CoreId {
    /// Returns the identifier as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Time that passes at a host, or a barrier if the duration is zero. A computation without a core occupies
/// nothing: such computations overlap unless dependencies order them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// Host that computes; `None` for a barrier among several hosts.
    pub host: Option<HostId>,
    /// Duration of the computation.
    pub duration: Duration,
    /// Earliest begin.
    pub start: Time,
    /// Job that the computation is part of.
    pub job: Option<JobId>,
    /// Core that executes the computation. Computations of a core take turns, in the order in which they may
    /// begin.
    pub core: Option<CoreId>,
    /// Time for which the core is taken beyond the end, by a computation without a core of its own that begins then.
    pub core_taken: Duration,
}

/// Moment of a message that other tasks can wait for. For a computation, both moments are its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The receiver has every byte.
    #[default]
    Delivery,
    /// The sender has the last acknowledgement.
    Completion,
}

/// Means by which the host of a task learns that one of the task's predecessors has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The predecessor ended at this host.
    AtOnce,
    /// The predecessor ended at another host, or was a barrier. A notification informs this host.
    ByNotification(HostId),
    /// The task is a barrier, which is at no host. Its successors wait for the notification instead.
    AsBarrier,
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task<'a> {
    /// A message. It ends when every byte is delivered. Tasks that wait for its completion begin later.
    Message(&'a Message),
    /// A computation. It ends when its duration has passed.
    Compute(&'a Compute),
}

/// A directed acyclic graph of messages and computations in canonical order.
///
/// A task begins at the later of two times: its own `start`, and, if it has predecessors,
/// [`delay_after_deps`] after as many of them have ended as it [`needs`] (all, by default). Each edge names
/// the [`Moment`] of a message that its task waits for, delivery or completion. A task at the message's
/// sender waits for the completion in either case, because that is how a sender learns of a delivery
/// ([`notified_tasks`]). Edges carry no data.
///
/// The order of tasks does not depend on the order in which a scenario lists its flows (see
/// [`GraphBuilder::finish`]). Messages ascend by `start`. A graph without dependencies takes 40 bytes for
/// each message and nothing else.
///
/// [`delay_after_deps`]: MessageGraph::delay_after_deps
/// [`needs`]: MessageGraph::needs
/// [`notified_tasks`]: MessageGraph::notified_tasks
/// [`GraphBuilder::finish`]: crate::GraphBuilder::finish
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageGraph {
    pub(crate) hosts: u32,
    pub(crate) groups: Vec<Group>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) messages: Vec<Message>,
    /// Payload of all messages, bytes.
    pub(crate) total_bytes: u128,
    pub(crate) computes: Vec<Compute>,
    /// Duration of each computation without stragglers. Empty if there are none.
    pub(crate) nominal: Vec<Duration>,
    /// Number of cores. Every [`CoreId`] is smaller.
    pub(crate) cores: u32,
    pub(crate) edges: Edges,
    /// Number of predecessors that suffice, for tasks that do not need all of theirs. Ascending by task.
    pub(crate) needs: Vec<(TaskId, u32)>,
    /// Delay of each task after its predecessors. Empty if every delay is zero.
    pub(crate) delays: Vec<Duration>,
    pub(crate) labels: Labels,
    pub(crate) folding: Option<Folding>,
    /// Memory of GPUs, by the name of the workload's group.
    pub(crate) memory: Vec<(String, TrainingMemory)>,
}

impl MessageGraph {
    /// Returns the memory that training needs on its GPUs, by the name of the workload's group.
    pub fn memory(&self) -> &[(String, TrainingMemory)] {
        &self.memory
    }
    /// Returns the number of hosts. Every host of a task is smaller.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }
    /// Returns the groups, indexed by [`GroupId`], ascending by name.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
    /// Returns the jobs, indexed by [`JobId`].
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }
    /// Returns the messages, ascending by start.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
    /// Returns the computations and barriers, ascending by start.
    pub fn computes(&self) -> &[Compute] {
        &self.computes
    }
    /// Returns the labels of all tasks, in ascending order.
    pub fn labels(&self) -> &[Label] {
        &self.labels.all
    }
    /// Returns the label of a task as an index into [`MessageGraph::labels`], or `None` if it has no label.
    pub fn label(&self, id: TaskId) -> Option<u32> {
        self.labels.of_task.get(id.index())?.checked_sub(1)
    }
    /// Returns the mapping of hosts to representatives, if the graph is folded.
    pub fn folding(&self) -> Option<&Folding> {
        self.folding.as_ref()
    }
    /// Returns the host of the graph that represents this host.
    pub fn representative(&self, host: HostId) -> HostId {
        self.folding.as_ref().map_or(host, |folding| folding.representative(host))
    }
    /// Returns the number of cores on which computations take turns. Every [`CoreId`] of a computation is
    /// smaller.
    pub fn cores(&self) -> u32 {
        self.cores
    }
    /// Returns the number of messages and computations.
    pub fn task_count(&self) -> usize {
        self.messages.len() + self.computes.len()
    }
    /// Returns the task with this identifier.
    ///
    /// # Panics
    ///
    /// Panics if there is no such task.
    pub fn task(&self, id: TaskId) -> Task<'_> {
        match self.messages.get(id.index()) {
            Some(message) => Task::Message(message),
            None => Task::Compute(&self.computes[id.index() - self.messages.len()]),
        }
    }
    /// Returns the duration that the computation at an index of [`MessageGraph::computes`] would have without
    /// stragglers: the amount of its work.
    pub fn nominal(&self, index: usize) -> Duration {
        self.nominal.get(index).copied().unwrap_or(self.computes[index].duration)
    }
    /// Returns the identifier of the computation at an index of [`MessageGraph::computes`].
    pub fn compute_id(&self, index: usize) -> TaskId {
        TaskId((self.messages.len() + index) as u32)
    }
    /// Returns the task's own earliest start.
    pub fn start(&self, id: TaskId) -> Time {
        match self.task(id) {
            Task::Message(message) => message.start,
            Task::Compute(compute) => compute.start,
        }
    }
    /// Returns the job that the task is part of.
    pub fn job(&self, id: TaskId) -> Option<JobId> {
        match self.task(id) {
            Task::Message(message) => message.job,
            Task::Compute(compute) => compute.job,
        }
    }
    /// Returns the job for which a task is reported: the whole, if its own job is a part of another one.
    pub fn parent_job(&self, id: TaskId) -> Option<JobId> {
        self.job(id).map(|job| self.jobs[job.index()].parent.unwrap_or(job))
    }
    /// Returns true if any task waits for another.
    pub fn has_dependencies(&self) -> bool {
        !self.edges.predecessors().is_empty()
    }
    /// Returns the number of edges.
    pub fn dependency_count(&self) -> usize {
        self.edges.len()
    }
    /// Returns the tasks that wait for this moment of the task.
    pub fn dependents(&self, id: TaskId, moment: Moment) -> &[TaskId] {
        self.edges.after(id, moment)
    }
    /// Returns the tasks that wait for any moment of the task.
    pub fn all_dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> + '_ {
        self.edges.all_dependents(id)
    }
    /// Returns the host at which a task begins; `None` for a barrier.
    pub fn begin_host(&self, id: TaskId) -> Option<HostId> {
        match self.task(id) {
            Task::Message(message) => Some(message.src),
            Task::Compute(compute) => compute.host,
        }
    }
    /// Returns the tasks that learn of this moment of a task, and how they learn. A task that waits for a
    /// delivery learns of it at the receiver at once, and at the sender with the completion. At a third host,
    /// it is notified by the host that observes the moment, delivery or completion. A computation has only
    /// [`Moment::Delivery`], its end.
    pub fn notified_tasks(&self, id: TaskId, moment: Moment) -> impl Iterator<Item = (TaskId, Notice)> + '_ {
        let folded = self.folding.is_some();
        let (knows, sender) = match (self.task(id), moment) {
            // In a folded graph, each edge names the moment that its task's own host observes.
            (Task::Message(message), Moment::Delivery) if folded => {
                (Some(self.representative(message.dst)), None)
            }
            (Task::Message(message), Moment::Delivery) => (Some(message.dst), Some(message.src)),
            (Task::Message(message), Moment::Completion) => (Some(message.src), None),
            (Task::Compute(compute), _) => (compute.host, None),
        };
        // First the tasks at the sender that wait for the delivery. Then the tasks that wait for this moment,
        // without those at the sender.
        let deliveries = match moment {
            Moment::Delivery => &[],
            Moment::Completion if folded => &[],
            Moment::Completion => self.dependents(id, Moment::Delivery),
        };
        let at_sender = deliveries.iter().filter(move |task| self.begin_host(**task) == knows);
        let rest = self.dependents(id, moment).iter();
        let rest = rest.filter(move |task| sender.is_none() || self.begin_host(**task) != sender);
        at_sender.chain(rest).map(move |&task| {
            let learns = match self.begin_host(task) {
                None => Notice::AsBarrier,
                home if home == knows => Notice::AtOnce,
                Some(host) => Notice::ByNotification(host),
            };
            (task, learns)
        })
    }
    /// Returns true if any task waits for a task of another host of which no message informs it, or for a
    /// barrier.
    pub fn needs_notifications(&self) -> bool {
        let tasks = (0..self.task_count() as u32).map(TaskId);
        let moments = [Moment::Delivery, Moment::Completion];
        let mut all =
            tasks.flat_map(|id| moments.into_iter().flat_map(move |moment| self.notified_tasks(id, moment)));
        self.has_dependencies() && all.any(|(_, learns)| matches!(learns, Notice::ByNotification(_)))
    }
    /// Returns the number of the task's predecessors.
    pub fn predecessors(&self, id: TaskId) -> u32 {
        self.edges.predecessors().get(id.index()).copied().unwrap_or(0)
    }
    /// Returns the number of predecessors that must end before this task begins. All of them, by default.
    pub fn needs(&self, id: TaskId) -> u32 {
        match self.needs.binary_search_by_key(&id, |&(task, _)| task) {
            Ok(found) => self.needs[found].1,
            Err(_) => self.predecessors(id),
        }
    }
    /// Returns the delay between the end of the last predecessor and the begin of this task.
    pub fn delay_after_deps(&self, id: TaskId) -> Duration {
        self.delays.get(id.index()).copied().unwrap_or(Duration::ZERO)
    }
    /// Returns the bytes that the graph takes on the heap.
    pub fn memory_bytes(&self) -> u64 {
        let tasks = size_of_val(&self.messages[..])
            + size_of_val(&self.computes[..])
            + size_of_val(&self.nominal[..]);
        let labels = size_of_val(&self.labels.of_task[..]) + size_of_val(&self.labels.all[..]);
        (tasks + size_of_val(&self.delays[..]) + labels + self.edges.memory_bytes()) as u64
    }
    /// Returns the payload of all messages, bytes.
    pub fn total_bytes(&self) -> u128 {
        self.total_bytes
    }
}
