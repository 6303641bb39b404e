//! Collectives around a ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).

use super::{Arrived, Blocks, Medium, Transfer};
use crate::error::WorkloadError;

/// Ranks in a ring that share a vector. Each rank has one part.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    /// Ranks in the order of the ring.
    pub(super) ranks: &'a [usize],
    /// First block of the vector.
    pub(super) first: usize,
    /// Number of blocks in a part.
    pub(super) width: usize,
}

impl Ring<'_> {
    fn part(self, k: usize) -> Blocks {
        Blocks::Range { first: self.first + k * self.width, count: self.width }
    }

    /// Reduce-scatter: the k-th rank of the ring ends with the sum of part k. `entry` holds the transfers
    /// after which each rank's input is complete, by position in the ring. Returns the transfers after which
    /// each rank's part is complete.
    ///
    /// In step s, rank i sends part i - s - 1 to the next rank, once it has received that part in the
    /// previous step and added its own.
    pub(super) fn reduce_scatter<M: Medium>(
        self,
        on: &mut M,
        entry: &Arrived<M::Sent>,
    ) -> Result<Arrived<M::Sent>, WorkloadError> {
        let n = self.ranks.len();
        let mut before: Vec<M::Sent> = Vec::new();
        for step in 0..n - 1 {
            let mut sent = Vec::with_capacity(n);
            for (i, entry) in entry.iter().enumerate() {
                let mut after = entry.clone();
                after.extend(before.get((i + n - 1) % n));
                sent.push(self.send(on, i, (i + 2 * n - step - 1) % n, true, &after)?);
            }
            before = sent;
        }
        let mut arrived = entry.clone();
        for (i, here) in arrived.iter_mut().enumerate() {
            here.extend(before.get((i + n - 1) % n));
        }
        Ok(arrived)
    }

    /// All-gather: all ranks end with all parts. The k-th rank has part k once `entry` has arrived. Returns
    /// the transfers after which each rank has all parts.
    pub(super) fn all_gather<M: Medium>(
        self,
        on: &mut M,
        entry: &Arrived<M::Sent>,
    ) -> Result<Arrived<M::Sent>, WorkloadError> {
        let n = self.ranks.len();
        let mut arrived = entry.clone();
        let mut before: Vec<M::Sent> = Vec::new();
        for step in 0..n - 1 {
            let mut sent = Vec::with_capacity(n);
            for (i, entry) in entry.iter().enumerate() {
                let part = (i + n - step) % n;
                let message = match before.get((i + n - 1) % n) {
                    None => self.send(on, i, part, true, entry)?,
                    Some(&before) => self.send(on, i, part, false, &[before])?,
                };
                arrived[(i + 1) % n].push(message);
                sent.push(message);
            }
            before = sent;
        }
        Ok(arrived)
    }

    fn send<M: Medium>(
        self,
        on: &mut M,
        i: usize,
        part: usize,
        own: bool,
        after: &[M::Sent],
    ) -> Result<M::Sent, WorkloadError> {
        let (src, dst) = (self.ranks[i], self.ranks[(i + 1) % self.ranks.len()]);
        on.send(Transfer { src, dst, blocks: self.part(part), own }, after)
    }
}
