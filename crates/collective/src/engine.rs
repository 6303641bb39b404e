//! The engine: groups of ranks and their operations.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::call::Call;
use crate::frame::{Frame, Key, Lane};
use crate::messages::{Arrival, Content, Messages, Receive, Send};
use crate::op::Op;
use crate::output::{Landing, OpId, Output, PeerId};
use crate::plan::{Plan, Span};
use crate::plans::{EAGER_BYTES, Place};
use crate::shared::{Awaited, Shared};

/// Bytes of frames that are kept for a group that this rank has not joined yet.
const MOST_EARLY_BYTES: usize = 64 << 20;
/// Groups that this rank has left of which frames are dropped. Later ones count as of a group that it will join.
const MOST_LEFT: usize = 1_024;

/// Ranks that work together.
pub(crate) struct Group {
    place: Place,
    pub(crate) members: Arc<[PeerId]>,
    /// Number of the next collective.
    next: u64,
    /// Collectives in progress, by number.
    pub(crate) active: HashMap<u64, OpId>,
    /// Frames of collectives that this rank has not begun, by number.
    early: HashMap<u64, Vec<(u32, Vec<u8>)>>,
    pub(crate) messages: Messages,
    /// Ranks that have left, with the reason.
    gone: HashMap<u32, String>,
    broken: Option<String>,
}

/// Engine of one process: collectives and messages of any number of groups. It does no I/O: its caller passes in frames
/// and completions, and carries out [orders](Output) after each call.
#[derive(Default)]
pub struct Engine {
    pub(crate) shared: Shared,
    pub(crate) groups: HashMap<u64, Group>,
    pub(crate) ops: HashMap<OpId, Op>,
    /// Groups of the operations that are messages.
    pub(crate) messages: HashMap<OpId, u64>,
    next_op: OpId,
    /// Frames of groups that this rank has not joined.
    strays: HashMap<u64, Vec<(PeerId, Vec<u8>)>>,
    stray_bytes: usize,
    /// Groups that this rank has left.
    left: VecDeque<u64>,
    /// Peers that have gone.
    gone: HashMap<PeerId, String>,
}

impl Engine {
    /// Creates an engine without groups.
    pub fn new() -> Self {
        Engine::default()
    }

    /// Joins a group, whose members are given by rank. The number of this process is not used.
    pub fn join(&mut self, id: u64, place: Place, members: Vec<PeerId>) {
        let gone = (0..).zip(&members).filter_map(|(rank, peer)| Some((rank, self.gone.get(peer)?.clone())));
        let group = Group {
            place,
            next: 0,
            active: HashMap::new(),
            early: HashMap::new(),
            messages: Messages::default(),
            gone: gone.collect(),
            broken: None,
            members: members.into(),
        };
        self.groups.insert(id, group);
        for (peer, bytes) in self.strays.remove(&id).unwrap_or_default() {
            self.stray_bytes -= bytes.len();
            self.frame(peer, &bytes);
        }
    }

    /// Leaves a group. Operations in progress fail, at all ranks.
    pub fn leave(&mut self, id: u64) {
        let Some(group) = self.groups.get(&id) else { return };
        let is_busy = !group.active.is_empty() || group.messages.pending().next().is_some();
        let text = format!("rank {} has destroyed the group", group.place.rank);
        self.break_group(id, &text, is_busy);
        self.groups.remove(&id);
        self.left.push_back(id);
        if self.left.len() > MOST_LEFT {
            self.left.pop_front();
        }
    }

    /// Returns the next order.
    pub fn next_output(&mut self) -> Option<Output> {
        self.shared.outputs.pop_front()
    }

    /// Returns the number of collectives that this rank has begun in a group.
    pub fn begun(&self, group: u64) -> u64 {
        self.groups.get(&group).map_or(0, |group| group.next)
    }

    /// Returns true if a peer may still write into memory of an operation, though that has failed.
    pub fn is_announced(&self, op: OpId) -> bool {
        self.shared.is_announced(op)
    }

    fn sound(&mut self, group: u64) -> Result<&mut Group, String> {
        let found = self.groups.get_mut(&group).ok_or("the group was destroyed")?;
        found.broken.clone().map_or(Ok(found), Err)
    }

    fn new_op(&mut self) -> OpId {
        self.next_op += 1;
        self.next_op
    }

