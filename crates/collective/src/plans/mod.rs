//! Plans of each collective.

mod exchange;
mod reduction;
mod spread;

pub use exchange::{all_to_all, barrier, gather, scatter};
pub use reduction::{all_reduce, reduce, reduce_scatter};
pub use spread::{all_gather, broadcast};

use crate::dtype::{Dtype, ReduceOp};

/// Longest transfer whose bytes go with its frame, and longest vector that is exchanged as a whole.
pub const EAGER_BYTES: usize = 16 << 10;
/// Longest vector that is halved and doubled: above, rings need less of each link.
const HALVING_BYTES: usize = 512 << 10;

/// Place of a rank in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of this rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

/// Combination and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Combination.
    pub op: ReduceOp,
}

impl Place {
    /// Returns the rank that is so many further, around the end.
    fn plus(self, distance: u32) -> u32 {
        (self.rank + distance) % self.ranks
    }

    /// Returns the rank that is so many before, around the end.
    fn minus(self, distance: u32) -> u32 {
        (self.rank + self.ranks - distance % self.ranks) % self.ranks
    }

    /// Returns the other ranks, the next one first.
    fn others(self) -> impl Iterator<Item = u32> {
        (1..self.ranks).map(move |distance| self.plus(distance))
    }
}
