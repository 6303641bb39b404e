//! A graph of messages as a trace of Chakra: what each rank computes, sends, receives and takes part in.
//!
//! Rank r is host r. A message is a send and a receive. A start or a delay is a computation before what begins then. A
//! collective is written as one where its messages are those of an algorithm over its ranks and where each rank takes part in it as
//! a whole ([`collectives`]); any other is written message by message.

mod collectives;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Time};

use self::collectives::Whole;
use crate::builder::Stream;
use crate::expand::{in_order, lost_beside_jobs, predecessors};
use crate::files::{ChakraAct, ChakraAmong, ChakraGroup, ChakraNode, ChakraOperation};
use crate::graph::{MessageGraph, Moment, OWN, Task, TaskId};

/// A trace, and what the graph has that is not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChakraTrace {
    /// The nodes of each rank.
    pub ranks: Vec<Vec<ChakraNode>>,
    /// Ranks by the name of their process group.
    pub groups: BTreeMap<String, Vec<u32>>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Parts of the graph that are not in the trace.
    pub lost: Vec<String>,
}

/// A node by rank, and its place among those of the rank.
type At = (u32, usize);

/// The place of a task in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// Nothing yet, or nothing of its own.
    Nothing,
    /// A computation, or the receive of a message that a computation of no time waits for.
    Node(At),
    /// A message.
    Message { send: At, receive: At },
    /// A part of this collective.
    Collective(usize),
}

struct Writer<'a> {
    graph: &'a MessageGraph,
    before: Vec<Vec<(TaskId, Moment)>>,
    wholes: Vec<Whole>,
    written: Vec<Written>,
    nodes: Vec<Vec<Node>>,
    /// By pair of ranks, messages so far.
    tags: BTreeMap<(u32, u32), i64>,
    /// By rank and instant, the computation that ends then.
    starts: BTreeMap<(u32, Time), usize>,
}

/// A node and the nodes of its rank that it waits for.
struct Node {
    name: String,
    act: ChakraAct,
    deps: Vec<usize>,
}

/// The graph as a trace. Refused, with the reason: tasks that wait for tasks of other hosts without a message, or for some of
/// several.
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
        written: vec![Written::Nothing; graph.task_count()],
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

/// Ranks of the trace: up to the last host that does anything.
fn ranks(graph: &MessageGraph) -> Result<u32, String> {
    let of_messages = graph.messages().iter().flat_map(|message| [message.src, message.dst]);
    let of_computes = graph.computes().iter().filter_map(|compute| compute.host);
    let last = of_messages.chain(of_computes).max().ok_or("it has no messages and no computations")?;
    Ok(last.0 + 1)
}

