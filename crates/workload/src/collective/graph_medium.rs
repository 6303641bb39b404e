//! Collectives as messages of the graph.

use pathweave_units::{Bytes, Duration};

use super::{Blocks, Medium, Partition, Transfer};
use crate::builder::{Draft, Stream};
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE};
use crate::sink::WorkloadBuilder;

/// Sizes of blocks.
pub(crate) enum Sizes<'a> {
    /// A vector, divided into blocks.
    Vector(Partition),
    /// All-to-all: the data of each rank, divided by destination.
    Destinations(Partition),
    /// All-to-all: bytes by source and destination.
    Pairs(&'a dyn Fn(usize, usize) -> u64),
}

impl Sizes<'_> {
    /// Returns the bytes of `blocks`.
    pub(crate) fn bytes(&self, blocks: Blocks) -> u64 {
        match (self, blocks) {
            (Sizes::Vector(cut), Blocks::Range { first, count }) => cut.bytes(first, count),
            (Sizes::Vector(_), _) => unreachable!("a vector is sent in ranges"),
            (Sizes::Destinations(cut), blocks) => blocks.pairs().map(|(_, dst)| cut.bytes(dst, 1)).sum(),
            (Sizes::Pairs(size), blocks) => blocks.pairs().map(|(src, dst)| size(src, dst)).sum(),
        }
    }
}

/// The graph as the ranks of a collective use it.
pub(crate) struct GraphMedium<'s, 'e> {
    pub(crate) out: &'s mut WorkloadBuilder<'e>,
    /// Host of each rank.
    pub(crate) members: &'s [u32],
    /// Task that each rank's input waits for; empty if all ranks have their input from the start.
    pub(crate) ready: &'s [Draft],
    pub(crate) sizes: Sizes<'s>,
    /// Label of the connections. Messages between the same two hosts with the same label share a connection.
    pub(crate) stream: u32,
    pub(crate) job: Option<JobId>,
    /// All messages that each rank sends and receives. The collective has ended at the rank once they are
    /// delivered.
    pub(crate) through: Vec<Vec<Draft>>,
}

impl<'s, 'e> GraphMedium<'s, 'e> {
    pub(crate) fn new(
        out: &'s mut WorkloadBuilder<'e>,
        members: &'s [u32],
        ready: &'s [Draft],
        sizes: Sizes<'s>,
        job: Option<JobId>,
    ) -> Self {
        GraphMedium { out, members, ready, sizes, stream: 0, job, through: vec![Vec::new(); members.len()] }
    }
}

impl Medium for GraphMedium<'_, '_> {
    type Sent = Draft;

    fn send(&mut self, transfer: Transfer, after: &[Draft]) -> Result<Draft, WorkloadError> {
        let Transfer { src, dst, blocks, own } = transfer;
        let bytes = self.sizes.bytes(blocks);
        let pair = (self.members[src], self.members[dst]);
        let ready = if own { self.ready.get(src) } else { None };
        let most = MAX_MESSAGE_SIZE.get();
        let mut sent = None;
        // A transfer that exceeds the largest message is sent as several messages, one after the other.
        for piece in 0..bytes.div_ceil(most) {
            let size = Bytes::new(most.min(bytes - piece * most));
            let message =
                self.out.message(pair, size, Duration::ZERO, Stream::Shared(self.stream), self.job)?;
            for &before in after.iter().chain(ready).chain(&sent) {
                self.out.after(message, before)?;
            }
            sent = Some(message);
        }
        let sent = sent.expect("a transfer has a byte at least");
        self.through[src].push(sent);
        self.through[dst].push(sent);
        Ok(sent)
    }
}