    /// Begins a collective.
    ///
    /// # Errors
    /// The group has failed, or a rank that is needed has left.
    pub fn collective(&mut self, group: u64, call: Call, plan: Plan) -> Result<OpId, String> {
        let id = self.new_op();
        let joined = self.sound(group)?;
        let absent = joined
            .gone
            .iter()
            .find(|(rank, _)| plan.steps.iter().any(|step| step.action.peer() == Some(**rank)));
        if let Some((rank, reason)) = absent {
            return Err(format!("rank {rank} has left the group: {reason}"));
        }
        let number = joined.next;
        joined.next += 1;
        joined.active.insert(number, id);
        let early = joined.early.remove(&number).unwrap_or_default();
        let mut op = Op::new(id, (group, number), call, joined.members.clone(), plan);
        let begun = op.run(&mut self.shared);
        self.keep(id, op, begun);
        for (rank, bytes) in early {
            if let Some(frame) = Frame::decode(&bytes) {
                self.of_collective(group, number, rank, &frame);
            }
        }
        Ok(id)
    }

    /// Keeps an operation unless it has ended.
    fn keep(&mut self, id: OpId, op: Op, result: Result<(), String>) {
        let (group, number, is_done) = (op.group, op.number, op.is_done());
        self.ops.insert(id, op);
        match result {
            Err(text) => self.fail(group, &text),
            Ok(()) if is_done => {
                self.ops.remove(&id);
                if let Some(group) = self.groups.get_mut(&group) {
                    group.active.remove(&number);
                }
                self.shared.outputs.push_back(Output::Done { op: id, result: Ok(None) });
            }
            Ok(()) => {}
        }
    }

    /// Fails a group: its operations now, and others at once. The other ranks are told.
    pub fn fail(&mut self, id: u64, text: &str) {
        self.break_group(id, text, true);
    }

