//! All-to-all: every rank sends a block to every other rank.

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// Sends all blocks at once, as NCCL does with grouped sends and receives.
pub(super) fn direct<M: Medium>(on: &mut M, n: usize) -> Result<(), WorkloadError> {
    direct_except(on, n, |_, _| false)
}

/// Works as [`direct`], but omits the pairs for which `nothing` returns true.
pub(crate) fn direct_except<M: Medium>(
    on: &mut M,
    n: usize,
    nothing: impl Fn(usize, usize) -> bool,
) -> Result<(), WorkloadError> {
    for step in 1..n {
        for src in 0..n {
            let dst = (src + step) % n;
            if !nothing(src, dst) {
                send(on, src, dst, &[])?;
            }
        }
    }
    Ok(())
}

/// Rank i sends to i + s and receives from i - s in step s. Its next step begins when both transfers have
/// ended.
pub(super) fn pairwise<M: Medium>(on: &mut M, n: usize) -> Result<(), WorkloadError> {
    pairwise_except(on, n, |_, _| false)
}

/// Works as [`pairwise`], but omits the pairs for which `nothing` returns true.
pub(crate) fn pairwise_except<M: Medium>(
    on: &mut M,
    n: usize,
    nothing: impl Fn(usize, usize) -> bool,
) -> Result<(), WorkloadError> {
    let mut over: Arrived<M::Sent> = vec![Vec::new(); n];
    for step in 1..n {
        let mut next: Arrived<M::Sent> = vec![Vec::new(); n];
        for src in 0..n {
            let dst = (src + step) % n;
            if nothing(src, dst) {
                next[src].extend(&over[src]);
                continue;
            }
            let sent = send(on, src, dst, &over[src])?;
            next[src].push(sent);
            next[dst].push(sent);
        }
        over = next;
    }
    Ok(())
}

/// Bruck's algorithm. In step s, rank i sends to i + 2^s all blocks it holds, its own or others', whose
/// remaining distance has bit s set. There are few messages, but each block crosses the network several times
/// (Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
/// 1997, section 3).
pub(super) fn bruck<M: Medium>(on: &mut M, n: usize) -> Result<(), WorkloadError> {
    let mut arrived: Arrived<M::Sent> = vec![Vec::new(); n];
    for step in 0..usize::BITS - (n - 1).leading_zeros() {
        let mut sent = Vec::with_capacity(n);
        for (src, arrived) in arrived.iter().enumerate() {
            let blocks = Blocks::Bruck { at: src, step, ranks: n };
            let dst = (src + (1 << step)) % n;
            sent.push(on.send(Transfer { src, dst, blocks, own: true }, arrived)?);
        }
        for (src, &message) in sent.iter().enumerate() {
            arrived[(src + (1 << step)) % n].push(message);
        }
    }
    Ok(())
}

fn send<M: Medium>(on: &mut M, src: usize, dst: usize, after: &[M::Sent]) -> Result<M::Sent, WorkloadError> {
    on.send(Transfer { src, dst, blocks: Blocks::Pair { src, dst }, own: true }, after)
}
