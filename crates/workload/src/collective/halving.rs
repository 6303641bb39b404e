//! Recursive halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
//! MPICH", 2005, section 4).

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// Reduce-scatter of a power of two of ranks: at distance n/2, n/4, ..., 1 a rank sends its partner the half of its
/// blocks that the partner keeps. Rank i ends with block i. `arrived` is what has arrived at each.
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

/// All-gather of a power of two of ranks, rank i beginning with block i: at distance 1, 2, ..., n/2 partners exchange all
/// they have.
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

/// All-reduce of any number of ranks. Those beyond the largest power of two hand their input to a partner first, and get
/// the result from it last.
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

/// The largest power of two of at most so many ranks.
pub(super) fn power_within(ranks: usize) -> usize {
    1 << ranks.ilog2()
}

/// Everybody sends to its partner at this distance, after all that has arrived so far: each block sent has something
/// from every step before.
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
