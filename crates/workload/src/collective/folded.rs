//! Collectives of which only some ranks are on the graph: each of those stands for all that are alike.

use pathweave_units::{Bytes, Duration};

use super::{Medium, Sizes, Transfer};
use crate::builder::{Draft, Stream};
use crate::error::WorkloadError;
use crate::graph::{JobId, MAX_MESSAGE_SIZE, Moment};
use crate::sink::Sink;

/// The graph, as ranks see it of which each is like one with a number that is no higher. A collective that is unchanged by a
/// rotation of its ranks has the same transfers for all that are alike, so that the k-th of one is the k-th of any other.
pub(crate) struct Folded<'s, 'e> {
    pub(crate) out: &'s mut Sink<'e>,
    /// Host of each rank.
    pub(crate) members: &'s [u32],
    /// By rank, the one that stands for it.
    pub(crate) alike: &'s [usize],
    /// What the input of each rank that stands for itself waits for.
    pub(crate) ready: &'s [Option<Draft>],
    pub(crate) sizes: Sizes<'s>,
    /// Messages of the same two hosts and label follow each other on one connection.
    pub(crate) stream: u32,
    pub(crate) job: Option<JobId>,
    /// By rank, what it has sent, or would have.
    sent: Vec<Vec<Draft>>,
    counts: Vec<usize>,
    /// By rank that stands for itself, all it sends and receives, with when it knows: the collective is through there then.
    pub(crate) through: Vec<Vec<(Draft, Moment)>>,
}

/// A transfer as it is seen at its ends.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    task: Draft,
    src: usize,
}

impl<'s, 'e> Folded<'s, 'e> {
    pub(crate) fn new(
        out: &'s mut Sink<'e>,
        (members, alike): (&'s [u32], &'s [usize]),
        ready: &'s [Option<Draft>],
        sizes: Sizes<'s>,
        job: Option<JobId>,
    ) -> Self {
        let none = vec![Vec::new(); members.len()];
        let counts = vec![0; members.len()];
        Folded {
            out,
            members,
            alike,
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
                // What a rank waits for it has sent or received.
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

impl Medium for Folded<'_, '_> {
    type Sent = Sent;

    fn send(&mut self, transfer: Transfer, after: &[Sent]) -> Result<Sent, WorkloadError> {
        let (src, dst) = (transfer.src, transfer.dst);
        let task = if self.alike[src] == src {
            let task = self.declare(transfer, after)?;
            self.sent[src].push(task);
            self.through[src].push((task, Moment::Completion));
            task
        } else {
            let nth = self.counts[src];
            self.counts[src] += 1;
            self.sent[self.alike[src]][nth]
        };
        if self.alike[dst] == dst {
            self.through[dst].push((task, Moment::Delivery));
        }
        Ok(Sent { task, src })
    }
}
