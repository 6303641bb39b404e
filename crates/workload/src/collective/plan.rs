//! Plan of a collective: operation, algorithm, ranks and size.

use pathweave_units::Bytes;
use serde::{Deserialize, Serialize};

use super::ring::Ring;
use super::{Arrived, Medium, Partition, Sizes, all_to_all, broadcast, halving, hierarchical, tree};
use crate::algorithm::Algorithm;
use crate::error::WorkloadError;
use crate::graph::{BandwidthBytes, Parallelism};
use crate::sink::Steps;

/// Operation of a collective, named as in NCCL. Sizes are defined as in nccl-tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every rank ends with the sum of all vectors. The size is that of the vector.
    AllReduce,
    /// The vectors are added up and every rank ends with its share of the sum. The size is that of the
    /// vector.
    ReduceScatter,
    /// Every rank ends with the parts of all ranks. The size is that of all parts together.
    AllGather,
    /// Every rank has a block for every rank. The size is that of all blocks of one rank, its block for
    /// itself included.
    AllToAll,
    /// Rank 0 sends its vector to all ranks. The size is that of the vector.
    Broadcast,
    /// Rank 0 ends with the sum of all vectors. The size is that of the vector.
    Reduce,
}

impl Operation {
    /// Returns the algorithms that can do the operation. The first is the default.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm::*;
        match self {
            Operation::AllReduce => &[Ring, DoubleBinaryTree, HalvingDoubling, Hierarchical],
            Operation::ReduceScatter | Operation::AllGather => &[Ring, HalvingDoubling],
            Operation::AllToAll => &[Direct, Pairwise, Bruck],
            Operation::Broadcast | Operation::Reduce => &[Ring, Binomial],
        }
    }
    /// Returns the name in scenarios and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllGather => "all-gather",
            Operation::AllToAll => "all-to-all",
            Operation::Broadcast => "broadcast",
            Operation::Reduce => "reduce",
        }
    }
    /// Returns the bytes from which bandwidth is computed: the size, and for the bus bandwidth the size times
    /// the factor of nccl-tests (doc/PERFORMANCE.md). The bus bandwidth does not depend on the number of
    /// ranks and compares with the rate of a link.
    pub(crate) fn measure(self, ranks: usize, size: u64) -> BandwidthBytes {
        let n = ranks as u128;
        let bus = match self {
            Operation::AllReduce => u128::from(size) * 2 * (n - 1) / n,
            Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => {
                u128::from(size) * (n - 1) / n
            }
            Operation::Broadcast | Operation::Reduce => u128::from(size),
        };
        BandwidthBytes { size: Bytes::new(size), bus: Bytes::new(u64::try_from(bus).unwrap_or(u64::MAX)) }
    }
}

/// A collective to be put on a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    pub(crate) algorithm: Algorithm,
    /// Number of ranks, 2 or more.
    pub(crate) ranks: usize,
    /// Size as [`Operation`] defines it, bytes.
    pub(crate) size: u64,
    /// Largest piece that trees and chains send, bytes.
    pub(crate) chunk: u64,
    /// Ranks of a server, for the hierarchical all-reduce.
    pub(crate) ranks_per_server: usize,
}

