//! Recursive halving and doubling of distances (Thakur, Rabenseifner and Gropp, "Optimization of collective
//! communication operations in MPICH", 2005, section 4).

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// Reduce-scatter of a power of two of ranks. At distance n/2, n/4, ..., 1, a rank sends its partner the half
/// of its blocks that the partner keeps. Rank i ends with block i. `arrived` holds the transfers that each
/// rank has received.
pub(super) fn reduce_scatter<M: Medium>(
    on: &mut M,
    ranks: usize,
    arrived: &mut Arrived<M::Sent>,
) -> Result<(), WorkloadError> {
    let mut distance = ranks / 2;
    while distance > 0 {
        let half =
            |src: usize| Blocks::Range { first: (src ^ distance) / distance * distance, count: distance };
        exchange(on, ranks, distance, half, arrived)?;
        distance /= 2;
    }
    Ok(())
}

/// All-gather of a power of two of ranks. Rank i begins with block i. At distance 1, 2, ..., n/2, partners
/// exchange all blocks they have.
pub(super) fn all_gather<M: Medium>(
    on: &mut M,
    ranks: usize,
    arrived: &mut Arrived<M::Sent>,
) -> Result<(), WorkloadError> {
    let mut distance = 1;
    while distance < ranks {
        let all = |src: usize| Blocks::Range { first: src / distance * distance, count: distance };
        exchange(on, ranks, distance, all, arrived)?;
        distance *= 2;
    }
    Ok(())
}

/// All-reduce of any number of ranks. Each rank beyond the largest power of two sends its input to a partner
/// first, and receives the result from it at the end.
pub(super) fn all_reduce<M: Medium>(on: &mut M, ranks: usize) -> Result<(), WorkloadError> {
    let power = power_within(ranks);
    let whole = Blocks::Range { first: 0, count: power };
    let mut arrived: Arrived<M::Sent> = vec![Vec::new(); power];
    for extra in power..ranks {
        let transfer = Transfer { src: extra, dst: extra - power, blocks: whole, own: true };
        let sent = on.send(transfer, &[])?;
        arrived[extra - power].push(sent);
    }
    reduce_scatter(on, power, &mut arrived)?;
    all_gather(on, power, &mut arrived)?;
    for extra in power..ranks {
        let transfer = Transfer { src: extra - power, dst: extra, blocks: whole, own: true };
        on.send(transfer, &arrived[extra - power])?;
    }
    Ok(())
}

/// Returns the largest power of two that is at most `ranks`.
pub(super) fn power_within(ranks: usize) -> usize {
    1 << ranks.ilog2()
}

/// Lets each rank send to its partner at this distance, after all transfers it has received so far. Each
/// block sent contains data of every previous step.
fn exchange<M: Medium>(
    on: &mut M,
    ranks: usize,
    distance: usize,
    blocks: impl Fn(usize) -> Blocks,
    arrived: &mut Arrived<M::Sent>,
) -> Result<(), WorkloadError> {
    let mut sent = Vec::with_capacity(ranks);
    for (src, arrived) in arrived.iter().enumerate().take(ranks) {
        let transfer = Transfer { src, dst: src ^ distance, blocks: blocks(src), own: true };
        sent.push(on.send(transfer, arrived)?);
    }
    for (rank, here) in arrived.iter_mut().enumerate().take(ranks) {
        here.push(sent[rank ^ distance]);
    }
    Ok(())
}