impl Writer<'_> {
    /// Nodes of all tasks in this order, without what they wait for.
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
            if self.written[id.index()] != Written::Nothing {
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
            Some(name) => ChakraAmong::Group(name.clone()),
            None => ChakraAmong::All,
        };
        let act = ChakraAct::Collective {
            operation: ChakraOperation::Algorithm(whole.operation),
            bytes: whole.bytes,
            among,
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
        // Whoever begins and ends a part of it with a computation of no time has that as the node.
        for &merged in &whole.merged {
            let rank = self.graph.home(merged).expect("a computation at a host").0;
            self.written[merged.index()] = Written::Node(whole.place(rank));
        }
        for message in &whole.messages {
            self.written[message.index()] = Written::Collective(number);
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
        let send = self.push(src, name.clone(), ChakraAct::Send { to: dst, bytes, tag: own_tag, connection });
        let receive = self.push(dst, name, ChakraAct::Receive { from: src, bytes, tag: own_tag });
        self.written[id.index()] = Written::Message { send, receive };
    }

    fn declare_compute(&mut self, id: TaskId) -> Result<(), String> {
        let compute = self.graph.computes()[id.index() - self.graph.messages().len()];
        let Some(HostId(host)) = compute.host else {
            return Err("tasks of several hosts wait for each other without messages".to_owned());
        };
        if let Some(receive) = self.receive_of(id, host) {
            let (rank, place) = receive;
            self.nodes[rank as usize][place].name = self.name(id);
            self.written[id.index()] = Written::Node(receive);
            return Ok(());
        }
        let act = ChakraAct::Compute { duration: compute.duration, operations: 0 };
        self.written[id.index()] = Written::Node(self.push(host, self.name(id), act));
        Ok(())
    }

    /// The receive that a computation of no time is: it waits for one message to this host, and if for more, then nothing else here
    /// waits for the message.
    fn receive_of(&self, id: TaskId, host: u32) -> Option<At> {
        let compute = self.graph.computes()[id.index() - self.graph.messages().len()];
        if compute.duration > Duration::ZERO || self.graph.delay_after_deps(id) > Duration::ZERO {
            return None;
        }
        let before = &self.before[id.index()];
        let mut received = before.iter().filter_map(|&(on, moment)| match self.written[on.index()] {
            Written::Message { receive, .. } if receive.0 == host && moment == Moment::Delivery => {
                Some((on, receive))
            }
            _ => None,
        });
        let (message, receive) = received.next()?;
        if received.next().is_some() || compute.start > self.graph.start(message) {
            return None;
        }
        let home = Some(HostId(host));
        let is_only =
            || self.graph.all_dependents(message).all(|next| next == id || self.graph.home(next) != home);
        (before.len() == 1 || is_only()).then_some(receive)
    }

    fn push(&mut self, rank: u32, name: String, act: ChakraAct) -> At {
        let nodes = &mut self.nodes[rank as usize];
        nodes.push(Node { name, act, deps: Vec::new() });
        (rank, nodes.len() - 1)
    }

    /// The name of a task in the words of its workload, without what the type of its node says.
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

    /// Adds what the node of a task waits for.
    fn connect(&mut self, id: TaskId) -> Result<(), String> {
        let own = match self.written[id.index()] {
            Written::Nothing => return Ok(()),
            Written::Node(at) => at,
            Written::Message { send, .. } => send,
            Written::Collective(number) => {
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

    /// The node of a rank that is over when it knows of this moment of a task.
    fn known_at(&self, on: TaskId, moment: Moment, rank: u32) -> Result<At, String> {
        let found = match self.written[on.index()] {
            Written::Node(at) if at.0 == rank => Some(at),
            Written::Message { receive, .. } if receive.0 == rank && moment == Moment::Delivery => {
                Some(receive)
            }
            Written::Message { send, .. } if send.0 == rank => Some(send),
            Written::Collective(number) => Some(self.wholes[number].place(rank)),
            Written::Message { .. } | Written::Node(_) | Written::Nothing => None,
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

    /// A computation that ends at this instant.
    fn until(&mut self, rank: u32, instant: Time) -> usize {
        if let Some(&known) = self.starts.get(&(rank, instant)) {
            return known;
        }
        let at = self.wait(rank, instant - Time::ZERO, Vec::new());
        self.starts.insert((rank, instant), at);
        at
    }

    /// A computation that only lets time pass.
    fn wait(&mut self, rank: u32, duration: Duration, deps: Vec<usize>) -> usize {
        let (_, at) = self.push(rank, "wait".to_owned(), ChakraAct::Compute { duration, operations: 0 });
        self.nodes[rank as usize][at].deps = deps;
        at
    }

    /// Names of the groups of collectives; one of all ranks has none. ASTRA-sim wants numbers, and has 0 for all.
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

    /// The trace, without notes.
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

/// Nodes with identifiers: 0 for that of the groups, which comes first, then by place.
fn number(nodes: Vec<Node>, groups: Vec<ChakraGroup>) -> Vec<ChakraNode> {
    let mut written = Vec::with_capacity(nodes.len() + 1);
    let name = "## process_group:init ##".to_owned();
    if !groups.is_empty() {
        written.push(ChakraNode { record: 0, id: 0, name, act: ChakraAct::Groups(groups), deps: Vec::new() });
    }
    for (place, Node { name, act, deps }) in nodes.into_iter().enumerate() {
        let mut deps: Vec<u64> = deps.into_iter().map(|dep| dep as u64 + 1).collect();
        deps.sort_unstable();
        deps.dedup();
        written.push(ChakraNode { record: 0, id: place as u64 + 1, name, act, deps });
    }
    for (record, node) in (1..).zip(&mut written) {
        node.record = record;
    }
    written
}
