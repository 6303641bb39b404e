//! Division of a job among stages and GPUs, with the checks that it needs.

use std::ops::Range;

use super::axes::{Axes, ORDER, Span, parse_order};
use super::gpu::{GpuModel, Speed};
use super::layers::Layers;
use super::memory;
use super::schedule::{Pipeline, PipelineSchedule};
use super::staged::Staged;
use super::{Optimizer, TFLOPS, Transformer, nearest_divisor};
use crate::architecture::Architecture;
use crate::error::WorkloadError;
use crate::graph::TrainingWork;
use crate::kinds::ranks::hosts_of_ranks;
use crate::sink::WorkloadBuilder;

/// Remedy for a job whose number of GPUs can be reduced.
const FEWER_GPUS: &str = "expected a `topology` with as many hosts, or fewer `gpus`";

/// Returns the layers of each chunk: as equal as possible, with fewer at the ends of the model, which have the
/// vocabulary's matrices.
fn equal_chunks(layers: u32, chunks: u32) -> Vec<u32> {
    let (each, more) = (layers / chunks, layers % chunks);
    let mut counts = vec![each; chunks as usize];
    if more == 0 {
        return counts;
    }
    // The last chunk gives way first, then the first, then their neighbours.
    let fewer = chunks - more;
    let (at_begin, at_end) = (fewer / 2, fewer.div_ceil(2));
    let middle = at_begin as usize..(chunks - at_end) as usize;
    counts[middle].iter_mut().for_each(|count| *count += 1);
    counts
}

fn ranges(counts: &[u32]) -> Vec<Range<u32>> {
    let mut first = 0;
    let range = |&count: &u32| {
        let range = first..first + count;
        first = range.end;
        range
    };
    counts.iter().map(range).collect()
}

impl Transformer {
    fn schedule(&self) -> PipelineSchedule {
        let usual = match self.vp {
            1 => PipelineSchedule::OneForwardOneBackward,
            _ => PipelineSchedule::Interleaved,
        };
        self.schedule.unwrap_or(usual)
    }

    fn speed(&self) -> Speed {
        match (self.tflops, self.gpu) {
            (Some(tflops), _) => Speed::Achieved(tflops),
            (None, Some(gpu)) => Speed::Gpu(gpu.data(), self.precision.unwrap_or_default(), self.efficiency),
            (None, None) => Speed::Achieved(TFLOPS),
        }
    }

    /// Returns the facts about an iteration for results.
    pub(super) fn training(&self, architecture: &Architecture, gpus: u32, replicas: u32) -> TrainingWork {
        let sequences = u64::from(replicas) * u64::from(self.microbatches) * u64::from(self.micro_batch);
        let tokens = sequences * u64::from(architecture.sequence);
        let flops = architecture.training_flops(architecture.sequence) * tokens as f64;
        let peak = self.gpu.map(|gpu| gpu.data().peak_tflops(self.precision.unwrap_or_default()));
        TrainingWork {
            gpus,
            sequences,
            tokens,
            megaflops: (flops / 1e6 + 0.5) as u64,
            scale_ppb: (self.scale * 1e9 + 0.5) as u32,
            peak_gigaflops: peak.map(|tflops| (tflops * 1e3) as u64),
        }
    }

