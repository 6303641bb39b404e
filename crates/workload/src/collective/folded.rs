//! Collectives of which only representative ranks are on the graph.

use pathweave_units::{Bytes, Duration};

use super::{Medium, Sizes, Transfer};
use crate::builder::{Draft, Stream};
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE, Moment};
use crate::sink::WorkloadBuilder;

/// The graph as ranks use it if each rank is represented by one with the same or a lower number. A rotation
/// of the ranks leaves the collective unchanged. So the k-th transfer of a rank corresponds to the k-th
/// transfer of its representative.
pub(crate) struct FoldedMedium<'s, 'e> {
    pub(crate) out: &'s mut WorkloadBuilder<'e>,
    /// Host of each rank.
    pub(crate) members: &'s [u32],
    /// Representative of each rank.
    pub(crate) representative: &'s [usize],
    /// Task that the input of each representative waits for, by rank.
    pub(crate) ready: &'s [Option<Draft>],
    pub(crate) sizes: Sizes<'s>,
    /// Label of the connections. Messages between the same two hosts with the same label share a connection.
    pub(crate) stream: u32,
    pub(crate) job: Option<JobId>,
    /// Messages that each rank sends, by rank. Only the entries of representatives are filled.
    sent: Vec<Vec<Draft>>,
    counts: Vec<usize>,
    /// All messages that each representative sends and receives, with the moment at which it learns of their
    /// end. The collective has ended there once all of them have.
    pub(crate) through: Vec<Vec<(Draft, Moment)>>,
}

/// A transfer and the rank that sends it.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    task: Draft,
    src: usize,
}

impl<'s, 'e> FoldedMedium<'s, 'e> {
    pub(crate) fn new(
        out: &'s mut WorkloadBuilder<'e>,
        (members, alike): (&'s [u32], &'s [usize]),
        ready: &'s [Option<Draft>],
        sizes: Sizes<'s>,
        job: Option<JobId>,
    ) -> Self {
        let none = vec![Vec::new(); members.len()];
        let counts = vec![0; members.len()];
        FoldedMedium {
            out,
            members,
            representative: alike,
            ready,
            sizes,
            stream: 0,
            job,
            sent: none,
            counts,
            through: vec![Vec::new(); members.len()],
        }
    }

    /// Puts a transfer on the graph.
    fn declare(&mut self, transfer: Transfer, after: &[Sent]) -> Result<Draft, WorkloadError> {
        let Transfer { src, dst, blocks, own } = transfer;
        let bytes = self.sizes.bytes(blocks);
        let pair = (self.members[src], self.members[dst]);
        let most = MAX_MESSAGE_SIZE.get();
        let mut before = None;
        for piece in 0..bytes.div_ceil(most) {
            let size = Bytes::new(most.min(bytes - piece * most));
            let message =
                self.out.message(pair, size, Duration::ZERO, Stream::Shared(self.stream), self.job)?;
            for &Sent { task, src: sender } in after {
                // A rank waits only for transfers that it has sent or received.
                let moment = if sender == src { Moment::Completion } else { Moment::Delivery };
                self.out.after_moment(message, task, moment)?;
            }
            if let Some(ready) = self.ready[src].filter(|_| own) {
                self.out.after(message, ready)?;
            }
            if let Some(before) = before {
                self.out.after_moment(message, before, Moment::Completion)?;
            }
            before = Some(message);
        }
        Ok(before.expect("a transfer has a byte at least"))
    }
}

impl Medium for FoldedMedium<'_, '_> {
    type Sent = Sent;

    fn send(&mut self, transfer: Transfer, after: &[Sent]) -> Result<Sent, WorkloadError> {
        let (src, dst) = (transfer.src, transfer.dst);
        let task = if self.representative[src] == src {
            let task = self.declare(transfer, after)?;
            self.sent[src].push(task);
            self.through[src].push((task, Moment::Completion));
            task
        } else {
            let nth = self.counts[src];
            self.counts[src] += 1;
            self.sent[self.representative[src]][nth]
        };
        if self.representative[dst] == dst {
            self.through[dst].push((task, Moment::Delivery));
        }
        Ok(Sent { task, src })
    }
}
