//! Declares groups, jobs, tasks and dependencies in any order.

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
    Compute, CoreId, Group, GroupId, Job, JobId, Label, MAX_MESSAGE_SIZE, Measure, Message, Moment, OWN,
    PROCESS_BITS,
};

/// Tasks a graph may have.
pub const MAX_TASKS: usize = 1 << 28;
/// Dependencies a graph may have.
pub const MAX_DEPENDENCIES: usize = 1 << 28;

/// Which connection carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The one with this label (below 2^31) between the two hosts within the group.
    Shared(u32),
    /// One of its own.
    Own,
}

/// A message to declare; fields as in [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct NewMessage {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// Payload.
    pub size: Bytes,
    /// Earliest start.
    pub start: Time,
    /// The group.
    pub group: GroupId,
    /// The connection.
    pub stream: Stream,
    /// The job.
    pub job: Option<JobId>,
}

/// A declared task. Valid for the builder that made it, not for the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Draft(u32);

/// Bit of drafts of computations.
const COMPUTE: u32 = 1 << 31;

impl Draft {
    const fn is_compute(self) -> bool {
        self.0 & COMPUTE != 0
    }
    /// Its index among all tasks, of which the first `messages` are messages.
    const fn index(self, messages: u32) -> u32 {
        if self.is_compute() { messages + (self.0 & !COMPUTE) } else { self.0 }
    }
}

impl Stream {
    /// The one between these processes of the two hosts, each below 2^15.
    pub const fn between_processes(src: u16, dst: u16) -> Self {
        Stream::Shared((src as u32) << PROCESS_BITS | dst as u32)
    }
}

/// Collects tasks and dependencies; [`GraphBuilder::finish`] makes the graph.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    hosts: u32,
    groups: Vec<Group>,
    jobs: Vec<Job>,
    messages: Vec<Message>,
    computes: Vec<Compute>,
    cores: u32,
    edges: Vec<Edge>,
    needs: Vec<(Draft, u32)>,
    delays: Vec<(Draft, Duration)>,
    /// How many workloads have used each group.
    uses: Vec<u64>,
    notes: Vec<String>,
    /// Names of tasks, for error messages.
    names: Vec<(Draft, String)>,
    labelling: Labelling,
    folding: Option<Folding>,
}