    /// Returns the job with the work of each stage.
    pub(super) fn staged(
        &self,
        out: &mut WorkloadBuilder<'_>,
        architecture: Architecture,
    ) -> Result<Staged<'_>, WorkloadError> {
        if self.iterations == 0 {
            return out.field_error("iterations", 0, "expected 1 or more");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return out.field_error("scale", self.scale, "expected a factor above 0 and at most 1");
        }
        let axes = self.axes(out, &architecture)?;
        let pipeline = self.pipeline(out)?;
        let mut chunks = self.chunks(out, architecture.layers)?;
        // Layers that predict further tokens are beside the logits.
        if let Some(last) = chunks.last_mut() {
            last.end += architecture.mtp_layers;
        }
        self.check_speed(out)?;
        let hosts = hosts_of_ranks(out, &self.hosts, axes.gpus(), FEWER_GPUS)?;
        let replicas = axes.dp as u32;
        out.training(self.training(&architecture, axes.gpus() as u32, replicas));
        let layers = Layers {
            architecture,
            axes,
            speed: self.speed(),
            precision: self.precision.unwrap_or_default(),
            sequence: architecture.sequence,
            micro_batch: self.micro_batch,
            bytes_per_value: self.bytes_per_value,
            bytes_per_gradient: self.bytes_per_gradient,
            recompute: self.recompute.unwrap_or_default(),
            optimizer: self.optimizer,
            context: self.cp_kind.unwrap_or_default(),
            splits_backward: pipeline.schedule.splits_backward(),
        };
        let staged = Staged {
            layers,
            pipeline,
            chunks,
            algorithms: &self.algorithms,
            hosts,
            scale: self.scale,
            iterations: self.iterations,
        };
        if let Some(gpu) = self.gpu {
            out.memory(memory::of(&staged, gpu));
        }
        Ok(staged)
    }

    fn axes(&self, out: &WorkloadBuilder<'_>, architecture: &Architecture) -> Result<Axes, WorkloadError> {
        let gpus = self.gpus.unwrap_or(out.env.hosts);
        let each = u64::from(self.tp) * u64::from(self.cp) * u64::from(self.pp);
        if gpus == 0 || !u64::from(gpus).is_multiple_of(each) {
            // The nearest that needs no more hosts, if there is one.
            let near = (u64::from(gpus) / each).max(1) * each;
            let allowed = format!(
                "expected a multiple of {each}, which is TP {} x CP {} x PP {}, such as {near}; these may be set, too",
                self.tp, self.cp, self.pp
            );
            return out.field_error("gpus", gpus, allowed);
        }
        let tokens = u64::from(architecture.sequence);
        let parts = u64::from(self.tp) * u64::from(self.cp);
        if !tokens.is_multiple_of(parts) {
            let near = nearest_divisor(architecture.sequence / self.tp, self.cp);
            let allowed =
                format!("TP x CP is expected to divide the {tokens} tokens of a sequence, such as {near}");
            return out.field_error("cp", self.cp, allowed);
        }
        let dp = u64::from(gpus) / each;
        let stage = dp * parts;
        // Without experts nobody shares their matrices.
        let etp = self.etp.filter(|_| architecture.experts.is_some()).unwrap_or(self.tp);
        let experts = u64::from(etp) * u64::from(self.ep);
        if !stage.is_multiple_of(experts) {
            let allowed = format!(
                "EP x ETP (here {}) is expected to divide the {stage} GPUs of a stage, TP {} x CP {} x DP {dp}",
                experts, self.tp, self.cp
            );
            return match stage.is_multiple_of(u64::from(etp)) {
                true => out.field_error("ep", self.ep, allowed),
                false => out.field_error("etp", etp, allowed),
            };
        }
        let written = self.order.as_deref().unwrap_or(ORDER);
        let order = match parse_order(written) {
            Ok(order) => order,
            Err(allowed) => return out.field_error("order", format!("\"{written}\""), allowed),
        };
        let axes = Axes {
            tp: self.tp as usize,
            cp: self.cp as usize,
            dp: dp as usize,
            pp: self.pp as usize,
            etp: etp as usize,
            ep: self.ep as usize,
            edp: (stage / experts) as usize,
            order,
        };
        if !axes.stages_agree() {
            let allowed = "with these numbers, a GPU would have the experts of another stage; put pp last";
            return out.field_error("order", format!("\"{written}\""), allowed);
        }
        Ok(axes)
    }

    fn pipeline(&self, out: &WorkloadBuilder<'_>) -> Result<Pipeline, WorkloadError> {
        let schedule = self.schedule();
        match (schedule, self.vp) {
            (PipelineSchedule::Interleaved, 1) => {
                return out.field_error("vp", 1, "expected 2 chunks or more with schedule = \"interleaved\"");
            }
            (PipelineSchedule::Interleaved, _) | (_, 1) => {}
            (_, vp) => {
                return out.field_error("vp", vp, "expected 1, or schedule = \"interleaved\"");
            }
        }
        if schedule == PipelineSchedule::Interleaved && !self.microbatches.is_multiple_of(self.pp) {
            let near = (self.microbatches + self.pp / 2) / self.pp * self.pp;
            let allowed = format!(
                "expected a multiple of the {} stages with schedule = \"interleaved\", such as {}",
                self.pp,
                near.max(self.pp)
            );
            return out.field_error("microbatches", self.microbatches, allowed);
        }
        let sharded = matches!(self.optimizer, Optimizer::ShardedGradients | Optimizer::ShardedWeights);
        if schedule == PipelineSchedule::ZeroBubble && sharded {
            let allowed = "expected \"distributed\" or \"replicated\" with schedule = \"zero-bubble\", where gradients of weights come late";
            return out.field_error("optimizer", "sharded", allowed);
        }
        let work = u64::from(self.microbatches) * u64::from(self.vp) * u64::from(self.pp);
        if work > 1 << 24 {
            let most = (1u64 << 24) / (u64::from(self.vp) * u64::from(self.pp)).max(1);
            return out.field_error("microbatches", self.microbatches, format!("expected at most {most}"));
        }
        Ok(Pipeline { schedule, stages: self.pp, chunks: self.vp, microbatches: self.microbatches })
    }

    fn chunks(&self, out: &WorkloadBuilder<'_>, layers: u32) -> Result<Vec<Range<u32>>, WorkloadError> {
        let chunks = self.pp.saturating_mul(self.vp);
        if self.stage_layers.is_empty() {
            // The ends of the model may have its vocabulary only.
            let most = layers.saturating_add(2);
            if chunks > most {
                let allowed = format!(
                    "PP x VP is expected to be at most {most}, the layers and both ends; here it is {chunks}"
                );
                return out.field_error("pp", self.pp, allowed);
            }
            return Ok(ranges(&equal_chunks(layers, chunks)));
        }
        let sum = self.stage_layers.iter().fold(0u32, |sum, &count| sum.saturating_add(count));
        if self.stage_layers.len() != chunks as usize || sum != layers {
            let found = format!("{} numbers with the sum {sum}", self.stage_layers.len());
            let allowed = format!("expected {chunks} numbers, PP x VP, with the sum {layers}, the layers");
            return out.field_error("stage_layers", found, allowed);
        }
        Ok(ranges(&self.stage_layers))
    }

    fn check_speed(&self, out: &WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if let Some(efficiency) = self.efficiency.filter(|part| !(*part > 0.0 && *part <= 1.0)) {
            return out.field_error("efficiency", efficiency, "expected a part above 0 and at most 1");
        }
        let about_gpu = [("precision", self.precision.is_some()), ("efficiency", self.efficiency.is_some())];
        if let Some((field, _)) = about_gpu.into_iter().find(|(_, given)| *given && self.gpu.is_none()) {
            return out.field_error(field, "set", "expected a `gpu`, whose rates it is about");
        }
        let precision = self.precision.unwrap_or_default();
        match self.gpu.filter(|gpu| !gpu.has(precision)) {
            None => Ok(()),
            Some(gpu) => {
                let others: Vec<&str> =
                    GpuModel::ALL.into_iter().filter(|gpu| gpu.has(precision)).map(GpuModel::name).collect();
                let (gpu, others) = (gpu.name(), others.join(", "));
                let allowed = format!("expected \"bf16\" with gpu = \"{gpu}\", or one of the GPUs {others}");
                out.field_error("precision", "\"fp8\"", allowed)
            }
        }
    }
}

/// Returns the memory of the GPUs of a job.
impl Staged<'_> {
    /// Returns the number of ranks that share gradients, and those of experts.
    pub(super) fn sharers(&self) -> (usize, usize) {
        (self.layers.axes.ranks(Span::Data), self.layers.axes.ranks(Span::ExpertData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_model_have_fewer_layers() {
        // Llama 3 405B on 16 stages: 126 layers, 7 at either end.
        let counts = equal_chunks(126, 16);
        assert_eq!((counts[0], counts[15]), (7, 7));
        assert!(counts[1..15].iter().all(|&count| count == 8));
        assert_eq!(equal_chunks(6, 4), [1, 2, 2, 1]);
        assert_eq!(equal_chunks(7, 4), [2, 2, 2, 1]);
        assert_eq!(equal_chunks(5, 4), [1, 2, 1, 1]);
        assert_eq!(equal_chunks(8, 4), [2, 2, 2, 2]);
        assert_eq!(equal_chunks(2, 4), [0, 1, 1, 0]);
        assert_eq!(ranges(&[1, 2]), [0..1, 1..3]);
    }
}
