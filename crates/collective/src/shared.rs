//! State that all operations of an engine share.

use std::collections::{HashMap, VecDeque};

use crate::output::{OpId, Output, PeerId};
use crate::plan::StepId;

/// A WRITE of a peer that was announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    pub(crate) op: OpId,
    pub(crate) step: StepId,
    pub(crate) peer: PeerId,
    /// Place for bytes to be combined.
    pub(crate) slot: Option<u32>,
}

/// State that all operations share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) outputs: VecDeque<Output>,
    awaited: HashMap<u32, Awaited>,
    next_token: u32,
    /// Own WRITEs.
    writes: HashMap<u64, (OpId, StepId, PeerId)>,
    next_write: u64,
    free_scratch: Vec<u32>,
    scratch: u32,
}

impl Shared {
    pub(crate) fn take_scratch(&mut self) -> u32 {
        self.free_scratch.pop().unwrap_or_else(|| {
            self.scratch += 1;
            self.scratch - 1
        })
    }

    pub(crate) fn await_write(&mut self, awaited: Awaited) -> u32 {
        while self.awaited.contains_key(&self.next_token) {
            self.next_token = self.next_token.wrapping_add(1);
        }
        let token = self.next_token;
        self.awaited.insert(token, awaited);
        self.next_token = token.wrapping_add(1);
        token
    }

    /// Returns the WRITE that a peer has completed. Its place is free once the next order was carried out.
    pub(crate) fn arrived(&mut self, peer: PeerId, token: u32) -> Option<Awaited> {
        let awaited = self.awaited.get(&token).copied().filter(|awaited| awaited.peer == peer)?;
        self.awaited.remove(&token);
        self.free_scratch.extend(awaited.slot);
        Some(awaited)
    }

    pub(crate) fn begin_write(&mut self, op: OpId, step: StepId, peer: PeerId) -> u64 {
        self.next_write += 1;
        self.writes.insert(self.next_write, (op, step, peer));
        self.next_write
    }

    pub(crate) fn written(&mut self, id: u64) -> Option<(OpId, StepId)> {
        self.writes.remove(&id).map(|(op, step, _)| (op, step))
    }

    /// Forgets what a peer that has gone does not do any more.
    pub(crate) fn lost(&mut self, peer: PeerId) {
        self.writes.retain(|_, (_, _, other)| *other != peer);
        let free = &mut self.free_scratch;
        self.awaited.retain(|_, awaited| {
            if awaited.peer == peer {
                free.extend(awaited.slot);
            }
            awaited.peer != peer
        });
    }

    /// Returns the peers with which an operation has WRITEs in progress.
    pub(crate) fn peers_of(&self, op: OpId) -> Vec<PeerId> {
        let awaited = self.awaited.values().filter(|awaited| awaited.op == op).map(|awaited| awaited.peer);
        let writes = self.writes.values().filter(|(of, ..)| *of == op).map(|(_, _, peer)| *peer);
        awaited.chain(writes).collect()
    }

    /// Returns true if a peer may write into memory of an operation.
    pub(crate) fn is_announced(&self, op: OpId) -> bool {
        self.awaited.values().any(|awaited| awaited.op == op)
    }
}
