//! Collectives as transfers: sender, receiver, blocks, and the transfers that must have arrived before.
//!
//! An algorithm depends only on ranks and blocks. It declares its transfers on a [`Medium`]. In a run, the
//! medium is the graph of messages ([`GraphMedium`]). In tests, it is a set of ranks that move and add up real
//! blocks, in any order that the dependencies allow.

mod all_to_all;
mod broadcast;
mod choice;
mod count;
mod cut;
mod declare;
mod folded;
mod graph_medium;
mod halving;
mod hierarchical;
mod library;
mod plan;
mod planned;
mod ring;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use all_to_all::{direct_except, pairwise_except};
pub use choice::Algorithms;
pub(crate) use choice::{chunk, eight, note_ineffective_pieces};
pub(crate) use cut::Partition;
pub(crate) use declare::{Ranks, Through};
use folded::FoldedMedium;
pub(crate) use graph_medium::{GraphMedium, Sizes};
pub use library::Library;
pub use plan::Operation;
pub(crate) use plan::{BadPlan, Plan};
pub(crate) use planned::Planned;
pub(crate) use tree::{Tree, double_tree};

use crate::error::WorkloadError;

/// Blocks that a transfer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Blocks `first .. first + count` of a vector.
    Range { first: usize, count: usize },
    /// The block that `src` has for `dst` in an all-to-all.
    Pair { src: usize, dst: usize },
    /// The blocks that rank `at` forwards in a step of Bruck's all-to-all of `ranks`: all whose remaining
    /// distance includes 2^`step`.
    Bruck { at: usize, step: u32, ranks: usize },
}

impl Blocks {
    /// Returns the (source, destination) pairs of the blocks of an all-to-all.
    pub(crate) fn pairs(self) -> Box<dyn Iterator<Item = (usize, usize)>> {
        match self {
            Blocks::Range { .. } => Box::new(std::iter::empty()),
            Blocks::Pair { src, dst } => Box::new(std::iter::once((src, dst))),
            // Before step s, a block with total distance j has covered the bits of j below s.
            Blocks::Bruck { at, step, ranks } => {
                Box::new((1..ranks).filter(move |j| j >> step & 1 == 1).map(move |j| {
                    let gone = j & ((1 << step) - 1);
                    let src = (at + ranks - gone) % ranks;
                    (src, (src + j) % ranks)
                }))
            }
        }
    }
}

/// One message of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) src: usize,
    pub(crate) dst: usize,
    pub(crate) blocks: Blocks,
    /// True if the transfer contains the sender's own input, so that it waits for that input.
    pub(crate) own: bool,
}

/// Target on which an algorithm declares its transfers.
pub(crate) trait Medium {
    /// Handle of a transfer that other transfers may wait for.
    type Sent: Copy;
    /// Declares a transfer that begins once all of `after` has arrived.
    fn send(&mut self, transfer: Transfer, after: &[Self::Sent]) -> Result<Self::Sent, WorkloadError>;
}

/// Transfers that must have arrived at each rank before the rank continues.
pub(crate) type Arrived<S> = Vec<Vec<S>>;
