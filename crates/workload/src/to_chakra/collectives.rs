//! Detection of collectives in a graph that a trace can express as one node per rank.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_units::{Duration, Time};

use super::NodeRef;
use crate::algorithm::Algorithm;
use crate::collective::{Medium, Operation, Plan, Sizes, Transfer, chunk, eight};
use crate::error::WorkloadError;
use crate::graph::{CollectiveLabel, MAX_MESSAGE_SIZE, MessageGraph, Moment, OWN, Task, TaskId};

/// All operations that have algorithms.
const OPERATIONS: [Operation; 6] = [
    Operation::AllReduce,
    Operation::ReduceScatter,
    Operation::AllGather,
    Operation::AllToAll,
    Operation::Broadcast,
    Operation::Reduce,
];

/// A collective that is written as one node per rank.
pub(super) struct CollectiveNode {
    pub(super) operation: Operation,
    algorithm: Algorithm,
    /// Size as ASTRA-sim counts it, bytes: for an all-gather, the part of one rank.
    pub(super) bytes: u64,
    /// Ranks in the order of the algorithm.
    pub(super) members: Vec<u32>,
    pub(super) connection: u32,
    pub(super) messages: Vec<TaskId>,
    /// Computations of zero duration with which ranks begin and end the collective. Its nodes replace them.
    pub(super) merged: Vec<TaskId>,
    /// Index of the collective's node among the nodes of each member.
    pub(super) at: BTreeMap<u32, usize>,
}

impl CollectiveNode {
    /// Returns the node of a member.
    pub(super) fn place(&self, rank: u32) -> NodeRef {
        (rank, *self.at.get(&rank).expect("whoever waits for it is a member"))
    }
}

/// Returns the notes for the user on a trace in which `wholes` of `all` collectives are single nodes.
fn notes(wholes: &[CollectiveNode], all: usize) -> Vec<String> {
    let of = |whole: &CollectiveNode| (whole.operation, whole.algorithm);
    let others: BTreeSet<(&str, &str)> = wholes
        .iter()
        .map(of)
        .filter(|(operation, algorithm)| *algorithm != operation.algorithms()[0])
        .map(|(operation, algorithm)| (operation.name(), algorithm.name()))
        .collect();
    let mut notes = Vec::new();
    for (operation, algorithm) in others {
        let field = match operation {
            "reduce" => "broadcast".to_owned(),
            other => other.replace('-', "_"),
        };
        notes.push(format!(
            "a trace does not name the algorithms of its collectives; set algorithms.{field} = \
             \"{algorithm}\" to run each {operation} as here"
        ));
    }
    if all > wholes.len() {
        let by_messages = all - wholes.len();
        notes.push(format!("{by_messages} of {all} collectives are in the trace as their messages"));
    }
    notes
}

/// Returns the messages of each collective, by label, group and job.
fn of_labels(graph: &MessageGraph) -> BTreeMap<(u32, u16, Option<u32>), Vec<TaskId>> {
    let mut found: BTreeMap<_, Vec<TaskId>> = BTreeMap::new();
    for (message, id) in graph.messages().iter().zip((0..).map(TaskId)) {
        let label = graph.label(id).filter(|&label| graph.labels()[label as usize].collective.is_some());
        if let Some(label) = label {
            let key = (label, message.group.0, message.job.map(|job| job.0));
            found.entry(key).or_default().push(id);
        }
    }
    found
}

/// Returns the collectives that can be written as one node per rank, and notes for the user on all
/// collectives.
pub(super) fn find(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
) -> (Vec<CollectiveNode>, Vec<String>) {
    let candidates = of_labels(graph);
    let all = candidates.len();
    let found = candidates.into_iter().filter_map(|((label, ..), messages)| {
        let label = &graph.labels()[label as usize];
        let operation = OPERATIONS.into_iter().find(|operation| operation.name() == label.activity)?;
        whole(graph, before, operation, label.collective?, messages)
    });
    let mut wholes: Vec<CollectiveNode> = found.collect();
    wholes.sort_by_key(|whole| whole.messages[0]);
    let notes = notes(&wholes, all);
    (wholes, notes)
}

