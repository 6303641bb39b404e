//! Search for the ranks that hold an operation up. A rank may wait for another one that waits itself: those whom a rank
//! waits for are asked before they are named.

use crate::engine::Engine;
use crate::frame::Frame;
use crate::output::{OpId, Output};

/// Operation in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// Group.
    pub group: u64,
    /// The call, as a text.
    pub call: String,
    /// Ranks from which something is missing.
    pub awaited: Vec<u32>,
    /// Ranks of them that have not said that they have begun it, too.
    pub absent: Vec<u32>,
}

impl Engine {
    /// Describes an operation that is in progress.
    pub fn overdue(&self, op: OpId) -> Option<Overdue> {
        if let Some(running) = self.ops.get(&op) {
            let (group, call) = (running.group, running.call.to_string());
            let (awaited, absent) = (running.waits_for(&self.shared), running.absent(&self.shared));
            return Some(Overdue { group, call, awaited, absent });
        }
        let group = *self.messages.get(&op)?;
        let messages = &self.groups.get(&group)?.messages;
        let (_, rank, call) = messages.pending().find(|(other, ..)| *other == op)?;
        let awaited: Vec<u32> = rank.into_iter().collect();
        Some(Overdue { group, call: call.to_string(), absent: awaited.clone(), awaited })
    }

    /// Asks the ranks that a collective waits for. Returns false if it is none, or waits for nobody.
    pub fn ask(&mut self, op: OpId) -> bool {
        let Some(running) = self.ops.get(&op) else { return false };
        let Some(group) = self.groups.get(&running.group) else { return false };
        let bytes = Frame::Ask { group: running.group, number: running.number }.encode();
        let absent = running.absent(&self.shared);
        for rank in &absent {
            let peer = group.members[*rank as usize];
            self.shared.outputs.push_back(Output::Frame { peer, bytes: bytes.clone() });
        }
        !absent.is_empty()
    }

    /// Notes that a rank has begun a collective.
    pub(crate) fn here(&mut self, group: u64, number: u64, rank: u32) {
        let op = self.groups.get(&group).and_then(|group| group.active.get(&number)).copied();
        if let Some(running) = op.and_then(|op| self.ops.get_mut(&op)) {
            running.is_here(rank);
        }
    }
}
