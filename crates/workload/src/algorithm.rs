//! The algorithms of collectives, by name.

use serde::{Deserialize, Serialize};

/// How a collective is done.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Around a ring in n - 1 steps, twice that for an all-reduce; a broadcast or reduction goes along the ring as a
    /// chain, chunk by chunk.
    Ring,
    /// All-reduce up and down two binary trees, half of the vector each, chunk by chunk.
    DoubleBinaryTree,
    /// With partners at distances that halve or double. Other than for an all-reduce, the ranks must be a power of two.
    HalvingDoubling,
    /// All-reduce within servers, between them, and within them again, each around rings.
    Hierarchical,
    /// All-to-all at once.
    Direct,
    /// All-to-all in n - 1 steps, each of which waits for the one before.
    Pairwise,
    /// All-to-all in about log2 n steps, in which blocks are passed on.
    Bruck,
    /// Broadcast or reduction over a binomial tree.
    Binomial,
}

impl Algorithm {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::DoubleBinaryTree => "double-binary-tree",
            Algorithm::HalvingDoubling => "halving-doubling",
            Algorithm::Hierarchical => "hierarchical",
            Algorithm::Direct => "direct",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Bruck => "bruck",
            Algorithm::Binomial => "binomial",
        }
    }
}