    fn break_group(&mut self, id: u64, text: &str, tell: bool) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.broken.is_some() {
            return;
        }
        group.broken = Some(text.to_owned());
        group.early.clear();
        let mut failed: Vec<OpId> = group.active.drain().map(|(_, op)| op).collect();
        failed.extend(group.messages.pending().map(|(op, ..)| op));
        group.messages.clear();
        failed.sort_unstable();
        if tell {
            let bytes = Frame::Fault { group: id, text }.encode();
            for (rank, peer) in (0..).zip(&*group.members) {
                if rank != group.place.rank && !group.gone.contains_key(&rank) {
                    self.shared.outputs.push_back(Output::Frame { peer: *peer, bytes: bytes.clone() });
                }
            }
        }
        for op in failed {
            self.ops.remove(&op);
            self.messages.remove(&op);
            self.shared.outputs.push_back(Output::Done { op, result: Err(text.to_owned()) });
        }
    }

    /// Processes a frame of a peer.
    pub fn frame(&mut self, peer: PeerId, bytes: &[u8]) {
        let Some(frame) = Frame::decode(bytes) else { return };
        let id = frame.group();
        let Some(group) = self.groups.get_mut(&id) else {
            // Late faults are of no interest.
            let kept = !matches!(frame, Frame::Fault { .. })
                && self.stray_bytes + bytes.len() <= MOST_EARLY_BYTES
                && !self.left.contains(&id);
            if kept {
                self.stray_bytes += bytes.len();
                self.strays.entry(id).or_default().push((peer, bytes.to_vec()));
            }
            return;
        };
        let Some(rank) = group.members.iter().position(|member| *member == peer) else { return };
        let rank = rank as u32;
        match (&frame, &group.broken) {
            (Frame::Fault { text, .. }, _) => self.break_group(id, text, false),
            (Frame::Here { number, .. }, _) => self.here(id, *number, rank),
            (_, Some(text)) => {
                let bytes = Frame::Fault { group: id, text }.encode();
                self.shared.outputs.push_back(Output::Frame { peer, bytes });
            }
            (Frame::Ask { number, .. }, None) => {
                if *number < group.next {
                    let bytes = Frame::Here { group: id, number: *number }.encode();
                    self.shared.outputs.push_back(Output::Frame { peer, bytes });
                }
            }
            (
                Frame::Ready { key, call, .. }
                | Frame::Eager { key, call, .. }
                | Frame::Offer { key, call, .. },
                None,
            ) => match key.lane {
                Lane::Tag(tag) => self.of_message(id, rank, tag, *call, &frame),
                Lane::Collective(number) if number < group.next => {
                    self.of_collective(id, number, rank, &frame);
                }
                Lane::Collective(number) => {
                    group.early.entry(number).or_default().push((rank, bytes.to_vec()));
                }
            },
        }
    }

    /// Processes a frame of a collective that this rank has begun.
    fn of_collective(&mut self, id: u64, number: u64, rank: u32, frame: &Frame<'_>) {
        let (Frame::Ready { call, .. } | Frame::Eager { call, .. } | Frame::Offer { call, .. }) = frame
        else {
            return;
        };
        let Some(group) = self.groups.get(&id).filter(|group| group.broken.is_none()) else { return };
        let own = group.place.rank;
        let Some(op) = group.active.get(&number).copied() else {
            let text = format!(
                "rank {rank} calls {call} as operation {number}, which rank {own} has completed otherwise"
            );
            return self.fail(id, &text);
        };
        let Some(mut running) = self.ops.remove(&op) else { return };
        let result = if running.call == *call {
            running.frame(rank, frame, &mut self.shared)
        } else {
            let mine = running.call;
            Err(format!(
                "operation {number} of the group is not the same at all ranks: rank {rank} calls {call}, rank {own} {mine}"
            ))
        };
        self.keep(op, running, result);
    }

    /// Processes the end of a peer's WRITE.
    pub fn arrived(&mut self, peer: PeerId, token: u32, bytes: u64) {
        let Some(awaited) = self.shared.arrived(peer, token) else { return };
        if let Some(mut op) = self.ops.remove(&awaited.op) {
            let result = op.arrived(&awaited, bytes, &mut self.shared);
            self.keep(awaited.op, op, result);
        } else if let Some(id) = self.messages.get(&awaited.op).copied() {
            self.landed(id, awaited.op, bytes);
        }
    }

    /// Processes the end of an own WRITE that has succeeded.
    pub fn written(&mut self, id: u64) {
        let Some((of, step)) = self.shared.written(id) else { return };
        if let Some(mut op) = self.ops.remove(&of) {
            let result = op.written(step, &mut self.shared);
            self.keep(of, op, result);
        } else if let Some(group) = self.messages.remove(&of).and_then(|group| self.groups.get_mut(&group)) {
            group.messages.leaving.retain(|send| send.op != of);
            self.shared.outputs.push_back(Output::Done { op: of, result: Ok(None) });
        }
    }

    /// Processes the end of a peer. Groups fail in which something needs it.
    pub fn lost(&mut self, peer: PeerId, reason: &str) {
        self.gone.insert(peer, reason.to_owned());
        self.shared.lost(peer);
        let mut failed = Vec::new();
        for (id, group) in &mut self.groups {
            let Some(rank) = group.members.iter().position(|member| *member == peer) else { continue };
            let rank = rank as u32;
            group.gone.insert(rank, reason.to_owned());
            let collective = group.active.values().filter_map(|op| self.ops.get(op)).any(|op| op.needs(rank));
            if collective || group.messages.pending().any(|(_, other, _)| other == Some(rank)) {
                failed.push((*id, format!("rank {rank} is lost: {reason}")));
            }
        }
        failed.sort();
        for (id, text) in failed {
            self.fail(id, &text);
        }
    }

    /// Takes a receive back whose message has not arrived. Returns false if it is something else.
    pub fn withdraw(&mut self, op: OpId, reason: &str) -> bool {
        let Some(group) = self.messages.get(&op).and_then(|id| self.groups.get_mut(id)) else { return false };
        if !group.messages.withdraw(op) {
            return false;
        }
        self.messages.remove(&op);
        self.shared.outputs.push_back(Output::Done { op, result: Err(reason.to_owned()) });
        true
    }
}

/// Messages.
impl Engine {
    /// Sends a message to a rank.
    ///
    /// # Errors
    /// The group has failed, or the rank has left.
    pub fn send(&mut self, id: u64, to: u32, tag: u64, call: Call, from: Span) -> Result<OpId, String> {
        let op = self.new_op();
        let group = self.sound(id)?;
        if let Some(reason) = group.gone.get(&to) {
            return Err(format!("rank {to} has left the group: {reason}"));
        }
        let key = Key { group: id, lane: Lane::Tag(tag), index: group.messages.number() };
        let peer = group.members[to as usize];
        if from.len <= EAGER_BYTES {
            let head = Frame::Eager { key, call, payload: &[] }.encode();
            self.shared.outputs.push_back(Output::Eager { peer, head, op, from });
            self.shared.outputs.push_back(Output::Done { op, result: Ok(None) });
            return Ok(op);
        }
        group.messages.offer(Send { op, to, key, call, from });
        self.messages.insert(op, id);
        let bytes = Frame::Offer { key, call, bytes: from.len as u64 }.encode();
        self.shared.outputs.push_back(Output::Frame { peer, bytes });
        Ok(op)
    }

