//! Conversion of a graph to a Chakra trace: computations, sends, receives and collectives of each rank.
//!
//! Rank r is host r. A message becomes a send and a receive. A start or a delay becomes a computation before
//! the task. A collective is written as one node per rank if its messages are those of an algorithm over its
//! ranks, and each rank takes part in it as a whole ([`collectives`]). Any other collective is written
//! message by message.

mod collectives;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Time};

use self::collectives::CollectiveNode;
use crate::builder::Stream;
use crate::expand::{in_order, lost_beside_jobs, predecessors};
use crate::files::{ChakraAction, ChakraGroup, ChakraNode, ChakraOperation, ChakraRanks};
use crate::graph::{MessageGraph, Moment, OWN, Task, TaskId};

/// A trace, and the information about the graph that the trace lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChakraTrace {
    /// Nodes of each rank.
    pub ranks: Vec<Vec<ChakraNode>>,
    /// Ranks of each process group, by its name.
    pub groups: BTreeMap<String, Vec<u32>>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Information about the graph that the trace lacks.
    pub lost: Vec<String>,
}

/// A node: its rank, and its index among the nodes of the rank.
type NodeRef = (u32, usize);

/// Nodes of the trace that represent a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskNodes {
    /// The task has no node yet, or none of its own.
    Nothing,
    /// A computation, or the receive of a message that a computation of zero duration waits for.
    Node(NodeRef),
    /// A message.
    Message { send: NodeRef, receive: NodeRef },
    /// A part of the collective with this index.
    Collective(usize),
}

struct Writer<'a> {
    graph: &'a MessageGraph,
    before: Vec<Vec<(TaskId, Moment)>>,
    wholes: Vec<CollectiveNode>,
    written: Vec<TaskNodes>,
    nodes: Vec<Vec<Node>>,
    /// Number of messages so far for each pair of ranks.
    tags: BTreeMap<(u32, u32), i64>,
    /// Computation that ends at an instant, by rank and instant.
    starts: BTreeMap<(u32, Time), usize>,
}

/// A node and its predecessors within the rank.
struct Node {
    name: String,
    act: ChakraAction,
    deps: Vec<usize>,
}

/// Converts the graph to a trace.
///
/// # Errors
///
/// Returns the reason if a task waits for a task of another host without a message between them, or if a task
/// needs only some of its predecessors.
pub fn to_chakra(graph: &MessageGraph) -> Result<ChakraTrace, String> {
    let order = in_order(graph);
    let before = predecessors(graph);
    let ranks = ranks(graph)?;
    let mut lost = lost_beside_jobs(graph, &order, &before);
    let (wholes, notes) = collectives::find(graph, &before);
    let jobs = graph.jobs().len();
    if jobs > 1 && wholes.is_empty() {
        lost.push(format!("which of {jobs} jobs a message belongs to"));
    }
    let mut writer = Writer {
        graph,
        before,
        wholes,
        written: vec![TaskNodes::Nothing; graph.task_count()],
        nodes: (0..ranks).map(|_| Vec::new()).collect(),
        tags: BTreeMap::new(),
        starts: BTreeMap::new(),
    };
    let groups = writer.group_names();
    writer.declare(&order, &groups)?;
    for &id in &order {
        writer.connect(id)?;
    }
    Ok(ChakraTrace { notes, lost, ..writer.finish(groups) })
}

/// Returns the number of ranks of the trace: up to the last host that has a task.
fn ranks(graph: &MessageGraph) -> Result<u32, String> {
    let of_messages = graph.messages().iter().flat_map(|message| [message.src, message.dst]);
    let of_computes = graph.computes().iter().filter_map(|compute| compute.host);
    let last = of_messages.chain(of_computes).max().ok_or("it has no messages and no computations")?;
    Ok(last.0 + 1)
}

