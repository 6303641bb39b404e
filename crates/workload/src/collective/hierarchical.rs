//! All-reduce in two levels: within each server, between servers, and within each server again.

use super::ring::Ring;
use super::{Arrived, Medium};
use crate::error::WorkloadError;

/// All-reduce of `ranks`, of which each `local` consecutive ones form a server.
///
/// The ranks of a server reduce-scatter their vectors around a ring. Then ranks that hold the same part, one
/// of each server, all-reduce it around a ring of their own. Finally the ranks of a server all-gather the
/// parts. So each rank sends only 1/`local` of the vector out of its server.
pub(super) fn all_reduce<M: Medium>(on: &mut M, ranks: usize, local: usize) -> Result<(), WorkloadError> {
    let servers = ranks / local;
    let mut arrived: Arrived<M::Sent> = vec![Vec::new(); ranks];
    let near: Vec<Vec<usize>> = (0..servers).map(|s| (s * local..(s + 1) * local).collect()).collect();
    let far: Vec<Vec<usize>> = (0..local).map(|l| (l..ranks).step_by(local).collect()).collect();

    let within = |ranks| Ring { ranks, first: 0, width: servers };
    for ranks in &near {
        let entry = take(&mut arrived, ranks);
        put(&mut arrived, ranks, within(ranks).reduce_scatter(on, &entry)?);
    }
    for (l, ranks) in far.iter().enumerate() {
        let ring = Ring { ranks, first: l * servers, width: 1 };
        let entry = take(&mut arrived, ranks);
        let reduced = ring.reduce_scatter(on, &entry)?;
        put(&mut arrived, ranks, ring.all_gather(on, &reduced)?);
    }
    for ranks in &near {
        let entry = take(&mut arrived, ranks);
        within(ranks).all_gather(on, &entry)?;
    }
    Ok(())
}

fn take<S>(of: &mut Arrived<S>, ranks: &[usize]) -> Arrived<S> {
    ranks.iter().map(|&rank| std::mem::take(&mut of[rank])).collect()
}

fn put<S>(of: &mut Arrived<S>, ranks: &[usize], what: Arrived<S>) {
    for (&rank, what) in ranks.iter().zip(what) {
        of[rank] = what;
    }
}