    /// Receives a message from a rank, or from any.
    ///
    /// # Errors
    /// The group has failed, or the rank has left.
    pub fn receive(
        &mut self,
        id: u64,
        from: Option<u32>,
        tag: u64,
        call: Call,
        to: Span,
    ) -> Result<OpId, String> {
        let op = self.new_op();
        let group = self.sound(id)?;
        let receive = Receive { op, from, tag, call, to };
        let found = group.messages.post(receive);
        if let (None, Some((rank, reason))) =
            (&found, from.and_then(|rank| Some((rank, group.gone.get(&rank)?))))
        {
            let text = format!("rank {rank} has left the group: {reason}");
            group.messages.withdraw(op);
            return Err(text);
        }
        self.messages.insert(op, id);
        if let Some(arrival) = found {
            self.matched(id, receive, arrival);
        }
        Ok(op)
    }

    fn of_message(&mut self, id: u64, rank: u32, tag: u64, call: Call, frame: &Frame<'_>) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let content = match *frame {
            Frame::Eager { payload, .. } => Content::Bytes(payload.to_vec()),
            Frame::Offer { key, bytes, .. } => Content::Offer { key, bytes },
            Frame::Ready { key, bytes, target, .. } => {
                let Some(send) = group.messages.asked(rank, key) else { return };
                let own = group.place.rank;
                group.messages.leaving.push(send);
                if bytes != send.from.len as u64 {
                    let sent = send.from.len;
                    return self.fail(
                        id,
                        &format!("rank {rank} expects {bytes} bytes of a message of {sent} from rank {own}"),
                    );
                }
                let peer = group.members[rank as usize];
                let number = self.shared.begin_write(send.op, 0, peer);
                self.shared.outputs.push_back(Output::Write {
                    peer,
                    op: send.op,
                    from: send.from,
                    target,
                    id: number,
                });
                return;
            }
            Frame::Ask { .. } | Frame::Here { .. } | Frame::Fault { .. } => return,
        };
        let arrival = Arrival { from: rank, tag, call, content };
        if let Some((receive, arrival)) = group.messages.arrive(arrival) {
            self.matched(id, receive, arrival);
        }
    }

    /// Begins the transfer of a message into its receive.
    fn matched(&mut self, id: u64, receive: Receive, arrival: Arrival) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let Arrival { from, tag, call, content } = arrival;
        let (op, to, own) = (receive.op, receive.to, group.place.rank);
        let bytes = match &content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Offer { bytes, .. } => *bytes,
        };
        group.messages.landing.push((receive, from));
        if bytes != to.len as u64 || call.dtype != receive.call.dtype {
            let (sent, wanted) = (call, receive.call);
            let text = format!(
                "rank {from} sends {} x {} with tag {tag}, rank {own} receives {} x {}",
                sent.elements, sent.dtype, wanted.elements, wanted.dtype
            );
            return self.fail(id, &text);
        }
        match content {
            Content::Bytes(bytes) => {
                self.shared.outputs.push_back(Output::Store { op, to, bytes });
                self.received(id, op);
            }
            Content::Offer { key, bytes } => {
                let peer = group.members[from as usize];
                let token = self.shared.await_write(Awaited { op, step: 0, peer, slot: None });
                let (landing, bytes) = (Landing::Span(to), bytes as usize);
                let announce = Output::Announce { peer, op, landing, key, call: receive.call, bytes, token };
                self.shared.outputs.push_back(announce);
            }
        }
    }

    fn landed(&mut self, id: u64, op: OpId, bytes: u64) {
        let Some(group) = self.groups.get(&id) else { return };
        let found = group.messages.landing.iter().find(|(receive, _)| receive.op == op);
        match found {
            Some((receive, from)) if receive.to.len as u64 != bytes => {
                let text = format!("rank {from} wrote {bytes} bytes of a message of {}", receive.to.len);
                self.fail(id, &text);
            }
            _ => self.received(id, op),
        }
    }

    fn received(&mut self, id: u64, op: OpId) {
        self.messages.remove(&op);
        let Some(group) = self.groups.get_mut(&id) else { return };
        let landing = &mut group.messages.landing;
        let Some(index) = landing.iter().position(|(receive, _)| receive.op == op) else { return };
        let (_, from) = landing.swap_remove(index);
        self.shared.outputs.push_back(Output::Done { op, result: Ok(Some(from)) });
    }
}
