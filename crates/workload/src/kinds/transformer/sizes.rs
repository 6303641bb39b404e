//! Sizes that follow from a job's configuration and its hosts: replicas and microbatches.

use std::borrow::Cow;

use super::Transformer;
use super::models::Shape;
use crate::architecture::Architecture;
use crate::error::WorkloadError;
use crate::kinds::simai::SimAi;
use crate::sink::WorkloadBuilder;

impl Transformer {
    /// Returns the shape of layers that are all alike, or `None` if stages have work of their own.
    pub(super) fn equal_stages(&self, architecture: Architecture) -> Option<Shape> {
        if self.has_fields_of_stages() { None } else { Shape::of(architecture) }
    }

    /// Returns the configuration by which equal stages are played.
    pub(super) fn played(&self, out: &WorkloadBuilder<'_>) -> SimAi {
        SimAi {
            file: "transformer".to_owned(),
            gpus: Some(self.gpus(out)),
            tp: Some(self.tp),
            ep: Some(self.ep),
            pp: Some(self.pp),
            microbatches: None,
            hosts: self.hosts.clone(),
            algorithms: self.algorithms.clone(),
            scale: self.scale,
            iterations: self.iterations,
        }
    }

    pub(super) fn gpus(&self, out: &WorkloadBuilder<'_>) -> u32 {
        self.gpus.unwrap_or(out.env.hosts)
    }

    /// Returns the number of GPUs of a replica.
    fn gpus_of_replica(&self) -> u32 {
        self.tp.saturating_mul(self.cp).saturating_mul(self.pp).max(1)
    }

    /// Returns the number of data-parallel replicas, rounded down.
    pub(super) fn replicas(&self, out: &WorkloadBuilder<'_>) -> u32 {
        self.gpus(out) / self.gpus_of_replica()
    }

    /// Returns the job with the number of microbatches that its global batch gives.
    pub(super) fn with_microbatches(
        &self,
        out: &WorkloadBuilder<'_>,
    ) -> Result<Cow<'_, Self>, WorkloadError> {
        let Some(batch) = self.global_batch else { return Ok(Cow::Borrowed(self)) };
        if self.microbatches != 1 {
            let allowed = "expected no such field beside `global_batch`, which gives their number";
            return out.field_error("microbatches", self.microbatches, allowed);
        }
        let replicas = self.replicas(out);
        if replicas == 0 || !self.gpus(out).is_multiple_of(self.gpus_of_replica()) {
            // A later check refuses these GPUs.
            return Ok(Cow::Borrowed(self));
        }
        let each = replicas.saturating_mul(self.micro_batch);
        if batch == 0 || !batch.is_multiple_of(each) {
            let near = (batch.saturating_add(each / 2) / each).max(1).saturating_mul(each);
            let allowed = format!(
                "expected a multiple of {each}, for {replicas} replicas with {} sequences in a microbatch, such as {near}",
                self.micro_batch
            );
            return out.field_error("global_batch", batch, allowed);
        }
        Ok(Cow::Owned(Transformer { microbatches: batch / each, global_batch: None, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{graph, tiny};
    use super::*;
    use crate::kinds::Traffic;
    use crate::testing::error_of;

    fn of_batch(global_batch: u32) -> Transformer {
        Transformer { tp: 2, pp: 2, global_batch: Some(global_batch), ..tiny() }
    }

    /// 16 GPUs are four replicas of TP 2 x PP 2; 24 sequences are six microbatches of one sequence, or three of two.
    #[test]
    fn a_global_batch_gives_the_microbatches() {
        for (micro_batch, microbatches) in [(1, 6), (2, 3)] {
            let job = Transformer { micro_batch, ..of_batch(24) };
            let same = Transformer { microbatches, micro_batch, global_batch: None, ..job.clone() };
            assert_eq!(graph(16, job), graph(16, same));
        }
    }

    #[test]
    fn a_batch_that_replicas_cannot_share_is_refused() {
        let error = |job: Transformer| error_of(16, Traffic::Transformer(job));
        let odd = error(of_batch(26));
        assert!(
            odd.contains("global_batch = 26: expected a multiple of 4") && odd.contains("such as 28"),
            "{odd}"
        );
        let none = error(of_batch(0));
        assert!(none.contains("such as 4"), "{none}");
        let both = error(Transformer { microbatches: 2, ..of_batch(24) });
        assert!(both.contains("microbatches = 2: expected no such field beside `global_batch`"), "{both}");
        let gpus = error(Transformer { tp: 4, pp: 2, gpus: Some(12), ..of_batch(24) });
        assert!(gpus.contains("gpus = 12: expected a multiple of 8"), "{gpus}");
    }
}