impl GraphBuilder {
    /// An empty graph on hosts `0..hosts`.
    pub fn new(hosts: u32) -> Self {
        GraphBuilder {
            hosts,
            groups: Vec::new(),
            jobs: Vec::new(),
            messages: Vec::new(),
            computes: Vec::new(),
            cores: 0,
            edges: Vec::new(),
            needs: Vec::new(),
            delays: Vec::new(),
            uses: Vec::new(),
            notes: Vec::new(),
            names: Vec::new(),
            labelling: Labelling::default(),
            folding: None,
        }
    }
    /// The group of this name, declared now unless it was before.
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
    /// A new job.
    pub fn job(&mut self, name: String, group: GroupId) -> Result<JobId, GraphError> {
        check_room("jobs", self.jobs.len(), MAX_TASKS)?;
        self.jobs.push(Job { name, group, measure: None, follows: None, part_of: None });
        Ok(JobId((self.jobs.len() - 1) as u32))
    }
    /// A job is a collective, of which bandwidth is reported.
    pub fn measure(&mut self, job: JobId, measure: Measure) {
        self.jobs[job.index()].measure = Some(measure);
    }
    /// A job is the iteration or round after another one, of the same ranks.
    pub fn follows(&mut self, job: JobId, before: JobId) {
        self.jobs[job.index()].follows = Some(before);
    }
    /// A job is a part of another one, which is a part of none.
    pub fn is_part_of(&mut self, job: JobId, whole: JobId) {
        self.jobs[job.index()].part_of = Some(whole);
    }
    /// A new message.
    pub fn message(&mut self, new: NewMessage) -> Result<Draft, GraphError> {
        self.check_host(new.src)?;
        self.check_host(new.dst)?;
        if new.src == new.dst {
            return Err(GraphError::ToItself { host: new.src });
        }
        if new.size == Bytes::ZERO || new.size > MAX_MESSAGE_SIZE {
            return Err(GraphError::Size { src: new.src, dst: new.dst, size: new.size.get() });
        }
        check_room("messages and computations", self.messages.len() + self.computes.len(), MAX_TASKS)?;
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
    /// A new computation.
    pub fn compute(&mut self, compute: Compute) -> Result<Draft, GraphError> {
        if let Some(host) = compute.host {
            self.check_host(host)?;
        }
        check_room("messages and computations", self.messages.len() + self.computes.len(), MAX_TASKS)?;
        self.labelling.declare(true, self.computes.len());
        self.computes.push(compute);
        Ok(Draft((self.computes.len() - 1) as u32 | COMPUTE))
    }
    /// A new core, for computations of one host.
    pub fn core(&mut self) -> Result<CoreId, GraphError> {
        check_room("cores", self.cores as usize, MAX_TASKS)?;
        self.cores += 1;
        Ok(CoreId(self.cores - 1))
    }
    /// Tasks declared from now on have this label; with `None` they have none. A label says what a task does and changes
    /// nothing in it; results show it. A graph tells 4,194,304 labels apart; tasks of further ones have none.
    pub fn label(&mut self, label: Option<Label>) {
        self.labelling.set(label);
    }
    /// Errors about `task` call it by this name.
    pub fn name(&mut self, task: Draft, name: &str) {
        self.names.push((task, name.to_owned()));
    }
    /// `task` waits for `predecessor`: for its delivery, if it is a message.
    pub fn after(&mut self, task: Draft, predecessor: Draft) -> Result<(), GraphError> {
        self.after_moment(task, predecessor, Moment::Delivery)
    }
    /// `task` waits for this moment of `predecessor`.
    pub fn after_moment(
        &mut self,
        task: Draft,
        predecessor: Draft,
        moment: Moment,
    ) -> Result<(), GraphError> {
        check_room("dependencies", self.edges.len(), MAX_DEPENDENCIES)?;
        let moment = if predecessor.is_compute() { Moment::Delivery } else { moment };
        self.edges.push(Edge::new(predecessor.0, task.0, moment));
        Ok(())
    }
    /// `task` begins when so many of those it waits for are over, 1 or more: with as many as there are, or more, when all
    /// are.
    pub fn needs(&mut self, task: Draft, needs: u32) {
        self.needs.push((task, needs.max(1)));
    }
    /// `task` begins this long after its last predecessor, or after its own start if it has none. Adds up
    /// when called again.
    pub fn delay(&mut self, task: Draft, delay: Duration) {
        if delay > Duration::ZERO {
            self.delays.push((task, delay));
        }
    }
    /// The hosts of all tasks stand for others.
    pub(crate) fn fold(&mut self, folding: Folding) {
        self.folding = Some(folding);
    }
    /// How many workloads have used the group before, counting this call as one more.
    pub(crate) fn next_use(&mut self, group: GroupId) -> u64 {
        self.uses.resize(self.groups.len(), 0);
        self.uses[group.index()] += 1;
        self.uses[group.index()] - 1
    }
    /// Makes room for what is to come: growing by doubling would take up to three times as much for a moment.
    pub(crate) fn reserve(&mut self, counts: Counts) {
        let room = |count: u64, limit: usize| usize::try_from(count).unwrap_or(limit).min(limit);
        self.messages.reserve_exact(room(counts.messages, MAX_TASKS));
        self.computes.reserve_exact(room(counts.computations, MAX_TASKS));
        self.edges.reserve_exact(room(counts.dependencies, MAX_DEPENDENCIES));
    }
    /// Something the user should know and that is not an error.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }
    /// What the user should know: assumptions made, input not used.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Tasks declared so far.
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
