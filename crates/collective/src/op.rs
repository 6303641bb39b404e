//! A collective in progress at this rank: the executor of its plan.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::call::{Call, Kind};
use crate::frame::{Frame, Key, Lane, Target};
use crate::output::{Landing, OpId, Output, PeerId, Received};
use crate::plan::{Action, Plan, Step, StepId};
use crate::plans::EAGER_BYTES;
use crate::shared::{Awaited, Shared};

/// Transfers to be combined that may be on their way at once: one is combined while others arrive. On busy cores, each
/// wait for the other rank costs a turn of the scheduler, so there are many.
const MOST_COMBINES: usize = 16;
/// Other transfers that may be on their way at once.
const MOST_RECEIVES: usize = 16;

/// Other end of a transfer and its number.
type Transfer = (u32, u32);

/// Receives that are posted in order: one that must wait holds those behind it back, or ranks could wait for each
/// other with all places taken.
struct Queue {
    waiting: VecDeque<StepId>,
    outstanding: usize,
    most: usize,
}

/// Collective in progress.
pub(crate) struct Op {
    pub(crate) group: u64,
    pub(crate) number: u64,
    pub(crate) call: Call,
    id: OpId,
    members: std::sync::Arc<[PeerId]>,
    steps: Vec<Step>,
    /// Steps that each step still waits for, and the steps behind each.
    blockers: Vec<u8>,
    followers: Vec<Vec<StepId>>,
    complete: Vec<bool>,
    remaining: usize,
    combines: Queue,
    receives: Queue,
    /// Short transfers that are awaited, and those that came before.
    expected: HashMap<Transfer, StepId>,
    inbox: HashMap<Transfer, Vec<u8>>,
    /// Long transfers for which the peer has no place yet, and places that came before.
    sends: HashMap<Transfer, StepId>,
    targets: HashMap<Transfer, (u64, Target)>,
    runnable: VecDeque<StepId>,
    /// Ranks that have said that they have begun it, too.
    here: HashSet<u32>,
}

/// Returns true if bytes of this length go with their frame. Where blocks may differ in length, the receiver always says
/// how many bytes it expects.
fn is_short(kind: Kind, bytes: usize) -> bool {
    bytes <= EAGER_BYTES && kind != Kind::AllToAll
}

/// Fault in the calls of two ranks.
pub(crate) type Mismatch = String;

impl Op {
    pub(crate) fn new(
        id: OpId,
        (group, number): (u64, u64),
        call: Call,
        members: std::sync::Arc<[PeerId]>,
        plan: Plan,
    ) -> Self {
        let steps = plan.steps;
        let mut followers = vec![Vec::new(); steps.len()];
        let mut blockers = vec![0; steps.len()];
        for (id, step) in steps.iter().enumerate() {
            for before in step.after.into_iter().flatten() {
                followers[before as usize].push(id as StepId);
                blockers[id] += 1;
            }
        }
        let of = |wanted: fn(&Action) -> bool, most| Queue {
            waiting: (0..).zip(&steps).filter(|(_, step)| wanted(&step.action)).map(|(id, _)| id).collect(),
            outstanding: 0,
            most,
        };
        Op {
            group,
            number,
            call,
            id,
            members,
            combines: of(|action| matches!(action, Action::Combine { .. }), MOST_COMBINES),
            receives: of(|action| matches!(action, Action::Receive { .. }), MOST_RECEIVES),
            complete: vec![false; steps.len()],
            remaining: steps.len(),
            runnable: (0..)
                .zip(&blockers)
                .filter(|(_, blockers)| **blockers == 0)
                .map(|(id, _)| id)
                .collect(),
            steps,
            blockers,
            followers,
            expected: HashMap::new(),
            inbox: HashMap::new(),
            sends: HashMap::new(),
            targets: HashMap::new(),
            here: HashSet::new(),
        }
    }

    /// Returns true if all steps are complete.
    pub(crate) fn is_done(&self) -> bool {
        self.remaining == 0
    }

    fn key(&self, index: u32) -> Key {
        Key { group: self.group, lane: Lane::Collective(self.number), index }
    }

