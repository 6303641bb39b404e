//! Algorithms of collectives and their names in scenarios.

use serde::{Deserialize, Serialize};

/// Algorithm by which a collective is done.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Ring of n - 1 steps, or 2(n - 1) for an all-reduce. A broadcast or reduction passes along the ring as
    /// a chain, chunk by chunk.
    Ring,
    /// All-reduce over two binary trees: up to the root and down again, with half of the vector on each tree,
    /// chunk by chunk.
    DoubleBinaryTree,
    /// Exchange with partners at distances that halve or double. All operations other than all-reduce need a
    /// power of two of ranks.
    HalvingDoubling,
    /// All-reduce within servers, between servers, and within servers again, each around rings.
    Hierarchical,
    /// All-to-all with all messages at once.
    Direct,
    /// All-to-all in n - 1 steps. Each step waits for the one before.
    Pairwise,
    /// All-to-all in about log2 n steps. Ranks forward the blocks of other ranks.
    Bruck,
    /// Broadcast or reduction over a binomial tree.
    Binomial,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::Ring,
        Algorithm::DoubleBinaryTree,
        Algorithm::HalvingDoubling,
        Algorithm::Hierarchical,
        Algorithm::Direct,
        Algorithm::Pairwise,
        Algorithm::Bruck,
        Algorithm::Binomial,
    ];

    /// Returns the algorithm of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the algorithm's name in scenarios and results.
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
