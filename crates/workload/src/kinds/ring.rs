//! The steps of a ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).

use pathweave_units::{Bytes, Duration};

use crate::algorithm::Algorithm;
use crate::builder::{Draft, Stream};
use crate::collective::Operation;
use crate::error::WorkloadError;
use crate::graph::{JobId, Parallelism};
use crate::sink::{Sink, Steps};

/// Hosts that add up vectors around a ring.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    /// In the order of the ring.
    pub(super) members: &'a [u32],
}

impl Ring<'_> {
    /// Messages of one all-reduce of `n` hosts, one for each member and step.
    pub(super) fn messages(n: u32) -> f64 {
        2.0 * f64::from(n) * (f64::from(n) - 1.0)
    }

    /// What the messages of an all-reduce of `size` bytes are steps of, among ranks that have this in common.
    pub(super) fn steps(&self, size: Bytes, parallelism: Option<Parallelism>) -> Steps<'static> {
        let (operation, ranks) = (Operation::AllReduce, self.members.len());
        Steps {
            kind: operation.name(),
            ranks,
            algorithm: Algorithm::Ring,
            measure: Some(operation.measure(ranks, size.get())),
            parallelism,
        }
    }

    /// One all-reduce of `size` bytes (at least one a member); `ready` are the tasks after which each member has its
    /// vector (empty: from the start). Returns the messages of the last step, by sender.
    ///
    /// The vector is cut into n chunks. In step s member i sends chunk i - s (modulo n) to member i + 1; it can do
    /// so once it has received that chunk in step s - 1. In steps 1 to n - 1 it adds its own part to the chunk
    /// first, and so needs its vector; later ones pass on what is reduced.
    pub(super) fn all_reduce(
        &self,
        out: &mut Sink<'_>,
        size: Bytes,
        ready: &[Draft],
        job: JobId,
    ) -> Result<Vec<Draft>, WorkloadError> {
        let n = self.members.len();
        let (share, rest) = (size.get() / n as u64, size.get() % n as u64);
        // The first chunks take the bytes that are left over.
        let chunk = |c: usize| Bytes::new(share + u64::from((c as u64) < rest));
        // Messages of the step before, by sender.
        let mut before: Vec<Draft> = Vec::new();
        for step in 0..2 * (n - 1) {
            let mut sent = Vec::with_capacity(n);
            for i in 0..n {
                let size = chunk((i + 2 * n - step) % n);
                let pair = (self.members[i], self.members[(i + 1) % n]);
                let message = out.message(pair, size, Duration::ZERO, Stream::Shared(0), Some(job))?;
                if step > 0 {
                    out.after(message, before[(i + n - 1) % n])?;
                }
                if step < n
                    && let Some(&vector) = ready.get(i)
                {
                    out.after(message, vector)?;
                }
                sent.push(message);
            }
            before = sent;
        }
        Ok(before)
    }

    /// `task` of member `i` waits for its part of an all-reduce to be over: its last message is delivered and so is
    /// the one to it.
    pub(super) fn join(
        &self,
        out: &mut Sink<'_>,
        task: Draft,
        i: usize,
        last: &[Draft],
    ) -> Result<(), WorkloadError> {
        let n = self.members.len();
        out.after(task, last[i])?;
        out.after(task, last[(i + n - 1) % n])
    }
}
