//! Builder of a graph: groups, jobs, tasks and dependencies, declared in any order.

mod canonical;
mod labelling;
#[cfg(test)]
mod tests;

use pathweave_units::{Bytes, Duration, HostId, Time};

use self::labelling::Labelling;
use crate::counts::Counts;
use crate::edges::Edge;
use crate::error::GraphError;
use crate::fold::Folding;
use crate::graph::{
    BandwidthBytes, Compute, CoreId, Group, GroupId, Job, JobId, Label, MAX_MESSAGE_SIZE, Message, Moment,
    OWN, PROCESS_BITS, TrainingWork,
};
use crate::training_memory::TrainingMemory;

/// Largest number of tasks in a graph.
pub const MAX_TASKS: usize = 1 << 28;
/// Largest number of dependencies in a graph.
pub const MAX_DEPENDENCIES: usize = 1 << 28;
/// Things of which a graph has at most [`MAX_TASKS`].
pub(crate) const TASKS: &str = "messages and computations";
/// Things of which a graph has at most [`MAX_DEPENDENCIES`].
pub(crate) const DEPENDENCIES: &str = "dependencies";

/// Connection that carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The connection with this label (below 2^31) between the two hosts within the group.
    Shared(u32),
    /// A connection for this message alone.
    Own,
}

/// A message to declare. The fields are those of [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct NewMessage {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload, bytes.
    pub size: Bytes,
    /// Earliest start.
    pub start: Time,
    /// Group of the message.
    pub group: GroupId,
    /// Connection that carries the message.
    pub stream: Stream,
    /// Job that the message belongs to, if any.
    pub job: Option<JobId>,
}

/// A declared task. The value is valid for the builder that made it, not for the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Draft(u32);

/// Bit that marks drafts of computations.
const COMPUTE: u32 = 1 << 31;

impl Draft {
    const fn is_compute(self) -> bool {
        self.0 & COMPUTE != 0
    }
    /// Returns the index among all tasks. The first `messages` tasks are messages.
    const fn index(self, messages: u32) -> u32 {
        if self.is_compute() { messages + (self.0 & !COMPUTE) } else { self.0 }
    }
}

impl Stream {
    /// Returns the connection between process `src` of the sending host and process `dst` of the receiving
    /// host. Both are below 2^15.
    pub const fn between_processes(src: u16, dst: u16) -> Self {
        Stream::Shared((src as u32) << PROCESS_BITS | dst as u32)
    }
}

/// Collects groups, jobs, tasks and dependencies. [`GraphBuilder::finish`] makes the graph.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    hosts: u32,
    groups: Vec<Group>,
    jobs: Vec<Job>,
    messages: Vec<Message>,
    computes: Vec<Compute>,
    /// Nominal durations of the first computations. Those of the others are nominal.
    nominal: Vec<Duration>,
    cores: u32,
    edges: Vec<Edge>,
    needs: Vec<(Draft, u32)>,
    delays: Vec<(Draft, Duration)>,
    /// Number of workloads that have used each group.
    workloads_of_group: Vec<u64>,
    notes: Vec<String>,
    /// Names of tasks, for error messages.
    names: Vec<(Draft, String)>,
    labelling: Labelling,
    folding: Option<Folding>,
    memory: Vec<(String, TrainingMemory)>,
}

