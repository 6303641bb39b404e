//! Broadcasts and reductions.

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// Broadcast along a chain, chunk by chunk, as NCCL broadcasts around its rings: rank 0 sends `chunks` blocks
/// to rank 1, rank 1 to rank 2, and so on.
pub(super) fn chain_broadcast<M: Medium>(on: &mut M, n: usize, chunks: usize) -> Result<(), WorkloadError> {
    chain(on, chunks, (0..n).collect(), false)
}

/// Reduction along a chain: rank n - 1 sends `chunks` blocks to rank n - 2, which adds its own, and so on to
/// rank 0.
pub(super) fn chain_reduce<M: Medium>(on: &mut M, n: usize, chunks: usize) -> Result<(), WorkloadError> {
    chain(on, chunks, (0..n).rev().collect(), true)
}

fn chain<M: Medium>(on: &mut M, chunks: usize, ranks: Vec<usize>, adds: bool) -> Result<(), WorkloadError> {
    for chunk in 0..chunks {
        let mut before: Option<M::Sent> = None;
        for pair in ranks.windows(2) {
            let own = adds || before.is_none();
            let blocks = Blocks::Range { first: chunk, count: 1 };
            before = Some(on.send(Transfer { src: pair[0], dst: pair[1], blocks, own }, before.as_slice())?);
        }
    }
    Ok(())
}

const WHOLE: Blocks = Blocks::Range { first: 0, count: 1 };

/// Broadcast down a binomial tree. A rank that has the vector sends it to the ranks at distance p/2, p/4,
/// ..., 1, one after another. p is the smallest power of two that is not below n.
pub(super) fn binomial_broadcast<M: Medium>(on: &mut M, n: usize) -> Result<(), WorkloadError> {
    // Transfers that rank i waits for: the one that brings the vector, and its previous send.
    let mut after: Arrived<M::Sent> = vec![Vec::new(); n];
    let mut distance = n.next_power_of_two() / 2;
    while distance > 0 {
        for src in (0..n - distance).step_by(2 * distance) {
            let dst = src + distance;
            let transfer = Transfer { src, dst, blocks: WHOLE, own: src == 0 };
            let sent = on.send(transfer, &after[src])?;
            after[src].push(sent);
            after[dst].push(sent);
        }
        distance /= 2;
    }
    Ok(())
}

/// Reduction up the same tree, to rank 0. At distance 1, 2, 4, ..., half of the remaining ranks send their
/// partial sums to the other half.
pub(super) fn binomial_reduce<M: Medium>(on: &mut M, n: usize) -> Result<(), WorkloadError> {
    let mut arrived: Arrived<M::Sent> = vec![Vec::new(); n];
    let mut distance = 1;
    while distance < n {
        for src in (distance..n).step_by(2 * distance) {
            let dst = src - distance;
            let sent = on.send(Transfer { src, dst, blocks: WHOLE, own: true }, &arrived[src])?;
            arrived[dst].push(sent);
        }
        distance *= 2;
    }
    Ok(())
}