impl Writer<'_> {
    /// Makes the nodes of all tasks in this order, without dependencies.
    fn declare(&mut self, order: &[TaskId], groups: &BTreeMap<Vec<u32>, String>) -> Result<(), String> {
        let mut collective_of = vec![None; self.graph.task_count()];
        for (number, whole) in self.wholes.iter().enumerate() {
            whole
                .messages
                .iter()
                .chain(&whole.merged)
                .for_each(|task| collective_of[task.index()] = Some(number));
        }
        for &id in order {
            if self.graph.needs(id) != self.graph.predecessors(id) {
                let (needs, all) = (self.graph.needs(id), self.graph.predecessors(id));
                return Err(format!(
                    "a task begins with {needs} of the {all} it waits for; a node of Chakra waits for all"
                ));
            }
            if self.written[id.index()] != TaskNodes::Nothing {
                continue;
            }
            match collective_of[id.index()] {
                Some(number) => self.declare_collective(number, groups),
                None if id.index() < self.graph.messages().len() => self.declare_message(id),
                None => self.declare_compute(id)?,
            }
        }
        Ok(())
    }

    fn declare_collective(&mut self, number: usize, groups: &BTreeMap<Vec<u32>, String>) {
        let whole = &self.wholes[number];
        let among = match groups.get(&whole.members) {
            Some(name) => ChakraRanks::Group(name.clone()),
            None => ChakraRanks::All,
        };
        let act = ChakraAction::Collective {
            operation: ChakraOperation::Algorithm(whole.operation),
            bytes: whole.bytes,
            ranks: among,
            connection: Some(whole.connection),
        };
        let name = self.name(whole.messages[0]);
        let places = whole.members.iter().map(|&rank| {
            let nodes = &mut self.nodes[rank as usize];
            nodes.push(Node { name: name.clone(), act: act.clone(), deps: Vec::new() });
            (rank, nodes.len() - 1)
        });
        let at: BTreeMap<u32, usize> = places.collect();
        let whole = &mut self.wholes[number];
        whole.at = at;
        // The collective's node also represents the computations of zero duration with which a rank begins
        // and ends its part.
        for &merged in &whole.merged {
            let rank = self.graph.begin_host(merged).expect("a computation at a host").0;
            self.written[merged.index()] = TaskNodes::Node(whole.place(rank));
        }
        for message in &whole.messages {
            self.written[message.index()] = TaskNodes::Collective(number);
        }
    }

    fn declare_message(&mut self, id: TaskId) {
        let message = self.graph.messages()[id.index()];
        let (src, dst) = (message.src.0, message.dst.0);
        let tag = self.tags.entry((src, dst)).or_default();
        let (bytes, own_tag) = (message.size.get(), *tag);
        *tag += 1;
        let connection = match message.stream {
            0 => None,
            stream if stream & OWN != 0 => Some(Stream::Own),
            stream => Some(Stream::Shared(stream)),
        };
        let name = self.name(id);
        let send =
            self.push(src, name.clone(), ChakraAction::Send { to: dst, bytes, tag: own_tag, connection });
        let receive = self.push(dst, name, ChakraAction::Receive { from: src, bytes, tag: own_tag });
        self.written[id.index()] = TaskNodes::Message { send, receive };
    }

    fn declare_compute(&mut self, id: TaskId) -> Result<(), String> {
        let compute = self.graph.computes()[id.index() - self.graph.messages().len()];
        let Some(HostId(host)) = compute.host else {
            return Err("tasks of several hosts wait for each other without messages".to_owned());
        };
        if let Some(receive) = self.receive_of(id, host) {
            let (rank, place) = receive;
            self.nodes[rank as usize][place].name = self.name(id);
            self.written[id.index()] = TaskNodes::Node(receive);
            return Ok(());
        }
        let act = ChakraAction::Compute { duration: compute.duration, operations: 0 };
        self.written[id.index()] = TaskNodes::Node(self.push(host, self.name(id), act));
        Ok(())
    }

    /// Returns the receive that a computation of zero duration represents. The computation waits for one
    /// message to this host. If it waits for more tasks, no other task here may wait for the message.
    fn receive_of(&self, id: TaskId, host: u32) -> Option<NodeRef> {
        let compute = self.graph.computes()[id.index() - self.graph.messages().len()];
        if compute.duration > Duration::ZERO || self.graph.delay_after_deps(id) > Duration::ZERO {
            return None;
        }
        let before = &self.before[id.index()];
        let mut received = before.iter().filter_map(|&(on, moment)| match self.written[on.index()] {
            TaskNodes::Message { receive, .. } if receive.0 == host && moment == Moment::Delivery => {
                Some((on, receive))
            }
            _ => None,
        });
        let (message, receive) = received.next()?;
        if received.next().is_some() || compute.start > self.graph.start(message) {
            return None;
        }
        let home = Some(HostId(host));
        let is_only = || {
            self.graph.all_dependents(message).all(|next| next == id || self.graph.begin_host(next) != home)
        };
        (before.len() == 1 || is_only()).then_some(receive)
    }

    fn push(&mut self, rank: u32, name: String, act: ChakraAction) -> NodeRef {
        let nodes = &mut self.nodes[rank as usize];
        nodes.push(Node { name, act, deps: Vec::new() });
        (rank, nodes.len() - 1)
    }

    /// Returns the name of a task in terms of its workload, without words that the type of its node states
    /// already.
    fn name(&self, id: TaskId) -> String {
        let Some(label) = self.graph.label(id) else { return "message".to_owned() };
        let label = &self.graph.labels()[label as usize];
        let is_told = matches!(&*label.activity, "compute" | "metadata" | "send" | "receive");
        match &label.part {
            Some(part) if is_told || label.collective.is_some() => part.clone(),
            Some(part) => format!("{} {part}", label.activity),
            None => label.activity.clone(),
        }
    }

    /// Adds the dependencies of a task's node.
    fn connect(&mut self, id: TaskId) -> Result<(), String> {
        let own = match self.written[id.index()] {
            TaskNodes::Nothing => return Ok(()),
            TaskNodes::Node(at) => at,
            TaskNodes::Message { send, .. } => send,
            TaskNodes::Collective(number) => {
                let src = self.graph.messages()[id.index()].src.0;
                self.wholes[number].place(src)
            }
        };
        let mut deps = Vec::new();
        let before = std::mem::take(&mut self.before[id.index()]);
        let mut starts_with_another = false;
        for &(on, moment) in &before {
            let at = self.known_at(on, moment, own.0)?;
            starts_with_another |= self.graph.start(on) >= self.graph.start(id);
            if at != own {
                deps.push(at.1);
            }
        }
        let delay = self.graph.delay_after_deps(id);
        if delay > Duration::ZERO {
            deps = vec![self.wait(own.0, delay, deps)];
        }
        let start = self.graph.start(id);
        if start > Time::ZERO && !starts_with_another {
            deps.push(self.until(own.0, start));
        }
        self.nodes[own.0 as usize][own.1].deps.extend(deps);
        Ok(())
    }

    /// Returns the node of a rank that ends when the rank learns of this moment of a task.
    fn known_at(&self, on: TaskId, moment: Moment, rank: u32) -> Result<NodeRef, String> {
        let found = match self.written[on.index()] {
            TaskNodes::Node(at) if at.0 == rank => Some(at),
            TaskNodes::Message { receive, .. } if receive.0 == rank && moment == Moment::Delivery => {
                Some(receive)
            }
            TaskNodes::Message { send, .. } if send.0 == rank => Some(send),
            TaskNodes::Collective(number) => Some(self.wholes[number].place(rank)),
            TaskNodes::Message { .. } | TaskNodes::Node(_) | TaskNodes::Nothing => None,
        };
        found.ok_or_else(|| {
            let other = match self.graph.task(on) {
                Task::Message(message) => {
                    format!("a message from {} to {}", message.src.0, message.dst.0)
                }
                Task::Compute(_) => "a computation elsewhere".to_owned(),
            };
            format!(
                "a task of host {rank} waits for {other}; a node of Chakra waits for nodes of its own rank"
            )
        })
    }

    /// Returns a computation that ends at this instant. Makes it if there is none.
    fn until(&mut self, rank: u32, instant: Time) -> usize {
        if let Some(&known) = self.starts.get(&(rank, instant)) {
            return known;
        }
        let at = self.wait(rank, instant - Time::ZERO, Vec::new());
        self.starts.insert((rank, instant), at);
        at
    }

    /// Makes a computation that only lets time pass.
    fn wait(&mut self, rank: u32, duration: Duration, deps: Vec<usize>) -> usize {
        let (_, at) = self.push(rank, "wait".to_owned(), ChakraAction::Compute { duration, operations: 0 });
        self.nodes[rank as usize][at].deps = deps;
        at
    }

    /// Returns the names of the collectives' groups. A group of all ranks has no name. ASTRA-sim requires
    /// numbers, and uses 0 for the group of all ranks.
    fn group_names(&self) -> BTreeMap<Vec<u32>, String> {
        let all: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let mut names = BTreeMap::new();
        for whole in &self.wholes {
            let next = names.len() + 1;
            if whole.members != all {
                names.entry(whole.members.clone()).or_insert_with(|| next.to_string());
            }
        }
        names
    }

    /// Returns the trace, without notes.
    fn finish(self, names: BTreeMap<Vec<u32>, String>) -> ChakraTrace {
        let groups: BTreeMap<String, Vec<u32>> =
            names.into_iter().map(|(members, name)| (name, members)).collect();
        let mut by_rank: Vec<Vec<ChakraGroup>> = vec![Vec::new(); self.nodes.len()];
        for (name, ranks) in &groups {
            let size = Some(ranks.len() as u32);
            let group = ChakraGroup { name: name.clone(), ranks: ranks.clone(), size };
            ranks.iter().for_each(|&rank| by_rank[rank as usize].push(group.clone()));
        }
        let ranks =
            self.nodes.into_iter().zip(by_rank).map(|(nodes, groups)| number(nodes, groups)).collect();
        ChakraTrace { ranks, groups, ..ChakraTrace::default() }
    }
}

/// Gives identifiers to nodes: 0 for the node of groups, which comes first, then by position.
fn number(nodes: Vec<Node>, groups: Vec<ChakraGroup>) -> Vec<ChakraNode> {
    let mut written = Vec::with_capacity(nodes.len() + 1);
    let name = "## process_group:init ##".to_owned();
    if !groups.is_empty() {
        written.push(ChakraNode {
            record: 0,
            id: 0,
            name,
            action: ChakraAction::Groups(groups),
            deps: Vec::new(),
        });
    }
    for (place, Node { name, act, deps }) in nodes.into_iter().enumerate() {
        let mut deps: Vec<u64> = deps.into_iter().map(|dep| dep as u64 + 1).collect();
        deps.sort_unstable();
        deps.dedup();
        written.push(ChakraNode { record: 0, id: place as u64 + 1, name, action: act, deps });
    }
    for (record, node) in (1..).zip(&mut written) {
        node.record = record;
    }
    written
}
