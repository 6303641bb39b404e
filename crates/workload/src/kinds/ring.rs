//! Steps of a ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).

use pathweave_units::{Bytes, Duration};

use crate::algorithm::Algorithm;
use crate::builder::{Draft, Stream};
use crate::collective::Operation;
use crate::error::WorkloadError;
use crate::graph::{JobId, Parallelism};
use crate::sink::{Steps, WorkloadBuilder};

/// Hosts that all-reduce vectors around a ring.
#[derive(Clone, Copy)]
pub(super) struct Ring<'a> {
    /// Hosts in the order of the ring.
    pub(super) members: &'a [u32],
}

impl Ring<'_> {
    /// Returns the number of messages of one all-reduce of `n` hosts: one for each member and step.
    pub(super) fn messages(n: u32) -> f64 {
        2.0 * f64::from(n) * (f64::from(n) - 1.0)
    }

    /// Returns the description of an all-reduce of `size` bytes. `parallelism` is the dimension that the
    /// ranks have in common.
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

    /// Declares one all-reduce of `size` bytes (at least one byte per member). `ready` holds the tasks after
    /// which each member has its vector; it is empty if all have it from the start. Returns the messages of
    /// the last step, by sender.
    ///
    /// The vector is divided into n chunks. In step s, member i sends chunk i - s (modulo n) to member i + 1,
    /// once it has received that chunk in step s - 1. In steps 1 to n - 1 it first adds its own part to the
    /// chunk, so it needs its vector. Later steps forward reduced chunks.
    pub(super) fn all_reduce(
        &self,
        out: &mut WorkloadBuilder<'_>,
        size: Bytes,
        ready: &[Draft],
        job: JobId,
    ) -> Result<Vec<Draft>, WorkloadError> {
        let n = self.members.len();
        let (share, rest) = (size.get() / n as u64, size.get() % n as u64);
        // The first chunks take the remainder.
        let chunk = |c: usize| Bytes::new(share + u64::from((c as u64) < rest));
        // Messages of the previous step, by sender.
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

    /// Makes `task` of member `i` wait for the end of the member's part of an all-reduce: the delivery of the
    /// last message it sends and of the last one it receives.
    pub(super) fn join(
        &self,
        out: &mut WorkloadBuilder<'_>,
        task: Draft,
        i: usize,
        last: &[Draft],
    ) -> Result<(), WorkloadError> {
        let n = self.members.len();
        out.after(task, last[i])?;
        out.after(task, last[(i + n - 1) % n])
    }
}