impl GraphBuilder {
    /// Makes an empty graph on hosts `0..hosts`.
    pub fn new(hosts: u32) -> Self {
        GraphBuilder {
            hosts,
            groups: Vec::new(),
            jobs: Vec::new(),
            messages: Vec::new(),
            computes: Vec::new(),
            nominal: Vec::new(),
            cores: 0,
            edges: Vec::new(),
            needs: Vec::new(),
            delays: Vec::new(),
            workloads_of_group: Vec::new(),
            notes: Vec::new(),
            names: Vec::new(),
            labelling: Labelling::default(),
            folding: None,
            memory: Vec::new(),
        }
    }
    /// Returns the group of this name. Declares it if it does not exist.
    pub fn group(&mut self, name: &str, scheme: Option<&str>) -> Result<GroupId, GraphError> {
        if let Some(i) = self.groups.iter().position(|g| g.name == name) {
            if self.groups[i].scheme.as_deref() != scheme {
                let show = |s: Option<&str>| s.map_or("the default".to_owned(), |s| format!("\"{s}\""));
                return Err(GraphError::TwoSchemes {
                    name: name.to_owned(),
                    first: show(self.groups[i].scheme.as_deref()),
                    second: show(scheme),
                });
            }
            return Ok(GroupId(i as u16));
        }
        check_room("groups", self.groups.len(), 1 << 16)?;
        self.groups.push(Group { name: name.to_owned(), scheme: scheme.map(str::to_owned) });
        Ok(GroupId((self.groups.len() - 1) as u16))
    }
    /// Declares a job.
    pub fn job(&mut self, name: String, group: GroupId) -> Result<JobId, GraphError> {
        check_room("jobs", self.jobs.len(), MAX_TASKS)?;
        self.jobs.push(Job { name, group, measure: None, follows: None, parent: None, training: None });
        Ok(JobId((self.jobs.len() - 1) as u32))
    }
    /// Marks a job as a collective whose bandwidth is reported.
    pub fn measure(&mut self, job: JobId, measure: BandwidthBytes) {
        self.jobs[job.index()].measure = Some(measure);
    }
    /// Marks a job as an iteration of training.
    pub(crate) fn training(&mut self, job: JobId, work: TrainingWork) {
        self.jobs[job.index()].training = Some(work);
    }
    /// Records the memory that training needs on its GPUs.
    pub(crate) fn memory(&mut self, group: &str, memory: TrainingMemory) {
        self.memory.push((group.to_owned(), memory));
    }
    /// Marks a job as the iteration or round after `before`, of the same ranks.
    pub fn follows(&mut self, job: JobId, before: JobId) {
        self.jobs[job.index()].follows = Some(before);
    }
    /// Marks a job as a part of `whole`. The whole is itself part of no job.
    pub fn is_part_of(&mut self, job: JobId, whole: JobId) {
        self.jobs[job.index()].parent = Some(whole);
    }
    /// Declares a message.
    pub fn message(&mut self, new: NewMessage) -> Result<Draft, GraphError> {
        self.check_host(new.src)?;
        self.check_host(new.dst)?;
        if new.src == new.dst {
            return Err(GraphError::ToItself { host: new.src });
        }
        if new.size == Bytes::ZERO || new.size > MAX_MESSAGE_SIZE {
            return Err(GraphError::Size { src: new.src, dst: new.dst, size: new.size.get() });
        }
        check_room(TASKS, self.messages.len() + self.computes.len(), MAX_TASKS)?;
        let stream = match new.stream {
            Stream::Own => OWN,
            Stream::Shared(label) if label < OWN => label,
            Stream::Shared(_) => {
                return Err(GraphError::TooMany { what: "streams of two hosts", limit: OWN as usize });
            }
        };
        self.labelling.declare(false, self.messages.len());
        let NewMessage { src, dst, size, start, group, job, .. } = new;
        self.messages.push(Message { src, dst, size, start, group, stream, job });
        Ok(Draft((self.messages.len() - 1) as u32))
    }
    /// Declares a computation.
    pub fn compute(&mut self, compute: Compute) -> Result<Draft, GraphError> {
        let place = self.computes.len();
        let task = self.unlabelled_compute(compute)?;
        self.labelling.declare(true, place);
        Ok(task)
    }
    /// Sets the duration that the computation declared last would have without stragglers.
    pub(crate) fn nominal(&mut self, nominal: Duration) {
        if self.computes.last().is_some_and(|last| last.duration != nominal) {
            self.know_nominal();
            self.nominal.pop();
            self.nominal.push(nominal);
        }
    }
    /// Notes the nominal durations of all computations so far.
    fn know_nominal(&mut self) {
        let known = self.nominal.len();
        self.nominal.extend(self.computes[known..].iter().map(|compute| compute.duration));
    }
    /// Declares a computation without the label of the tasks around it.
    pub(crate) fn unlabelled_compute(&mut self, compute: Compute) -> Result<Draft, GraphError> {
        if let Some(host) = compute.host {
            self.check_host(host)?;
        }
        check_room(TASKS, self.messages.len() + self.computes.len(), MAX_TASKS)?;
        self.computes.push(compute);
        Ok(Draft((self.computes.len() - 1) as u32 | COMPUTE))
    }
    /// Declares a core, for computations of one host.
    pub fn core(&mut self) -> Result<CoreId, GraphError> {
        check_room("cores", self.cores as usize, MAX_TASKS)?;
        self.cores += 1;
        Ok(CoreId(self.cores - 1))
    }
    /// Sets the label of all tasks declared from now on; `None` removes it. A label describes a task in
    /// results and does not change its behaviour. A graph distinguishes 4,194,304 labels; tasks with further
    /// labels have none.
    pub fn label(&mut self, label: Option<Label>) {
        self.labelling.set(label);
    }
    /// Sets the name of `task` in error messages.
    pub fn name(&mut self, task: Draft, name: &str) {
        self.names.push((task, name.to_owned()));
    }
    /// Makes `task` wait for `predecessor`. If the predecessor is a message, the task waits for its delivery.
    pub fn after(&mut self, task: Draft, predecessor: Draft) -> Result<(), GraphError> {
        self.after_moment(task, predecessor, Moment::Delivery)
    }
    /// Makes `task` wait for the given moment of `predecessor`.
    pub fn after_moment(
        &mut self,
        task: Draft,
        predecessor: Draft,
        moment: Moment,
    ) -> Result<(), GraphError> {
        check_room(DEPENDENCIES, self.edges.len(), MAX_DEPENDENCIES)?;
        let moment = if predecessor.is_compute() { Moment::Delivery } else { moment };
        self.edges.push(Edge::new(predecessor.0, task.0, moment));
        Ok(())
    }
    /// Lets `task` begin once `needs` of its predecessors have ended (at least 1). If it has no more
    /// predecessors than that, it waits for all of them.
    pub fn needs(&mut self, task: Draft, needs: u32) {
        self.needs.push((task, needs.max(1)));
    }
    /// Makes `task` begin this long after its last predecessor, or after its own start if it has none. Delays
    /// of several calls add up.
    pub fn delay(&mut self, task: Draft, delay: Duration) {
        if delay > Duration::ZERO {
            self.delays.push((task, delay));
        }
    }
    /// Declares that each host with tasks represents other hosts as well.
    pub(crate) fn fold(&mut self, folding: Folding) {
        self.folding = Some(folding);
    }
    /// Returns how many workloads have used the group before, and counts this call as one more.
    pub(crate) fn next_workload_index(&mut self, group: GroupId) -> u64 {
        self.workloads_of_group.resize(self.groups.len(), 0);
        self.workloads_of_group[group.index()] += 1;
        self.workloads_of_group[group.index()] - 1
    }
    /// Reserves memory for `counts`. Growth by doubling would need up to three times as much for a moment.
    pub(crate) fn reserve(&mut self, counts: Counts) {
        let room = |count: u64, limit: usize| usize::try_from(count).unwrap_or(limit).min(limit);
        self.messages.reserve_exact(room(counts.messages, MAX_TASKS));
        self.computes.reserve_exact(room(counts.computations, MAX_TASKS));
        self.edges.reserve_exact(room(counts.dependencies, MAX_DEPENDENCIES));
    }
    /// Adds a note for the user that is not an error.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
    /// Returns the notes for the user: assumptions made, input not used.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Returns the number of tasks declared so far.
    pub fn task_count(&self) -> usize {
        self.messages.len() + self.computes.len()
    }

    fn check_host(&self, host: HostId) -> Result<(), GraphError> {
        if host.0 < self.hosts { Ok(()) } else { Err(GraphError::NoSuchHost { host, hosts: self.hosts }) }
    }
}

fn check_room(what: &'static str, count: usize, limit: usize) -> Result<(), GraphError> {
    if count < limit { Ok(()) } else { Err(GraphError::TooMany { what, limit }) }
}