fn whole(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
    operation: Operation,
    label: CollectiveLabel,
    messages: Vec<TaskId>,
) -> Option<CollectiveNode> {
    let first = graph.messages()[messages[0].index()];
    let is_alike = |id: &TaskId| {
        let message = graph.messages()[id.index()];
        message.stream == first.stream
            && message.start == first.start
            && graph.delay_after_deps(*id) == Duration::ZERO
            && graph.needs(*id) == graph.predecessors(*id)
    };
    if first.stream & OWN != 0 || !messages.iter().all(is_alike) {
        return None;
    }
    let size = label.measure?.size.get();
    let (ranks, algorithm) = (label.ranks as usize, Algorithm::of_name(label.algorithm)?);
    let plan =
        Plan { operation, algorithm, ranks, size, chunk: chunk().get(), ranks_per_server: eight() as usize };
    if plan.check().is_err() {
        return None;
    }
    let members = orders_of_ranks(graph, before, &messages).into_iter().find(|members| {
        members.len() == ranks && has_messages_of(graph, before, &messages, &plan, members)
    })?;
    let shares = if operation == Operation::AllGather { ranks as u64 } else { 1 };
    if !size.is_multiple_of(shares) {
        return None;
    }
    let merged = begins_and_ends(graph, before, &parts(graph, before, &messages)?);
    let (bytes, connection) = (size / shares, first.stream);
    Some(CollectiveNode {
        operation,
        algorithm,
        bytes,
        members,
        connection,
        messages,
        merged,
        at: BTreeMap::new(),
    })
}

/// Returns candidate orders of the ranks: along the chain or ring that all messages form, along the one that
/// the first messages of ranks form, and ascending.
fn orders_of_ranks(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
    messages: &[TaskId],
) -> Vec<Vec<u32>> {
    let inside: BTreeSet<TaskId> = messages.iter().copied().collect();
    let ends = |id: &TaskId| {
        let message = graph.messages()[id.index()];
        (message.src.0, message.dst.0)
    };
    let is_first = |id: &&TaskId| before[id.index()].iter().all(|(on, _)| !inside.contains(on));
    let all: BTreeSet<u32> = messages.iter().map(ends).flat_map(|(src, dst)| [src, dst]).collect();
    let mut orders = Vec::new();
    for pairs in [messages.iter().map(ends).collect(), messages.iter().filter(is_first).map(ends).collect()] {
        if let Some(along) = along(&pairs).filter(|along| along.len() == all.len()) {
            // A reduction runs down the chain.
            let down = along.iter().rev().copied().collect();
            orders.extend([along, down]);
        }
    }
    orders.push(all.into_iter().collect());
    orders
}

/// Returns the ranks of the pairs (rank, next) along their chain, or around their ring from the lowest rank.
/// Returns `None` if the pairs form neither.
fn along(pairs: &BTreeSet<(u32, u32)>) -> Option<Vec<u32>> {
    let next: BTreeMap<u32, u32> = pairs.iter().copied().collect();
    let targets: BTreeSet<u32> = next.values().copied().collect();
    if next.len() != pairs.len() || targets.len() != pairs.len() {
        return None;
    }
    let first = next.keys().copied().find(|rank| !targets.contains(rank)).or(next.keys().copied().next())?;
    let onward = |rank: &u32| next.get(rank).copied().filter(|&rank| rank != first);
    Some(std::iter::successors(Some(first), onward).collect())
}

/// Sender, receiver and bytes of a message.
type Sent = (u32, u32, u64);

/// Returns true if the messages equal those of the plan among these members, with the same dependencies on
/// each other.
fn has_messages_of(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
    messages: &[TaskId],
    plan: &Plan,
    members: &[u32],
) -> bool {
    if plan.messages() > 2.0 * messages.len() as f64 + 2.0 {
        return false;
    }
    let mut list = List { members, sizes: plan.sizes(), sent: Vec::new() };
    if plan.run(&mut list).is_err() {
        return false;
    }
    let sent = |id: TaskId| {
        let message = graph.messages()[id.index()];
        (message.src.0, message.dst.0, message.size.get())
    };
    let inside: BTreeSet<TaskId> = messages.iter().copied().collect();
    let with_those_before = |&id: &TaskId| {
        let on = before[id.index()].iter().map(|&(on, _)| on).filter(|on| inside.contains(on));
        (sent(id), sorted(on.map(sent)))
    };
    sorted(messages.iter().map(with_those_before)) == sorted(list.sent)
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all
}

/// Recorder of transfers: sender, receiver and bytes of each, with those of its predecessors.
struct List<'a> {
    members: &'a [u32],
    sizes: Sizes<'static>,
    sent: Vec<(Sent, Vec<Sent>)>,
}

impl Medium for List<'_> {
    type Sent = usize;
    fn send(&mut self, transfer: Transfer, after: &[usize]) -> Result<usize, WorkloadError> {
        let (src, dst) = (self.members[transfer.src], self.members[transfer.dst]);
        let bytes = self.sizes.bytes(transfer.blocks);
        let most = MAX_MESSAGE_SIZE.get();
        for piece in 0..bytes.div_ceil(most) {
            let mut before: BTreeSet<usize> = after.iter().copied().collect();
            if piece > 0 {
                before.insert(self.sent.len() - 1);
            }
            let before = sorted(before.into_iter().map(|on| self.sent[on].0));
            self.sent.push(((src, dst, most.min(bytes - piece * most)), before));
        }
        Ok(self.sent.len() - 1)
    }
}