    /// Does everything that can be done now.
    pub(crate) fn run(&mut self, shared: &mut Shared) -> Result<(), Mismatch> {
        loop {
            while let Some(step) = self.runnable.pop_front() {
                self.begin(step, shared)?;
            }
            self.post(shared)?;
            if self.runnable.is_empty() {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, id: StepId, shared: &mut Shared) -> Result<(), Mismatch> {
        let op = self.id;
        match self.steps[id as usize].action.clone() {
            Action::Copy { from, to } => shared.outputs.push_back(Output::Copy { op, from, to }),
            Action::Divide { of } => {
                shared.outputs.push_back(Output::Divide { op, of, by: self.members.len() as u32 });
            }
            Action::Send { to, index, from } if is_short(self.call.kind, from.len) => {
                let head = Frame::Eager { key: self.key(index), call: self.call, payload: &[] }.encode();
                let peer = self.members[to as usize];
                shared.outputs.push_back(Output::Eager { peer, head, op, from });
            }
            Action::Send { to, index, .. } => {
                match self.targets.remove(&(to, index)) {
                    Some((bytes, target)) => self.write(id, bytes, target, shared)?,
                    None => drop(self.sends.insert((to, index), id)),
                }
                return Ok(());
            }
            // In order, by `post`.
            Action::Receive { .. } | Action::Combine { .. } => return Ok(()),
        }
        self.complete(id);
        Ok(())
    }

    /// Posts receives as far as possible.
    fn post(&mut self, shared: &mut Shared) -> Result<(), Mismatch> {
        for combines in [true, false] {
            loop {
                let queue = if combines { &mut self.combines } else { &mut self.receives };
                let Some(&id) = queue.waiting.front() else { break };
                if self.blockers[id as usize] > 0 || queue.outstanding >= queue.most {
                    break;
                }
                queue.waiting.pop_front();
                let (from, index, bytes) = match &self.steps[id as usize].action {
                    Action::Receive { from, index, to } => (*from, *index, to.len),
                    Action::Combine { from, index, with, .. } => (*from, *index, with.len),
                    _ => continue,
                };
                let outstanding = &mut queue.outstanding;
                if !is_short(self.call.kind, bytes) {
                    *outstanding += 1;
                    self.announce(id, from, index, bytes, shared);
                } else if let Some(payload) = self.inbox.remove(&(from, index)) {
                    self.take(id, payload, shared)?;
                } else {
                    self.expected.insert((from, index), id);
                }
            }
        }
        Ok(())
    }

    fn announce(&mut self, id: StepId, from: u32, index: u32, bytes: usize, shared: &mut Shared) {
        let peer = self.members[from as usize];
        let (landing, slot) = match self.steps[id as usize].action {
            Action::Receive { to, .. } => (Landing::Span(to), None),
            _ => {
                let slot = shared.take_scratch();
                (Landing::Scratch(slot), Some(slot))
            }
        };
        let token = shared.await_write(Awaited { op: self.id, step: id, peer, slot });
        let (key, call, op) = (self.key(index), self.call, self.id);
        shared.outputs.push_back(Output::Announce { peer, op, landing, key, call, bytes, token });
    }

    fn complete(&mut self, id: StepId) {
        self.complete[id as usize] = true;
        self.remaining -= 1;
        for follower in std::mem::take(&mut self.followers[id as usize]) {
            let blockers = &mut self.blockers[follower as usize];
            *blockers -= 1;
            if *blockers == 0 {
                self.runnable.push_back(follower);
            }
        }
    }

    /// Takes the bytes of a short transfer.
    fn take(&mut self, id: StepId, bytes: Vec<u8>, shared: &mut Shared) -> Result<(), Mismatch> {
        let op = self.id;
        let (from, length, output) = match self.steps[id as usize].action {
            Action::Receive { from, to, .. } => {
                let got = bytes.len();
                (from, (got, to.len), Output::Store { op, to, bytes })
            }
            Action::Combine { from, with, into, order, .. } => {
                let got = bytes.len();
                let received = Received::Bytes(bytes);
                (from, (got, with.len), Output::Combine { op, with, into, received, order })
            }
            _ => return Ok(()),
        };
        if length.0 != length.1 {
            return Err(self.lengths(from, length.0 as u64, length.1 as u64));
        }
        shared.outputs.push_back(output);
        self.complete(id);
        Ok(())
    }

    /// Describes transfers whose ends have different lengths.
    fn lengths(&self, from: u32, sent: u64, expected: u64) -> Mismatch {
        format!("rank {from} sends {sent} bytes where {expected} are expected, in {}", self.call)
    }

    fn write(&mut self, id: StepId, bytes: u64, target: Target, shared: &mut Shared) -> Result<(), Mismatch> {
        let Action::Send { to, from, .. } = self.steps[id as usize].action else { return Ok(()) };
        if bytes != from.len as u64 {
            let sent = from.len;
            return Err(format!("rank {to} expects {bytes} bytes where {sent} are sent, in {}", self.call));
        }
        let peer = self.members[to as usize];
        let number = shared.begin_write(self.id, id, peer);
        shared.outputs.push_back(Output::Write { peer, op: self.id, from, target, id: number });
        Ok(())
    }

    /// Processes a frame of another rank, whose call is the same.
    pub(crate) fn frame(
        &mut self,
        from: u32,
        frame: &Frame<'_>,
        shared: &mut Shared,
    ) -> Result<(), Mismatch> {
        match *frame {
            Frame::Eager { key, payload, .. } => match self.expected.remove(&(from, key.index)) {
                Some(step) => self.take(step, payload.to_vec(), shared)?,
                None => drop(self.inbox.insert((from, key.index), payload.to_vec())),
            },
            Frame::Ready { key, bytes, target, .. } => match self.sends.remove(&(from, key.index)) {
                Some(step) => self.write(step, bytes, target, shared)?,
                None => drop(self.targets.insert((from, key.index), (bytes, target))),
            },
            Frame::Offer { .. } | Frame::Ask { .. } | Frame::Here { .. } | Frame::Fault { .. } => {}
        }
        self.run(shared)
    }

    /// Processes the end of a peer's WRITE.
    pub(crate) fn arrived(
        &mut self,
        awaited: &Awaited,
        bytes: u64,
        shared: &mut Shared,
    ) -> Result<(), Mismatch> {
        let (op, step) = (self.id, awaited.step);
        let (from, expected) = match self.steps[step as usize].action {
            Action::Receive { from, to, .. } => {
                self.receives.outstanding -= 1;
                (from, to.len)
            }
            Action::Combine { from, with, into, order, .. } => {
                self.combines.outstanding -= 1;
                if let Some(slot) = awaited.slot {
                    let received = Received::Scratch(slot);
                    shared.outputs.push_back(Output::Combine { op, with, into, received, order });
                }
                (from, with.len)
            }
            _ => return Ok(()),
        };
        if bytes != expected as u64 {
            return Err(self.lengths(from, bytes, expected as u64));
        }
        self.complete(step);
        self.run(shared)
    }

    /// Processes the end of an own WRITE.
    pub(crate) fn written(&mut self, step: StepId, shared: &mut Shared) -> Result<(), Mismatch> {
        self.complete(step);
        self.run(shared)
    }

    /// Returns true if a step that is not complete needs a rank.
    pub(crate) fn needs(&self, rank: u32) -> bool {
        self.steps
            .iter()
            .zip(&self.complete)
            .any(|(step, complete)| !complete && step.action.peer() == Some(rank))
    }

    /// Notes that a rank has begun it, too.
    pub(crate) fn is_here(&mut self, rank: u32) {
        self.here.insert(rank);
    }

    /// Returns the ranks from which something is missing and which have not said that they have begun.
    pub(crate) fn absent(&self, shared: &Shared) -> Vec<u32> {
        self.waits_for(shared).into_iter().filter(|rank| !self.here.contains(rank)).collect()
    }

    /// Returns the ranks from which something is missing that could come now.
    pub(crate) fn waits_for(&self, shared: &Shared) -> Vec<u32> {
        let mut ranks: Vec<u32> =
            self.expected.keys().chain(self.sends.keys()).map(|(rank, _)| *rank).collect();
        for peer in shared.peers_of(self.id) {
            ranks.extend(
                (0..).zip(&*self.members).filter(|(_, member)| **member == peer).map(|(rank, _)| rank),
            );
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}
