//! Collectives as messages: who sends which blocks to whom, and what has to have arrived before.
//!
//! An algorithm knows ranks and blocks and nothing else. It puts its transfers on a [`Medium`]: in a run that is the
//! graph of messages ([`Wires`]), in tests a set of ranks that really move and add up blocks, in any order the
//! dependencies allow.

mod all_to_all;
mod broadcast;
mod choice;
mod count;
mod cut;
mod folded;
mod halving;
mod hierarchical;
mod plan;
mod put;
mod ring;
#[cfg(test)]
mod tests;
mod tree;
mod wires;

pub(crate) use all_to_all::{direct_unless, pairwise_unless};
pub use choice::Algorithms;
pub(crate) use choice::{chunk, eight};
pub(crate) use cut::Cut;
use folded::Folded;
pub use plan::Operation;
pub(crate) use plan::Plan;
pub(crate) use put::{Ranks, Through};
pub(crate) use wires::{Sizes, Wires};

use crate::error::WorkloadError;

/// The blocks a transfer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Blocks `first .. first + count` of a vector.
    Range { first: usize, count: usize },
    /// What `src` has for `dst`, of an all-to-all.
    Pair { src: usize, dst: usize },
    /// What rank `at` passes on in a step of Bruck's all-to-all of `ranks`: everything that has yet to go the distance
    /// of 2^`step`.
    Bruck { at: usize, step: u32, ranks: usize },
}

impl Blocks {
    /// The pairs (source, destination) of blocks of an all-to-all.
    pub(crate) fn pairs(self) -> Box<dyn Iterator<Item = (usize, usize)>> {
        match self {
            Blocks::Range { .. } => Box::new(std::iter::empty()),
            Blocks::Pair { src, dst } => Box::new(std::iter::once((src, dst))),
            // A block to go j ranks in all has gone the lower bits of j when step s comes.
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
    /// Whether the sender's own input is in it, so that it has to be known.
    pub(crate) own: bool,
}

/// Where an algorithm puts its transfers.
pub(crate) trait Medium {
    /// A transfer that others may wait for.
    type Sent: Copy;
    /// Declares a transfer that begins once all of `after` has arrived.
    fn send(&mut self, transfer: Transfer, after: &[Self::Sent]) -> Result<Self::Sent, WorkloadError>;
}

/// For each rank, what has to have arrived there before it goes on.
pub(crate) type Arrived<S> = Vec<Vec<S>>;