/// Part of a rank in a collective.
#[derive(Default)]
struct RankPart {
    /// All messages that the rank sends or receives.
    messages: BTreeSet<TaskId>,
    /// Tasks that the rank's input waits for; `None` until the first one is found.
    input: Option<Vec<(TaskId, Moment)>>,
    /// Tasks that wait for each of the rank's messages; `None` until the first ones are found.
    behind: Option<Vec<TaskId>>,
}

impl RankPart {
    /// Records that a message of the rank waits for these tasks outside of the collective. Returns false if
    /// another message waits for others.
    fn add_predecessors(&mut self, outside: Vec<(TaskId, Moment)>) -> bool {
        // A message that only forwards received data waits for nothing outside.
        outside.is_empty() || *self.input.get_or_insert_with(|| outside.clone()) == outside
    }
    /// Records that these tasks of the rank wait for a message. Returns false if others wait for another
    /// message.
    fn add_successors(&mut self, id: TaskId, behind: Vec<TaskId>) -> bool {
        self.messages.insert(id);
        *self.behind.get_or_insert_with(|| behind.clone()) == behind
    }
}

/// Returns the parts of all ranks, if each rank takes part as a whole. That is, all messages with its own
/// input wait for the same tasks, and the same tasks wait for all messages it sends and receives.
fn parts(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
    messages: &[TaskId],
) -> Option<BTreeMap<u32, RankPart>> {
    let inside: BTreeSet<TaskId> = messages.iter().copied().collect();
    let mut parts: BTreeMap<u32, RankPart> = BTreeMap::new();
    for &id in messages {
        let message = graph.messages()[id.index()];
        let outside = before[id.index()].iter().copied().filter(|(on, _)| !inside.contains(on));
        let (at_sender, at_receiver) = successors(graph, id, &inside)?;
        let sender = parts.entry(message.src.0).or_default();
        let is_whole = sender.add_predecessors(sorted(outside)) && sender.add_successors(id, at_sender);
        if !is_whole || !parts.entry(message.dst.0).or_default().add_successors(id, at_receiver) {
            return None;
        }
    }
    Some(parts)
}

/// Returns the tasks outside of a collective that wait for one of its messages, at the sender and at the
/// receiver. Returns `None` if other hosts have such tasks, or if a task waits for a moment that its host
/// does not observe.
fn successors(
    graph: &MessageGraph,
    id: TaskId,
    inside: &BTreeSet<TaskId>,
) -> Option<(Vec<TaskId>, Vec<TaskId>)> {
    let message = graph.messages()[id.index()];
    let (mut at_sender, mut at_receiver) = (BTreeSet::new(), BTreeSet::new());
    for moment in [Moment::Delivery, Moment::Completion] {
        for &next in graph.dependents(id, moment).iter().filter(|next| !inside.contains(next)) {
            match (graph.begin_host(next)?, moment) {
                (home, _) if home == message.src => at_sender.insert(next),
                (home, Moment::Delivery) if home == message.dst => at_receiver.insert(next),
                _ => return None,
            };
        }
    }
    Some((at_sender.into_iter().collect(), at_receiver.into_iter().collect()))
}

/// Returns the computations of zero duration that only mark begins and ends of parts. A trace that was read
/// has them.
fn begins_and_ends(
    graph: &MessageGraph,
    before: &[Vec<(TaskId, Moment)>],
    parts: &BTreeMap<u32, RankPart>,
) -> Vec<TaskId> {
    let mut found = Vec::new();
    for (&rank, RankPart { messages, input, behind }) in parts {
        let (Some(&[(begin, Moment::Delivery)]), Some(&[end])) = (input.as_deref(), behind.as_deref()) else {
            continue;
        };
        let only_begins = graph.all_dependents(begin).all(|next| next == end || messages.contains(&next));
        let only_ends = before[end.index()].iter().all(|(on, _)| *on == begin || messages.contains(on));
        // The node can replace them only both together.
        if only_begins && only_ends && [begin, end].iter().all(|&id| is_instant(graph, id, rank)) {
            found.extend([begin, end]);
        }
    }
    found
}

/// Returns true for a computation of this rank that takes no time.
fn is_instant(graph: &MessageGraph, id: TaskId, rank: u32) -> bool {
    match graph.task(id) {
        Task::Message(_) => false,
        Task::Compute(compute) => {
            compute.host.is_some_and(|host| host.0 == rank)
                && compute.duration == Duration::ZERO
                && compute.start == Time::ZERO
                && graph.delay_after_deps(id) == Duration::ZERO
        }
    }
}