/// Error of a plan: field, value, and what is allowed.
pub(crate) type BadPlan = (&'static str, String, String);

impl Plan {
    /// Creates the plan of a ring all-reduce of a vector.
    pub(crate) fn ring_all_reduce(ranks: usize, size: Bytes) -> Self {
        let (operation, algorithm) = (Operation::AllReduce, Algorithm::Ring);
        Plan {
            operation,
            algorithm,
            ranks,
            size: size.get(),
            chunk: super::chunk().get(),
            ranks_per_server: super::eight() as usize,
        }
    }

    pub(crate) fn check(&self) -> Result<(), BadPlan> {
        let Plan { operation, algorithm, ranks, size, chunk, ranks_per_server: local } = *self;
        let known = operation.algorithms();
        if !known.contains(&algorithm) {
            let names: Vec<&str> = known.iter().map(|a| a.name()).collect();
            let allowed = format!("{} is done by {}", operation.name(), names.join(", "));
            return Err(("algorithm", algorithm.name().to_owned(), allowed));
        }
        if algorithm == Algorithm::HalvingDoubling
            && operation != Operation::AllReduce
            && !ranks.is_power_of_two()
        {
            let allowed =
                format!("{} over {ranks} ranks; halving and doubling needs a power of two", operation.name());
            return Err(("algorithm", algorithm.name().to_owned(), allowed));
        }
        if algorithm == Algorithm::Hierarchical && (local == 0 || !ranks.is_multiple_of(local)) {
            let allowed = format!("expected a number that divides the {ranks} ranks");
            return Err(("local_size", local.to_string(), allowed));
        }
        if chunk == 0 {
            return Err(("chunk", "0B".to_owned(), "expected 1 byte or more".to_owned()));
        }
        let parts = self.parts();
        if size < parts as u64 {
            let allowed = format!("expected at least {parts} bytes, one for each part of the algorithm");
            return Err(("size", Bytes::new(size).to_string(), allowed));
        }
        Ok(())
    }

    /// Returns the number of parts of the vector.
    fn parts(&self) -> usize {
        let chunks =
            |bytes: u64| usize::try_from(bytes.div_ceil(self.chunk.max(1)).max(1)).unwrap_or(usize::MAX);
        match (self.operation, self.algorithm) {
            (_, Algorithm::DoubleBinaryTree) => chunks(self.size.div_ceil(2)).saturating_mul(2),
            (Operation::Broadcast | Operation::Reduce, Algorithm::Ring) => chunks(self.size),
            (Operation::Broadcast | Operation::Reduce, _) => 1,
            (Operation::AllReduce, Algorithm::HalvingDoubling) => halving::power_within(self.ranks),
            _ => self.ranks,
        }
    }

    /// Returns the sizes of blocks.
    pub(crate) fn sizes(&self) -> Sizes<'static> {
        let cut = Partition { bytes: self.size, parts: self.parts() };
        if self.operation == Operation::AllToAll { Sizes::Destinations(cut) } else { Sizes::Vector(cut) }
    }

    /// Returns the description of its transfers. `parallelism` is the dimension that the ranks have in
    /// common.
    pub(crate) fn steps(&self, parallelism: Option<Parallelism>) -> Steps<'static> {
        Steps {
            kind: self.operation.name(),
            ranks: self.ranks,
            algorithm: self.algorithm.name(),
            measure: Some(self.operation.measure(self.ranks, self.size)),
            parallelism,
        }
    }

    /// Returns the number of messages.
    pub(crate) fn messages(&self) -> f64 {
        let n = self.ranks as f64;
        let parts = self.parts() as f64;
        match (self.operation, self.algorithm) {
            (Operation::AllReduce, Algorithm::Ring) => 2.0 * n * (n - 1.0),
            (_, Algorithm::DoubleBinaryTree) => 2.0 * (n - 1.0) * parts,
            (Operation::AllReduce, Algorithm::HalvingDoubling) => 2.0 * n * n.log2().ceil(),
            (_, Algorithm::HalvingDoubling | Algorithm::Bruck) => n * n.log2().ceil(),
            (_, Algorithm::Hierarchical) => {
                let local = self.ranks_per_server as f64;
                2.0 * n * (local - 1.0 + n / local - 1.0)
            }
            (Operation::Broadcast | Operation::Reduce, _) => (n - 1.0) * parts,
            _ => n * (n - 1.0),
        }
    }

    /// Returns true if a rotation of the ranks by `by` leaves the collective unchanged: every rank then does
    /// what the rank `by` before it does, with the ranks renamed.
    pub(crate) fn is_unchanged_by_rotation(&self, by: usize) -> bool {
        let around = !matches!(self.operation, Operation::Broadcast | Operation::Reduce);
        by.is_multiple_of(self.ranks)
            || match self.algorithm {
                Algorithm::Ring => around,
                Algorithm::Direct | Algorithm::Pairwise | Algorithm::Bruck => true,
                Algorithm::Hierarchical => by.is_multiple_of(self.ranks_per_server),
                Algorithm::DoubleBinaryTree | Algorithm::HalvingDoubling | Algorithm::Binomial => false,
            }
    }

    /// Declares all transfers of the collective. The plan must have been checked.
    pub(crate) fn run<M: Medium>(&self, on: &mut M) -> Result<(), WorkloadError> {
        let n = self.ranks;
        let nothing = || -> Arrived<M::Sent> { vec![Vec::new(); n] };
        let all: Vec<usize> = (0..n).collect();
        let ring = Ring { ranks: &all, first: 0, width: 1 };
        match (self.operation, self.algorithm) {
            (Operation::AllReduce, Algorithm::DoubleBinaryTree) => {
                tree::double_binary_all_reduce(on, n, self.parts() / 2)
            }
            (Operation::AllReduce, Algorithm::HalvingDoubling) => halving::all_reduce(on, n),
            (Operation::AllReduce, Algorithm::Hierarchical) => {
                hierarchical::all_reduce(on, n, self.ranks_per_server)
            }
            (Operation::AllReduce, _) => {
                let reduced = ring.reduce_scatter(on, &nothing())?;
                ring.all_gather(on, &reduced).map(|_| ())
            }
            (Operation::ReduceScatter, Algorithm::HalvingDoubling) => {
                halving::reduce_scatter(on, n, &mut nothing())
            }
            (Operation::ReduceScatter, _) => ring.reduce_scatter(on, &nothing()).map(|_| ()),
            (Operation::AllGather, Algorithm::HalvingDoubling) => halving::all_gather(on, n, &mut nothing()),
            (Operation::AllGather, _) => ring.all_gather(on, &nothing()).map(|_| ()),
            (Operation::AllToAll, Algorithm::Pairwise) => all_to_all::pairwise(on, n),
            (Operation::AllToAll, Algorithm::Bruck) => all_to_all::bruck(on, n),
            (Operation::AllToAll, _) => all_to_all::direct(on, n),
            (Operation::Broadcast, Algorithm::Binomial) => broadcast::binomial_broadcast(on, n),
            (Operation::Broadcast, _) => broadcast::chain_broadcast(on, n, self.parts()),
            (Operation::Reduce, Algorithm::Binomial) => broadcast::binomial_reduce(on, n),
            (Operation::Reduce, _) => broadcast::chain_reduce(on, n, self.parts()),
        }
    }
}
